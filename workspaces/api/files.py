"""Memory files over HTTP: `agents/{agentId}/workspace/…`.

Without `bucket` a caller writes their own memory and reads their own file before the shared and the global
one; `bucket=shared` is the agent's shared memory, which members write, `bucket=personal` the caller's own,
also while what is learned goes to the shared one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import Opened, Principal, open_personal, open_shared, require
from workspaces.api.base import Endpoint, Needs, Paging
from workspaces.api.fields import MAX_ID
from workspaces.api.file_shapes import (
    PERSONAL,
    SHARED,
    ArrangeBody,
    DeleteQuery,
    DiffAnswer,
    DiffQuery,
    FileAnswer,
    FileRow,
    ListQuery,
    MergeBody,
    PromptAnswer,
    RestoreBody,
    RevisionAnswer,
    RevisionRow,
    SearchAnswer,
    SearchBody,
    Where,
    WriteAnswer,
    WriteBody,
)
from workspaces.errors import BadInput, NotFound
from workspaces.file_queries import (
    base_of,
    cap_of,
    difference,
    kept_file,
    listed_files,
    matching_lines,
    prompt_plan,
    revisions_of,
    search_candidates,
    shown_file,
    version_of,
)
from workspaces.logic.names import clean_name
from workspaces.models import File
from workspaces.services.audit import record_audit
from workspaces.services.files import (
    Author,
    Written,
    arrange_prompt_files,
    delete_file,
    merge_into_file,
    restore_file,
    write_file,
)
from workspaces.settings import effective
from workspaces.tenancy import tenant
from workspaces.types import AuthorKind, BucketRef, Grant, Role, Scope

_ETAG: Final = re.compile(r'(?:W/)?"(?P<number>[0-9]{1,10})"')

# --- from a request to a bucket ---------------------------------------------------------------------------


def _agent_number(raw: str) -> int:
    if raw.isascii() and raw.isdigit() and len(raw) <= 19 and int(raw) <= MAX_ID:
        return int(raw)
    raise NotFound("agent_not_found", f"There is no agent {raw[:40]} in this workspace.")


def _open(
    principal: Principal, agent_id: str, given: Mapping[str, Any], *, writes: bool, makes: bool = False
) -> Opened:
    """What the request may touch; `makes` a new person's bucket. Members alone write shared memory."""
    number = _agent_number(agent_id)
    if given.get("bucket") == SHARED:
        return open_shared(principal, number, writes=writes)
    opened = open_personal(principal, number, end_user_id=given.get("endUserId"), writes=makes)
    if given.get("bucket") == PERSONAL:
        opened = replace(opened, bucket=opened.own)
    if writes and opened.bucket is not None and opened.bucket.scope is not Scope.PERSONAL:
        require(principal, role=Role.MEMBER)
    return opened


def _bucket_with(opened: Opened, name: str) -> BucketRef:
    """The bucket in which a file must be; nothing known of a person looks like a file that is not there."""
    if opened.bucket is None:
        raise NotFound("file_not_found", f"There is no file {name!r}.")
    return opened.bucket


def _scope(given: Mapping[str, Any]) -> Scope | None:
    return {SHARED: Scope.TEAM, PERSONAL: Scope.PERSONAL}.get(given.get("bucket", ""))


def _author(principal: Principal, given: Mapping[str, Any]) -> Author:
    kind = AuthorKind.PERSON if principal.token_id is None else AuthorKind.PROGRAM
    return Author(kind, principal.actor, reason=given.get("reason", ""), address=principal.address)


def _base(request: Request, given: Mapping[str, Any]) -> int | None:
    """The revision the caller has read, from `If-Match` or `baseRevision`."""
    told: int | None = given.get("baseRevision")
    header = request.META.get("HTTP_IF_MATCH")
    if header is None:
        return told
    match = _ETAG.fullmatch(header.strip())
    if match is None:
        raise BadInput("bad_if_match", f'If-Match must be one revision such as "3", not {header[:80]!r}.')
    number = int(match["number"])
    if told is not None and told != number:
        raise BadInput("bad_if_match", f"If-Match names revision {number}, baseRevision {told}.")
    return number


