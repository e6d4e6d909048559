"""Workspaces, their members, and the people whom their agents remember."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from workspaces.errors import BadInput, Conflict, NotFound, Unprocessable
from workspaces.logic.zones import check_zone
from workspaces.models import GLOBAL_WORKSPACE_ID, Member, Owner, Workspace
from workspaces.services.audit import record_audit
from workspaces.services.schedules import plan_anew
from workspaces.types import Role


def create_workspace(*, name: str, slug: str = "", language: str = "en", zone: str = "UTC") -> Workspace:
    """A new tenant. Inside the operator's door; raises `Conflict` for a slug that is taken."""
    check_zone(zone)
    _check_language(language)
    try:
        with transaction.atomic():
            return Workspace.unscoped.create(
                name=name,
                slug=slug or slugify(name) or "workspace",
                language=language,
                timezone=zone,
                created_at=timezone.now(),
            )
    except IntegrityError as twin:
        raise Conflict("workspace_exists", f"A workspace with the slug {slug!r} exists.", slug=slug) from twin


def change_workspace(
    workspace_id: int,
    *,
    actor: str,
    address: str = "",
    name: str | None = None,
    language: str | None = None,
    zone: str | None = None,
) -> Workspace:
    """Changes what is given. Inside `workspace(…)` or the operator's door; raises `BadInput`, `NotFound`."""
    found = Workspace.unscoped.select_for_update().filter(pk=workspace_id).first()
    if found is None or workspace_id == GLOBAL_WORKSPACE_ID:
        raise NotFound("workspace_not_found", f"There is no workspace {workspace_id}.")
    if name is not None and not name.strip():
        raise BadInput("bad_name", "A workspace needs a name.", field="name")
    if language is not None:
        _check_language(language)
    if zone is not None:
        check_zone(zone)
    given = {"name": name and name.strip(), "language": language, "timezone": zone}
    changed = {field: value for field, value in given.items() if value is not None}
    for field, value in changed.items():
        setattr(found, field, value)
    found.save(update_fields=list(changed))
    if zone is not None:
        plan_anew(workspace_id)
    record_audit(
        workspace_id,
        actor=actor,
        action="workspace.changed",
        target=f"workspace:{workspace_id}",
        address=address,
        detail=changed,
    )
    return found


def change_owner(
    workspace_id: int,
    owner_id: int,
    *,
    actor: str,
    address: str = "",
    name: str | None = None,
    zone: str | None = None,
) -> Owner:
    """Sets what a person is called, or their time zone (empty: the workspace's). Inside `workspace(…)` or the
    operator's door; raises `BadInput`, `NotFound`."""
    found: Owner | None = (
        Owner.objects.of_workspace(workspace_id).select_for_update().filter(pk=owner_id).first()
    )
    if found is None:
        raise NotFound("owner_not_found", f"There is no owner {owner_id} in this workspace.")
    if zone:
        check_zone(zone)
    given = {"name": None if name is None else name.strip(), "timezone": zone}
    changed = {field: value for field, value in given.items() if value is not None}
    for field, value in changed.items():
        setattr(found, field, value)
    found.save(update_fields=list(changed))
    record_audit(
        workspace_id,
        actor=actor,
        action="owner.changed",
        target=f"owner:{owner_id}",
        address=address,
        detail={"fields": sorted(changed)},
    )
    return found


def add_member(
    workspace_id: int, *, user: User, role: Role, by: Role = Role.OWNER, actor: str, address: str = ""
) -> Member:
    """Makes a user a member; raises `Conflict` if they are one. Nobody gives a role above their own (`by`).

    Inside `workspace(…)` or the operator's door.
    """
    if role > by:
        raise _above()
    try:
        with transaction.atomic():
            member: Member = Member.objects.create(
                workspace_id=workspace_id, user=user, role=role.value, created_at=timezone.now()
            )
    except IntegrityError as twin:
        raise Conflict("member_exists", f"{user.get_username()} is a member already.") from twin
    record_audit(
        workspace_id,
        actor=actor,
        action="member.added",
        target=f"user:{user.pk}",
        address=address,
        detail={"role": role.name.lower()},
    )
    return member


def change_role(
    workspace_id: int, *, user_id: int, role: Role, by: Role, actor: str, address: str = ""
) -> Member:
    """Gives a member another role, within the rank of who does it (`by`); one workspace owner stays."""
    member = _member(workspace_id, user_id)
    _check_rank(member, role=role, by=by)
    if Role(member.role) is Role.OWNER and role is not Role.OWNER:
        _check_another_owner(workspace_id, user_id)
    was = Role(member.role)
    member.role = role.value
    member.save(update_fields=["role"])
    record_audit(
        workspace_id,
        actor=actor,
        action="member.role_changed",
        target=f"user:{user_id}",
        address=address,
        detail={"from": was.name.lower(), "to": role.name.lower()},
    )
    return member


def remove_member(workspace_id: int, *, user_id: int, by: Role, actor: str, address: str = "") -> None:
    """Ends a membership; the person's tokens stop with it. One workspace owner stays."""
    member = _member(workspace_id, user_id)
    _check_rank(member, role=Role.VIEWER, by=by)
    if Role(member.role) is Role.OWNER:
        _check_another_owner(workspace_id, user_id)
    member.delete()
    record_audit(
        workspace_id, actor=actor, action="member.removed", target=f"user:{user_id}", address=address
    )


def _check_language(language: str) -> None:
    if language not in Workspace.Language.values:
        told = f"{language!r} is no language we have; en and zh are."
        raise BadInput("bad_language", told, field="language")


def _member(workspace_id: int, user_id: int) -> Member:
    found: Member | None = (
        Member.objects.of_workspace(workspace_id).select_for_update().filter(user_id=user_id).first()
    )
    if found is None:
        raise NotFound("member_not_found", f"User {user_id} is no member of this workspace.")
    return found


def _check_rank(member: Member, *, role: Role, by: Role) -> None:
    if max(Role(member.role), role) > by:
        raise _above()


def _above() -> Unprocessable:
    return Unprocessable("role_above_yours", "You cannot give or take a role above your own.")


def _check_another_owner(workspace_id: int, user_id: int) -> None:
    others = Member.objects.of_workspace(workspace_id).filter(role=Role.OWNER.value).exclude(user_id=user_id)
    if not others.select_for_update().exists():
        raise Unprocessable(
            "last_owner", "A workspace keeps at least one workspace owner; name another first."
        )
