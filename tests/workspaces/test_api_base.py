"""What every endpoint does: who is calling, strict JSON, problems, paging."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from tests.factories import Person, World
from workspaces.models import Member
from workspaces.services.tenants import add_member
from workspaces.tenancy import Door, door
from workspaces.types import Role

CHAT = "/api/v1/chat"
MAX_BODY = 8 * 1024 * 1024


def turns_of(world: World) -> str:
    return f"/api/v1/memory/{world.agent_id}/turns"


def turn(text: str = "I like tea.", **more: object) -> dict[str, Any]:
    return {"conversationId": "c1", "messages": [{"role": "user", "content": text}], **more}


def session_of(person: Person, **options: Any) -> APIClient:
    client = APIClient(raise_request_exception=False, **options)
    client.force_login(person.user)
    return client


def raw(
    client: APIClient, body: Any, content_type: str = "application/json", path: str = CHAT, **headers: Any
):
    return client.generic("POST", path, body, content_type=content_type, **headers)


def problem_of(response: Any, status: int, code: str) -> dict[str, Any]:
    """The body of a problem, after checking its form."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert {"type", "title", "status", "code", "detail"} <= set(body)
    assert (body["status"], body["code"]) == (status, code)
    assert body["title"]
    assert body["detail"]
    return body


# --- who is calling ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    ["Basic abc", "Bearer", "Bearer ", "mm_abc", "Token {token}", "{token}", "Bearer {token}x", "Bearer mm_"],
)
def test_a_header_that_is_no_bearer_token_is_401(acme: World, header: str):
    client = APIClient()
    response = client.get("/api/v1/agents", HTTP_AUTHORIZATION=header.replace("{token}", acme.bob.token))
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert response["Content-Type"] == "application/problem+json"


def test_the_scheme_is_read_in_any_case(acme: World):
    client = APIClient()
    assert client.get("/api/v1/agents", HTTP_AUTHORIZATION=f"bearer {acme.bob.token}").status_code == 200


def test_nobody_is_told_how_to_log_in(db):
    response = APIClient().get("/api/v1/agents")
    problem_of(response, 401, "not_authenticated")
    assert response["WWW-Authenticate"] == "Bearer"


def test_a_wrong_token_beats_a_good_session(acme: World):
    client = session_of(acme.bob)
    assert client.get("/api/v1/agents").status_code == 200
    assert client.get("/api/v1/agents", HTTP_AUTHORIZATION="Bearer mm_wrong").status_code == 401


def test_a_session_needs_the_csrf_token_and_a_bearer_does_not(acme: World):
    client = session_of(acme.bob, enforce_csrf_checks=True)
    assert client.get("/api/v1/agents").status_code == 200
    assert client.post(turns_of(acme), turn()).status_code == 403
    strict = APIClient(enforce_csrf_checks=True)
    strict.credentials(HTTP_AUTHORIZATION=f"Bearer {acme.bob.token}")
    assert strict.post(turns_of(acme), turn()).status_code == 201


def test_an_inactive_user_has_no_session(acme: World):
    client = session_of(acme.bob)
    User.objects.filter(pk=acme.bob.user.pk).update(is_active=False)
    assert client.get("/api/v1/agents").status_code == 401


def test_a_session_of_two_workspaces_names_one(acme: World, umbra: World):
    with door(Door.OPERATOR):
        add_member(umbra.workspace.pk, user=acme.bob.user, role=Role.VIEWER, actor="system")
    client = session_of(acme.bob)
    problem_of(client.get("/api/v1/agents"), 400, "workspace_needed")
    for world in (acme, umbra):
        listed = client.get("/api/v1/agents", HTTP_X_WORKSPACE_ID=str(world.workspace.pk))
        assert [one["id"] for one in listed.json()["results"]] == [world.agent_id]
    other = client.get(f"/api/v1/memory/{acme.agent_id}/runs", HTTP_X_WORKSPACE_ID=str(umbra.workspace.pk))
    assert other.status_code == 404


@pytest.mark.parametrize("wanted", ["{other}", "1", "999999"])
def test_a_workspace_of_others_does_not_exist(acme: World, umbra: World, wanted: str):
    number = wanted.replace("{other}", str(umbra.workspace.pk))
    for client in (acme.bob.client(), session_of(acme.bob)):
        problem_of(client.get("/api/v1/agents", HTTP_X_WORKSPACE_ID=number), 404, "not_found")


