"""The inbox of contradictions: facts that cannot both be true, kept until a person decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from facts.errors import check_statement
from facts.logic.contradictions import Side, contradiction_between
from facts.models import Contradiction, Fact, FactRevision
from facts.prompts.judge import Judge, JudgeGiven, Pair
from facts.services.indexing import index_facts
from facts.services.learn import apply_claims, decide_claims, neighbours
from facts.services.locks import lock_facts
from facts.services.retire import restore_facts, retire_facts
from facts.services.revisions import By, fields_of, trace
from facts.types import Claim, Source, SourceKind
from workspaces.access import open_for_job
from workspaces.errors import BadInput, Conflict, NotFound
from workspaces.llm import RULES, ask, model_in_force
from workspaces.models import Agent
from workspaces.outbox import Delivery
from workspaces.settings import effective
from workspaces.tenancy import tenant, workspace
from workspaces.types import BucketRef

AT_ONCE: Final = 40
"""Facts that one round looks at."""
ASKED_AT_ONCE: Final = 20
"""Pairs that one question to a model holds."""
JUDGE_TOKENS: Final = 2000


@dataclass(frozen=True, slots=True)
class _Candidate:
    a: Fact
    b: Fact


def handle_check(delivery: Delivery) -> None:
    """The handler of `facts.check`: the facts that are new against their neighbours, some at a time."""
    bucket, _ = open_for_job(delivery.bucket_id)
    with workspace(bucket.workspace_id):
        settings = effective(bucket.workspace_id, bucket.agent_id)
        agent = Agent.objects.of_workspace(bucket.workspace_id).filter(pk=bucket.agent_id or 0).first()
    if not settings.flag("mate.memory.fact.contradiction-check-enabled"):
        with delivery.finishing(bucket):
            pass
        return
    model = model_in_force(agent.model if agent is not None else "")
    with tenant(bucket):
        fresh = list(_unchecked(bucket)[:AT_ONCE])
        pairs = _pairs(bucket, fresh)
    judged = _judge(bucket, pairs, model=model)
    now = timezone.now()
    # More than one round holds comes again at once, and the lane is free for a moment.
    closing = delivery.deferring(bucket, until=now) if len(fresh) == AT_ONCE else delivery.finishing(bucket)
    with closing:
        _store(bucket, judged, now=now)
        Fact.objects.of(bucket).filter(pk__in=[fact.pk for fact in fresh]).update(checked=True)


def _unchecked(bucket: BucketRef) -> Any:
    return Fact.objects.of(bucket).filter(checked=False, retired_at=None).order_by("pk")


def _pairs(bucket: BucketRef, fresh: Sequence[Fact]) -> list[_Candidate]:
    found: dict[tuple[int, int], _Candidate] = {}
    for fact in fresh:
        if fact.tier == Fact.Tier.SHORT or fact.verbatim:
            continue
        for other in neighbours(bucket, statement=fact.statement, predicate=fact.predicate):
            if other.pk != fact.pk:
                a, b = sorted((fact, other), key=lambda one: one.pk)
                found[a.pk, b.pk] = _Candidate(a, b)
    known = set(
        Contradiction.objects.of(bucket)
        .filter(a__in={a for a, _ in found}, b__in={b for _, b in found})
        .values_list("a_id", "b_id")
    )
    return [pair for key, pair in found.items() if key not in known]


def side_of(fact: Fact) -> Side:
    """A fact as one side of a pair."""
    return Side(fact.statement, fact.subject, fact.predicate, fact.object, fact.valid_from, fact.valid_to)


@dataclass(frozen=True, slots=True)
class _Found:
    pair: _Candidate
    reason: str
    judged_by: str
    prompt_version: int | None


def _judge(bucket: BucketRef, pairs: Sequence[_Candidate], *, model: str) -> list[_Found]:
    """Those that contradict each other. With a model outside any transaction; raises `ProviderError`."""
    if model == RULES:
        reasons = [(pair, contradiction_between(side_of(pair.a), side_of(pair.b))) for pair in pairs]
        return [_Found(pair, reason, RULES, None) for pair, reason in reasons if reason]
    found: list[_Found] = []
    for start in range(0, len(pairs), ASKED_AT_ONCE):
        page = pairs[start : start + ASKED_AT_ONCE]
        given = JudgeGiven(tuple(Pair(side_of(pair.a), side_of(pair.b)) for pair in page))
        answered = ask(bucket, Judge(given), given, purpose="judge", model=model, max_tokens=JUDGE_TOKENS)
        found += [
            _Found(page[one.pair - 1], one.reason[:300], answered.model[:128], answered.prompt_version)
            for one in answered.value.judgements
            if one.contradicts
        ]
    return found


def _store(bucket: BucketRef, found: Sequence[_Found], *, now: datetime) -> None:
    lock_facts(bucket)
    ids = {fact.pk for one in found for fact in (one.pair.a, one.pair.b)}
    there = set(Fact.objects.of(bucket).filter(pk__in=ids, retired_at=None).values_list("pk", flat=True))
    Contradiction.unscoped.bulk_create(
        [
            Contradiction(
                workspace_id=bucket.workspace_id,
                bucket_id=bucket.id,
                a=one.pair.a,
                b=one.pair.b,
                reason=one.reason,
                judged_by=one.judged_by,
                prompt_version=one.prompt_version,
                found_at=now,
            )
            for one in found
            if {one.pair.a.pk, one.pair.b.pk} <= there
        ],
        ignore_conflicts=True,
    )


# --- deciding ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a person decides. `text` is the merged statement; the times say from and until when `a` and `b` hold, for
    *both*."""

    decision: Contradiction.Decision
    text: str = ""
    a_from: datetime | None = None
    a_to: datetime | None = None
    b_from: datetime | None = None
    b_to: datetime | None = None


