"""Entries over HTTP: `memory/{agentId}/entries`.

Without `bucket` a caller writes their own and reads their own, the shared and the global ones; `bucket=shared` is
the agent's shared memory, which members write, `bucket=personal` the caller's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.errors import entry_not_found
from memory.logic.structured import TYPES, is_quarantined
from memory.models import Entry
from memory.queries import current_entries, entry_revisions, entry_within, shown_of
from memory.services.entries import Draft, delete_entry, is_shown, put_entry
from workspaces.access import Opened, Principal, open_personal, open_shared, require
from workspaces.api.base import Endpoint, Needs
from workspaces.api.fields import TextField
from workspaces.api.file_shapes import MAX_REVISION, PERSONAL, SHARED, Where
from workspaces.errors import Unprocessable
from workspaces.services.audit import record_audit
from workspaces.services.files import Author
from workspaces.tenancy import tenant
from workspaces.types import AuthorKind, Grant, Reach, Role, Scope

# --- what is sent and answered ----------------------------------------------------------------------------


class EntriesQuery(Where):
    type = serializers.ChoiceField(TYPES, required=False, help_text="Only entries of this type.")


class EntryDeleteQuery(Where):
    baseRevision = serializers.IntegerField(required=False, min_value=0, max_value=MAX_REVISION)
    reason = TextField(required=False, allow_blank=True, max_length=300)


class EntryPatch(EntryDeleteQuery):
    content = TextField(required=False, help_text="At most 8,192 characters.")
    source = TextField(  # type: ignore[assignment]
        required=False, allow_blank=True, max_length=200, help_text="Where it comes from, in words."
    )
    expiresAt = serializers.DateTimeField(
        required=False, allow_null=True, help_text="From then on it is not shown; null: never."
    )


class EntryPut(EntryPatch):
    content = TextField(help_text="At most 8,192 characters.")


class EntryCreate(EntryPut):
    type = serializers.ChoiceField(TYPES)
    key = TextField(help_text="snake_case, exact; an entry of that type and key is replaced.")


class EntryShape(serializers.Serializer[Entry]):
    """An entry. `quarantined`: it orders, and nobody who may order has said it; no prompt holds it."""

    id = serializers.IntegerField(source="pk")
    type = serializers.CharField()
    key = serializers.CharField()
    content = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    scope = serializers.CharField(source="bucket.scope", help_text="PERSONAL, TEAM or GLOBAL.")
    ownerKey = serializers.SerializerMethodField()
    authorKind = serializers.CharField(
        source="author_kind", help_text="Who wrote it last: person, program, machine, import or system."
    )
    confidence = serializers.FloatField(allow_null=True, help_text="Of one that was extracted.")
    quarantined = serializers.SerializerMethodField()
    expiresAt = serializers.DateTimeField(source="expires_at", allow_null=True)
    revision = serializers.IntegerField()
    createdAt = serializers.DateTimeField(source="created_at")
    updatedAt = serializers.DateTimeField(source="updated_at")

    def get_ownerKey(self, row: Entry) -> str | None:  # noqa: N802 - DRF's name for a field's method
        return row.bucket.owner.key if row.bucket.owner else None

    def get_quarantined(self, row: Entry) -> bool:
        return is_quarantined(shown_of(row))


class EntryWritten(EntryShape):
    """An entry after a write. `notes`: what was done to what was sent."""

    notes = serializers.ListField(child=serializers.CharField(), read_only=True)


class EntryRevisionShape(serializers.Serializer[Any]):
    """One version: what it said, who wrote it, why, and the words it came from."""

    number = serializers.IntegerField()
    op = serializers.CharField(help_text="put or delete.")
    content = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    authorKind = serializers.CharField(source="author_kind")
    actor = serializers.CharField()
    reason = serializers.CharField()
    quotes = serializers.ListField(child=serializers.DictField())
    promptVersion = serializers.IntegerField(source="prompt_version", allow_null=True)
    model = serializers.CharField()
    runId = serializers.IntegerField(source="run_id", allow_null=True)
    createdAt = serializers.DateTimeField(source="created_at")


# --- from a request to an entry ---------------------------------------------------------------------------


def _open(
    principal: Principal, agent_id: int, given: Mapping[str, Any], *, writes: bool, makes: bool
) -> Opened:
    if given.get("bucket") == SHARED:
        return open_shared(principal, agent_id, writes=writes)
    opened = open_personal(principal, agent_id, end_user_id=given.get("endUserId"), writes=makes)
    if given.get("bucket") == PERSONAL:
        opened = replace(opened, bucket=opened.own)
    if writes and opened.bucket is not None and opened.bucket.scope is not Scope.PERSONAL:
        require(principal, role=Role.MEMBER)
    return opened


def _reach(opened: Opened, given: Mapping[str, Any]) -> Reach:
    """What is read: all within reach, or the one bucket that was named."""
    wanted = {SHARED: opened.agent.team, PERSONAL: opened.own}
    if given.get("bucket") not in wanted:
        return opened.reach
    bucket = wanted[given["bucket"]]
    return replace(opened.reach, buckets=(bucket.id,) if bucket else (), writes=())


def _author(principal: Principal, given: Mapping[str, Any]) -> Author:
    kind = AuthorKind.PERSON if principal.token_id is None else AuthorKind.PROGRAM
    return Author(kind, principal.actor, reason=given.get("reason", ""), address=principal.address)


def _writable(opened: Opened, entry_id: int) -> Entry:
    """The entry, which must be in the bucket that is written. Inside `tenant(…)`."""
    entry = _current(opened.reach, entry_id)
    if opened.bucket is None or entry.bucket_id != opened.bucket.id:
        raise Unprocessable(
            "entry_elsewhere",
            f"Entry {entry_id} is in {entry.bucket.scope} memory; name the bucket that it is in.",
            field="bucket",
        )
    return entry


def _current(reach: Reach, entry_id: int) -> Entry:
    entry = entry_within(reach, entry_id)
    if not is_shown(entry, now=timezone.now()):
        raise entry_not_found(str(entry_id))
    return entry


def _trace(opened: Opened, given: Mapping[str, Any], target: str) -> None:
    """Whoever reads another person's own memory on their behalf leaves a trace."""
    if "endUserId" in given and opened.own is not None:
        record_audit(
            opened.agent.workspace_id,
            actor=opened.principal.actor,
            action="entry.read",
            target=f"bucket:{opened.own.id}/{target}",
            address=opened.principal.address,
        )


