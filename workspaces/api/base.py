"""What every endpoint has: a principal, declared needs, strict JSON, paging, idempotency."""

from __future__ import annotations

import codecs
import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, cast

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.utils.encoders import JSONEncoder
from rest_framework.views import APIView

from workspaces.access import Principal, principal_of_token, principal_of_user, require
from workspaces.api.fields import MAX_ID, StrictSerializer
from workspaces.errors import BadInput, NotFound, TooLarge, Unauthenticated
from workspaces.services.idempotency import Claim, FirstAnswer, claim_key, keep_answer, release_key
from workspaces.types import Grant, Role


@dataclass(frozen=True, slots=True)
class Needs:
    """What a method of an endpoint needs: at least that role, and that grant."""

    role: Role
    grant: Grant


class PrincipalAuthentication(BaseAuthentication):
    """A token in `Authorization: Bearer …`, else the session's user. Never a token in a query string."""

    def authenticate(self, request: Request) -> tuple[Principal, None] | None:
        address = str(request.META.get("REMOTE_ADDR", ""))
        wanted = _workspace_header(request)
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if header:
            scheme, _, secret = header.partition(" ")
            if scheme.lower() != "bearer" or not secret.strip():
                raise Unauthenticated("bad_authorization", "Send `Authorization: Bearer mm_…`.")
            principal = principal_of_token(secret.strip(), address=address, now=timezone.now())
            if wanted is not None and wanted != principal.workspace_id:
                raise NotFound("not_found", "There is no such workspace.")
            return principal, None
        user = getattr(request._request, "user", AnonymousUser())
        if not isinstance(user, User) or not user.is_active:
            return None
        SessionAuthentication().enforce_csrf(request)
        return principal_of_user(user, workspace_id=wanted, address=address), None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def _workspace_header(request: Request) -> int | None:
    raw = request.META.get("HTTP_X_WORKSPACE_ID")
    if raw is None:
        return None
    if not (raw.isascii() and raw.isdigit()) or len(raw) > 19 or int(raw) > MAX_ID:
        raise BadInput("bad_workspace_id", f"X-Workspace-Id {raw[:40]!r} is no workspace's number.")
    return int(raw)


