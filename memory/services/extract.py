"""Extraction: what a conversation holds that is worth keeping goes into the person's files.

Works a conversation's backlog in windows, each applied in one transaction with the watermark that says how far
it got: a crash repeats at most the window that was being thought about, and stores it once. The lane of the
bucket is the lock; the cooldown is a row; a turn that is held back keeps its place before the watermark.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.utils import timezone

from integrations.clients.errors import ProviderError
from memory.logic.gate import Reason
from memory.models import Conversation, ExtractionState
from memory.prompts.extract import Extract, ExtractAnswer, ExtractGiven
from memory.services.backlog import Job, Judged, Stretch, judge, load_job, read_window
from memory.services.learning import MOST_QUARANTINED, Proposal, Stored, propose, store
from memory.services.turns import EXTRACT
from workspaces import outbox
from workspaces.access import open_for_job
from workspaces.llm import RULES, Answered, ask
from workspaces.logic.names import MEMORY, PROFILE, daily_note, is_daily_note
from workspaces.models import Change, Run
from workspaces.outbox import Delivery, LeaseLostError, ParkError
from workspaces.services.files import Author, Written, append_to_file, lock_files, rewrite_file
from workspaces.tenancy import tenant
from workspaces.types import AuthorKind, BucketRef, RunStatus

KIND: Final = "extract"
ACTOR: Final = "job:extract"
_M: Final = "mate.memory."
SITTING_S: Final = 240.0
"""Seconds of one sitting over a long backlog; well within the worker's limit."""
SHOWN_CHARS: Final = 16_000
"""Characters of each file that a model is shown; a ceiling above that is shown whole."""


@dataclass(slots=True)
class _Tally:
    """What a run has done so far; stored with it after each window, so that a retry goes on counting."""

    files: dict[str, None] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    echoes: int = 0
    windows: int = 0
    messages: int = 0
    entries: int = 0
    facts: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    quarantined: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, run: Run) -> _Tally:
        """Where that run stands."""
        done = run.result
        return cls(
            files=dict.fromkeys(run.written.get("files", [])),
            reasons=[run.detail] if done.get("windows") else [],
            notes=list(done.get("notes", [])),
            echoes=done.get("echoesStripped", 0),
            windows=done.get("windows", 0),
            messages=done.get("messages", 0),
            entries=run.written.get("entries", 0),
            facts=run.written.get("facts", 0),
            refused=Counter(done.get("refused", {})),
            quarantined=list(done.get("quarantined", [])),
        )

    def learned(self, proposal: Proposal, stored: Stored) -> None:
        """Adds what a window's answer proposed and what became of it."""
        self.entries += stored.entries
        self.facts += stored.facts
        self.refused += proposal.refused + stored.refused
        self.echoes += sum(count for why, count in proposal.refused.items() if why.endswith(".echo"))
        self.quarantined = [*self.quarantined, *proposal.quarantined][:MOST_QUARANTINED]


def handle_extraction(delivery: Delivery) -> None:
    """The handler of `memory.extract`: gates each conversation that has a backlog, works through those that may
    go, then starts the cooldown. A manual message is about one conversation only."""
    job = load_job(delivery)
    if job is None:
        own, reach = open_for_job(delivery.bucket_id)
        with delivery.finishing(reach):
            _close_queued(own, delivery, reason="agent_gone")
        return
    judged = judge(job, delivery, now=timezone.now())
    run = _left_behind(job, delivery)
    if not _may_go(judged) and run is None:
        _hold_back(job, delivery, judged, until=_held_until(judged))
        return
    run = _begin(job, delivery, run, _may_go(judged))
    tally = _Tally.of(run)
    try:
        left = _work_through(job, delivery, run, judged, tally)
        if left is None:
            # Not done in one sitting: the rest comes at once, and the lane is free for a moment.
            with delivery.deferring(job.reach, until=timezone.now()):
                pass
            return
        # What a cooldown holds comes again by itself.
        _finish(job, delivery, run, tally, comes_again=_held_until(left) is not None)
    except LeaseLostError:
        raise
    except Exception as error:  # the run tells it; the outbox's door retries, then parks
        _fail(job, delivery, run, error)
        raise


def _may_go(judged: Sequence[Judged]) -> list[Judged]:
    return [one for one in judged if one.verdict.go]


