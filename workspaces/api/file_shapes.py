"""What is sent and answered under `agents/{agentId}/workspace/…`."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers

from workspaces.api.fields import EndUserIdField, FlagField, StrictSerializer, TextField
from workspaces.logic.keyword import MAX_QUERY_CHARS
from workspaces.logic.strategies import Strategy

MAX_REVISION: Final = 2**31 - 1
SHARED: Final = "shared"
PERSONAL: Final = "personal"

# --- what is sent -----------------------------------------------------------------------------------------


class Where(StrictSerializer):
    """Whose memory: absent, the caller's own."""

    endUserId = EndUserIdField(required=False, help_text="An integration's end user; needs `on_behalf`.")
    bucket = serializers.ChoiceField(
        [SHARED, PERSONAL],
        required=False,
        help_text="`shared` is the agent's own memory, the same for all; `personal` the caller's own, always.",
    )


class ListQuery(Where):
    prefix = TextField(required=False, allow_blank=True, max_length=256)


class DeleteQuery(Where):
    baseRevision = serializers.IntegerField(required=False, min_value=0, max_value=MAX_REVISION)


class DiffQuery(Where):
    """`from` is a word of Python, hence `get_fields`."""

    to = serializers.IntegerField(required=False, min_value=0, max_value=MAX_REVISION)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        older = serializers.IntegerField(required=False, min_value=0, max_value=MAX_REVISION)
        return {"from": older, **super().get_fields()}


class WriteBody(DeleteQuery):
    content = TextField(allow_blank=True)
    reason = TextField(required=False, allow_blank=True, max_length=300)


class MergeBody(WriteBody):
    filename = TextField()
    strategy = serializers.ChoiceField([one.value for one in Strategy])
    heading = TextField(required=False, max_length=200)


class RestoreBody(DeleteQuery):
    revision = serializers.IntegerField(min_value=1, max_value=MAX_REVISION)
    reason = TextField(required=False, allow_blank=True, max_length=300)


class SwitchBody(StrictSerializer):
    name = TextField()
    enabled = FlagField()


class ArrangeBody(StrictSerializer):
    files: serializers.ListSerializer[Any] = serializers.ListSerializer(
        child=SwitchBody(), allow_empty=False, max_length=500
    )


class SearchBody(StrictSerializer):
    query = TextField(max_length=MAX_QUERY_CHARS)
    limit = serializers.IntegerField(required=False, min_value=1, max_value=100, default=20)
    endUserId = EndUserIdField(required=False)


# --- what is answered -------------------------------------------------------------------------------------


class FileRow(serializers.Serializer[Any]):
    """A file without its content."""

    name = serializers.CharField()
    scope = serializers.CharField(source="bucket.scope", help_text="PERSONAL, TEAM or GLOBAL.")
    enabled = serializers.BooleanField(help_text="Part of every prompt.")
    sortOrder = serializers.IntegerField(source="sort_order")
    size = serializers.IntegerField(help_text="Bytes in UTF-8.")
    revision = serializers.IntegerField(source="head")
    updatedAt = serializers.DateTimeField(source="updated_at")


class FileAnswer(FileRow):
    """A file. `baseRevision` is what a write here would replace: 0 while one's own file is missing."""

    baseRevision = serializers.IntegerField()
    content = serializers.CharField()


class WriteAnswer(serializers.Serializer[Any]):
    """What a write did. `content` is there when it differs from what was sent."""

    name = serializers.CharField()
    scope = serializers.CharField()
    revision = serializers.IntegerField()
    size = serializers.IntegerField()
    created = serializers.BooleanField()
    changed = serializers.BooleanField()
    warnings = serializers.ListField(child=serializers.CharField())
    content = serializers.CharField(required=False)


class RevisionRow(serializers.Serializer[Any]):
    """A revision without its content."""

    number = serializers.IntegerField()
    kind = serializers.CharField(help_text="full, append or delete.")
    authorKind = serializers.CharField(
        source="author_kind", help_text="person, program, machine, import or system."
    )
    actor = serializers.CharField()
    reason = serializers.CharField()
    base = serializers.IntegerField(allow_null=True, help_text="The revision its author had read.")
    sha256 = serializers.CharField(help_text="Of the whole content after the write, in hex.")
    createdAt = serializers.DateTimeField(source="created_at")


class RevisionAnswer(RevisionRow):
    """A revision with the whole content as it stood after it."""

    content = serializers.CharField()


class DiffAnswer(serializers.Serializer[Any]):
    """A unified diff."""

    name = serializers.CharField()
    to = serializers.IntegerField(source="newer")
    diff = serializers.CharField()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {"from": serializers.IntegerField(source="older"), **super().get_fields()}


class PromptFileRow(serializers.Serializer[Any]):
    """A file's place in the prompt."""

    name = serializers.CharField()
    scope = serializers.CharField(help_text="TEAM, or GLOBAL, which only the operator arranges.")
    enabled = serializers.BooleanField()
    sortOrder = serializers.IntegerField(source="sort_order")
    size = serializers.IntegerField()
    revision = serializers.IntegerField()
    tokens = serializers.IntegerField(help_text="Estimated; 0 while it is not part of the prompt.")


class PromptAnswer(serializers.Serializer[Any]):
    """The files of every prompt, in their order, then those that could be."""

    files = PromptFileRow(many=True)
    tokens = serializers.IntegerField(help_text="Of all enabled files as they are sent, estimated.")
    size = serializers.IntegerField()


class LineRow(serializers.Serializer[Any]):
    """A line that answers a search; the terms stand as `[[term]]` in the snippet."""

    name = serializers.CharField()
    scope = serializers.CharField()
    line = serializers.IntegerField()
    snippet = serializers.CharField()
    score = serializers.FloatField()


class SearchAnswer(serializers.Serializer[Any]):
    """The best lines; `filesSearched` of `filesTotal` were read."""

    query = serializers.CharField()
    results = LineRow(many=True)
    filesSearched = serializers.IntegerField()
    filesTotal = serializers.IntegerField()