def resolve_contradiction(
    bucket: BucketRef, contradiction_id: int, ruling: Ruling, *, actor: str, now: datetime
) -> Contradiction:
    """Decides an open one; the facts follow. Inside `tenant(…)`.

    Raises `NotFound`; `Conflict` "already_decided" with who decided what; `BadInput` for a merge without a text.
    """
    lock_facts(bucket)
    row = _locked(bucket, contradiction_id)
    if row.decision:
        raise Conflict(
            "already_decided",
            f"{row.decided_by} decided {row.decision!r} already; undo that first.",
            decision=row.decision,
            decidedBy=row.decided_by,
        )
    facts = {
        fact.pk: fact
        for fact in Fact.objects.of(bucket).select_for_update().filter(pk__in=[row.a_id, row.b_id])
    }
    a, b = facts[row.a_id], facts[row.b_id]
    by = By(actor, now, f"Contradiction {row.pk}: {ruling.decision.value}.")
    undo: dict[str, Any] = {}
    if ruling.decision in {Contradiction.Decision.KEEP_A, Contradiction.Decision.KEEP_B}:
        kept, gone = (a, b) if ruling.decision is Contradiction.Decision.KEEP_A else (b, a)
        undo["closed"] = _close(bucket, [gone], kept, by=by)
        undo["confirmed"] = {str(kept.pk): kept.confirmed_at.isoformat()}
        Fact.objects.of(bucket).filter(pk=kept.pk).update(confirmed_at=max(now, kept.confirmed_at))
    elif ruling.decision is Contradiction.Decision.BOTH:
        undo["ranges"] = [
            _set_range(bucket, fact, start, end, by=by)
            for fact, start, end in ((a, ruling.a_from, ruling.a_to), (b, ruling.b_from, ruling.b_to))
            if start is not None or end is not None
        ]
    elif ruling.decision is Contradiction.Decision.MERGE:
        undo |= _merge(bucket, row, a, b, ruling.text, by=by)
    undo["revisions"] = {
        str(pk): revision
        for pk, revision in Fact.objects.of(bucket).filter(pk__in=[a.pk, b.pk]).values_list("pk", "revision")
    }
    row.decision, row.decided_by, row.decided_at, row.undo = ruling.decision.value, actor[:200], now, undo
    row.save()
    return row