# --- endpoints --------------------------------------------------------------------------------------------

_READ: Final = Needs(Role.VIEWER, Grant.READ)
_WRITE: Final = Needs(Role.VIEWER, Grant.WRITE)
_STALE: Final = OpenApiResponse(description="It changed meanwhile: `currentRevision` and its `content`.")


class EntriesView(Endpoint):
    """The entries a caller sees."""

    needs: ClassVar = {"get": _READ, "post": _WRITE}

    @extend_schema(
        operation_id="listEntries",
        parameters=[EntriesQuery],
        responses=EntryShape(many=True),
        tags=["entries"],
    )
    def get(self, request: Request, agent_id: int) -> Response:
        """Lists entries, the latest first."""
        given = self.query(EntriesQuery)
        opened = _open(self.principal, agent_id, given, writes=False, makes=False)
        with tenant(opened.reach):
            rows = current_entries(_reach(opened, given), now=timezone.now()).select_related("bucket__owner")
            if "type" in given:
                rows = rows.filter(type=given["type"])
            _trace(opened, given, "entries")
            return self.page(rows, EntryShape)

    @extend_schema(
        operation_id="putEntry",
        request=EntryCreate,
        responses={200: EntryWritten, 201: EntryWritten, 409: _STALE},
        tags=["entries"],
    )
    def post(self, request: Request, agent_id: int) -> Response:
        """Makes an entry, or replaces that of the same type and key."""
        given = self.read(EntryCreate)
        opened = _open(self.principal, agent_id, given, writes=True, makes=True)
        bucket = opened.writable()
        draft = Draft(
            given["type"],
            given["key"],
            given["content"],
            source=given.get("source", ""),
            expires_at=given.get("expiresAt"),
        )
        with tenant(opened.reach):
            kept = put_entry(
                bucket,
                draft,
                author=_author(self.principal, given),
                now=timezone.now(),
                base=given.get("baseRevision"),
            )
            body = EntryShape(entry_within(opened.reach, kept.entry.pk)).data | {"notes": list(kept.notes)}
        return Response(body, status=201 if kept.is_new else 200)


