"""Learning facts: claims become facts, add to known ones, or take their place.

Load, think, apply: `decide_claims` finds what is known and decides, by a model or by rules, outside any transaction;
`apply_claims` writes inside the caller's, under the bucket's lock, and looks again at what came in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from django.db.models import Q

from facts.errors import check_statement
from facts.logic.decide import Decision, Known, Verdict, decide_by_rules
from facts.logic.normal import fingerprint
from facts.logic.trust import trust_of
from facts.models import Evidence, Fact, FactRevision, Feedback
from facts.prompts.decide import Asked, Decide, DecideGiven, decisions_of
from facts.services.indexing import index_facts
from facts.services.locks import lock_facts
from facts.services.news import ask_for_check
from facts.services.retire import retire_facts
from facts.services.revisions import By, trace
from facts.services.tombstones import forgotten_among
from facts.types import Claim, Learned, Outcome
from recall.services.alike import alike
from recall.types import RecordKind
from workspaces.errors import BadInput
from workspaces.llm import RULES, ask
from workspaces.logic.redact import redact
from workspaces.tenancy import tenant
from workspaces.types import BucketRef

NEIGHBOURS: Final = 12
"""Facts by the side of which a claim is judged, of those that share words with it."""
OF_ATTRIBUTE: Final = 20
"""The newest facts about the same attribute, beside those."""
ASKED_AT_ONCE: Final = 20
"""Claims that one question to a model holds."""
DECIDE_TOKENS: Final = 2000


@dataclass(frozen=True, slots=True)
class Decided:
    """Claims with what becomes of each. `seen` are the facts by which it was decided."""

    claims: tuple[Claim, ...]
    decisions: tuple[Decision, ...]
    seen: frozenset[int] = field(default=frozenset())
    model: str = RULES


def learn(
    bucket: BucketRef,
    claims: Sequence[Claim],
    *,
    actor: str,
    now: datetime,
    model: str = RULES,
    run_id: int | None = None,
) -> list[Learned]:
    """Decides and applies, in a transaction of its own; inside the caller's only by rules."""
    decided = decide_claims(bucket, claims, model=model, now=now)
    with tenant(bucket):
        return apply_claims(bucket, decided, actor=actor, now=now, run_id=run_id)


def decide_claims(bucket: BucketRef, claims: Sequence[Claim], *, model: str, now: datetime) -> Decided:  # noqa: ARG001
    """What becomes of each claim. Outside any transaction when a model is asked; raises `ProviderError`, and
    `BadInput` for a claim that no fact can be.

    Verbatim and SHORT claims are added as they are; one that is derived takes the place of its earlier self.
    """
    clean = [_clean(claim) for claim in claims]
    with tenant(bucket):
        asked = [Asked(claim, _known(bucket, claim)) for claim in clean]
    decisions: list[Decision] = []
    used = RULES
    for start in range(0, len(asked), ASKED_AT_ONCE):
        page = asked[start : start + ASKED_AT_ONCE]
        # Nothing known, or the same letter for letter: no model need be asked.
        open_ones = [one for one in page if _needs_thought(one)]
        thought: dict[int, Decision] = {}
        if open_ones and model != RULES:
            given = DecideGiven(tuple(open_ones))
            answered = ask(
                bucket, Decide(given), given, purpose="decide", model=model, max_tokens=DECIDE_TOKENS
            )
            used = answered.model
            thought = dict(zip(map(id, open_ones), decisions_of(given, answered.value), strict=True))
        decisions += [thought.get(id(one)) or one.decide() for one in page]
    seen = frozenset(known.id for one in asked for known in one.known)
    return Decided(tuple(clean), tuple(decisions), seen, used)


def apply_claims(
    bucket: BucketRef, decided: Decided, *, actor: str, now: datetime, run_id: int | None = None
) -> list[Learned]:
    """Writes what was decided, in the order of the claims. Inside `tenant(…)`; takes `lock_facts`.

    What was learned or closed since the decision is looked at again, by rules: nothing becomes two rows.
    """
    lock_facts(bucket)
    refused = forgotten_among(bucket, [claim.statement for claim in decided.claims])
    writing = _Writing(bucket, actor, now, run_id)
    found = []
    for index, (claim, decision) in enumerate(zip(decided.claims, decided.decisions, strict=True)):
        if index in refused:
            found.append(Learned(claim.statement, Outcome.REFUSED, None))
            continue
        found.append(writing.apply(claim, writing.rechecked(claim, decision, seen=decided.seen)))
    index_facts(bucket, list(writing.touched.values()))
    if any(one.outcome in {Outcome.ADDED, Outcome.UPDATED} for one in found):
        ask_for_check(bucket)
    return found


def _clean(claim: Claim) -> Claim:
    if not claim.sources:
        raise BadInput(
            "no_source", f"The claim {claim.statement[:80]!r} names no source; say where it was said."
        )
    statement = claim.statement if claim.verbatim else check_statement(claim.statement)
    return replace(claim, statement=redact(statement).text, confidence=min(1.0, max(0.0, claim.confidence)))