def undo_decision(bucket: BucketRef, contradiction_id: int, *, actor: str, now: datetime) -> Contradiction:
    """Takes a decision back: the facts stand as before, the contradiction is open. Inside `tenant(…)`.

    Raises `Conflict` "not_decided", or "changed_since" when one of the facts was changed after the decision.
    """
    lock_facts(bucket)
    row = _locked(bucket, contradiction_id)
    if not row.decision:
        raise Conflict("not_decided", f"Contradiction {row.pk} is open; there is nothing to undo.")
    undo = row.undo
    for pk, revision in (
        Fact.objects.of(bucket).filter(pk__in=[row.a_id, row.b_id]).values_list("pk", "revision")
    ):
        if undo["revisions"].get(str(pk)) != revision:
            raise Conflict(
                "changed_since",
                f"Fact {pk} was changed after the decision; undo that change first.",
                factId=pk,
            )
    by = By(actor, now, f"Contradiction {row.pk}: taken back.")
    if undo.get("merged"):
        merged = Fact.objects.of(bucket).filter(pk=undo["merged"])
        retire_facts(bucket, merged, why=Fact.Retired.DELETED, actor=actor, now=now, reason=by.reason)
    if undo.get("closed"):
        closed = list(Fact.objects.of(bucket).filter(pk__in=undo["closed"]))
        restore_facts(bucket, closed, actor=actor, now=now, reason=by.reason)
    for pk, at in undo.get("confirmed", {}).items():
        Fact.objects.of(bucket).filter(pk=int(pk)).update(confirmed_at=datetime.fromisoformat(at))
    for kept in undo.get("ranges", []):
        fact = Fact.objects.of(bucket).get(pk=kept["fact"])
        times = [datetime.fromisoformat(one) if one else None for one in (kept["from"], kept["to"])]
        _put_range(bucket, fact, times[0], times[1], by=by)
    row.decision, row.decided_by, row.decided_at, row.undo = "", "", None, {}
    row.save()
    return row


def _locked(bucket: BucketRef, contradiction_id: int) -> Contradiction:
    row: Contradiction | None = (
        Contradiction.objects.of(bucket).select_for_update().filter(pk=contradiction_id).first()
    )
    if row is None:
        raise NotFound("contradiction_not_found", f"There is no contradiction {contradiction_id}.")
    return row


def _close(bucket: BucketRef, gone: Sequence[Fact], kept: Fact, *, by: By) -> list[int]:
    retire_facts(
        bucket,
        gone,
        why=Fact.Retired.CONTRADICTED,
        actor=by.actor,
        now=by.now,
        reason=by.reason,
        superseded_by=kept,
    )
    return [fact.pk for fact in gone if fact.retired_at is None]


def _set_range(
    bucket: BucketRef, fact: Fact, start: datetime | None, end: datetime | None, *, by: By
) -> dict[str, Any]:
    if start is not None and end is not None and end < start:
        raise BadInput(
            "range_reversed", f"It would hold until {end:%Y-%m-%d}, before {start:%Y-%m-%d}.", field="validTo"
        )
    old = {
        "fact": fact.pk,
        "from": fact.valid_from.isoformat() if fact.valid_from else None,
        "to": fact.valid_to.isoformat() if fact.valid_to else None,
    }
    _put_range(bucket, fact, start or fact.valid_from, end or fact.valid_to, by=by)
    return old


def _put_range(
    bucket: BucketRef, fact: Fact, start: datetime | None, end: datetime | None, *, by: By
) -> None:
    before = fields_of(fact)
    fact.valid_from, fact.valid_to = start, end
    fact.revision += 1
    fact.updated_at = by.now
    fact.save()
    trace(bucket, fact, FactRevision.Op.UPDATE, before=before, by=by)
    index_facts(bucket, [fact])


def _merge(bucket: BucketRef, row: Contradiction, a: Fact, b: Fact, text: str, *, by: By) -> dict[str, Any]:
    if not text.strip():
        raise BadInput("text_needed", "A merge needs the text that takes the place of both.", field="text")
    source = Source(
        SourceKind.PERSON, f"contradiction:{row.pk}:{by.now.isoformat()}", by.now, quote=text[:2000]
    )
    claim = Claim(
        check_statement(text),
        (source,),
        confidence=max(a.confidence, b.confidence),
        subject=a.subject or b.subject,
        category=a.category or b.category,
    )
    gone = [fact for fact in (a, b) if fact.retired_at is None]
    retire_facts(bucket, gone, why=Fact.Retired.CONTRADICTED, actor=by.actor, now=by.now, reason=by.reason)
    decided = decide_claims(bucket, [claim], model=RULES, now=by.now)
    [learned] = apply_claims(bucket, decided, actor=by.actor, now=by.now)
    if learned.fact_id is None:
        raise Conflict("forgotten", "The merged text was forgotten once and is not learned again.")
    Fact.objects.of(bucket).filter(pk__in=[fact.pk for fact in gone]).exclude(pk=learned.fact_id).update(
        superseded_by=learned.fact_id
    )
    is_new = learned.outcome.value in {"added", "updated"}
    return {"closed": [fact.pk for fact in gone], "merged": learned.fact_id if is_new else None}
