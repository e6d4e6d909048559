"""What every page of the operator's view has.

`OperatorMiddleware` opens the operator's door for the whole request of a superuser; the default manager of tenant
tables is the unscoped one, so that pages show all workspaces. What changes tenant data goes through a service.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

from django.contrib import messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import action as unfold_action
from unfold.paginator import InfinitePaginator

from workspaces.errors import DomainError
from workspaces.models import GLOBAL_WORKSPACE_ID
from workspaces.services.audit import record_audit
from workspaces.services.files import Author
from workspaces.types import AuthorKind, Scope

_F = TypeVar("_F", bound=Callable[..., Any])


def button(**options: Any) -> Callable[[_F], _F]:
    """Unfold's `action`, typed, for operators only."""
    return cast("Callable[[_F], _F]", unfold_action(permissions=["operate"], **options))


def actor_of(request: HttpRequest) -> str:
    """How traces name the operator."""
    return f"user:{request.user.pk}"


def address_of(request: HttpRequest) -> str:
    """Where the operator sits."""
    return str(request.META.get("REMOTE_ADDR", ""))


def author_of(request: HttpRequest, reason: str) -> Author:
    """The operator as the author of a file."""
    return Author(AuthorKind.PERSON, actor_of(request), reason=reason, address=address_of(request))


def is_operator(request: HttpRequest) -> bool:
    """Whether the request comes from a global administrator."""
    return bool(request.user.is_active and request.user.is_superuser)


def done(request: HttpRequest, url: str) -> HttpResponse:
    """Leaves a dialog for that page, with scripts and without."""
    if "HTTP_HX_REQUEST" in request.META:
        return HttpResponse(headers={"HX-Redirect": url})
    return HttpResponseRedirect(url)


def link_to_list(model: type[Model], text: str, **filters: Any) -> SafeString:
    """A link to the filtered list of that model."""
    options = model._meta
    url = reverse(f"admin:{options.app_label}_{options.model_name}_changelist")
    return format_html('<a class="text-primary-600" href="{}?{}">{}</a>', url, urlencode(filters), text)


class OperatorAdmin(ModelAdmin):  # type: ignore[misc] # unfold is not typed
    """A page for operators: read-only unless a subclass says otherwise. `section` is its place in the sidebar."""

    section: ClassVar[str] = ""
    icon: ClassVar[str] = "table_rows"
    may_add: ClassVar[bool] = False
    may_change: ClassVar[bool] = False
    may_delete: ClassVar[bool] = False

    list_filter_submit = True
    list_per_page = 50
    show_full_result_count = False

    def has_operate_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002
        """Whether buttons may be pressed."""
        return is_operator(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_operator(request)

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002
        return is_operator(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may_add and is_operator(request)

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002
        return self.may_change and is_operator(request)

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002
        return self.may_delete and is_operator(request)

    def get_inlines(self, request: HttpRequest, obj: object = None) -> Any:
        # What is not there yet has no rows to show.
        return super().get_inlines(request, obj) if obj is not None else ()

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions = cast("dict[str, Any]", super().get_actions(request))
        # Many at once would hide which of them a rule kept.
        actions.pop("delete_selected", None)
        return actions

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        try:
            return cast("HttpResponse", super().changeform_view(request, object_id, form_url, extra_context))
        except DomainError as error:
            return self._told(request, error)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        try:
            return cast("HttpResponse", super().delete_view(request, object_id, extra_context))
        except DomainError as error:
            return self._told(request, error)

    def _told(self, request: HttpRequest, error: DomainError) -> HttpResponse:
        if request.method != "POST":
            raise error
        self.message_user(request, error.message, messages.ERROR)
        return HttpResponseRedirect(request.get_full_path())


class LongAdmin(OperatorAdmin):
    """A page of a table that grows without end: its list never counts."""

    paginator = InfinitePaginator


class BucketAdminMixin:
    """Columns of a row of a bucket, and the trace of who read a person's own."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)  # type: ignore[misc] # a mixin
        return cast("QuerySet[Any]", rows.select_related("workspace", "bucket__agent", "bucket__owner"))

    def scope(self, obj: Any) -> str:
        """The bucket's kind."""
        return str(obj.bucket.scope)

    def agent(self, obj: Any) -> str:
        """The agent's name."""
        return str(obj.bucket.agent or "–")

    def owner(self, obj: Any) -> str:
        """The person's key."""
        return str(obj.bucket.owner.key) if obj.bucket.owner else "–"

    def render_change_form(self, request: HttpRequest, context: Any, **options: Any) -> HttpResponse:
        obj = options.get("obj")
        if obj is not None and obj.bucket.scope == Scope.PERSONAL:
            record_audit(
                obj.workspace_id,
                actor=actor_of(request),
                action=f"{obj._meta.model_name}.read",
                target=f"bucket:{obj.bucket_id}/{obj}",
                address=address_of(request),
            )
        return cast("HttpResponse", super().render_change_form(request, context, **options))  # type: ignore[misc]


class AuditedAdmin(OperatorAdmin):
    """A page of a table that belongs to no tenant: what Django writes down is audited in the reserved workspace."""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._record(request, obj, "created")
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._record(request, obj, "changed")
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        for obj in queryset:
            self._record(request, obj, "deleted")
        return super().log_deletions(request, queryset)

    def _record(self, request: HttpRequest, obj: Model, what: str) -> None:
        name = str(obj._meta.model_name)
        record_audit(
            GLOBAL_WORKSPACE_ID,
            actor=actor_of(request),
            action=f"{name}.{what}",
            target=f"{name}:{obj.pk}",
            address=address_of(request),
            detail={"name": str(obj)},
        )


class ShownInline(TabularInline):  # type: ignore[misc] # unfold is not typed
    """Rows of another table, to read."""

    extra = 0
    per_page = 20
    can_delete = False
    show_change_link = True

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002
        return is_operator(request)

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:  # noqa: ARG002
        return False