def _is_alone(claim: Claim) -> bool:
    """Whether a claim is stored beside whatever is known."""
    return claim.verbatim or bool(claim.run_id)


def _known(bucket: BucketRef, claim: Claim) -> tuple[Known, ...]:
    if _is_alone(claim):
        return ()
    return tuple(
        _as_known(row) for row in neighbours(bucket, statement=claim.statement, predicate=claim.predicate)
    )


def neighbours(bucket: BucketRef, *, statement: str, predicate: str = "") -> list[Fact]:
    """The current LONG facts that share words with a statement or its attribute: at most 33. Inside `tenant(…)`;
    four statements, whatever the size of the tenant."""
    near = alike(bucket.id, kind=RecordKind.FACT, text=statement, limit=NEIGHBOURS)
    current = Fact.objects.of(bucket).filter(retired_at=None, tier=Fact.Tier.LONG, verbatim=False)
    rows = list(current.filter(Q(pk__in=near) | Q(fingerprint=fingerprint(statement))))
    if predicate:
        rows += list(current.filter(predicate=predicate).order_by("-pk")[:OF_ATTRIBUTE])
    return list({row.pk: row for row in rows}.values())


def _as_known(fact: Fact) -> Known:
    return Known(
        fact.pk,
        fact.statement,
        fact.predicate,
        fact.object,
        fact.subject,
        # Trust is counted from the latest evidence: until then it was said to hold.
        fact.valid_from or fact.confirmed_at,
    )


def _needs_thought(asked: Asked) -> bool:
    mine = fingerprint(asked.claim.statement)
    return bool(asked.known) and all(fingerprint(known.statement) != mine for known in asked.known)


def _at(claim: Claim) -> datetime:
    return claim.valid_from or max(source.at for source in claim.sources)


