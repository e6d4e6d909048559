"""What waits for extraction: a person's conversations with a backlog, what the gates say of each, and the next
stretch of one with the files as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final
from zoneinfo import ZoneInfo

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from memory.logic.gate import GateInput, Verdict, decide, is_explicit_remember
from memory.logic.transcript import Transcript, build
from memory.models import Conversation, Entry, ExtractionState, Message
from memory.queries import current_entries, recalled_texts, waiting_messages
from memory.services.transcripts import lines_of
from workspaces.access import open_for_job
from workspaces.llm import model_in_force
from workspaces.logic.names import MEMORY, PROFILE, daily_note
from workspaces.models import Agent, Bucket, File
from workspaces.outbox import Delivery
from workspaces.queries import owner_name, zone_of
from workspaces.settings import Effective, effective
from workspaces.tenancy import tenant
from workspaces.types import BucketRef, Reach, Scope

_M: Final = "mate.memory."
PAGE: Final = 200
"""Conversations that are judged at a time, the latest first; an older page is looked at when none of it may go."""
SHOWN_ENTRIES: Final = 80
"""Entries that are shown to a model, so that it replaces what is there instead of adding to it."""
LOOKED_AT: Final = 50
"""The latest waiting messages of each that are looked at for an explicit request."""


@dataclass(frozen=True, slots=True)
class Job:
    """Whose memory is extracted. `own` holds the conversations, `target` the files that are written."""

    own: BucketRef
    target: BucketRef
    reach: Reach
    settings: Effective
    zone: ZoneInfo
    called: str
    model: str
    cooldown_until: datetime | None


@dataclass(frozen=True, slots=True)
class Judged:
    """A conversation with a backlog, and what the gates say of it."""

    conversation: Conversation
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as the model saw it."""

    text: str
    revision: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """One stretch of the backlog, with the files as they stood when it was read."""

    conversation: Conversation
    messages: tuple[Message, ...]
    transcript: Transcript
    day: date
    profile: Seen
    memory: Seen
    note: Seen
    injected: tuple[str, ...] = ()
    """What had been put before the agent in these turns."""
    entries: tuple[Entry, ...] = ()
    """The newest entries as they were, oldest first."""


def load_job(delivery: Delivery) -> Job | None:
    own, reach = open_for_job(delivery.bucket_id)
    with tenant(reach):
        agent = Agent.objects.of_workspace(own.workspace_id).filter(pk=own.agent_id).first()
        if agent is None:
            return None
        settings = effective(own.workspace_id, agent.pk)
        target = own if settings.flag(_M + "lifecycle-mediator-enabled") else _team_of(own)
        state = ExtractionState.objects.of(own).first()
        return Job(
            own=own,
            target=target,
            reach=Reach(own.workspace_id, reach.buckets, tuple({own.id, target.id})),
            settings=settings,
            zone=zone_of(own.workspace_id, own.owner_key),
            called=owner_name(own.workspace_id, own.owner_key),
            model=model_in_force(agent.model),
            cooldown_until=state.cooldown_until if state else None,
        )


def _team_of(own: BucketRef) -> BucketRef:
    pk = (
        Bucket.objects.of_workspace(own.workspace_id)
        .values_list("pk", flat=True)
        .get(agent_id=own.agent_id, owner=None)
    )
    return BucketRef(id=pk, workspace_id=own.workspace_id, scope=Scope.TEAM, agent_id=own.agent_id)