def _cap(opened: Opened, name: str) -> int:
    return cap_of(name, effective(opened.agent.workspace_id, opened.agent.id))


def _trace_reading(opened: Opened, file: File, given: Mapping[str, Any]) -> None:
    """Whoever reads another person's own file on their behalf leaves a trace."""
    if "endUserId" in given and opened.own is not None and file.bucket_id == opened.own.id:
        record_audit(
            opened.agent.workspace_id,
            actor=opened.principal.actor,
            action="file.read",
            target=f"bucket:{file.bucket_id}/{file.name}",
            address=opened.principal.address,
        )


def _etag(number: int) -> dict[str, str]:
    return {"ETag": f'"{number}"'}


def _written(written: Written, bucket: BucketRef, *, sent: str | None) -> Response:
    body: dict[str, Any] = {
        "name": written.name,
        "scope": bucket.scope.value,
        "revision": written.revision,
        "size": len(written.content.encode()),
        "created": written.is_new,
        "changed": written.is_changed,
        "warnings": list(written.warnings),
    }
    if sent != written.content:
        body["content"] = written.content
    status = 201 if written.is_new else 200
    return Response(WriteAnswer(body).data, status=status, headers=_etag(written.revision))


# --- endpoints --------------------------------------------------------------------------------------------

_AGENT: Final = OpenApiParameter("agent_id", OpenApiTypes.INT64, OpenApiParameter.PATH)
_NAME: Final = OpenApiParameter(
    "name", str, OpenApiParameter.PATH, description="Ends in `.md`; may hold slashes."
)
_NUMBER: Final = OpenApiParameter("number", int, OpenApiParameter.PATH)
_IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description='The revision that was read, as `"3"`; like baseRevision.',
)
_STALE: Final = OpenApiResponse(
    description="It changed meanwhile: `currentRevision`, and the `diff` since the base."
)
_READ: Final = Needs(Role.VIEWER, Grant.READ)
_WRITE: Final = Needs(Role.VIEWER, Grant.WRITE)
_WRITE_SHARED: Final = Needs(Role.MEMBER, Grant.WRITE)


class Files(Endpoint):
    """The files a caller sees."""

    needs: ClassVar = {"get": _READ}
    pagination_class = Paging

    @extend_schema(operation_id="listFiles", parameters=[_AGENT, ListQuery], responses=FileRow(many=True))
    def get(self, request: Request, agent_id: str) -> Response:
        """Lists files without their contents, in prompt order."""
        given = self.query(ListQuery)
        opened = _open(self.principal, agent_id, given, writes=False)
        with tenant(opened.reach):
            rows = listed_files(opened, prefix=given.get("prefix", ""), scope=_scope(given))
            return self.page(rows, FileRow)


