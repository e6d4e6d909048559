"""Reads of memory files for people, programs and agents.

Inside the caller's `tenant(opened.reach)`, but for `matching_lines`, which needs no database.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.expressions import RawSQL

from workspaces.access import Opened
from workspaces.errors import NotFound
from workspaces.logic import keyword
from workspaces.logic.diff import unified
from workspaces.logic.names import BORN_ORDER, MEMORY, PROFILE, clean_name
from workspaces.logic.tokens import estimate
from workspaces.models import GLOBAL_BUCKET_ID, Bucket, File, Revision
from workspaces.queries import content_at, files_within, prompt_files
from workspaces.services.views import refuse_view, view_files, view_of
from workspaces.settings import Effective
from workspaces.types import Reach, Scope

CANDIDATES: Final = 50
"""Files that one search reads (contract §3)."""
_LOOKED_AT: Final = 2000
"""Files that are asked how many of the terms they hold: the born ones, then the latest."""
_TEXT_BYTES: Final = 4 * 1024 * 1024
"""Bytes of text that one search reads at most; the best candidate is always read."""
_PROBES: Final = 24
VIEW_ORDER: Final = 1000
"""The place of a view in lists: behind the files."""
_CAPS: Final[Mapping[str, str]] = {
    PROFILE: "mate.memory.profile-max-chars",
    MEMORY: "mate.memory.memory-md-max-chars",
}


def cap_of(name: str, settings: Effective) -> int:
    """The ceiling of that file in characters for what a machine writes; 0 is none."""
    key = _CAPS.get(name)
    return settings.count(key) if key else 0


# --- files ------------------------------------------------------------------------------------------------


class Listed:
    """Files of the table, then views: a list that loads what is asked for. Inside `tenant(…)`."""

    def __init__(self, rows: QuerySet[File], views: list[File]) -> None:
        self._rows = rows
        self._views = views
        self._stored: int | None = None

    def _rows_count(self) -> int:
        if self._stored is None:
            self._stored = self._rows.count()
        return self._stored

    def count(self) -> int:
        """How many there are."""
        return self._rows_count() + len(self._views)

    __len__ = count

    def __getitem__(self, part: slice) -> list[File]:
        start, stop, _ = part.indices(self.count())
        stored = self._rows_count()
        found = list(self._rows[start:stop]) if start < stored else []
        return found + self._views[max(start - stored, 0) : max(stop - stored, 0)]


def listed_files(opened: Opened, *, prefix: str = "", scope: Scope | None = None) -> Listed:
    """The files a reader sees whose names begin with `prefix`, without contents; own before shared."""
    reach = _narrowed(opened, scope)
    rows = files_within(reach).select_related("bucket").defer("content", "held")
    prefix = unicodedata.normalize("NFC", prefix)
    if prefix:
        rows = rows.filter(name__startswith=prefix)
    views = [one for one in _views(opened, reach) if one.name.startswith(prefix)]
    return Listed(rows.order_by("sort_order", "name", _rank(opened)), views)


def _views(opened: Opened, reach: Reach, *, name: str | None = None) -> list[File]:
    """The views within reach as files that are in no table: by name, own before shared before global."""
    found = view_files(reach, name=name)
    if not found:
        return []
    # Policies show the workspace's own and the global one.
    buckets = Bucket.unscoped.in_bulk({one.bucket_id for one in found})
    own = opened.bucket.id if opened.bucket else 0
    files = [
        File(
            workspace_id=buckets[one.bucket_id].workspace_id,
            bucket=buckets[one.bucket_id],
            name=one.name,
            content=one.content,
            size=len(one.content.encode()),
            head=one.revision,
            sort_order=VIEW_ORDER,
            created_at=one.updated_at,
            updated_at=one.updated_at,
        )
        for one in found
        if one.bucket_id in buckets
    ]
    rank = {own: 0, GLOBAL_BUCKET_ID: 2}
    return sorted(files, key=lambda file: (file.name, rank.get(file.bucket_id, 1)))


def shown_file(opened: Opened, name: str, *, scope: Scope | None = None) -> File:
    """The file of that name: own, else shared, else global, or only of one scope; raises `NotFound`."""
    name = clean_name(name)
    if view_of(name) is not None:
        views = _views(opened, _narrowed(opened, scope), name=name)
        if not views:
            raise NotFound("file_not_found", f"There is no file {name!r}.")
        return views[0]
    rows = files_within(_narrowed(opened, scope)).select_related("bucket").filter(name=name)
    return _first(rows, opened, name)


def kept_file(opened: Opened, name: str, *, scope: Scope | None = None) -> File:
    """Like `shown_file`, but a deleted file counts: its revisions can still be read and restored."""
    name = clean_name(name)
    refuse_view(name)
    rows: QuerySet[File] = File.objects.within(_narrowed(opened, scope)).filter(name=name, head__gt=0)
    return _first(rows.select_related("bucket"), opened, name)


def base_of(opened: Opened, file: File) -> int:
    """The revision that a write of this file's name would replace; 0 where it would make a new file.

    It differs from `file.head` where the file shown is the shared one and the caller's own would be written.
    """
    if opened.bucket is None:
        return 0
    if file.bucket_id == opened.bucket.id:
        return file.head
    if view_of(file.name) is not None:
        own = view_files(Reach(opened.bucket.workspace_id, (opened.bucket.id,)), name=file.name)
        return own[0].revision if own else 0
    rows = File.objects.of(opened.bucket).filter(name=file.name)
    return int(rows.values_list("head", flat=True).first() or 0)


def _first(rows: QuerySet[File], opened: Opened, name: str) -> File:
    found = rows.order_by(_rank(opened)).first()
    if found is None:
        raise NotFound("file_not_found", f"There is no file {name!r}.")
    return found


def _narrowed(opened: Opened, scope: Scope | None) -> Reach:
    reach, team = opened.reach, opened.agent.team.id
    if scope is None:
        return reach
    wanted = {Scope.TEAM: {team}, Scope.GLOBAL: {GLOBAL_BUCKET_ID}}.get(
        scope, set(reach.buckets) - {team, GLOBAL_BUCKET_ID}
    )
    return Reach(reach.workspace_id, tuple(bucket for bucket in reach.buckets if bucket in wanted))


def _rank(opened: Opened) -> Case:
    """What is written first, then the other bucket of the agent, then the global one."""
    return Case(
        When(bucket_id=opened.bucket.id if opened.bucket else 0, then=Value(0)),
        When(bucket_id=GLOBAL_BUCKET_ID, then=Value(2)),
        default=Value(1),
        output_field=IntegerField(),
    )


# --- revisions --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Version:
    """A revision with the whole content as it stood after it."""

    number: int
    kind: str
    author_kind: str
    actor: str
    reason: str
    base: int | None
    sha256: str
    created_at: datetime
    content: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The unified diff between two revisions of a file."""

    name: str
    older: int
    newer: int
    diff: str