class EntryView(Endpoint):
    """One entry."""

    needs: ClassVar = {"get": _READ, "put": _WRITE, "patch": _WRITE, "delete": _WRITE}

    @extend_schema(operation_id="readEntry", parameters=[Where], responses=EntryShape, tags=["entries"])
    def get(self, request: Request, agent_id: int, entry_id: int) -> Response:
        """Reads an entry."""
        given = self.query(Where)
        opened = _open(self.principal, agent_id, given, writes=False, makes=False)
        with tenant(opened.reach):
            entry = _current(_reach(opened, given), entry_id)
            _trace(opened, given, str(entry))
            return Response(EntryShape(entry).data)

    @extend_schema(
        operation_id="replaceEntry",
        request=EntryPut,
        responses={200: EntryWritten, 409: _STALE},
        tags=["entries"],
    )
    def put(self, request: Request, agent_id: int, entry_id: int) -> Response:
        """Replaces an entry's content; an `expiresAt` that is left out is taken away."""
        given = self.read(EntryPut)
        return self._change(agent_id, entry_id, {"expiresAt": None, **given})

    @extend_schema(
        operation_id="changeEntry",
        request=EntryPatch,
        responses={200: EntryWritten, 409: _STALE},
        tags=["entries"],
    )
    def patch(self, request: Request, agent_id: int, entry_id: int) -> Response:
        """Changes what is named of an entry."""
        return self._change(agent_id, entry_id, self.read(EntryPatch))

    @extend_schema(
        operation_id="deleteEntry",
        parameters=[EntryDeleteQuery],
        responses={204: None, 409: _STALE},
        tags=["entries"],
    )
    def delete(self, request: Request, agent_id: int, entry_id: int) -> Response:
        """Takes an entry away; its versions stay. To have it gone everywhere, forget it."""
        given = self.query(EntryDeleteQuery)
        opened = _open(self.principal, agent_id, given, writes=True, makes=False)
        with tenant(opened.reach):
            entry = _writable(opened, entry_id)
            delete_entry(
                opened.writable(),
                entry.type,
                entry.key,
                author=_author(self.principal, given),
                now=timezone.now(),
                base=given.get("baseRevision"),
            )
        return Response(status=204)

    def _change(self, agent_id: int, entry_id: int, given: Mapping[str, Any]) -> Response:
        opened = _open(self.principal, agent_id, given, writes=True, makes=False)
        with tenant(opened.reach):
            entry = _writable(opened, entry_id)
            draft = Draft(
                entry.type,
                entry.key,
                given.get("content", entry.content),
                source=given.get("source", ""),
                expires_at=given.get("expiresAt", entry.expires_at),
            )
            kept = put_entry(
                opened.writable(),
                draft,
                author=_author(self.principal, given),
                now=timezone.now(),
                base=given.get("baseRevision"),
            )
            body = EntryShape(entry_within(opened.reach, entry_id)).data | {"notes": list(kept.notes)}
        return Response(body)


class EntryHistoryView(Endpoint):
    """An entry's versions."""

    needs: ClassVar = {"get": _READ}

    @extend_schema(
        operation_id="listEntryRevisions",
        parameters=[Where],
        responses=EntryRevisionShape(many=True),
        tags=["entries"],
    )
    def get(self, request: Request, agent_id: int, entry_id: int) -> Response:
        """Lists an entry's versions, newest first; also those of a deleted one."""
        given = self.query(Where)
        opened = _open(self.principal, agent_id, given, writes=False, makes=False)
        with tenant(opened.reach):
            entry = entry_within(_reach(opened, given), entry_id)
            _trace(opened, given, str(entry))
            return self.page(entry_revisions(entry), EntryRevisionShape)