@pytest.mark.parametrize("wanted", ["", "acme", "-1", "1.0", "\u0661", str(2**63), "9" * 5000])
def test_a_workspace_header_that_is_no_number_is_400(acme: World, wanted: str):
    response = acme.bob.client().get("/api/v1/agents", HTTP_X_WORKSPACE_ID=wanted)
    problem_of(response, 400, "bad_workspace_id")


def test_a_member_who_was_removed_has_no_session_there(acme: World):
    client = session_of(acme.bob)
    with door(Door.OPERATOR):
        Member.unscoped.filter(user=acme.bob.user).delete()
    response = client.get("/api/v1/agents", HTTP_X_WORKSPACE_ID=str(acme.workspace.pk))
    assert response.status_code == 404


# --- what was sent ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad_json"),
        (b"{", "bad_json"),
        (b"{'agentId': 1}", "bad_json"),
        (b'{"message": "a", "message": "b"}', "bad_json"),
        (b'{"message": NaN}', "bad_json"),
        (b'{"message": Infinity}', "bad_json"),
        (b'{"message": -Infinity}', "bad_json"),
        (b'{"message": "a"} {}', "bad_json"),
        (b"[" * 100_000, "bad_json"),
        (b'{"agentId": ' + b"9" * 5000 + b"}", "bad_json"),
        (b'{"message": "\xff"}', "bad_encoding"),
        (b'{"message": "\xe4\xb8"}', "bad_encoding"),
        (b"\xff\xfe{\x00}\x00", "bad_encoding"),
        (b"null", "invalid"),
        (b"[]", "invalid"),
        (b'"text"', "invalid"),
        (b"1e999", "invalid"),
    ],
)
def test_a_body_that_is_no_json_object_is_400(acme: World, body: bytes, code: str):
    response = raw(acme.bob.client(), body)
    if body == b"":
        code = "invalid"  # an empty body is an empty object, which lacks the message
    problem_of(response, 400, code)


def test_twin_keys_deep_inside_are_told_by_name(acme: World):
    body = b'{"conversationId": "c1", "messages": [{"role": "user", "content": "a", "content": "b"}]}'
    problem = problem_of(raw(acme.bob.client(), body, path=turns_of(acme)), 400, "bad_json")
    assert "'content'" in problem["detail"]


def test_a_byte_order_mark_is_let_through(acme: World):
    body = json.dumps(turn()).encode("utf-8-sig")
    assert raw(acme.bob.client(), body, path=turns_of(acme)).status_code == 201


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"mesage": "typo"}, "mesage"),
        ({"message": 5}, "message"),
        ({"message": None}, "message"),
        ({"message": ""}, "message"),
        ({"message": "   "}, "message"),
        ({"message": ["a"]}, "message"),
        ({"message": "nul\x00"}, "message"),
        ({"message": "\ud800"}, "message"),
        ({"agentId": 1.5}, "agentId"),
        ({"agentId": True}, "agentId"),
        ({"agentId": "one"}, "agentId"),
        ({"agentId": 0}, "agentId"),
        ({"agentId": 2**63}, "agentId"),
        ({"agentId": "9" * 2000}, "agentId"),
        ({"conversationId": 7}, "conversationId"),
        ({"conversationId": "x" * 129}, "conversationId"),
        ({"endUserId": 0}, "endUserId"),
    ],
)
def test_a_wrong_field_is_named(acme: World, more: dict[str, object], field: str):
    body = {"agentId": acme.agent_id, "message": "Hello"} | more
    problem = problem_of(raw(acme.bob.client(), json.dumps(body).encode()), 400, "invalid")
    assert [one["field"] for one in problem["errors"]] == [field]
    assert all(one["message"] and one["code"] for one in problem["errors"])
    assert field in problem["detail"]


def test_a_wrong_field_inside_a_list_is_named_by_its_path(acme: World):
    body = turn() | {"messages": [{"role": "user", "content": "a"}, {"role": "boss", "content": "b"}]}
    problem = problem_of(acme.bob.client().post(turns_of(acme), body), 400, "invalid")
    assert "role" in problem["errors"][0]["field"]
    assert problem["errors"][0]["field"].startswith("messages")


def test_an_id_is_taken_as_a_number_or_its_digits(acme: World):
    client = acme.bob.client()
    for agent_id in (acme.agent_id, str(acme.agent_id)):
        assert client.post(CHAT, {"agentId": agent_id, "message": "Hello"}).status_code == 200


def test_an_unknown_name_in_the_query_is_told(acme: World):
    response = acme.bob.client().get(f"/api/v1/memory/{acme.agent_id}/runs", {"endUser": "nora"})
    assert problem_of(response, 400, "invalid")["errors"][0]["field"] == "endUser"


