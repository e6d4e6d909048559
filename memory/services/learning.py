"""What a window of conversation proposes as entries and facts, from the gate to the rows.

`propose` judges and decides outside any transaction; `store` writes inside that of the window, after the files:
first entries, then facts, each with a Change of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final

from facts.models import Fact
from facts.services.learn import Decided, apply_claims, decide_claims
from facts.types import Claim, Outcome, Source, SourceKind
from memory.logic.admission import (
    ENTRY_FLOOR,
    FACT_FLOOR,
    ONGOING,
    Admitted,
    Ground,
    Refusal,
    Refused,
    admit,
    quotes_of,
)
from memory.logic.structured import TYPES, check_content, key_of
from memory.prompts.extract import Extract, ExtractAnswer, Learned
from memory.services.backlog import Job, Stretch
from memory.services.entries import Draft, Kept, lock_entries, put_entry
from workspaces.errors import BadInput, DomainError
from workspaces.llm import Answered
from workspaces.logic.redact import redact
from workspaces.models import Change, Run
from workspaces.services.files import Author

SOURCE: Final = "conversation"
MOST_QUARANTINED: Final = 20
"""Of one run that are shown in its result."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What of an answer passed the gate, and what did not. `decided` is None where there is no fact."""

    drafts: tuple[Draft, ...] = ()
    claims: tuple[Claim, ...] = ()
    decided: Decided | None = None
    refused: Counter[str] = field(default_factory=Counter)
    quarantined: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """How many entries and facts changed, and what was refused at the last moment, by reason."""

    entries: int = 0
    facts: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def propose(job: Job, window: Stretch, answered: Answered[ExtractAnswer], *, now: datetime) -> Proposal:
    """Judges what the answer holds. Outside any transaction; may ask a model about the facts.

    Raises `ProviderError` where it cannot be asked.
    """
    answer = answered.value
    ground = Ground(window.transcript.lines, window.injected, job.called)
    entries = admit(
        [one.candidate(place) for place, one in enumerate(answer.entries)],
        ground,
        floor=ENTRY_FLOOR,
        now=now,
        ongoing=ONGOING,
    )
    facts = admit(
        [one.candidate(place) for place, one in enumerate(answer.facts)],
        ground,
        floor=FACT_FLOOR,
        now=now,
        ongoing=None,
    )
    refused = Counter(
        {
            f"{kind}.{why}": count
            for kind, admission in (("entries", entries), ("facts", facts))
            for why, count in admission.counts().items()
        }
    )
    drafts = _drafts(answer.entries, entries.admitted, answered, refused)
    claims = tuple(_claim(answer.facts[one.place], one, answered) for one in facts.admitted)
    return Proposal(
        drafts=drafts,
        claims=claims,
        decided=decide_claims(job.target, claims, model=job.model, now=now) if claims else None,
        refused=refused,
        quarantined=(
            *_quarantined("entry", answer.entries, entries.refused),
            *_quarantined("fact", answer.facts, facts.refused),
        ),
    )


def store(
    job: Job, run: Run, window: Stretch, proposal: Proposal, *, author: Author, now: datetime
) -> Stored:
    """Writes what was proposed. Inside the window's transaction; takes the locks of entries, then of facts."""
    seen = {(one.type, one.key): one.revision for one in window.entries}
    lock_entries(job.target, [(draft.type, draft.key) for draft in proposal.drafts])
    refused: Counter[str] = Counter()
    changed = 0
    for draft in proposal.drafts:
        try:
            kept = put_entry(
                job.target, draft, author=author, now=now, base=seen.get((draft.type, draft.key))
            )
        except DomainError as error:
            refused[f"entries.{error.code}"] += 1
            continue
        if kept.is_changed:
            changed += 1
            _note_entry(run, draft, kept, now=now)
    facts = _store_facts(job, run, proposal, refused, now=now)
    return Stored(changed, facts, refused)


def _store_facts(job: Job, run: Run, proposal: Proposal, refused: Counter[str], *, now: datetime) -> int:
    if proposal.decided is None:
        return 0
    learned = apply_claims(job.target, proposal.decided, actor=run.actor, now=now, run_id=run.pk)
    ids = [one.fact_id for one in learned if one.fact_id is not None]
    rows = Fact.objects.of(job.target).in_bulk(ids)
    changed = 0
    for claim, one in zip(proposal.claims, learned, strict=True):
        if one.outcome is Outcome.REFUSED:
            refused["facts.forgotten"] += 1
        elif one.outcome in {Outcome.ADDED, Outcome.UPDATED, Outcome.RETIRED}:
            changed += 1
            row = rows.get(one.fact_id) if one.fact_id is not None else None
            _note_fact(run, claim, one.outcome, row, now=now)
    return changed


