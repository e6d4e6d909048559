"""Errors become HTTP here, and only here: RFC 9457 problem details with a stable code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import exceptions
from rest_framework.response import Response

from integrations.clients.errors import ProviderError
from workspaces import errors
from workspaces.api.base import ReplayedError

log = structlog.get_logger(__name__)

_STATUS: Final[tuple[tuple[type[errors.DomainError], int], ...]] = (
    (errors.BadInput, 400),
    (errors.Unauthenticated, 401),
    (errors.Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.TooLarge, 413),
    (errors.Unprocessable, 422),
    (errors.TooMany, 429),
    (errors.Unavailable, 503),
)

_TITLES: Final = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    422: "Unprocessable",
    429: "Too many requests",
    500: "Internal error",
    502: "Model error",
    503: "Unavailable",
}

CONTENT_TYPE: Final = "application/problem+json"


def problem(status: int, code: str, detail: str, **more: Any) -> dict[str, Any]:
    """The body of a problem."""
    return {
        "type": "about:blank",
        "title": _TITLES[status],
        "status": status,
        "code": code,
        "detail": detail,
        **more,
    }


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response | None:  # noqa: ARG001 - DRF's signature
    """DRF's exception handler. None (a 500 by Django's own handler) for what is a fault of ours."""
    if isinstance(error, ReplayedError):
        return Response(
            error.answer.body,
            status=error.answer.status,
            headers={"Idempotency-Replayed": "true"},
            content_type=CONTENT_TYPE if error.answer.status >= 400 else None,
        )
    body, headers = _problem_of(error)
    if body is None:
        return None
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


def _problem_of(error: Exception) -> tuple[dict[str, Any] | None, dict[str, str]]:  # noqa: PLR0911 - one row a kind
    headers: dict[str, str] = {}
    if isinstance(error, errors.DomainError):
        status = next(number for kind, number in _STATUS if isinstance(error, kind))
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if "retry_after" in error.fields:
            headers["Retry-After"] = str(error.fields["retry_after"])
        return problem(status, error.code, error.message, **error.fields), headers
    if isinstance(error, ProviderError):
        status = 503 if error.retryable else 502
        return problem(status, f"model_{error.kind}", str(error)), {
            "Retry-After": "5"
        } if error.retryable else {}
    if isinstance(error, RequestDataTooBig):
        return problem(413, "body_too_large", "The request body is too large."), headers
    if isinstance(error, Http404):
        return problem(404, "not_found", "There is nothing at this address."), headers
    if isinstance(error, (OperationalError, InterfaceError)):
        log.warning("database.unavailable", exc_info=error)
        return problem(503, "database_unavailable", "The database is away; try again."), {"Retry-After": "2"}
    if isinstance(error, exceptions.ValidationError):
        found = list(_field_errors(error.get_full_details(), path=""))
        detail = "; ".join(
            f"{one['field']}: {one['message']}" if one["field"] else one["message"] for one in found
        )
        return problem(400, "invalid", detail, errors=found), headers
    if isinstance(error, exceptions.APIException):
        codes = error.get_codes()
        code = codes if isinstance(codes, str) else "error"
        return problem(error.status_code, code, str(error.detail)), headers
    return None, headers


def _field_errors(details: Any, *, path: str) -> Any:
    if isinstance(details, dict) and set(details) == {"message", "code"}:
        field = path.removesuffix(".non_field_errors").removeprefix("non_field_errors")
        yield {"field": field, "message": str(details["message"]), "code": str(details["code"])}
    elif isinstance(details, dict):
        for name, inner in details.items():
            yield from _field_errors(inner, path=f"{path}.{name}" if path else str(name))
    elif isinstance(details, list):
        for inner in details:
            yield from _field_errors(inner, path=path)


def not_found(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:  # noqa: ARG001 - Django's
    """Django's handler for an address that no route has."""
    return JsonResponse(
        problem(404, "not_found", f"There is nothing at {request.path}."),
        status=404,
        content_type=CONTENT_TYPE,
    )


def server_error(request: HttpRequest) -> JsonResponse:  # noqa: ARG001 - Django's signature
    """Django's handler for a fault of ours."""
    return JsonResponse(
        problem(500, "internal_error", "Something broke on our side; it has been logged."),
        status=500,
        content_type=CONTENT_TYPE,
    )


class PrincipalScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How OpenAPI describes the token."""

    target_class = "workspaces.api.base.PrincipalAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:  # noqa: ARG002 - its signature
        return {"type": "http", "scheme": "bearer"}
