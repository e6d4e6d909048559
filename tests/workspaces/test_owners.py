"""Owner keys, and the buckets of the people whom an agent remembers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from tests import factories
from tests.factories import World
from workspaces.access import open_personal, principal_of_user
from workspaces.errors import BadInput
from workspaces.logic.owners import api_key_of, channel_key_of, check_end_user_id, user_key_of
from workspaces.models import Bucket, Owner
from workspaces.services.owners import make_bucket, name_owner
from workspaces.tenancy import workspace
from workspaces.types import Grant, Scope


@pytest.mark.parametrize(
    ("key", "made"),
    [
        (user_key_of(7), "user:7"),
        (api_key_of("nora", namespace=""), "api:nora"),
        (api_key_of("nora", namespace="shop"), "api:shop/nora"),
        (api_key_of("user:1", namespace=""), "api:user:1"),
        (api_key_of(" nora ", namespace=""), "api: nora "),
        (api_key_of("system", namespace=""), "api:system"),
        (channel_key_of("slack", "U1"), "slack:U1"),
    ],
)
def test_a_key_says_where_the_person_comes_from(key: str, made: str):
    assert key == made


@pytest.mark.parametrize("raw", [0, 17, 1.5, True, None, [], {}, b"nora"])
def test_an_end_user_id_that_is_no_text_is_refused(raw: object):
    with pytest.raises(BadInput, match="must be a text"):
        check_end_user_id(raw)


@pytest.mark.parametrize(
    "raw", ["", "x" * 129, "a\x00b", "a\nb", "\x7f", "\x85", "\ud800", " ", "\u3000", "tab\t"]
)
def test_a_text_that_names_nobody_is_refused(raw: str):
    with pytest.raises(BadInput) as refused:
        check_end_user_id(raw)
    assert refused.value.code == "bad_end_user_id"
    assert refused.value.fields == {"field": "endUserId"}


@pytest.mark.parametrize("raw", ["0", "x" * 128, "林晓", "a b", "🙂", "../..", "%00", "'; DROP TABLE x"])
def test_any_other_text_is_taken_literally(raw: str):
    assert check_end_user_id(raw) == raw


@pytest.mark.parametrize("sender", ["", " ", "\n"])
def test_a_channel_message_without_a_sender_is_refused(sender: str):
    with pytest.raises(BadInput, match="names no sender"):
        channel_key_of("slack", sender)


@given(
    st.text(min_size=1, max_size=128, alphabet=st.characters(exclude_categories=("Cc", "Cs"))),
    st.text(min_size=1, max_size=128, alphabet=st.characters(exclude_categories=("Cc", "Cs"))),
    st.sampled_from(["", "shop", "crm"]),
    st.sampled_from(["", "shop", "crm"]),
)
def test_two_people_of_namespaces_never_share_a_key(one: str, other: str, here: str, there: str):
    if not one.strip() or not other.strip() or bool(here) != bool(there):
        return
    is_same = (one, here) == (other, there)
    assert (api_key_of(one, namespace=here) == api_key_of(other, namespace=there)) is is_same


def test_a_person_gets_one_bucket_with_each_agent(acme: World):
    principal = principal_of_user(acme.bob.user, workspace_id=acme.workspace.pk, address="")
    principal = replace(principal, grants=principal.grants | {Grant.ON_BEHALF})
    assert open_personal(principal, acme.agent_id, end_user_id="nora", writes=False).own is None
    made = open_personal(principal, acme.agent_id, end_user_id="nora", writes=True).own
    assert made is not None
    assert made == open_personal(principal, acme.agent_id, end_user_id="nora", writes=True).own
    assert made == open_personal(principal, acme.agent_id, end_user_id="nora", writes=False).own
    assert (made.scope, made.owner_key) == (Scope.PERSONAL, "api:nora")
    assert (made.agent_id, made.workspace_id) == (acme.agent_id, acme.workspace.pk)
    assert made.id != acme.team.id
    with workspace(acme.workspace.pk):
        assert made.id == make_bucket(acme.team, "api:nora")


def test_keys_are_told_apart_to_the_letter(acme: World):
    with workspace(acme.workspace.pk):
        made = {
            make_bucket(acme.team, f"api:{who}")
            for who in ("nora", "Nora", " nora", "nora ", "no\u0301ra", "n\u00f3ra")
        }
    assert len(made) == 6


def test_the_same_end_user_of_another_workspace_is_another_person(acme: World, umbra: World):
    assert acme.personal("api:nora").id != umbra.personal("api:nora").id


def test_a_person_can_be_named(acme: World):
    acme.personal("api:nora")
    with workspace(acme.workspace.pk):
        name_owner(acme.workspace.pk, "api:nora", "Nora")
        assert Owner.objects.of_workspace(acme.workspace.pk).get(key="api:nora").name == "Nora"


def test_many_first_turns_at_once_make_one_bucket(committed: None):
    world = factories.acme()
    start = Barrier(6)

    def first_turn(_: int) -> int:
        start.wait(timeout=20)
        try:
            return world.personal("api:nora").id
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        made = set(pool.map(first_turn, range(6)))
    assert len(made) == 1
    with workspace(world.workspace.pk):
        assert Bucket.objects.of_workspace(world.workspace.pk).filter(scope="PERSONAL").count() == 1