def _state(one: Judged) -> tuple[int, int]:
    return one.conversation.pk, one.conversation.last_message


def _held_until(judged: Sequence[Judged]) -> datetime | None:
    """When the first of those that a cooldown holds may go."""
    return min((one.verdict.until for one in judged if one.verdict.until is not None), default=None)


def _work_through(
    job: Job, delivery: Delivery, run: Run, judged: Sequence[Judged], tally: _Tally
) -> Sequence[Judged] | None:
    """Works the backlog, window by window and page by page: what is left then, which no gate lets through; None
    when the time of a sitting is up before."""
    began = time.monotonic()
    worked: set[tuple[int, int]] = set()
    while going := [one for one in _may_go(judged) if _state(one) not in worked]:
        # Only news brings a conversation back: one whose backlog is empty in spite of its marks must not go round.
        worked.update(map(_state, going))
        for one in going:
            while (window := read_window(job, one.conversation)) is not None:
                if time.monotonic() - began > SITTING_S:
                    return None
                answered = _think(job, window)
                proposal = (
                    Proposal() if answered is None else propose(job, window, answered, now=timezone.now())
                )
                _apply(job, delivery, run, window, answered, proposal, tally)
        if delivery.payload.get("conversation"):
            return []
        judged = judge(job, delivery, now=timezone.now())
    return judged


def queue_manual(own: BucketRef, conversation: Conversation, *, actor: str) -> Run:
    """A run that a person asked for. Inside the caller's `tenant(…)`; count, length and cooldown do not hold it."""
    run: Run = Run.objects.create(
        workspace_id=own.workspace_id,
        bucket_id=own.id,
        kind=KIND,
        trigger="manual",
        actor=actor,
        subject=conversation.external_id,
        created_at=timezone.now(),
    )
    outbox.emit(
        own, EXTRACT, key=f"manual:{run.pk}", payload={"conversation": conversation.pk, "run": run.pk}
    )
    return run


# --- think ------------------------------------------------------------------------------------------------


