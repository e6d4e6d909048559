"""The operator's door for the Django admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from workspaces.tenancy import OWN_DOORS, Door, door

ADMIN: Final = "/admin/"
_BROKEN: Final = "_mate_broken"


class OperatorMiddleware:
    """Opens the operator's door for the whole of an admin request, rendering included.

    One transaction a request: what an operator did and its audit events commit together, and not at all when
    the view raised or the answer is a 5xx. Everybody else reaches tenant rows through `workspaces.access` only.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(ADMIN):
            return self.get_response(request)
        user = request.user
        if not (user.is_authenticated and user.is_active and user.is_superuser):
            # The log-in page and its redirects need no tenant's row.
            return self.get_response(request)
        if _opens_its_own_doors(request):
            return self.get_response(request)
        try:
            with door(Door.OPERATOR):
                response = self.get_response(request)
                if response.status_code >= 500 or hasattr(request, _BROKEN):
                    raise _UndoneError(response)
        except _UndoneError as undone:
            return undone.response
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:  # noqa: ARG002
        """Django makes an answer of what a view raises before it comes back here; this remembers it."""
        setattr(request, _BROKEN, True)


def _opens_its_own_doors(request: HttpRequest) -> bool:
    try:
        return hasattr(resolve(request.path_info).func, OWN_DOORS)
    except Resolver404:
        return False


class _UndoneError(Exception):
    """Takes an answer out of the transaction that is rolled back."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status_code)
        self.response = response
