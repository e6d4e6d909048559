"""The operator's door for the Django admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from workspaces.tenancy import Door, door

ADMIN: Final = "/admin/"


class OperatorMiddleware:
    """Opens the operator's door for the whole of an admin request, rendering included.

    One transaction a request: what an operator did and its audit events commit together. Everybody else
    reaches tenant rows through `workspaces.access` only.
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
        with door(Door.OPERATOR):
            return self.get_response(request)
