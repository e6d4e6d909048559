"""The window of one turn: everything that is put before the agent, and where each part came from.

The order is the system prompt, the files, the always-on block, the summary of earlier turns (as a user
message: what people once said never becomes an instruction), the messages, and last the recalled block with
the current message. What does not fit is summarised, then dropped, and the window says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from integrations.clients.models.answers import ChatMessage
from memory.logic import window
from memory.models import Conversation, Message
from memory.providers.chain import plugins_in_force
from memory.queries import messages_of
from memory.services.always_on import always_on_text
from memory.services.recall import Recalled, recall_for_turn
from memory.services.summaries import Summary, summarise_earlier, summary_in_force
from workspaces.access import AgentRef, Opened
from workspaces.llm import model_in_force
from workspaces.logic.tokens import estimate, estimate_message
from workspaces.queries import prompt_files
from workspaces.settings import Effective, effective
from workspaces.tenancy import tenant

_WINDOW: Final = "mate.agent.conversation.window."
MOST_MESSAGES: Final = 400
"""Messages looked at in a turn; what lies further back is in the summary, and in memory."""
_SPOKEN: Final = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The prompt of one turn, part by part. `history` holds the summary as its first message, if there is one.

    `summarised` and `dropped` count the messages that stand in the summary, and those that stand nowhere.
    """

    system: str
    always_on: str
    history: tuple[ChatMessage, ...]
    current: str
    recalled: Recalled
    tokens: int
    budget: int
    summarised: int
    dropped: int
    settings: Effective
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def system_prompt(self) -> str:
        """What reaches the model as instructions: the same bytes until a file or an entry changes."""
        return "\n\n".join(part for part in (self.system, self.always_on) if part)

    @property
    def messages(self) -> list[ChatMessage]:
        """The messages, the current one last with the recalled block before it."""
        last = f"{self.recalled.block}\n\n{self.current}" if self.recalled.block else self.current
        return [*self.history, ChatMessage("user", last)]

    def shown(self) -> dict[str, Any]:
        """What an answer tells about its window."""
        return {
            "tokens": self.tokens,
            "budget": self.budget,
            "summarised": self.summarised,
            "dropped": self.dropped,
            "recallMs": self.recalled.ms,
        }


def build_context(
    opened: Opened,
    *,
    query: str,
    conversation: Conversation | None = None,
    before: int | None = None,
    max_recalled_tokens: int | None = None,
) -> ContextWindow:
    """The window for a message. Opens its own short transactions; may ask a model for a summary between them.

    `before` is the id of the message that is being answered: history ends there;
    `max_recalled_tokens` bounds the recalled block further than the settings do.
    """
    now = timezone.now()
    with tenant(opened.reach):
        settings = effective(opened.agent.workspace_id, opened.agent.id)
        system = system_text(opened.agent)
        always_on = always_on_text(opened, settings=settings, now=now)
        earlier = _earlier(conversation, before=before, now=now)
        plugins = plugins_in_force(opened.agent.workspace_id)
    recalled = recall_for_turn(
        opened,
        query=query,
        settings=settings,
        conversation=conversation,
        max_tokens=max_recalled_tokens,
        plugins=plugins,
    )
    system = "\n\n".join((system, *recalled.system_blocks))
    fixed = estimate(system) + estimate(always_on) + estimate_message(recalled.block + query)
    budget = settings.count(_WINDOW + "default-max-input-tokens")
    if conversation is not None:
        _compact(earlier, opened, conversation, fixed=fixed, budget=budget, settings=settings, now=now)
    kept = window.hard_trim(_sized(earlier.messages), fixed_tokens=fixed + earlier.tokens, budget=budget)
    earlier.keep(kept)
    return ContextWindow(
        system=system,
        always_on=always_on,
        history=earlier.history(),
        current=query,
        recalled=recalled,
        tokens=fixed + earlier.tokens + sum(message.tokens for message in earlier.messages),
        budget=budget,
        summarised=earlier.covered,
        dropped=earlier.dropped,
        settings=settings,
        sizes={
            "system": estimate(system),
            "alwaysOn": estimate(always_on),
            "recalled": estimate(recalled.block),
        },
    )