def _think(job: Job, window: Stretch) -> Answered[ExtractAnswer] | None:
    """The answer, by the model or by rules; None when the window holds no words of anybody."""
    if not window.transcript.lines:
        return None
    profile, memory, note = window.profile.text, window.memory.text, window.note.text
    if job.model != RULES:
        # Rules rewrite the whole text; a model is shown what fits, the latest of the note.
        profile = _shown(profile, job.settings.count(_M + "profile-max-chars"))
        memory = _shown(memory, job.settings.count(_M + "memory-md-max-chars"))
        note = note[-SHOWN_CHARS // 2 :]
    given = ExtractGiven(
        transcript=window.transcript,
        profile=profile,
        memory=memory,
        note=note,
        owner=job.called,
        today=window.day,
        profile_cap=job.settings.count(_M + "profile-max-chars"),
        memory_cap=job.settings.count(_M + "memory-md-max-chars"),
        entries="\n".join(f"{one.type}/{one.key}: {' '.join(one.content.split())}" for one in window.entries),
    )
    return ask(
        job.own,
        Extract(),
        given,
        purpose=KIND,
        model=job.model,
        max_tokens=job.settings.count(_M + "summary-max-tokens"),
    )


def _shown(text: str, cap: int) -> str:
    most = max(cap, SHOWN_CHARS)
    return text if len(text) <= most else f"{text[:most]}\n… [{len(text) - most} more characters]"


# --- apply ------------------------------------------------------------------------------------------------


def _apply(  # noqa: PLR0917 - the window's parts, each once
    job: Job,
    delivery: Delivery,
    run: Run,
    window: Stretch,
    answered: Answered[ExtractAnswer] | None,
    proposal: Proposal,
    tally: _Tally,
) -> None:
    """Writes one window and moves the watermark past it, both or neither."""
    with delivery.step(job.reach):
        upto = window.messages[-1].pk
        is_there = (
            Conversation.objects.of(job.own).filter(pk=window.conversation.pk).update(extracted_upto=upto)
        )
        if not is_there:
            # Deleted while the model thought: nothing is learned from it.
            return
        written = [] if answered is None else _write(job, run, window, answered.value)
        for one in written:
            tally.files[one.name] = None
            tally.notes.extend(one.notes)
        if answered is not None:
            author = _author(run, answered.value)
            stored = store(job, run, window, proposal, author=author, now=timezone.now())
            tally.learned(proposal, stored)
        tally.windows += 1
        tally.messages += len(window.messages)
        tally.echoes += window.transcript.echoes
        if answered is not None:
            tally.reasons.append(answered.value.reason)
            run.model, run.prompt_version = answered.model[:128], answered.prompt_version
            run.input_tokens += answered.input_tokens
            run.output_tokens += answered.output_tokens
            if answered.cost_usd is not None:
                run.cost_usd = (run.cost_usd or Decimal(0)) + answered.cost_usd
        _store_tally(run, tally)


def _write(job: Job, run: Run, window: Stretch, answer: ExtractAnswer) -> list[Written]:
    if not answer.should_update:
        return []
    author = _author(run, answer)
    note = daily_note(window.day)
    wanted = ((note, answer.daily_entry), (MEMORY, answer.memory_update), (PROFILE, answer.profile_update))
    # All at once and in the one order, so that nobody who writes several files waits for us in turn.
    lock_files(job.target, [name for name, text in wanted if text and text.strip()])
    written: list[Written] = []
    if answer.daily_entry and answer.daily_entry.strip():
        written.append(
            append_to_file(job.target, note, answer.daily_entry, author=author, title=f"# {window.day}")
        )
    rewrites = (
        (MEMORY, answer.memory_update, window.memory, job.settings.count(_M + "memory-md-max-chars")),
        (PROFILE, answer.profile_update, window.profile, job.settings.count(_M + "profile-max-chars")),
    )
    for name, proposed, seen, cap in rewrites:
        if proposed and proposed.strip():
            written.append(
                rewrite_file(job.target, name, proposed, read_revision=seen.revision, author=author, cap=cap)
            )
    changed = [one for one in written if one.is_changed]
    for one in changed:
        _note_change(run, one, window)
    return changed


def _author(run: Run, answer: ExtractAnswer) -> Author:
    return Author(AuthorKind.MACHINE, ACTOR, reason=answer.reason[:300], run_id=run.pk)


def _note_change(run: Run, written: Written, window: Stretch) -> None:
    Change.objects.create(
        workspace_id=run.workspace_id,
        bucket_id=run.bucket_id,
        run=run,
        target_kind="file",
        target=written.name,
        # Of a diary, what was added; of a rewrite, all of it.
        before="" if is_daily_note(written.name) else written.before,
        after=written.content[len(written.before) :] if is_daily_note(written.name) else written.content,
        before_revision=written.revision - 1,
        after_revision=written.revision,
        quotes=[
            {"messageId": line.message_id, "speaker": line.name, "text": line.text[:500]}
            for line in window.transcript.lines
            if line.is_owner
        ],
        note="\n".join(written.notes),
        created_at=timezone.now(),
    )


# --- the run's life ---------------------------------------------------------------------------------------


def _left_behind(job: Job, delivery: Delivery) -> Run | None:
    """The run that a crash left behind, or that a person queued."""
    with tenant(job.reach):
        found: Run | None = (
            Run.objects.of(job.own)
            .filter(pk=delivery.payload.get("run"), status__in=[RunStatus.QUEUED, RunStatus.RUNNING])
            .first()
        )
    # One that a person queued and that never began is held back like any other.
    return None if found is not None and found.status == RunStatus.QUEUED.value else found


def _begin(job: Job, delivery: Delivery, run: Run | None, going: Sequence[Judged]) -> Run:
    """The run of this message: the one that goes on, the one a person queued, or a new one."""
    now = timezone.now()
    with delivery.step(job.reach):
        if run is None:
            run = (
                Run.objects.of(job.own)
                .filter(pk=delivery.payload.get("run"), status=RunStatus.QUEUED)
                .first()
            )
        if run is None:
            run = Run(
                workspace_id=job.own.workspace_id,
                bucket_id=job.own.id,
                kind=KIND,
                trigger="turn",
                actor=ACTOR,
                subject=", ".join(one.conversation.external_id for one in going)[:200],
                created_at=now,
            )
        run.status = RunStatus.RUNNING.value
        if going:
            run.reason = going[0].verdict.reason.value
        run.started_at = run.started_at or now
        run.save()
        delivery.note(run=run.pk)
    return run


def _store_tally(run: Run, tally: _Tally) -> None:
    run.written = {"files": list(tally.files), "entries": tally.entries, "facts": tally.facts}
    run.result = {
        "windows": tally.windows,
        "messages": tally.messages,
        "echoesStripped": tally.echoes,
        "notes": tally.notes,
        "refused": dict(tally.refused),
        "quarantined": tally.quarantined,
    }
    run.detail = " ".join(dict.fromkeys(reason for reason in tally.reasons if reason))[:2000]
    run.save()


def _finish(job: Job, delivery: Delivery, run: Run, tally: _Tally, *, comes_again: bool) -> None:
    """Closes the run and starts the cooldown. With `comes_again` the message falls due when that ends."""
    now = timezone.now()
    cooled = now + timedelta(minutes=job.settings.count(_M + "cooldown-minutes"))
    closing = delivery.deferring(job.reach, until=cooled) if comes_again else delivery.finishing(job.reach)
    with closing:
        is_stored = bool(tally.files or tally.entries or tally.facts)
        run.status = (RunStatus.STORED if is_stored else RunStatus.NOTHING).value
        run.reason = "stored" if is_stored else "nothing_worth_keeping"
        if not tally.windows:
            run.reason = "nothing_new"
            run.detail = "Every message was worked through before."
        run.finished_at = now
        run.save()
        if tally.reasons:
            # Only a run that analysed something cools the bucket down; a failed or skipped one does not.
            ExtractionState.unscoped.update_or_create(
                bucket_id=job.own.id,
                defaults={"workspace_id": job.own.workspace_id, "cooldown_until": cooled},
            )


def _hold_back(job: Job, delivery: Delivery, judged: Sequence[Judged], *, until: datetime | None) -> None:
    """What a gate holds back stays before the watermark; after a cooldown it comes again by itself."""
    if until is not None:
        with delivery.deferring(job.reach, until=until):
            pass
        return
    with delivery.finishing(job.reach):
        reason = judged[-1].verdict.reason if judged else None
        if _close_queued(job.own, delivery, reason=reason.value if reason else "conversation_gone"):
            return
        for one in judged:
            is_told = one.conversation.skip_told_upto >= one.conversation.last_message
            if one.verdict.reason in _TOLD and not is_told:
                _tell_skipped(job, one)


def _tell_skipped(job: Job, one: Judged) -> None:
    """Says once for each stretch of messages that it was skipped, and why."""
    rows = Conversation.objects.of(job.own).filter(pk=one.conversation.pk)
    if not rows.filter(skip_told_upto__lt=one.conversation.last_message).update(
        skip_told_upto=one.conversation.last_message
    ):
        return
    now = timezone.now()
    Run.objects.create(
        workspace_id=job.own.workspace_id,
        bucket_id=job.own.id,
        kind=KIND,
        status=RunStatus.SKIPPED.value,
        trigger="turn",
        actor=ACTOR,
        subject=one.conversation.external_id,
        reason=one.verdict.reason.value,
        created_at=now,
        finished_at=now,
    )


_TOLD: Final = frozenset({Reason.AUTO_DISABLED, Reason.CRON_SOURCE, Reason.ANSWER_FAILED})
"""Why a turn is skipped that a person may want to read. Short conversations are no news: they come again."""


def _close_queued(own: BucketRef, delivery: Delivery, *, reason: str) -> int:
    """Ends the run that a person had queued, if there is one."""
    rows = Run.objects.of(own).filter(
        pk=delivery.payload.get("run"), status__in=[RunStatus.QUEUED, RunStatus.RUNNING]
    )
    return int(rows.update(status=RunStatus.SKIPPED.value, reason=reason, finished_at=timezone.now()))


def _fail(job: Job, delivery: Delivery, run: Run, error: Exception) -> None:
    """Says so in the run while the message is retried; the last retry leaves it failed and parked."""
    with delivery.step(job.reach):
        is_over = delivery.is_last_try or isinstance(error, ParkError)
        run.refresh_from_db(fields=["written", "result"])
        run.status = RunStatus.FAILED.value if is_over else RunStatus.RUNNING.value
        run.reason = f"model_{error.kind}" if isinstance(error, ProviderError) else type(error).__name__[:64]
        run.detail = str(error)[:2000]
        run.finished_at = timezone.now() if is_over else None
        run.save()