@pytest.mark.parametrize("path", ["{turns}", CHAT, CHAT + "/stream"])
def test_a_body_of_more_than_8_mib_is_413(acme: World, path: str):
    path = path.replace("{turns}", turns_of(acme))
    body = b'{"message": "' + b"a" * (MAX_BODY - 14) + b'"}'
    assert len(body) == MAX_BODY + 1
    for client in (acme.bob.client(), session_of(acme.bob)):
        problem_of(raw(client, body, path=path), 413, "body_too_large")


def test_a_body_of_8_mib_is_read(acme: World):
    body = b'{"mesage": "' + b"a" * (MAX_BODY - 14) + b'"}'
    assert len(body) == MAX_BODY
    problem_of(raw(acme.bob.client(), body), 400, "invalid")


def test_a_message_of_more_than_256_kib_is_413(acme: World):
    body = {"agentId": acme.agent_id, "message": "a" * (256 * 1024 + 1)}
    response = acme.bob.client().post(CHAT, body)
    assert response.status_code == 413


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json"],
)
def test_anything_but_json_is_415(acme: World, content_type: str):
    response = raw(acme.bob.client(), b'{"message": "Hello"}', content_type)
    problem_of(response, 415, "unsupported_media_type")


def test_json_with_a_charset_is_json(acme: World):
    body = json.dumps({"agentId": acme.agent_id, "message": "Hello"}).encode()
    assert raw(acme.bob.client(), body, "application/json; charset=utf-8").status_code == 200


@pytest.mark.parametrize(("method", "path"), [("GET", CHAT), ("PUT", CHAT), ("DELETE", "/api/v1/agents")])
def test_a_method_that_a_route_has_not_is_405(acme: World, method: str, path: str):
    response = acme.bob.client().generic(method, path)
    problem_of(response, 405, "method_not_allowed")
    assert response["Allow"]


def test_an_answer_that_cannot_be_given_in_that_form_is_406(acme: World):
    response = acme.bob.client().get("/api/v1/agents", HTTP_ACCEPT="text/html")
    problem_of(response, 406, "not_acceptable")


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/agents/", "/nothing", "/api/v1/memory/x/runs"])
def test_an_address_that_is_none_is_a_problem_too(acme: World, path: str):
    problem_of(acme.bob.client().get(path), 404, "not_found")


@pytest.mark.parametrize("agent_id", ["0", "99999999999999999999", "9" * 5000, "-1", "one"])
@pytest.mark.parametrize("path", ["memory/{}/runs", "agents/{}", "agents/{}/workspace/files"])
def test_an_agent_number_that_cannot_be_is_404(acme: World, agent_id: str, path: str):
    assert acme.bob.client().get(f"/api/v1/{path.format(agent_id)}").status_code == 404


@pytest.mark.parametrize("name", ["nul%00", "%ff", "x" * 300, "%F0%9F%99%82", "..", "a/b"])
def test_a_conversation_that_cannot_be_is_404(acme: World, name: str):
    client = acme.bob.client()
    base = f"/api/v1/memory/{acme.agent_id}"
    assert client.post(turns_of(acme), turn()).status_code == 201
    assert client.get(f"{base}/conversations/{name}").status_code == 404
    assert client.delete(f"{base}/conversations/{name}").status_code == 404
    assert client.post(f"{base}/summarize/{name}?wait=0").status_code == 404


# --- pages ------------------------------------------------------------------------------------------------


def test_a_list_comes_in_pages(acme: World):
    client = acme.bob.client()
    for number in range(3):
        assert client.post(turns_of(acme), turn(conversationId=f"c{number}")).status_code == 201
    base = f"/api/v1/memory/{acme.agent_id}/conversations"
    first = client.get(base, {"pageSize": 2}).json()
    assert (first["count"], len(first["results"]), first["previous"]) == (3, 2, None)
    second = client.get(first["next"]).json()
    assert (second["count"], len(second["results"]), second["next"]) == (3, 1, None)
    names = {one["conversationId"] for one in first["results"] + second["results"]}
    assert names == {"c0", "c1", "c2"}


@pytest.mark.parametrize("page", ["0", "-1", "99", "x", "9" * 30])
def test_a_page_that_is_none_is_404(acme: World, page: str):
    response = acme.bob.client().get("/api/v1/agents", {"page": page})
    problem_of(response, 404, "not_found")


@pytest.mark.parametrize("size", ["0", "x", "-5", "100000"])
def test_a_page_size_that_is_none_is_the_usual_or_the_largest(acme: World, size: str):
    assert acme.bob.client().get("/api/v1/agents", {"pageSize": size}).status_code == 200