class OneFile(Endpoint):
    """A file by its name."""

    needs: ClassVar = {"get": _READ, "put": _WRITE, "delete": _WRITE}

    @extend_schema(operation_id="readFile", parameters=[_AGENT, _NAME, Where], responses=FileAnswer)
    def get(self, request: Request, agent_id: str, name: str) -> Response:
        """Reads a file: one's own, else the shared, else the global one."""
        given = self.query(Where)
        opened = _open(self.principal, agent_id, given, writes=False)
        with tenant(opened.reach):
            file = shown_file(opened, name, scope=_scope(given))
            base = base_of(opened, file)
            _trace_reading(opened, file, given)
        body = {**FileRow(file).data, "baseRevision": base, "content": file.content}
        return Response(body, headers=_etag(base))

    @extend_schema(
        operation_id="writeFile",
        parameters=[_AGENT, _NAME, _IF_MATCH],
        request=WriteBody,
        responses={200: WriteAnswer, 201: WriteAnswer, 409: _STALE},
    )
    def put(self, request: Request, agent_id: str, name: str) -> Response:
        """Replaces a file's content, or makes the file."""
        name, given = clean_name(name), self.read(WriteBody)
        base = _base(request, given)
        opened = _open(self.principal, agent_id, given, writes=True, makes=True)
        bucket, author = opened.writable(), _author(self.principal, given)
        with tenant(opened.reach):
            cap = _cap(opened, name)
            written = write_file(bucket, name, given["content"], author=author, base=base, cap=cap)
        return _written(written, bucket, sent=given["content"])

    @extend_schema(
        operation_id="deleteFile",
        parameters=[_AGENT, _NAME, DeleteQuery, _IF_MATCH],
        responses={204: None, 409: _STALE},
    )
    def delete(self, request: Request, agent_id: str, name: str) -> Response:
        """Takes a file away; its revisions stay, and it can be restored."""
        name, given = clean_name(name), self.query(DeleteQuery)
        base = _base(request, given)
        opened = _open(self.principal, agent_id, given, writes=True)
        with tenant(opened.reach):
            delete_file(_bucket_with(opened, name), name, author=_author(self.principal, given), base=base)
        return Response(status=204)


class Revisions(Endpoint):
    """A file's history."""

    needs: ClassVar = {"get": _READ}
    pagination_class = Paging

    @extend_schema(
        operation_id="listRevisions", parameters=[_AGENT, _NAME, Where], responses=RevisionRow(many=True)
    )
    def get(self, request: Request, agent_id: str, name: str) -> Response:
        """Lists a file's revisions, newest first; also those of a deleted file."""
        given = self.query(Where)
        opened = _open(self.principal, agent_id, given, writes=False)
        with tenant(opened.reach):
            return self.page(revisions_of(kept_file(opened, name, scope=_scope(given))), RevisionRow)


class OneRevision(Endpoint):
    """A revision by its number."""

    needs: ClassVar = {"get": _READ}

    @extend_schema(
        operation_id="readRevision", parameters=[_AGENT, _NAME, _NUMBER, Where], responses=RevisionAnswer
    )
    def get(self, request: Request, agent_id: str, name: str, number: int) -> Response:
        """Reads a file as it stood after that revision."""
        given = self.query(Where)
        opened = _open(self.principal, agent_id, given, writes=False)
        with tenant(opened.reach):
            file = kept_file(opened, name, scope=_scope(given))
            version = version_of(file, number)
            _trace_reading(opened, file, given)
        return Response(RevisionAnswer(version).data)


class Diff(Endpoint):
    """What changed between two revisions."""

    needs: ClassVar = {"get": _READ}

    @extend_schema(operation_id="diffRevisions", parameters=[_AGENT, _NAME, DiffQuery], responses=DiffAnswer)
    def get(self, request: Request, agent_id: str, name: str) -> Response:
        """Compares two revisions; by default the latest with the one before."""
        given = self.query(DiffQuery)
        opened = _open(self.principal, agent_id, given, writes=False)
        with tenant(opened.reach):
            file = kept_file(opened, name, scope=_scope(given))
            found = difference(file, older=given.get("from"), newer=given.get("to"))
        return Response(DiffAnswer(found).data)


class Restore(Endpoint):
    """An earlier revision as the content."""

    needs: ClassVar = {"post": _WRITE}

    @extend_schema(
        operation_id="restoreRevision",
        parameters=[_AGENT, _NAME, _IF_MATCH],
        request=RestoreBody,
        responses={200: WriteAnswer, 201: WriteAnswer, 409: _STALE},
    )
    def post(self, request: Request, agent_id: str, name: str) -> Response:
        """Makes an earlier revision the content again, as a new revision."""
        name, given = clean_name(name), self.read(RestoreBody)
        base = _base(request, given)
        opened = _open(self.principal, agent_id, given, writes=True)
        bucket, author = _bucket_with(opened, name), _author(self.principal, given)
        with tenant(opened.reach):
            written = restore_file(bucket, name, given["revision"], author=author, base=base)
        return _written(written, bucket, sent=None)