def judge(job: Job, delivery: Delivery, *, now: datetime) -> list[Judged]:
    """Conversations with a backlog and the verdict of each, in the order in which things were said: the latest page
    in which one may go, and those that came before it on the way there. Three queries a page."""
    manual = delivery.payload.get("conversation")
    found: list[Judged] = []
    before: int | None = None
    while True:
        with tenant(job.reach):
            rows = Conversation.objects.of(job.own)
            rows = rows.filter(pk=manual) if manual else rows.filter(last_message__gt=F("extracted_upto"))
            if before is not None:
                rows = rows.filter(last_message__lt=before)
            page = list(rows.order_by("-last_message")[:PAGE])
            said = _waiting_words(job, page)
            failed = set(
                Message.objects.of(job.own)
                .filter(pk__in=[one.last_message for one in page], failed=True)
                .values_list("conversation_id", flat=True)
            )
        judged = [
            Judged(
                one,
                _verdict(
                    job,
                    one,
                    said.get(one.pk, []),
                    is_manual=bool(manual),
                    has_failed=one.pk in failed,
                    now=now,
                ),
            )
            for one in page
        ]
        found += judged
        if len(page) < PAGE or any(one.verdict.go for one in judged):
            return sorted(found, key=lambda one: (one.conversation.last_at, one.conversation.pk))
        before = page[-1].last_message


def _waiting_words(job: Job, conversations: Sequence[Conversation]) -> dict[int, list[Message]]:
    """The latest that people said in each and that waits, the latest first: of a conversation that is too short
    yet, all."""
    most = max(LOOKED_AT, job.settings.count(_M + "min-messages-for-summarize"))
    rows = (
        Message.objects.of(job.own)
        .filter(
            conversation__in=[one.pk for one in conversations],
            role="user",
            pk__gt=F("conversation__extracted_upto"),
        )
        .annotate(place=Window(RowNumber(), partition_by="conversation_id", order_by="-pk"))
        .filter(place__lte=most)
        .order_by("-pk")
    )
    found: dict[int, list[Message]] = {}
    for row in rows:
        found.setdefault(row.conversation_id, []).append(row)
    return found


def _verdict(
    job: Job,
    conversation: Conversation,
    said: Sequence[Message],
    *,
    is_manual: bool,
    has_failed: bool,
    now: datetime,
) -> Verdict:
    settings = job.settings
    return decide(
        GateInput(
            auto_enabled=settings.flag(_M + "auto-summarize-enabled"),
            source=conversation.source,
            skip_cron=settings.flag(_M + "skip-cron-conversations"),
            message_count=conversation.length,
            min_messages=settings.count(_M + "min-messages-for-summarize"),
            last_user_length=len(said[0].content) if said else 0,
            min_length=settings.count(_M + "min-user-message-length"),
            explicit=any(one.is_owner and is_explicit_remember(one.content) for one in said),
            manual=is_manual,
            cooldown_until=job.cooldown_until,
            now=now,
            last_answer_failed=has_failed,
        )
    )


def read_window(job: Job, conversation: Conversation) -> Stretch | None:
    """The next messages of one day, and the files as they stand; None when the backlog is worked through."""
    with tenant(job.reach):
        conversation = Conversation.objects.of(job.own).filter(pk=conversation.pk).first()
        most = job.settings.count(_M + "max-transcript-messages")
        waiting = waiting_messages(conversation, limit=most) if conversation else []
        if not waiting:
            return None
        day = waiting[0].at.astimezone(job.zone).date()
        messages = _same_day(waiting, day, job.zone)
        injected = recalled_texts(conversation, question_ids=[message.pk for message in messages])
        return Stretch(
            conversation=conversation,
            messages=messages,
            transcript=build(
                list(lines_of([m for m in messages if not m.failed], zone=job.zone, called=job.called)),
                zone=job.zone,
                max_messages=most,
                injected=injected,
            ),
            day=day,
            profile=_seen(job.target, PROFILE),
            memory=_seen(job.target, MEMORY),
            note=_seen(job.target, daily_note(day)),
            injected=tuple(injected),
            entries=tuple(current_entries(job.target, now=timezone.now())[:SHOWN_ENTRIES])[::-1],
        )


def _same_day(waiting: Sequence[Message], day: date, zone: ZoneInfo) -> tuple[Message, ...]:
    """The messages up to the first of another day: a note is about one day."""
    taken: list[Message] = []
    for message in waiting:
        if message.at.astimezone(zone).date() != day:
            break
        taken.append(message)
    return tuple(taken)


def _seen(bucket: BucketRef, name: str) -> Seen:
    row = File.objects.of(bucket).filter(name=name).values_list("content", "head").first()
    return Seen("", 0) if row is None else Seen(*row)
