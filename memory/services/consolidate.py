"""Structured consolidation: entries of a bucket that say the same become one.

Each night, and when asked, a run for the shared bucket and for the next owners in a fair rotation. A run works a
type in stages of neighbouring keys: read, think, apply what has not changed meanwhile, with the mark of how far it
got in the same transaction. A crash repeats at most the stage that was being thought about. The lane of the
bucket is the lock; every change has its before and after, and can be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models.functions import Collate
from django.utils import timezone

from integrations.clients.errors import ProviderError
from memory.logic.merging import Line, Merge, Plan, settle
from memory.models import Entry, EntryRevision
from memory.prompts.consolidate import Consolidate, ConsolidateAnswer, ConsolidateGiven
from memory.queries import current_entries
from memory.services.entries import Draft, delete_entry, is_shown, lock_entries, put_entry
from memory.services.rounds import KIND, TYPES, least_entries, queue_round, told_of
from workspaces.access import open_for_job
from workspaces.errors import DomainError
from workspaces.llm import Answered, ask, model_in_force
from workspaces.models import Agent, Change, Run
from workspaces.outbox import Delivery, LeaseLostError, ParkError
from workspaces.services.files import Author
from workspaces.settings import Effective, effective
from workspaces.tenancy import tenant
from workspaces.types import AuthorKind, BucketRef, Reach, RunStatus

ACTOR: Final = "job:consolidate"
STAGE_ENTRIES: Final = 120
STAGE_CHARS: Final = 24_000
"""Entries, and characters of them, that are thought about at a time."""
ANSWER_TOKENS: Final = 4000
_OVER: Final = (RunStatus.STORED.value, RunStatus.NOTHING.value, RunStatus.SKIPPED.value)


# --- the handler --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Work:
    own: BucketRef
    reach: Reach
    settings: Effective
    model: str


def handle_consolidation(delivery: Delivery) -> None:
    """The handler of `memory.consolidate`: a night of an agent becomes runs of its buckets, a run is worked."""
    own, reach = open_for_job(delivery.bucket_id)
    if "run" not in delivery.payload:
        queue_round(
            own,
            trigger="schedule",
            actor=ACTOR,
            night=date.fromisoformat(delivery.payload["night"]),
            delivery=delivery,
        )
        with delivery.finishing(reach):
            pass
        return
    run = _begin(own, reach, delivery)
    if run is None:
        return
    with tenant(reach):
        agent = Agent.objects.of_workspace(own.workspace_id).get(pk=own.agent_id)
        work = _Work(own, reach, effective(own.workspace_id, agent.pk), model_in_force(agent.model))
    try:
        for kind in TYPES:
            _work_through(work, delivery, run, kind)
        _finish(work, delivery, run)
    except LeaseLostError:
        raise
    except Exception as error:  # the run tells it; the outbox's door retries, then parks
        _fail(work, delivery, run, error)
        raise


def _begin(own: BucketRef, reach: Reach, delivery: Delivery) -> Run | None:
    """The run of the message, under way; None, with the message done, when it is over or another one is active."""
    with tenant(reach):
        run: Run | None = Run.objects.of(own).filter(pk=delivery.payload["run"]).first()
    if run is not None and run.status not in _OVER:
        run.status, run.finished_at = RunStatus.RUNNING.value, None
        run.started_at = run.started_at or timezone.now()
        try:
            with delivery.step(reach):
                run.save()
        except IntegrityError:
            # It had failed and was put back by hand; another one does its work now.
            pass
        else:
            return run
    with delivery.finishing(reach):
        pass
    return None


def _work_through(work: _Work, delivery: Delivery, run: Run, kind: str) -> None:
    """Works one type, stage by stage, from where the run stands."""
    while True:
        told = told_of(run, kind)
        if told["isDone"]:
            return
        with tenant(work.reach):
            rows = current_entries(work.own, now=timezone.now()).filter(type=kind)
            count = rows.count()
            stage = _stage(rows.filter(key__gt=told["upto"]))
        least = least_entries(work.settings)
        is_first = not told["upto"]
        if is_first and count < least:
            told |= {"before": count, "after": count, "isDone": True, "why": f"Fewer than {least} entries."}
            with delivery.step(work.reach):
                _store(run, kind, told)
            return
        if is_first:
            told["before"] = count
        lines = _lines(stage)
        answered = _think(work, kind, lines) if len(lines) > 1 else None
        plan = settle(lines, answered.value.proposal()) if answered else Plan()
        told |= {"upto": stage[-1].key} if stage else {"isDone": True}
        _apply(work, delivery, run, _Stage(kind, tuple(stage), plan, answered), told)


def _stage(rows: Any) -> list[Entry]:
    """The next entries by key, as many as are thought about at a time; at least one."""
    taken: list[Entry] = []
    chars = 0
    for row in rows.order_by(Collate("key", "C"))[:STAGE_ENTRIES]:
        chars += len(row.content)
        if taken and chars > STAGE_CHARS:
            break
        taken.append(row)
    return taken


def _lines(stage: Sequence[Entry]) -> list[Line]:
    newest = sorted(stage, key=lambda one: (-one.updated_at.timestamp(), one.key))
    protected = {AuthorKind.PERSON.value, AuthorKind.IMPORT.value}
    return [
        Line(number, one.key, one.content, is_protected=one.author_kind in protected)
        for number, one in enumerate(newest, start=1)
    ]


def _think(work: _Work, kind: str, lines: list[Line]) -> Answered[ConsolidateAnswer]:
    return ask(
        work.own,
        Consolidate(lines),
        ConsolidateGiven(kind, tuple(lines)),
        purpose=KIND,
        model=work.model,
        max_tokens=ANSWER_TOKENS,
    )


# --- apply --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stage:
    kind: str
    seen: tuple[Entry, ...]
    plan: Plan
    answered: Answered[ConsolidateAnswer] | None


def _apply(work: _Work, delivery: Delivery, run: Run, stage: _Stage, told: dict[str, Any]) -> None:
    """Does what the plan says with the entries that stand as they were read, and marks how far the run got."""
    seen = {one.key: one for one in stage.seen}
    plan, notes = stage.plan, list(stage.plan.notes)
    with delivery.step(work.reach):
        now = timezone.now()
        touched = [line.key for merge in plan.merges for line in (merge.into, *merge.gone)]
        touched += [line.key for line, _ in plan.drops]
        lock_entries(work.own, [(stage.kind, key) for key in touched])
        rows = Entry.objects.of(work.own).filter(type=stage.kind, key__in=touched)
        stands = {
            row.key: row for row in rows if is_shown(row, now=now) and row.revision == seen[row.key].revision
        }
        edit = _Edit(work.own, run, stage, stands, now)
        for merge in plan.merges:
            notes += edit.merge(merge)
        for line, reason in plan.drops:
            notes += edit.drop(line, reason)
        told["updated"] += edit.updated
        told["notes"] = [*told["notes"], *notes][:50]
        told["after"] = current_entries(work.own, now=now).filter(type=stage.kind).count()
        if stage.answered is not None:
            _add_usage(run, stage.answered)
        _store(run, stage.kind, told)


@dataclass(slots=True)
class _Edit:
    """Changes of one stage, inside its transaction. Each merge is done whole or not at all."""

    own: BucketRef
    run: Run
    stage: _Stage
    stands: dict[str, Entry]
    now: datetime
    updated: int = 0

    def merge(self, merge: Merge) -> list[str]:
        """One merge; what kept it from being done, in words."""
        members = [self.stands.get(line.key) for line in (merge.into, *merge.gone)]
        entries = [one for one in members if one is not None]
        if len(entries) < len(members):
            keys = [line.key for line in (merge.into, *merge.gone) if line.key not in self.stands]
            return [f"{', '.join(keys)} changed meanwhile: left for the next run."]
        into, *gone = entries
        try:
            with transaction.atomic():
                self._put(into, gone, merge)
                for one in gone:
                    self._delete(one, f"Merged into {into}: {merge.reason}")
        except DomainError as refused:
            return [f"{into.key} stays as it is: {refused.message}"]
        self.updated += len(gone) + (merge.text != merge.into.content)
        return []

    def drop(self, line: Line, reason: str) -> list[str]:
        """One entry taken away."""
        entry = self.stands.get(line.key)
        if entry is None:
            return [f"{line.key} changed meanwhile: left for the next run."]
        self._delete(entry, reason)
        self.updated += 1
        return []

    def _put(self, into: Entry, gone: Sequence[Entry], merge: Merge) -> None:
        before, before_revision = into.content, into.revision
        after, after_revision = before, before_revision
        if merge.text != before:
            answered = self.stage.answered
            known = [one.confidence for one in (into, *gone) if one.confidence is not None]
            kept = put_entry(
                self.own,
                Draft(
                    type=into.type,
                    key=into.key,
                    content=merge.text,
                    source=into.source,
                    # What came through no gate does not get through by being merged.
                    confidence=min(known) if len(known) == len(gone) + 1 else None,
                    expires_at=into.expires_at,
                    quotes=_quotes_of(self.own, (into, *gone)),
                    prompt=Consolidate.name,
                    prompt_version=answered.prompt_version if answered else None,
                    model=answered.model if answered else "",
                ),
                author=self._author(merge.reason),
                now=self.now,
                base=before_revision,
            )
            after, after_revision = kept.entry.content, kept.entry.revision
        self._note(
            into,
            before=(before, before_revision),
            after=(after, after_revision),
            quotes=[
                {"entry": str(one), "author": one.author_kind, "text": one.content[:500]} for one in gone
            ],
            note=merge.reason,
        )

    def _delete(self, entry: Entry, reason: str) -> None:
        before = (entry.content, entry.revision)
        kept = delete_entry(
            self.own, entry.type, entry.key, author=self._author(reason), now=self.now, base=entry.revision
        )
        self._note(entry, before=before, after=("", kept.entry.revision), quotes=[], note=reason)

    def _author(self, reason: str) -> Author:
        return Author(AuthorKind.MACHINE, ACTOR, reason=reason[:300], run_id=self.run.pk)

    def _note(
        self,
        entry: Entry,
        *,
        before: tuple[str, int],
        after: tuple[str, int],
        quotes: list[dict[str, str]],
        note: str,
    ) -> None:
        Change.objects.create(
            workspace_id=self.own.workspace_id,
            bucket_id=self.own.id,
            run=self.run,
            target_kind="entry",
            target=str(entry),
            before=before[0],
            after=after[0],
            before_revision=before[1],
            after_revision=after[1],
            quotes=quotes,
            note=note,
            created_at=self.now,
        )


def _quotes_of(bucket: BucketRef, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The words that the entries came from, each once."""
    rows = EntryRevision.objects.of(bucket).filter(entry__in=entries).order_by("-number")
    found: dict[str, dict[str, Any]] = {}
    for quotes in rows.values_list("quotes", flat=True)[:200]:
        for quote in quotes:
            found.setdefault(f"{quote.get('messageId')}:{quote.get('text')}", quote)
    return list(found.values())[:50]


