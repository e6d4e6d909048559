"""Facts from files: what people and imports wrote is read, section by section; what a machine wrote is no evidence.

A section is known by its digest: unchanged, it is not read again. One that went takes its evidence along, and a
fact without any is closed, not deleted; it comes back with its section, but never past a tombstone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Exists, OuterRef
from django.utils import timezone

from facts.logic.normal import fingerprint
from facts.logic.reading import NO_FACTS, Read, read_file
from facts.models import Evidence, Fact, ProjectedSection
from facts.services.learn import apply_claims, decide_claims, settle_trust
from facts.services.locks import lock_facts
from facts.services.news import ask_for_projection
from facts.services.retire import restore_facts, retire_facts
from facts.types import Claim, Source, SourceKind
from workspaces.access import open_for_job
from workspaces.llm import RULES
from workspaces.logic.names import is_daily_note
from workspaces.models import File, Revision
from workspaces.outbox import Delivery
from workspaces.settings import effective
from workspaces.tenancy import tenant, workspace
from workspaces.types import AuthorKind, BucketRef

ACTOR: Final = "job:project"
CONFIDENCE: Final = 0.8
"""Of what a person wrote down or brought along. Reasoned: above what was only said, below what was confirmed."""
_WHOLE: Final = "-"
"""The digest of the row that says when the file was read last."""
_MACHINES: Final = (AuthorKind.MACHINE.value, AuthorKind.SYSTEM.value)


def tell_of_file(bucket: BucketRef, file: File, *, kept_lines: int = 0) -> None:  # noqa: ARG001 - see `Told`
    """Joined to the writes of files: what a person may have written is read after the commit."""
    if may_state(file.name) and (file.held or not is_daily_note(file.name)):
        ask_for_projection(bucket, file.pk)


def may_state(name: str) -> bool:
    """Whether a file of that name may hold facts: rules for the agent, and views of rows, do not."""
    return name not in NO_FACTS and not name.startswith(("structured/", "archive/"))


def handle_projection(delivery: Delivery) -> None:
    """The handler of `facts.project`: one file."""
    bucket, _ = open_for_job(delivery.bucket_id)
    plan = plan_projection(bucket, delivery.payload.get("file", 0), now=timezone.now())
    with delivery.finishing(bucket):
        if plan is not None:
            apply_projection(bucket, plan)


def project_file(bucket: BucketRef, file_id: int, *, now: datetime) -> int:
    """Reads one file at once; how many statements were new or went. Opens its own transactions."""
    plan = plan_projection(bucket, file_id, now=now)
    if plan is None:
        return 0
    with tenant(bucket):
        return apply_projection(bucket, plan)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a reading of a file adds and takes away. `head` is the revision that was read."""

    file_id: int
    head: int
    fresh: tuple[Read, ...]
    gone: tuple[str, ...]
    at: datetime
    kind: SourceKind
    now: datetime


def plan_projection(bucket: BucketRef, file_id: int, *, now: datetime) -> Plan | None:
    """What changed in a file since it was read last; None when it is not there or facts are not projected."""
    with workspace(bucket.workspace_id):
        settings = effective(bucket.workspace_id, bucket.agent_id)
    if not settings.flag("mate.memory.fact.projection-enabled"):
        return None
    with tenant(bucket):
        file = File.objects.of(bucket).filter(pk=file_id).first()
        if file is None:
            return None
        sections = {read.digest: read for read in _evidence_of(bucket, file)}
        known = set(
            ProjectedSection.objects.of(bucket)
            .filter(file=file)
            .exclude(digest=_WHOLE)
            .values_list("digest", flat=True)
        )
        latest = Revision.objects.of(bucket).filter(file=file).order_by("-number").first()
    is_import = latest is not None and latest.author_kind == AuthorKind.IMPORT.value
    return Plan(
        file_id,
        file.head,
        tuple(read for digest, read in sections.items() if digest not in known),
        tuple(sorted(known - set(sections))),
        file.updated_at,
        SourceKind.IMPORT if is_import else SourceKind.FILE,
        now,
    )


def _evidence_of(bucket: BucketRef, file: File) -> list[Read]:
    """The sections that a person, a program for one, or an import wrote."""
    if file.deleted_at is not None or not may_state(file.name):
        return []
    by_machine = Revision.objects.of(bucket).filter(file=file, author_kind__in=_MACHINES)
    if not by_machine.exists():
        return read_file(file.content)
    # Where machines write too, only what a person holds is evidence.
    held = "\n".join(one["text"].rstrip("\n") + "\n" for one in file.held)
    return read_file(held)


