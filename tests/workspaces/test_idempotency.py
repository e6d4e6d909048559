"""A repeated request gets the first answer, and does nothing a second time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from memory.api import chat as chat_api
from memory.api import turns as turns_api
from tests import factories
from tests.factories import World, client_of
from workspaces.errors import Conflict, Unavailable, Unprocessable
from workspaces.models import IdempotencyKey
from workspaces.services.idempotency import (
    ABANDONED,
    KEPT,
    Claim,
    FirstAnswer,
    claim_key,
    is_expired,
    keep_answer,
    release_key,
)
from workspaces.tenancy import Door, door


def turns_of(world: World) -> str:
    return f"/api/v1/memory/{world.agent_id}/turns"


def turn(text: str = "I like tea.", **more: object) -> dict[str, Any]:
    return {"conversationId": "c1", "messages": [{"role": "user", "content": text}], **more}


def assert_problem(response: Any, status: int, code: str) -> None:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == code


def keyed(client: APIClient, path: str, body: object, key: str = "k1", **headers: Any):
    return client.post(path, body, HTTP_IDEMPOTENCY_KEY=key, **headers)


def kept_keys() -> list[IdempotencyKey]:
    with door(Door.OPERATOR):
        return list(IdempotencyKey.unscoped.order_by("pk"))


def age(by: timedelta, **values: Any) -> None:
    with door(Door.OPERATOR):
        IdempotencyKey.unscoped.update(created_at=timezone.now() - by, **values)


def stored(client: APIClient, world: World, conversation: str = "c1") -> int:
    found = client.get(f"/api/v1/memory/{world.agent_id}/conversations/{conversation}")
    return found.json()["count"] if found.status_code == 200 else 0


def test_a_repeated_request_gets_the_first_answer_and_does_nothing(acme: World):
    client = acme.bob.client()
    first, again = (keyed(client, turns_of(acme), turn()) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert stored(client, acme) == 1


def test_the_order_of_keys_does_not_make_another_request(acme: World):
    client = acme.bob.client()
    body = turn()
    keyed(client, turns_of(acme), body)
    again = keyed(client, turns_of(acme), dict(reversed(body.items())))
    assert again["Idempotency-Replayed"] == "true"


def test_a_key_used_for_another_body_is_422(acme: World):
    client = acme.bob.client()
    keyed(client, turns_of(acme), turn())
    assert_problem(keyed(client, turns_of(acme), turn("Another")), 422, "idempotency_key_reused")
    assert stored(client, acme) == 1


def test_a_key_used_at_another_address_is_422(acme: World):
    client = acme.bob.client()
    keyed(client, turns_of(acme), turn())
    response = keyed(client, f"/api/v1/memory/{acme.agent_id}/context", turn())
    assert_problem(response, 422, "idempotency_key_reused")


def test_a_request_whose_first_still_runs_is_409(acme: World):
    client = acme.bob.client()
    keyed(client, turns_of(acme), turn())
    age(timedelta(seconds=1), status=None, body="")
    assert_problem(keyed(client, turns_of(acme), turn()), 409, "request_in_progress")


def test_a_request_that_died_may_be_sent_again_and_stores_nothing_twice(acme: World):
    client = acme.bob.client()
    keyed(client, turns_of(acme), turn())
    age(ABANDONED + timedelta(seconds=1), status=None, body="")
    again = keyed(client, turns_of(acme), turn())
    assert (again.status_code, again.json()["stored"], again.json()["duplicates"]) == (201, 0, 1)
    assert stored(client, acme) == 1


def test_a_key_is_forgotten_after_a_day(acme: World):
    client = acme.bob.client()
    keyed(client, turns_of(acme), turn())
    age(KEPT + timedelta(seconds=1))
    assert keyed(client, turns_of(acme), turn("Another")).status_code == 201


def test_a_key_is_its_callers_own(acme: World, umbra: World):
    keyed(acme.bob.client(), turns_of(acme), turn())
    for client, world in ((acme.vera.client(), acme), (umbra.mallory.client(), umbra)):
        other = keyed(client, turns_of(world), turn("Another"))
        assert other.status_code == 201
        assert "Idempotency-Replayed" not in other


def test_a_refusal_of_the_caller_is_repeated_too(acme: World):
    client = acme.bob.client()
    first, again = (keyed(client, turns_of(acme), {"messages": []}) for _ in range(2))
    assert (first.status_code, again.status_code) == (400, 400)
    assert first.json() == again.json()
    assert again["Content-Type"] == "application/problem+json"


def test_a_refusal_before_the_request_is_known_takes_no_key(acme: World):
    assert keyed(client_of(None), turns_of(acme), turn()).status_code == 401
    broken = acme.bob.client().generic(
        "POST", turns_of(acme), "{", content_type="application/json", HTTP_IDEMPOTENCY_KEY="k1"
    )
    assert broken.status_code == 400
    assert kept_keys() == []


def test_a_key_is_given_back_when_something_it_needs_is_away(acme: World, monkeypatch):
    client = acme.bob.client()

    def away(*_: object, **__: object):
        raise Unavailable("model_away", "The model is away; try again.")

    with monkeypatch.context() as patched:
        patched.setattr(turns_api, "record_turns", away)
        assert_problem(keyed(client, turns_of(acme), turn()), 503, "model_away")
    assert [row.status for row in kept_keys()] == [None]
    again = keyed(client, turns_of(acme), turn())
    assert again.status_code == 201
    assert "Idempotency-Replayed" not in again


def test_a_key_is_given_back_after_a_fault_of_ours(acme: World, monkeypatch):
    client = acme.bob.client()

    def broken(*_: object, **__: object):
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(turns_api, "record_turns", broken)
        assert_problem(keyed(client, turns_of(acme), turn()), 500, "internal_error")
    assert keyed(client, turns_of(acme), turn()).status_code == 201


def test_a_key_is_given_back_when_a_stream_breaks_off(acme: World, monkeypatch):
    client = acme.bob.client()
    body = {"agentId": acme.agent_id, "message": "Hello there"}

    async def broken(*_: object):
        yield SimpleNamespace(name="error", data={"code": "model_away"})

    async def read(response: Any) -> list[bytes]:
        return [part async for part in response.streaming_content]

    with monkeypatch.context() as patched:
        patched.setattr(chat_api, "stream_turn", broken)
        first = keyed(client, "/api/v1/chat/stream", body)
        assert b"event: error" in b"".join(async_to_sync(read)(first))
    assert keyed(client, "/api/v1/chat/stream", body).status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "\x7f"])
def test_a_key_that_cannot_be_kept_is_400(acme: World, key: str):
    assert_problem(keyed(acme.bob.client(), turns_of(acme), turn(), key), 400, "bad_idempotency_key")


def test_a_key_on_a_read_is_of_no_account(acme: World):
    client = acme.bob.client()
    for _ in range(2):
        assert client.get("/api/v1/agents", HTTP_IDEMPOTENCY_KEY="k1").status_code == 200
    assert kept_keys() == []


# --- the service ------------------------------------------------------------------------------------------


def claim(world: World, request: bytes = b"r") -> Claim | FirstAnswer:
    return claim_key(world.workspace.pk, caller="user:1", key="k", request=request, now=timezone.now())


def test_the_first_claims_and_the_next_gets_its_answer(acme: World):
    first = claim(acme)
    assert isinstance(first, Claim)
    with pytest.raises(Conflict):
        claim(acme)
    keep_answer(first, status=201, body={"n": [1, None, "é"]})
    assert claim(acme) == FirstAnswer(201, {"n": [1, None, "é"]})
    with pytest.raises(Unprocessable):
        claim(acme, b"other")


def test_a_key_given_back_is_free_for_any_request(acme: World):
    first = claim(acme)
    assert isinstance(first, Claim)
    release_key(first)
    assert isinstance(claim(acme, b"other"), Claim)


def test_the_secret_of_a_new_token_is_not_kept_with_its_key(acme: World):
    client = APIClient()
    client.force_login(acme.bob.user)
    body = {"name": "mine", "grants": ["read"]}
    first, again = (keyed(client, "/api/v1/tokens", body) for _ in range(2))
    secret = first.json()["token"]
    assert secret.startswith("mm_")
    assert again.json() == first.json() | {"token": None}
    assert secret not in str([vars(row) for row in kept_keys()])


def test_maintenance_may_remove_what_no_one_repeats_any_more():
    now = timezone.now()
    assert not is_expired(now - KEPT, now=now)
    assert is_expired(now - KEPT - timedelta(microseconds=1), now=now)


def test_of_many_at_once_one_is_the_first(committed: None):
    world = factories.acme()
    start = Barrier(6)

    def ask(_: int) -> str:
        start.wait(timeout=20)
        try:
            return type(claim(world)).__name__
        except Conflict as busy:
            return busy.code
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        found = sorted(pool.map(ask, range(6)))
    assert found == ["Claim", *["request_in_progress"] * 5]