# --- from answers to rows ---------------------------------------------------------------------------------


def _drafts(
    entries: Sequence[Learned],
    admitted: Sequence[Admitted],
    answered: Answered[ExtractAnswer],
    refused: Counter[str],
) -> tuple[Draft, ...]:
    """One draft for each type and key, the last said; in the order of the locks."""
    drafts: dict[tuple[str, str], Draft] = {}
    for one in admitted:
        told = entries[one.place]
        try:
            content = check_content(told.content)
        except BadInput as bad:
            refused[f"entries.{bad.code}"] += 1
            continue
        kind = told.type.strip().casefold()
        kind = kind if kind in TYPES else "user"
        key = key_of(told.key or content)
        drafts[kind, key] = Draft(
            kind,
            key,
            content,
            source=SOURCE,
            confidence=told.confidence,
            expires_at=one.expires_at,
            quotes=quotes_of(one.lines),
            prompt=Extract.name,
            prompt_version=answered.prompt_version,
            model=answered.model,
            said_at=one.lines[0].at,
        )
    return tuple(drafts[name] for name in sorted(drafts))


def _claim(told: Learned, admitted: Admitted, answered: Answered[ExtractAnswer]) -> Claim:
    sources = tuple(
        Source(
            SourceKind.MESSAGE,
            f"message:{line.message_id}",
            line.at,
            quote=redact((told.quote or line.text)[:500]).text,
            message_id=line.message_id,
            speaker=line.name[:128],
            prompt=Extract.name,
            prompt_version=answered.prompt_version,
            model=answered.model,
        )
        for line in admitted.lines
    )
    first, last = told.valid_from, told.valid_to
    if first is not None and last is not None and last < first:
        first = last = None
    zone = admitted.lines[0].at.tzinfo
    return Claim(
        statement=redact(" ".join(told.content.split())).text,
        sources=sources,
        confidence=told.confidence,
        subject=told.subject[:200],
        predicate=told.predicate[:200],
        object=redact(told.object).text,
        category=told.type.strip().casefold()[:64],
        valid_from=_moment(first, zone),
        valid_to=_moment(last, zone),
        expires_at=admitted.expires_at,
    )


def _moment(day: date | None, zone: Any) -> datetime | None:
    return datetime(day.year, day.month, day.day, tzinfo=zone) if day else None


def _quarantined(
    kind: str, items: Sequence[Learned], refused: Sequence[Refused]
) -> tuple[dict[str, str], ...]:
    return tuple(
        {"kind": kind, "content": redact(items[one.place].content[:300]).text, "reason": one.why.value}
        for one in refused
        if one.why is Refusal.ORDER
    )


# --- the trace --------------------------------------------------------------------------------------------


def _note_entry(run: Run, draft: Draft, kept: Kept, *, now: datetime) -> None:
    Change.objects.create(
        workspace_id=run.workspace_id,
        bucket_id=run.bucket_id,
        run=run,
        target_kind="entry",
        target=f"{draft.type}/{draft.key}",
        before=kept.before,
        after=kept.entry.content,
        before_revision=kept.entry.revision - 1,
        after_revision=kept.entry.revision,
        quotes=[dict(one) for one in draft.quotes],
        note="\n".join(kept.notes),
        created_at=now,
    )


def _note_fact(run: Run, claim: Claim, outcome: Outcome, row: Fact | None, *, now: datetime) -> None:
    Change.objects.create(
        workspace_id=run.workspace_id,
        bucket_id=run.bucket_id,
        run=run,
        target_kind="fact",
        target=f"fact:{row.pk}" if row is not None else "fact",
        after="" if outcome is Outcome.RETIRED or row is None else row.statement,
        before=row.statement if row is not None and outcome is Outcome.RETIRED else "",
        after_revision=row.revision if row is not None else None,
        quotes=[
            {"messageId": one.message_id, "speaker": one.speaker, "text": one.quote} for one in claim.sources
        ],
        note=outcome.value,
        created_at=now,
    )