# --- the run's life -----------------------------------------------------------------------------------------


def _store(run: Run, kind: str, told: dict[str, Any]) -> None:
    run.result = run.result | {kind: told}
    all_told = [told_of(run, one) for one in TYPES]
    run.written = {"files": [], "entries": sum(one["updated"] for one in all_told), "facts": 0}
    run.save()


def _add_usage(run: Run, answered: Answered[ConsolidateAnswer]) -> None:
    run.model, run.prompt_version = answered.model[:128], answered.prompt_version
    run.input_tokens += answered.input_tokens
    run.output_tokens += answered.output_tokens
    if answered.cost_usd is not None:
        run.cost_usd = (run.cost_usd or Decimal(0)) + answered.cost_usd


def _finish(work: _Work, delivery: Delivery, run: Run) -> None:
    with delivery.finishing(work.reach):
        told = [told_of(run, kind) for kind in TYPES]
        if any(one["updated"] for one in told):
            run.status, run.reason = RunStatus.STORED.value, "stored"
        elif all(one["why"] for one in told):
            run.status, run.reason = RunStatus.SKIPPED.value, "too_few_entries"
        else:
            run.status, run.reason = RunStatus.NOTHING.value, "nothing_to_merge"
        run.detail = " ".join(note for one in told for note in one["notes"])[:2000]
        run.finished_at = timezone.now()
        run.save()


def _fail(work: _Work, delivery: Delivery, run: Run, error: Exception) -> None:
    """Says so in the run while the message is retried; the last retry leaves it failed and parked."""
    with delivery.step(work.reach):
        is_over = delivery.is_last_try or isinstance(error, ParkError)
        run.refresh_from_db(fields=["written", "result", "input_tokens", "output_tokens", "cost_usd"])
        run.status = RunStatus.FAILED.value if is_over else RunStatus.RUNNING.value
        run.reason = f"model_{error.kind}" if isinstance(error, ProviderError) else type(error).__name__[:64]
        run.detail = str(error)[:2000]
        run.finished_at = timezone.now() if is_over else None
        run.save()