def apply_projection(bucket: BucketRef, plan: Plan) -> int:
    """Writes what was planned, unless the file was written again meanwhile: then its own news brings it back.

    Inside `tenant(…)`. Locks the file, then the facts.
    """
    file = File.objects.of(bucket).select_for_update().filter(pk=plan.file_id, head=plan.head).first()
    if file is None:
        return 0
    lock_facts(bucket)
    claims = [claim for read in plan.fresh for claim in _claims(plan, read)]
    _reopen(bucket, claims, now=plan.now)
    if claims:
        decided = decide_claims(bucket, claims, model=RULES, now=plan.now)
        apply_claims(bucket, decided, actor=ACTOR, now=plan.now)
    _withdraw(bucket, plan)
    ProjectedSection.objects.of(bucket).filter(file=file, digest__in=[_WHOLE, *plan.gone]).delete()
    own = {"workspace_id": bucket.workspace_id, "bucket_id": bucket.id, "file": file, "at": plan.now}
    ProjectedSection.objects.insert(
        [
            ProjectedSection(**own, digest=_WHOLE),
            *(
                ProjectedSection(
                    **own, digest=read.digest, heading=read.heading[:300], facts=len(read.statements)
                )
                for read in plan.fresh
            ),
        ]
    )
    return len(claims) + len(plan.gone)


def _claims(plan: Plan, read: Read) -> list[Claim]:
    return [
        Claim(
            one.statement,
            (
                Source(
                    plan.kind,
                    f"file:{plan.file_id}#{read.digest}",
                    plan.at,
                    quote=one.statement,
                    file_id=plan.file_id,
                    heading=read.heading,
                ),
            ),
            confidence=CONFIDENCE,
            predicate=one.predicate,
            object=one.object,
        )
        for one in read.statements
    ]


def _reopen(bucket: BucketRef, claims: Sequence[Claim], *, now: datetime) -> None:
    """Facts that were closed when their section went come back with it, history and votes included."""
    marks = {fingerprint(claim.statement) for claim in claims}
    there = set(
        Fact.objects.of(bucket)
        .filter(fingerprint__in=marks, retired_at=None)
        .values_list("fingerprint", flat=True)
    )
    rows = Fact.objects.of(bucket).filter(
        fingerprint__in=marks - there, retired_why=Fact.Retired.SOURCE_GONE, derived_from=""
    )
    latest = {fact.fingerprint: fact for fact in rows.order_by("pk")}
    restore_facts(bucket, list(latest.values()), actor=ACTOR, now=now, reason="Its section is back.")


def _withdraw(bucket: BucketRef, plan: Plan) -> None:
    """Takes away the evidence of sections that are gone; a fact that has none left is closed."""
    roots = [f"file:{plan.file_id}#{digest}" for digest in plan.gone]
    rows = Evidence.objects.of(bucket).filter(root__in=roots)
    ids = set(rows.values_list("fact_id", flat=True))
    if not ids:
        return
    rows.delete()
    facts = Fact.objects.of(bucket).filter(pk__in=ids, retired_at=None)
    has_any = Evidence.objects.of(bucket).filter(fact=OuterRef("pk"))
    bare = list(facts.filter(~Exists(has_any)))
    retire_facts(
        bucket,
        bare,
        why=Fact.Retired.SOURCE_GONE,
        actor=ACTOR,
        now=plan.now,
        reason="The section it stood in is gone.",
    )
    for fact in facts.filter(Exists(has_any)):
        settle_trust(bucket, fact)
        fact.save(update_fields=["trust"])


def ask_for_unread(bucket: BucketRef) -> int:
    """Asks for the files of a bucket that were written after they were read last; how many. Inside `tenant(…)`."""
    read = ProjectedSection.objects.of(bucket).filter(
        file=OuterRef("pk"), digest=_WHOLE, at__gte=OuterRef("updated_at")
    )
    files = File.objects.of(bucket).filter(~Exists(read), head__gt=0)
    wanted = [pk for pk, name in files.values_list("pk", "name") if may_state(name)]
    for pk in wanted:
        ask_for_projection(bucket, pk)
    return len(wanted)
