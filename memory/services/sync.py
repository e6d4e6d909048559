"""Telling plugins what was said, after the turn: through the outbox, so that nothing is lost and no turn waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from integrations.clients.errors import ProviderError
from memory.models import Message
from memory.providers.base import SyncsTurns
from memory.providers.chain import disabled_providers
from memory.providers.plugged import Made, Plugged, failure_of, plugged, plugged_in
from memory.types import SaidMessage, SaidTurn
from workspaces import outbox
from workspaces.access import open_for_job
from workspaces.outbox import Delivery
from workspaces.services.calls import BusyError, DeadlineError
from workspaces.settings import effective
from workspaces.tenancy import tenant
from workspaces.types import BucketRef

SYNC: Final = "memory.sync"
"""The topic; its lanes are one for each bucket and plugin, so that one that is away holds up no other."""
SYNC_TIMEOUT_S: Final = 30.0


def announce_turn(own: BucketRef, messages: Sequence[Message]) -> None:
    """Queues what was said for each plugin that keeps turns: one outbox message a plugin, in the caller's `tenant(…)`.

    What another runtime answered comes in one request, and is told as one turn.
    """
    plugins = [one for one in plugged_in(own.workspace_id) if one.may_sync]
    if not plugins:
        return
    disabled = disabled_providers(effective(own.workspace_id, own.agent_id))
    for one in plugins:
        if one.kind not in disabled:
            payload = {"plugin": one.kind, "messages": [message.pk for message in messages]}
            outbox.emit(own, SYNC, payload=payload, part=one.kind)


def handle_sync(delivery: Delivery) -> None:
    """The handler of `memory.sync`: tells a plugin one turn. Of one that is switched off meanwhile, nothing is told.

    A plugin that fails is told again, later and under the same key; nothing passes it in its bucket's lane.
    """
    own, reach = open_for_job(delivery.bucket_id)
    with tenant(reach):
        plugin = plugged(own.workspace_id, delivery.payload["plugin"])
        turn = _turn(own, delivery.payload["messages"])
    if plugin is not None and turn is not None:
        _tell(plugin, own, turn)
    with delivery.finishing(own):
        pass


def _tell(plugin: Plugged, own: BucketRef, turn: SaidTurn) -> None:
    def work(made: Made) -> None:
        if isinstance(made.provider, SyncsTurns):
            made.provider.sync_turn(own, turn)

    try:
        plugin.within(SYNC_TIMEOUT_S, work)
    except (DeadlineError, BusyError) as error:
        raise ProviderError(f"{plugin.kind}: {error}", retryable=True, kind="timeout") from None
    except Exception as error:  # noqa: BLE001 - raised again as what the outbox keeps and tries again
        # Its own words may quote what it was given; what is kept with the message has no secret in it.
        told = f"{plugin.kind}: {failure_of(plugin, error)}"
        raise ProviderError(told, retryable=True, kind="unavailable") from None


def _turn(own: BucketRef, ids: Sequence[int]) -> SaidTurn | None:
    """What is still there of those messages; None for nothing."""
    rows = list(
        Message.objects.of(own).filter(pk__in=list(ids)).select_related("conversation").order_by("pk")
    )
    if not rows:
        return None
    return SaidTurn(
        key=f"message:{ids[0]}",
        conversation=rows[0].conversation.external_id,
        messages=tuple(
            SaidMessage(
                id=row.pk,
                role=row.role,
                content=row.content,
                speaker="" if row.is_owner else row.speaker,
                at=row.at,
            )
            for row in rows
        ),
    )