def revisions_of(file: File) -> QuerySet[Revision]:
    """The file's revisions, newest first, without contents."""
    rows: QuerySet[Revision] = Revision.objects.within(Reach(file.workspace_id, (file.bucket_id,)))
    return rows.filter(file_id=file.pk).defer("content").order_by("-number")


def version_of(file: File, number: int) -> Version:
    """That revision with its content; raises `NotFound`."""
    found = revisions_of(file).filter(number=number).first() if 0 < number <= file.head else None
    if found is None:
        raise NotFound("revision_not_found", f"{file.name} has no revision {number}.")
    return Version(
        number=found.number,
        kind=found.kind,
        author_kind=found.author_kind,
        actor=found.actor,
        reason=found.reason,
        base=found.base,
        sha256=found.sha256,
        created_at=found.created_at,
        content=content_at(file, number),
    )


def difference(file: File, *, older: int | None, newer: int | None) -> Difference:
    """What changed from `older` (default: the one before) to `newer` (default: the latest); 0 is empty."""
    newer = file.head if newer is None else newer
    older = max(newer - 1, 0) if older is None else older
    for number in (older, newer):
        if not 0 <= number <= file.head:
            raise NotFound("revision_not_found", f"{file.name} has no revision {number}.")
    diff = unified(
        content_at(file, older),
        content_at(file, newer),
        before_name=f"{file.name}@{older}",
        after_name=f"{file.name}@{newer}",
    )
    return Difference(file.name, older, newer, diff)


# --- the prompt -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A file's place in the prompt; `size` in bytes, `tokens` with its header line, 0 if disabled."""

    name: str
    scope: Scope
    enabled: bool
    sort_order: int
    size: int
    revision: int
    tokens: int


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """The files that are, or could be, part of every prompt; `tokens` and `size` of all enabled ones."""

    files: tuple[PromptFile, ...]
    tokens: int
    size: int