class PromptFiles(Endpoint):
    """Which shared files are part of every prompt, and in which order."""

    needs: ClassVar = {"get": _READ, "put": _WRITE_SHARED}

    @extend_schema(operation_id="readPromptFiles", parameters=[_AGENT], responses=PromptAnswer)
    def get(self, request: Request, agent_id: str) -> Response:
        """Shows the files of every prompt and what each costs."""
        opened = open_shared(self.principal, _agent_number(agent_id), writes=False)
        with tenant(opened.reach):
            plan = prompt_plan(opened)
        return Response(PromptAnswer(plan).data)

    @extend_schema(
        operation_id="arrangePromptFiles", parameters=[_AGENT], request=ArrangeBody, responses=PromptAnswer
    )
    def put(self, request: Request, agent_id: str) -> Response:
        """Sets order and switches; enabled files that are not named follow after the named ones."""
        given = self.read(ArrangeBody)
        order = [(one["name"], one["enabled"]) for one in given["files"]]
        opened = open_shared(self.principal, _agent_number(agent_id), writes=True)
        with tenant(opened.reach):
            arrange_prompt_files(opened.writable(), order, author=_author(self.principal, given))
            plan = prompt_plan(opened)
        return Response(PromptAnswer(plan).data)


class Search(Endpoint):
    """Keyword search over all files within reach."""

    needs: ClassVar = {"get": _READ, "post": _READ}

    @extend_schema(operation_id="searchFiles", parameters=[_AGENT, SearchBody], responses=SearchAnswer)
    def get(self, request: Request, agent_id: str) -> Response:
        """Finds lines by keyword, best first."""
        return self._answer(agent_id, self.query(SearchBody))

    @extend_schema(
        operation_id="findInFiles",
        parameters=[_AGENT],
        request=SearchBody,
        responses={200: SearchAnswer},
    )
    def post(self, request: Request, agent_id: str) -> Response:
        """The same with the query in the body, which no log keeps."""
        return self._answer(agent_id, self.read(SearchBody))

    def _answer(self, agent_id: str, given: Mapping[str, Any]) -> Response:
        query = given["query"]
        opened = _open(self.principal, agent_id, given, writes=False)
        with tenant(opened.reach):
            candidates = search_candidates(opened, query)
        body = {
            "query": query,
            "results": matching_lines(candidates, query, limit=given["limit"]),
            "filesSearched": len(candidates.files),
            "filesTotal": candidates.total,
        }
        return Response(SearchAnswer(body).data)


class MergeMemory(Endpoint):
    """`write_memory`: what a workflow has to say, put into the agent's shared memory."""

    needs: ClassVar = {"post": _WRITE_SHARED}

    @extend_schema(
        operation_id="writeMemory",
        parameters=[_AGENT, _IF_MATCH],
        request=MergeBody,
        responses={200: WriteAnswer, 201: WriteAnswer, 409: _STALE},
    )
    def post(self, request: Request, agent_id: str) -> Response:
        """Appends, replaces a section, updates `key: value` lines or overwrites; shared memory by default."""
        given = self.read(MergeBody)
        name, base = clean_name(given["filename"]), _base(request, given)
        where = given if "endUserId" in given or "bucket" in given else {**given, "bucket": SHARED}
        opened = _open(self.principal, agent_id, where, writes=True, makes=True)
        bucket = opened.writable()
        with tenant(opened.reach):
            written = merge_into_file(
                bucket,
                name,
                given["content"],
                strategy=given["strategy"],
                heading=given.get("heading"),
                author=_author(self.principal, given),
                base=base,
                cap=_cap(opened, name),
            )
        return _written(written, bucket, sent=given["content"])