@dataclass(slots=True)
class _Writing:
    """One application under the lock. `touched` are the facts whose records must follow."""

    bucket: BucketRef
    actor: str
    now: datetime
    run_id: int | None
    touched: dict[int, Fact] = field(default_factory=dict)

    def rechecked(self, claim: Claim, decision: Decision, *, seen: frozenset[int]) -> Decision:
        """The decision, unless what is there now is not what it was made by."""
        if _is_alone(claim):
            return Decision(Verdict.ADD, reason=decision.reason)
        if claim.derived_from and (own := self._derived(claim.derived_from)) is not None:
            if fingerprint(own.statement) == fingerprint(claim.statement):
                return Decision(Verdict.NONE, (own.pk,), "Its entry says the same.")
            return Decision(
                Verdict.UPDATE, (own.pk,), "Its entry says something else now.", has_changed=False
            )
        known = _known(self.bucket, claim)
        here = {one.id for one in known}
        same = [one for one in known if fingerprint(one.statement) == fingerprint(claim.statement)]
        if same:
            return Decision(Verdict.NONE, (same[0].id,), "The same statement is known.")
        if here <= seen and (
            decision.verdict is Verdict.ADD or set(decision.targets) <= self._open(decision)
        ):
            return decision
        return decide_by_rules(claim, known, at=_at(claim))

    def _derived(self, name: str) -> Fact | None:
        row: Fact | None = (
            Fact.objects.of(self.bucket)
            .select_for_update()
            .filter(derived_from=name, retired_at=None)
            .first()
        )
        return row

    def _open(self, decision: Decision) -> set[int]:
        return set(
            Fact.objects.of(self.bucket)
            .filter(pk__in=decision.targets, retired_at=None)
            .values_list("pk", flat=True)
        )

    def apply(self, claim: Claim, decision: Decision) -> Learned:
        """Writes one claim."""
        if decision.verdict is Verdict.NONE and decision.targets:
            return self._confirm(claim, decision)
        if decision.verdict is Verdict.DELETE:
            self._close(claim, decision, by=None)
            return Learned(claim.statement, Outcome.RETIRED, None)
        if decision.verdict is Verdict.UPDATE:
            return self._replace(claim, decision)
        fact = self._insert(claim, reason=decision.reason)
        return Learned(fact.statement, Outcome.ADDED, fact.pk)

    def _confirm(self, claim: Claim, decision: Decision) -> Learned:
        fact = Fact.objects.of(self.bucket).select_for_update().get(pk=decision.targets[0])
        if self._add_evidence(fact, claim):
            self._settle_trust(fact, at=max(source.at for source in claim.sources))
            fact.save()
            self.touched[fact.pk] = fact
        return Learned(fact.statement, Outcome.CONFIRMED, fact.pk)

    def _replace(self, claim: Claim, decision: Decision) -> Learned:
        statement = decision.statement or claim.statement
        if statement != claim.statement and self._is_taken(statement):
            statement = claim.statement
        old = list(Fact.objects.of(self.bucket).filter(pk__in=decision.targets))
        fresh = replace(
            claim,
            statement=statement,
            valid_from=claim.valid_from or (_at(claim) if decision.has_changed else None),
        )
        is_itself = bool(claim.derived_from) and any(one.derived_from == claim.derived_from for one in old)
        if is_itself:
            # An entry has one fact: the earlier one goes first.
            self._close(claim, decision, by=None)
        fact = self._insert(fresh, reason=decision.reason)
        if is_itself:
            Fact.objects.of(self.bucket).filter(pk__in=decision.targets).update(superseded_by=fact)
        else:
            self._close(claim, decision, by=fact)
        if not decision.has_changed and not is_itself:
            self._carry_over(old, fact)
        return Learned(fact.statement, Outcome.UPDATED, fact.pk)

    def _is_taken(self, statement: str) -> bool:
        rows = Fact.objects.of(self.bucket).filter(
            fingerprint=fingerprint(statement), retired_at=None, tier=Fact.Tier.LONG, verbatim=False
        )
        return bool(rows.exists())

    def _close(self, claim: Claim, decision: Decision, *, by: Fact | None) -> None:
        has_ended = decision.has_changed or decision.verdict is Verdict.DELETE
        for pk in decision.targets:
            self.touched.pop(pk, None)
        retire_facts(
            self.bucket,
            Fact.objects.of(self.bucket).filter(pk__in=decision.targets),
            why=Fact.Retired.SUPERSEDED if has_ended else Fact.Retired.REDUNDANT,
            actor=self.actor,
            now=self.now,
            reason=decision.reason,
            run_id=self.run_id,
            superseded_by=by,
            valid_to=_at(claim) if has_ended else None,
        )

    def _carry_over(self, old: Sequence[Fact], fact: Fact) -> None:
        """What was evidence of a part or of another wording is evidence of the whole."""
        roots = set(Evidence.objects.of(self.bucket).filter(fact=fact).values_list("root", flat=True))
        rows = [
            row
            for row in Evidence.objects.of(self.bucket).filter(fact__in=old).order_by("pk")
            if row.root not in roots and not roots.add(row.root)  # type: ignore[func-returns-value]
        ]
        for row in rows:
            row.pk, row._state.adding, row.fact = None, True, fact
        Evidence.objects.insert(rows)
        self._settle_trust(fact, at=max([fact.confirmed_at, *(one.confirmed_at for one in old)]))
        fact.save()

    def _insert(self, claim: Claim, *, reason: str) -> Fact:
        at = max(source.at for source in claim.sources)
        fact = Fact(
            workspace_id=self.bucket.workspace_id,
            bucket_id=self.bucket.id,
            statement=claim.statement,
            fingerprint=fingerprint(claim.statement),
            subject=claim.subject[:200],
            predicate=claim.predicate[:200],
            object=claim.object,
            category=claim.category[:64],
            tier=Fact.Tier.SHORT if claim.run_id else Fact.Tier.LONG,
            run_id=claim.run_id,
            verbatim=claim.verbatim,
            metadata=dict(claim.metadata),
            confidence=claim.confidence,
            trust=claim.confidence,
            confirmed_at=at,
            valid_from=claim.valid_from,
            valid_to=claim.valid_to,
            learned_at=self.now,
            expires_at=claim.expires_at,
            derived_from=claim.derived_from,
            updated_at=self.now,
        )
        fact.save(force_insert=True)
        self._add_evidence(fact, claim)
        self._settle_trust(fact, at=at)
        fact.save(update_fields=["trust", "confirmed_at"])
        trace(
            self.bucket,
            fact,
            FactRevision.Op.ADD,
            before={},
            by=By(self.actor, self.now, reason, self.run_id),
        )
        self.touched[fact.pk] = fact
        return fact

    def _add_evidence(self, fact: Fact, claim: Claim) -> int:
        """Adds sources that are new to the fact; how many."""
        known = set(Evidence.objects.of(self.bucket).filter(fact=fact).values_list("root", flat=True))
        fresh = {source.root: source for source in claim.sources if source.root not in known}
        Evidence.objects.insert(
            Evidence(
                workspace_id=self.bucket.workspace_id,
                bucket_id=self.bucket.id,
                fact=fact,
                kind=source.kind.value,
                root=source.root[:128],
                message_id=source.message_id,
                file_id=source.file_id,
                heading=source.heading[:300],
                entry_id=source.entry_id,
                quote=redact(source.quote).text[:2000],
                speaker=source.speaker[:128],
                at=source.at,
                prompt=source.prompt[:64],
                prompt_version=source.prompt_version,
                model=source.model[:128],
                run_id=self.run_id,
                created_at=self.now,
            )
            for source in fresh.values()
        )
        return len(fresh)

    def _settle_trust(self, fact: Fact, *, at: datetime) -> None:
        settle_trust(self.bucket, fact, at=at)


def settle_trust(bucket: BucketRef, fact: Fact, *, at: datetime | None = None) -> None:
    """Sets a fact's trust by its evidence and its votes; `at`, when it was confirmed, never goes back. Not saved."""
    roots = Evidence.objects.of(bucket).filter(fact=fact).count()
    votes = list(Feedback.objects.of(bucket).filter(item=f"fact:{fact.pk}").values_list("helpful", flat=True))
    helpful = votes.count(True)
    fact.trust = trust_of(fact.confidence, roots=roots, helpful=helpful, unhelpful=len(votes) - helpful)
    if at is not None:
        fact.confirmed_at = max(fact.confirmed_at, at)