def prompt_plan(opened: Opened) -> PromptPlan:
    """Order, switches and cost: enabled files as they are sent, then the disabled ones of the top folder.

    Notes and archives lie in folders and are not offered; there may be thousands.
    """
    team = opened.agent.team
    enabled = prompt_files(team)
    rows = files_within(Reach(team.workspace_id, (team.id,))).filter(enabled=False)
    disabled = rows.exclude(name__contains="/").defer("content", "held")
    files = [_planned(file, tokens=estimate(_block(file))) for file in enabled]
    return PromptPlan(
        files=(*files, *(_planned(file, tokens=0) for file in disabled)),
        tokens=estimate("\n\n".join(_block(file) for file in enabled)),
        size=sum(file.size for file in enabled),
    )


def _block(file: File) -> str:
    return f"--- {file.name} ---\n{file.content}"


def _planned(file: File, *, tokens: int) -> PromptFile:
    scope = Scope.GLOBAL if file.bucket_id == GLOBAL_BUCKET_ID else Scope.TEAM
    return PromptFile(file.name, scope, file.enabled, file.sort_order, file.size, file.head, tokens)


# --- search -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidates:
    """The files that a search reads, best first, and how many the reader has in all."""

    files: tuple[File, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line that answers a search; see `keyword.Hit`."""

    name: str
    scope: Scope
    line: int
    snippet: str
    score: float


class _Name(str):
    """A file's name that carries its file through the search and back: two buckets may hold the same name."""

    __slots__ = ("file",)
    file: File


def search_candidates(opened: Opened, query: str, *, prefixes: Sequence[str] = ()) -> Candidates:
    """The at most 50 files within reach (and below one of `prefixes`) that hold most of what is looked for.

    Four statements. At most 2,000 files are looked at and 4 MiB of text read, whatever there is.
    """
    rows = files_within(opened.reach)
    if prefixes:
        narrowed = Q()
        for prefix in prefixes:
            narrowed |= Q(name__startswith=prefix)
        rows = rows.filter(narrowed)
    total = rows.count()
    born_first = Case(When(name__in=BORN_ORDER, then=Value(0)), default=Value(1), output_field=IntegerField())
    latest = rows.order_by(born_first, "-updated_at", "pk").values("pk")[:_LOOKED_AT]
    ranked = (
        rows.filter(pk__in=latest)
        .annotate(held_terms=RawSQL(_HELD_TERMS, [_probes(query)]))  # noqa: S611 - the terms are a parameter
        .order_by("-held_terms", _rank(opened), born_first, "-updated_at", "pk")
        .values_list("pk", "size")[:CANDIDATES]
    )
    wanted: list[int] = []
    room = _TEXT_BYTES
    for pk, size in ranked:
        if not wanted or size <= room:
            wanted.append(pk)
            room -= size
    found = files_within(opened.reach).select_related("bucket").defer("held").in_bulk(wanted)
    views = [one for one in _views(opened, opened.reach) if one.name.startswith(tuple(prefixes) or "")]
    files = (*(found[pk] for pk in wanted if pk in found), *views)
    return Candidates(files, total + len(views))


# The text is folded once a row, not once a term. Matching here only ranks: `keyword.search` decides.
_HELD_TERMS: Final = """(
  WITH folded AS MATERIALIZED (SELECT lower(workspaces_file.content) AS text)
  SELECT count(*) FROM folded, unnest(%s::text[]) AS term WHERE strpos(folded.text, term) > 0
)"""


def _probes(query: str) -> list[str]:
    """What SQL looks for: the terms, English ones without their ending, and pairs of letters as given."""
    found = [term[: max(4, len(term) - 3)] if term.isascii() else term for term in keyword.terms(query)]
    # Terms are folded (traditional Chinese as simplified); the files are not.
    pairs = (query[n : n + 2] for n in range(len(query) - 1))
    found += [pair for pair in pairs if pair.isalpha() and not pair.isascii()]
    return sorted(dict.fromkeys(found), key=len, reverse=True)[:_PROBES]


def matching_lines(candidates: Candidates, query: str, *, limit: int) -> list[Line]:
    """The best lines of the candidates; raises `BadInput` "bad_query". Needs no transaction."""
    searched: list[keyword.Searchable] = []
    for file in candidates.files:
        name = _Name(file.name)
        name.file = file
        searched.append(keyword.Searchable(name, file.content))
    return [
        Line(hit.name, Scope(cast("_Name", hit.name).file.bucket.scope), hit.line, hit.snippet, hit.score)
        for hit in keyword.search(searched, query, limit=limit)
    ]