@dataclass(slots=True)
class _Earlier:
    """What was said before: the messages that stand, the summary that stands for others, and what stands nowhere."""

    messages: list[Message]
    summary: Summary | None = None
    covered: int = 0
    dropped: int = 0

    @property
    def tokens(self) -> int:
        """Those of the summary."""
        return estimate_message(self.summary.text) if self.summary else 0

    def keep(self, places: Sequence[int]) -> None:
        """Only the messages at these places; the others are dropped."""
        self.dropped += len(self.messages) - len(places)
        self.messages = [self.messages[index] for index in places]

    def history(self) -> tuple[ChatMessage, ...]:
        """As the model reads it, the summary first."""
        told = [ChatMessage(_role(message), _text(message)) for message in self.messages]
        if self.summary is not None:
            told.insert(0, ChatMessage("user", f"[Summary of the earlier conversation]\n{self.summary.text}"))
        return tuple(told)


def _earlier(conversation: Conversation | None, *, before: int | None, now: datetime) -> _Earlier:
    """The latest messages, and the summary that holds for those before. Inside `tenant(…)`."""
    if conversation is None:
        return _Earlier([])
    rows = messages_of(conversation).filter(role__in=_SPOKEN, failed=False)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    summary = summary_in_force(conversation, now=now)
    fresh = rows.filter(pk__gt=summary.upto) if summary else rows
    messages = list(fresh.order_by("-pk")[:MOST_MESSAGES])[::-1]
    beyond = fresh.count() - len(messages) if len(messages) == MOST_MESSAGES else 0
    covered = rows.filter(pk__lte=summary.upto).count() if summary else 0
    return _Earlier(messages, summary, covered=covered, dropped=beyond)


def _compact(
    earlier: _Earlier,
    opened: Opened,
    conversation: Conversation,
    *,
    fixed: int,
    budget: int,
    settings: Effective,
    now: datetime,
) -> None:
    """Stage 1: the oldest messages become a summary, or are dropped when that fails. Outside any transaction."""
    plan = window.plan_compaction(
        _sized(earlier.messages),
        fixed_tokens=fixed + earlier.tokens,
        budget=budget,
        trigger_ratio=settings.ratio(_WINDOW + "compact-trigger-ratio"),
        preserve_pairs=settings.count(_WINDOW + "preserve-recent-pairs"),
        protect_min=settings.count(_WINDOW + "protect-last-min-messages"),
    )
    if not plan.is_needed:
        return
    old = [earlier.messages[index] for index in plan.summarise]
    newer = summarise_earlier(
        opened.personal(),
        conversation,
        old,
        previous=earlier.summary,
        model=model_in_force(opened.agent.model),
        max_tokens=settings.count(_WINDOW + "summary-max-tokens"),
        now=now,
    )
    earlier.messages = [earlier.messages[index] for index in plan.keep]
    if newer is None:
        earlier.dropped += len(old)
    else:
        earlier.covered += len(old)
        earlier.summary = newer


def emergency(context: ContextWindow) -> ContextWindow:
    """Stage 2, after a provider refused the prompt as too long: the last two turns and no summary."""
    has_summary = bool(context.summarised)
    turns = context.history[1:] if has_summary else context.history
    kept = window.emergency([window.Sized(one.role, estimate_message(one.text)) for one in turns])
    history = tuple(turns[index] for index in kept)
    return replace(
        context,
        history=history,
        dropped=context.dropped + context.summarised + len(turns) - len(history),
        summarised=0,
        tokens=estimate(context.system_prompt) + sum(estimate_message(one.text) for one in history),
    )


def system_text(agent: AgentRef) -> str:
    """The agent's own prompt and the enabled files of GLOBAL and TEAM. Inside `tenant(…)`; one query."""
    parts = [agent.system_prompt.strip()] if agent.system_prompt.strip() else []
    parts += [f"--- {file.name} ---\n{file.content.rstrip()}" for file in prompt_files(agent.team)]
    return "\n\n".join(parts)


def _sized(messages: list[Message]) -> list[window.Sized]:
    return [window.Sized(message.role, message.tokens) for message in messages]


def _role(message: Message) -> Any:
    return "assistant" if message.role == "assistant" else "user"


def _text(message: Message) -> str:
    """Other people's words in a user's message keep their speaker."""
    if message.role == "user" and not message.is_owner and message.speaker:
        return f"{message.speaker}: {message.content}"
    return message.content
