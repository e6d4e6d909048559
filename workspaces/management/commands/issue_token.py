"""`manage.py issue_token`: a token for a user in a workspace, shown once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from workspaces.errors import DomainError
from workspaces.logic.roles import GRANTS_OF_ROLE
from workspaces.models import GLOBAL_WORKSPACE_ID, Agent, Member, Workspace
from workspaces.services.tokens import issue_token
from workspaces.tenancy import Door, door
from workspaces.types import Grant, Role

_DEFAULT_GRANTS: Final = (Grant.CHAT, Grant.READ, Grant.WRITE, Grant.JOBS, Grant.ON_BEHALF)


class Command(BaseCommand):
    """Prints the token alone on standard output, and what it is on standard error."""

    help = "Makes a token for a user in a workspace and prints it once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", required=True, metavar="USERNAME", help="whose token it is")
        parser.add_argument("--workspace", required=True, metavar="SLUG|ID", help="where it is valid")
        parser.add_argument("--name", required=True, help="what it is for")
        parser.add_argument(
            "--grant",
            action="append",
            help=f"may be repeated; one of {', '.join(Grant)}. Without any: {', '.join(_DEFAULT_GRANTS)}",
        )
        parser.add_argument(
            "--agent", action="append", metavar="NAME|ID", help="may be repeated. Without any: all agents"
        )
        parser.add_argument("--namespace", default="", help="goes before every endUserId of this token")
        parser.add_argument(
            "--expires", metavar="ISO|30d", help="a date, a date and time, or a number of days"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """One transaction."""
        expires_at = _expiry(options["expires"], now=timezone.now())
        grants = options["grant"] or [grant.value for grant in _DEFAULT_GRANTS]
        try:
            with door(Door.OPERATOR):
                home = _workspace(options["workspace"])
                user, role = _member(home, options["user"])
                agents = None if options["agent"] is None else [_agent(home, one) for one in options["agent"]]
                token, secret = issue_token(
                    home.pk,
                    user_id=user.pk,
                    name=options["name"],
                    grants=grants,
                    agent_ids=agents,
                    namespace=options["namespace"],
                    expires_at=expires_at,
                    actor="system:issue_token",
                )
        except DomainError as error:
            raise CommandError(error.message) from error
        except DatabaseError as error:
            raise CommandError(f"The database refused: {str(error).strip()}") from error
        self.stderr.write(
            f"Token {token.pk} of {user} in {home.slug}: {', '.join(token.grants)}. Shown once:"
        )
        usable = GRANTS_OF_ROLE[role] | {Grant.ON_BEHALF}
        if idle := [grant for grant in token.grants if Grant(grant) not in usable]:
            self.stderr.write(
                f"Note: a {role.name.lower()} may not use {', '.join(idle)}, and so neither may the token."
            )
        self.stdout.write(secret)


def _workspace(wanted: str) -> Workspace:
    rows = Workspace.unscoped.exclude(pk=GLOBAL_WORKSPACE_ID)
    found = rows.filter(slug=wanted).first()
    if found is None and _is_id(wanted):
        found = rows.filter(pk=int(wanted)).first()
    if found is None:
        raise CommandError(f"There is no workspace {wanted!r}. {_among(rows.values_list('slug', flat=True))}")
    return found


def _member(home: Workspace, username: str) -> tuple[User, Role]:
    rows = Member.objects.of_workspace(home.pk).select_related("user").order_by("user__username")
    found = rows.filter(user__username=username).first()
    if found is None:
        names = _among(rows.values_list("user__username", flat=True))
        raise CommandError(f"There is no user {username!r} in the workspace {home.slug}. {names}")
    if not found.user.is_active:
        raise CommandError(f"The user {username!r} is not active.")
    return found.user, Role(found.role)


def _agent(home: Workspace, wanted: str) -> int:
    rows = Agent.objects.of_workspace(home.pk).order_by("name")
    found = rows.filter(name=wanted).first()
    if found is None and _is_id(wanted):
        found = rows.filter(pk=int(wanted)).first()
    if found is None:
        names = _among(rows.values_list("name", flat=True))
        raise CommandError(f"There is no agent {wanted!r} in the workspace {home.slug}. {names}")
    return int(found.pk)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _among(names: Any) -> str:
    """What there is instead, so that a typing mistake is seen."""
    shown = [str(name) for name in names[:11]]
    if not shown:
        return "There are none."
    return f"There are: {', '.join(shown[:10])}{', …' if len(shown) > 10 else ''}."


def _expiry(text: str | None, *, now: datetime) -> datetime | None:
    """The end of a token: a date (its beginning, UTC), a date and time, or days from now as `30d`."""
    if text is None:
        return None
    try:
        if text.endswith("d") and _is_id(text[:-1]):
            return now + timedelta(days=int(text[:-1]))
        day = parse_date(text)
        moment = datetime(day.year, day.month, day.day) if day else parse_datetime(text)  # noqa: DTZ001 - below
    except (ValueError, OverflowError) as bad:
        raise CommandError(f"--expires {text!r} is no possible time: {bad}.") from bad
    if moment is None:
        raise CommandError(f"--expires {text!r} is no time; write 2027-01-31, 2027-01-31T12:00:00Z or 30d.")
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment
