"""The window of one turn: everything that is put before the agent, and where each part came from.

The order is the system prompt, the files, the always-on block, the summary of earlier turns (as a user
message: what people once said never becomes an instruction), the messages, and last the recalled block with
the current message. What does not fit is summarised, then dropped, and the window says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.utils import timezone

from integrations.clients.models.answers import ChatMessage
from memory.logic import window
from memory.models import Conversation, Message
from memory.queries import messages_of
from memory.services.recall import Recalled, recall_for_turn
from memory.services.summaries import summarise_earlier, summary_in_force
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
    own, now = opened.own, timezone.now()
    with tenant(opened.reach):
        settings = effective(opened.agent.workspace_id, opened.agent.id)
        system = system_text(opened.agent)
        earlier = _history(conversation, before=before)
        summary = summary_in_force(conversation, now=now) if conversation else None
    recalled = recall_for_turn(opened, query=query, settings=settings, max_tokens=max_recalled_tokens)
    always_on = ""  # Entries fill it; until there are any, their room stays empty.
    fixed = estimate(system) + estimate(always_on) + estimate_message(recalled.block + query)
    budget = settings.count(_WINDOW + "default-max-input-tokens")
    covered = 0
    if summary is not None:
        covered = sum(1 for message in earlier if message.pk <= summary.upto)
        earlier = [message for message in earlier if message.pk > summary.upto]
        fixed += estimate_message(summary.text)
    plan = window.plan_compaction(
        _sized(earlier),
        fixed_tokens=fixed,
        budget=budget,
        trigger_ratio=settings.ratio(_WINDOW + "compact-trigger-ratio"),
        preserve_pairs=settings.count(_WINDOW + "preserve-recent-pairs"),
        protect_min=settings.count(_WINDOW + "protect-last-min-messages"),
    )
    dropped = 0
    if plan.is_needed and own is not None and conversation is not None:
        old = [earlier[index] for index in plan.summarise]
        earlier = [earlier[index] for index in plan.keep]
        newer = summarise_earlier(
            own,
            conversation,
            old,
            previous=summary,
            model=model_in_force(opened.agent.model),
            max_tokens=settings.count(_WINDOW + "summary-max-tokens"),
            now=now,
        )
        if newer is None:
            dropped += len(old)
        else:
            fixed += estimate_message(newer.text) - (estimate_message(summary.text) if summary else 0)
            covered += len(old)
            summary = newer
    kept = window.hard_trim(_sized(earlier), fixed_tokens=fixed, budget=budget)
    dropped += len(earlier) - len(kept)
    history = [ChatMessage(_role(earlier[index]), _text(earlier[index])) for index in kept]
    if summary is not None:
        history.insert(0, ChatMessage("user", f"[Summary of the earlier conversation]\n{summary.text}"))
    return ContextWindow(
        system=system,
        always_on=always_on,
        history=tuple(history),
        current=query,
        recalled=recalled,
        tokens=fixed + sum(earlier[index].tokens for index in kept),
        budget=budget,
        summarised=covered,
        dropped=dropped,
        settings=settings,
        sizes={
            "system": estimate(system),
            "alwaysOn": estimate(always_on),
            "recalled": estimate(recalled.block),
        },
    )


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


def _history(conversation: Conversation | None, *, before: int | None) -> list[Message]:
    if conversation is None:
        return []
    rows = messages_of(conversation).filter(role__in=_SPOKEN, failed=False)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return list(rows.order_by("-pk")[:MOST_MESSAGES])[::-1]


def _sized(messages: list[Message]) -> list[window.Sized]:
    return [window.Sized(message.role, message.tokens) for message in messages]


def _role(message: Message) -> Any:
    return "assistant" if message.role == "assistant" else "user"


def _text(message: Message) -> str:
    """Other people's words in a user's message keep their speaker."""
    if message.role == "user" and not message.is_owner and message.speaker:
        return f"{message.speaker}: {message.content}"
    return message.content
