"""Memory files, to read and to edit with a reason; and every version they ever had."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.forms import BaseDialogForm
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from workspaces.admin.base import (
    BucketAdminMixin,
    LongAdmin,
    OperatorAdmin,
    author_of,
    button,
    done,
    link_to_list,
)
from workspaces.admin.filters import ChosenFilter
from workspaces.errors import DomainError
from workspaces.logic.diff import unified
from workspaces.logic.names import check_content, clean_name
from workspaces.models import Bucket, File, Revision
from workspaces.queries import content_at
from workspaces.services.files import (
    arrange_prompt_files,
    delete_file,
    lock_files,
    restore_file,
    write_file,
)
from workspaces.types import Scope

_PRE = '<pre class="p-3 text-sm" style="white-space: pre-wrap">{}</pre>'


class BucketField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Where a new file goes: to everyone, or to an agent's shared memory."""

    def label_from_instance(self, obj: Any) -> str:
        return "Everyone" if obj.agent is None else f"{obj.workspace} / {obj.agent}"


class FileForm(forms.ModelForm):  # type: ignore[type-arg]
    """A file's content; `base` is the revision that the operator was shown."""

    content = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget({"rows": 30, "class": "font-mono"}),
    )
    reason = forms.CharField(
        max_length=300,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Why; kept with the revision.",
    )
    base = forms.IntegerField(required=False, widget=forms.HiddenInput())
    enabled = forms.BooleanField(
        required=False, widget=UnfoldBooleanSwitchWidget(), help_text="Part of every prompt."
    )
    sort_order = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=10_000,
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text="Its place among the enabled files.",
    )

    class Meta:
        model = File
        fields = ()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.pk:
            self.initial["base"] = self.instance.head

    def clean_content(self) -> str:
        """Within the rules of contents; line ends as files have them."""
        content = str(self.cleaned_data["content"]).replace("\r\n", "\n")
        return _checked(check_content, content)

    def clean(self) -> dict[str, Any]:
        """Somebody else's save in between is told, and the typed text stays in the form."""
        given = super().clean() or self.cleaned_data
        base, head = given.get("base"), self.instance.head
        if self.instance.pk and base is not None and base != head:
            diff = unified(
                content_at(self.instance, base),
                self.instance.content,
                before_name=f"revision {base}",
                after_name=f"revision {head}",
            )
            self.data = (
                {**self.data.dict(), "base": str(head)} if isinstance(self.data, QueryDict) else self.data
            )
            raise forms.ValidationError(
                "It was changed meanwhile: revision %(head)s, not %(base)s. Saving again replaces that.\n%(diff)s",
                params={"head": head, "base": base, "diff": diff},
            )
        return given


class NewFileForm(FileForm):
    """A new file, of everyone or of an agent."""

    bucket = BucketField(queryset=Bucket.unscoped.none(), widget=UnfoldAdminSelectWidget())
    name = forms.CharField(max_length=256, widget=UnfoldAdminTextInputWidget(), help_text="Ends in .md.")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        shared = Bucket.unscoped.exclude(scope=Scope.PERSONAL.value).select_related("workspace", "agent")
        cast("BucketField", self.fields["bucket"]).queryset = shared.order_by(
            "workspace__name", "agent__name"
        )

    def clean_name(self) -> str:
        """Within the rules of names."""
        return _checked(clean_name, str(self.cleaned_data["name"]))


def _checked(rule: Any, text: str) -> str:
    try:
        return str(rule(text))
    except DomainError as bad:
        raise forms.ValidationError(bad.message) from bad


