"""Serializer fields that take what JSON says literally, and refuse the rest by name."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from workspaces.errors import BadInput
from workspaces.logic.owners import check_end_user_id

MAX_ID: Final = 2**63 - 1


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields it does not know: a misspelt one must not silently change what a request means."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := [name for name in data if name not in self.fields]):
            known = ", ".join(name for name, field in self.fields.items() if not field.read_only)
            raise serializers.ValidationError(
                {name: [f"Unknown field; known are: {known}."] for name in unknown}, code="unknown_field"
            )
        return super().to_internal_value(data)


class TextField(serializers.CharField):
    """A JSON string, kept as it is; numbers and booleans are not turned into one."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("trim_whitespace", False)
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class FlagField(serializers.BooleanField):
    """A JSON boolean; "yes" and 1 are none."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class IdField(serializers.IntegerField):
    """The id of a row: a number, or the same digits as a string."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=1, max_value=MAX_ID, **options)

    def to_internal_value(self, data: Any) -> int:
        if (
            isinstance(data, bool)
            or not isinstance(data, (int, str))
            or (isinstance(data, str) and not (data.isascii() and data.isdigit()))
        ):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field(OpenApiTypes.STR)
class EndUserIdField(serializers.Field[str, Any, str, Any]):
    """An `endUserId`: a string of 1 to 128 characters without control characters, taken literally."""

    def to_internal_value(self, data: Any) -> str:
        try:
            return check_end_user_id(data)
        except BadInput as bad:
            raise serializers.ValidationError(bad.message, code=bad.code) from bad

    def to_representation(self, value: str) -> str:
        return value


class RowIdConverter:
    """The id of a row in a path: digits within 63 bits. Anything else is no address."""

    regex = "[0-9]{1,19}"

    def to_python(self, value: str) -> int:
        number = int(value)
        if not 1 <= number <= MAX_ID:
            raise ValueError(value)
        return number

    def to_url(self, value: int) -> str:
        return str(value)
