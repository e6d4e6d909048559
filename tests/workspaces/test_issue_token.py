"""`issue_token` prints a token that works, and says what is wrong with a wish."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.factories import World
from workspaces.access import principal_of_token
from workspaces.models import AuditEvent, PersonalAccessToken
from workspaces.tenancy import Door, door
from workspaces.types import Grant


def issue(*options: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("issue_token", "--name", "for a test", *options, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def kept(secret: str) -> PersonalAccessToken:
    with door(Door.OPERATOR):
        return PersonalAccessToken.unscoped.get(prefix=secret[:10])


def test_the_token_stands_alone_on_standard_output_and_works(acme: World):
    out, err = issue("--user", "bob-acme", "--workspace", "acme")
    secret = out.strip()
    assert out == f"{secret}\n"
    assert secret not in err
    caller = principal_of_token(secret, address="", now=timezone.now())
    assert caller.user_id == acme.bob.user.pk
    assert caller.grants == {Grant.CHAT, Grant.READ, Grant.WRITE, Grant.JOBS, Grant.ON_BEHALF}
    with door(Door.OPERATOR):
        trace = AuditEvent.unscoped.filter(action="token.issued", target=f"token:{kept(secret).pk}")
        assert trace.get().actor == "system:issue_token"


def test_all_options_are_honoured(acme: World):
    out, _ = issue(
        "--user", "bob-acme", "--workspace", str(acme.workspace.pk), "--grant", "read", "--grant", "chat",
        "--agent", "Mate", "--namespace", "shop", "--expires", "2999-01-31T12:00:00+08:00",
    )  # fmt: skip
    token = kept(out)
    assert token.grants == ["chat", "read"]
    assert token.agent_ids == [acme.agent_id]
    assert token.namespace == "shop"
    assert token.expires_at == datetime(2999, 1, 31, 4, tzinfo=UTC)


@pytest.mark.parametrize(("text", "days"), [("30d", 30), ("1d", 1)])
def test_an_expiry_may_be_a_number_of_days(acme: World, text: str, days: int):
    before = timezone.now()
    out, _ = issue("--user", "bob-acme", "--workspace", "acme", "--expires", text)
    expiry = kept(out).expires_at
    assert expiry is not None
    assert before <= expiry - timedelta(days=days) <= timezone.now()


def test_a_date_alone_means_its_beginning(acme: World):
    out, _ = issue("--user", "bob-acme", "--workspace", "acme", "--expires", "2999-01-31")
    assert kept(out).expires_at == datetime(2999, 1, 31, tzinfo=UTC)


def test_a_grant_above_the_role_is_told(acme: World):
    _, err = issue("--user", "vera-acme", "--workspace", "acme", "--grant", "admin", "--grant", "read")
    assert "a viewer may not use admin" in err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--user", "bob", "--workspace", "acme"],
            "no user 'bob' in the workspace acme. There are: alice",
        ),
        (["--user", "bob-acme", "--workspace", "amce"], "no workspace 'amce'. There are: acme"),
        (
            ["--user", "bob-acme", "--workspace", "99999999999999999999"],
            "no workspace '99999999999999999999'",
        ),
        (["--user", "bob-acme", "--workspace", "everyone"], "no workspace 'everyone'"),
        (["--user", "bob-acme", "--workspace", "acme", "--grant", "fly"], "'fly' is no grant"),
        (["--user", "bob-acme", "--workspace", "acme", "--agent", "Nobody"], "no agent 'Nobody'"),
        (["--user", "bob-acme", "--workspace", "acme", "--namespace", "a/b"], "without a slash"),
        (["--user", "bob-acme", "--workspace", "acme", "--expires", "soon"], "'soon' is no time"),
        (["--user", "bob-acme", "--workspace", "acme", "--expires", "2026-02-31"], "no possible time"),
        (["--user", "bob-acme", "--workspace", "acme", "--expires", "9999999999d"], "no possible time"),
        (["--user", "bob-acme", "--workspace", "acme", "--expires", "2001-01-01"], "has passed"),
        (["--user", "bob-acme", "--workspace", "acme", "--name", " "], "needs a name"),
        (["--user", "bob-acme", "--workspace", "acme", "--name", "n" * 65], "64"),
    ],
)
def test_a_wrong_wish_is_told_in_a_sentence(acme: World, options: list[str], told: str):
    with pytest.raises(CommandError) as wrong:
        issue(*options)
    assert told in str(wrong.value)
    assert wrong.value.returncode == 1


def test_an_inactive_user_gets_none(acme: World):
    User.objects.filter(pk=acme.bob.user.pk).update(is_active=False)
    with pytest.raises(CommandError, match="not active"):
        issue("--user", "bob-acme", "--workspace", "acme")