@admin.register(File)
class FileAdmin(BucketAdminMixin, OperatorAdmin):
    section = "Memory"
    icon = "description"
    may_add = may_change = may_delete = True
    warn_unsaved_form = True
    list_display = ("name", "scope", "workspace", "agent", "owner", "enabled", "size", "head", "updated_at")
    list_filter = (
        ("workspace", ChosenFilter),
        ("bucket__agent", ChosenFilter),
        ("bucket__owner", ChosenFilter),
        ("bucket__scope", ChoicesDropdownFilter),
        "enabled",
        ("deleted_at", admin.EmptyFieldListFilter),
    )
    search_fields = ("name", "bucket__owner__key", "bucket__agent__name")
    ordering = ("-updated_at",)

    def get_form(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        options["form"] = FileForm if obj else NewFileForm
        return super().get_form(request, obj, **options)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[tuple[str | None, dict[str, Any]]]:  # noqa: ARG002
        if obj is None:
            return [(None, {"fields": ("bucket", "name", "content", "reason", "base")})]
        where = ("name", "scope", "workspace", "agent", "owner", "its_revisions", "updated_at", "deleted_at")
        edited = ("content", "reason", "base", "enabled", "sort_order")
        return [(None, {"fields": edited}), ("Where it lies", {"fields": where})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        if obj is None:
            return ()
        return ("name", "scope", "workspace", "agent", "owner", "its_revisions", "updated_at", "deleted_at")

    @admin.display(description="Revisions")
    def its_revisions(self, obj: File) -> SafeString:
        """A link to every version."""
        return link_to_list(Revision, f"{obj.head} revisions", file__id__exact=obj.pk)

    def save_model(self, request: HttpRequest, obj: File, form: Any, change: bool) -> None:  # noqa: FBT001
        given = form.cleaned_data
        author = author_of(request, given["reason"])
        bucket = Bucket.unscoped.select_related("owner").get(
            pk=obj.bucket_id if change else given["bucket"].pk
        )
        name = obj.name if change else given["name"]
        before = File.unscoped.get(pk=obj.pk) if change else None
        order: list[tuple[str, bool]] = []
        if before is not None and {"enabled", "sort_order"} & set(form.changed_data):
            place = before.sort_order if given["sort_order"] is None else given["sort_order"]
            order = _arranged(before, enabled=given["enabled"], place=place)
            # It is written and then arranged among the others: all at once, or another's arranging may cross it.
            lock_files(bucket.ref(), [name for name, _ in order])
        if before is None or "content" in form.changed_data or before.deleted_at is not None:
            base = given["base"] if change else None
            written = write_file(bucket.ref(), name, given["content"], author=author, base=base)
            obj.pk, obj.bucket, obj.workspace_id, obj.name = (
                written.file_id,
                bucket,
                bucket.workspace_id,
                name,
            )
        if order:
            arrange_prompt_files(bucket.ref(), order, author=author)

    def get_deleted_objects(
        self,
        objs: Any,
        request: HttpRequest,  # noqa: ARG002
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        # Nothing cascades: the file is marked, its revisions stay, and any of them can be restored.
        return [f"{obj.name} (its revisions stay)" for obj in objs], {"files": len(objs)}, set(), []

    def delete_model(self, request: HttpRequest, obj: File) -> None:
        bucket = Bucket.unscoped.select_related("owner").get(pk=obj.bucket_id)
        delete_file(bucket.ref(), obj.name, author=author_of(request, "Deleted in the admin."))


def _arranged(file: File, *, enabled: bool, place: int) -> list[tuple[str, bool]]:
    """The prompt's files in order, with this one put at that place, or taken out."""
    others = File.unscoped.filter(bucket_id=file.bucket_id, enabled=True, deleted_at=None).exclude(pk=file.pk)
    rows = list(others.order_by("sort_order", "name").values_list("name", "sort_order"))
    before = [(name, True) for name, order in rows if order < place]
    after = [(name, True) for name, order in rows if order >= place]
    return [*before, (file.name, enabled), *after] if enabled else [*before, *after, (file.name, False)]


class RestoreForm(BaseDialogForm):  # type: ignore[misc] # unfold is not typed
    reason = forms.CharField(max_length=300, widget=UnfoldAdminTextInputWidget())


@admin.register(Revision)
class RevisionAdmin(BucketAdminMixin, LongAdmin):
    section = "Memory"
    icon = "history"
    list_display = ("file", "number", "kind", "author_kind", "actor", "reason", "workspace", "created_at")
    list_filter = (
        ("workspace", ChosenFilter),
        ("file", ChosenFilter),
        ("bucket__agent", ChosenFilter),
        ("author_kind", ChoicesDropdownFilter),
        ("kind", ChoicesDropdownFilter),
    )
    ordering = ("-id",)
    fields = (
        "file",
        "number",
        "kind",
        "author_kind",
        "actor",
        "reason",
        "base",
        "run",
        "created_at",
        "sha256",
        "difference",
        "whole",
    )
    readonly_fields = ("difference", "whole")
    actions_detail = ("restore",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Revision]:
        return super().get_queryset(request).select_related("file", "run")

    @admin.display(description="Changed since the one before")
    def difference(self, obj: Revision) -> SafeString:
        """The unified diff to the revision before."""
        older, newer = content_at(obj.file, obj.number - 1), content_at(obj.file, obj.number)
        text = unified(
            older, newer, before_name=f"revision {obj.number - 1}", after_name=f"revision {obj.number}"
        )
        return format_html(_PRE, text or "Nothing.")

    @admin.display(description="Content")
    def whole(self, obj: Revision) -> SafeString:
        """The whole content as it stood."""
        return format_html(_PRE, content_at(obj.file, obj.number))

    @button(
        description="Restore",
        url_path="restore",
        dialog={
            "title": "Make this the content again",
            "description": "It becomes a new revision; nothing is lost.",
            "form_class": RestoreForm,
            "form_submit_text": "Restore",
        },
    )
    def restore(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        """Restores this revision as a new one."""
        revision = self.get_object(request, object_id)
        if revision is None:
            return done(request, reverse("admin:workspaces_revision_changelist"))
        author = author_of(request, form.cleaned_data["reason"])
        try:
            restore_file(revision.bucket.ref(), revision.file.name, revision.number, author=author)
        except DomainError as error:
            self.message_user(request, error.message, messages.ERROR)
            return done(request, reverse("admin:workspaces_revision_change", args=[object_id]))
        self.message_user(request, f"{revision.file.name} is as it was at revision {revision.number}.")
        return done(request, reverse("admin:workspaces_file_change", args=[revision.file_id]))