class StrictJSONParser(BaseParser):
    """JSON in UTF-8 of at most 8 MiB; NaN, duplicate keys and bad bytes are told, not guessed."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        body = stream.read(settings.MAX_BODY_BYTES + 1)
        if len(body) > settings.MAX_BODY_BYTES:
            raise TooLarge("body_too_large", f"A request body holds at most {settings.MAX_BODY_BYTES} bytes.")
        try:
            text = body.removeprefix(codecs.BOM_UTF8).decode()
        except UnicodeDecodeError as bad:
            raise BadInput("bad_encoding", f"The body is not UTF-8 (byte {bad.start}).") from bad
        try:
            return json.loads(text, object_pairs_hook=_no_twins, parse_constant=_no_constant)
        except (ValueError, RecursionError) as bad:
            raise BadInput("bad_json", f"The body is not JSON: {bad}.") from bad


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return made


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


class Paging(PageNumberPagination):
    """`{count, next, previous, results}`; `?page=` from 1, `?pageSize=` 1 to 200."""

    page_size = 50
    page_size_query_param = "pageSize"
    max_page_size = 200


class Sliceable(Protocol):
    """A list that loads what is asked for."""

    def count(self) -> int: ...

    def __getitem__(self, part: slice) -> Any: ...


class ReplayedError(Exception):
    """The request was answered before; carries that answer."""

    def __init__(self, answer: FirstAnswer) -> None:
        super().__init__()
        self.answer = answer


IDEMPOTENCY_KEY: Final = "HTTP_IDEMPOTENCY_KEY"


class Endpoint(APIView):
    """A view that knows who calls. `needs` says for each method what the caller must have.

    The tables of routes in the README and in the tests are read from `needs`.
    """

    authentication_classes = (PrincipalAuthentication,)
    parser_classes = (StrictJSONParser,)
    needs: ClassVar[dict[str, Needs]] = {}
    # OPTIONS would describe the serializers of whoever asks; OpenAPI does that.
    metadata_class = None
    claim: Claim | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        verbs = {verb for verb in ("get", "post", "put", "patch", "delete") if hasattr(cls, verb)}
        if verbs != set(cls.needs):
            raise TypeError(f"{cls.__name__}.needs must name exactly {sorted(verbs)}.")

    @property
    def principal(self) -> Principal:
        """Who is calling."""
        return cast("Principal", self.request.user)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not isinstance(request.user, Principal):
            raise Unauthenticated("not_authenticated", "Log in, or send `Authorization: Bearer mm_…`.")
        verb = (request.method or "").lower()
        # HEAD is answered by GET's handler, so it needs what GET needs.
        needs = self.needs.get("get" if verb == "head" else verb)
        if needs is not None:
            require(self.principal, role=needs.role, grant=needs.grant)
        key = request.META.get(IDEMPOTENCY_KEY)
        if request.method == "POST" and key is not None:
            self.claim = self._claim(request, key)

    def _claim(self, request: Request, key: str) -> Claim:
        content = json.dumps(request.data, sort_keys=True)
        answer = claim_key(
            self.principal.workspace_id,
            caller=self.principal.actor,
            key=key,
            request=f"{request.get_full_path()}\n{content}".encode(errors="surrogatepass"),
            now=timezone.now(),
        )
        if isinstance(answer, FirstAnswer):
            raise ReplayedError(answer)
        return answer

    def handle_exception(self, exc: Exception) -> Response:
        response: Response | None = None
        try:
            response = super().handle_exception(exc)
        finally:
            if response is None and self.claim is not None:
                # A fault of ours: whoever sends it again is heard.
                release_key(self.claim)
        return response

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        final = super().finalize_response(request, response, *args, **kwargs)
        if self.claim is not None and isinstance(response, Response):
            if response.status_code < 500 and response.status_code != 429:
                keep_answer(self.claim, status=response.status_code, body=_plain(response.data))
            else:
                release_key(self.claim)
        return final

    def read(self, serializer: type[StrictSerializer], data: Any = None) -> dict[str, Any]:
        """The request's body (or query) as that serializer reads it; a wrong one is a 400 naming each field."""
        given = self.request.data if data is None else data
        with suppress(ValidationError):
            return cast("dict[str, Any]", _reader(serializer).run_validation(given))
        # What is wrong is told by a serializer of its own, which knows how.
        read = serializer(data=given)
        read.is_valid(raise_exception=True)
        return cast("dict[str, Any]", read.validated_data)

    def query(self, serializer: type[StrictSerializer]) -> dict[str, Any]:
        """The query string as that serializer reads it; paging's own names are let through."""
        given = self.request.query_params.dict()
        return self.read(serializer, {k: v for k, v in given.items() if k not in {"page", "pageSize"}})

    def page(
        self, rows: QuerySet[Any] | list[Any] | Sliceable, serializer: type[BaseSerializer[Any]]
    ) -> Response:
        """One page of a list."""
        pager = Paging()
        shown = pager.paginate_queryset(cast("QuerySet[Any]", rows), self.request, view=self)
        return pager.get_paginated_response(serializer(shown, many=True).data)


_readers: Final = threading.local()


def _reader(serializer: type[StrictSerializer]) -> StrictSerializer:
    """This thread's serializer of that kind: copying its fields for each request took longer than reading them."""
    known = vars(_readers).setdefault("known", {})
    if serializer not in known:
        known[serializer] = serializer(data={})
    return cast("StrictSerializer", known[serializer])


def _plain(data: Any) -> Any:
    """What JSON makes of an answer, so that it can be kept."""

    return json.loads(json.dumps(data, cls=JSONEncoder))
