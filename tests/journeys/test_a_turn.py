"""A person says something, it is remembered, and another conversation is answered with it."""

from __future__ import annotations

from tests.factories import World
from workspaces.outbox import drain

SAID = (
    "Hi! My name is Nora and I work as a bridge engineer in Tromsø.",
    "I prefer short answers, and I am allergic to peanuts.",
    "Please remember that my daughter Ida starts school on 20 August.",
)


def say(client, world: World, text: str, who: str, conversation: str | None = None):
    body = {"agentId": world.agent_id, "message": text, "endUserId": who}
    if conversation:
        body["conversationId"] = conversation
    answer = client.post("/api/v1/chat", body)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_what_a_person_said_answers_their_next_conversation_and_nobody_elses(acme: World):
    client = acme.bob.client()
    first = say(client, acme, SAID[0], "nora")
    for text in SAID[1:]:
        say(client, acme, text, "nora", first["conversationId"])
    assert drain()
    again = say(client, acme, "Which food am I allergic to?", "nora")
    assert again["conversationId"] != first["conversationId"]
    assert "peanut" in again["reply"].lower()
    assert any("peanut" in item["text"].lower() for item in again["recalled"])
    assert again["model"] == "rules"
    assert again["providers"][0]["name"] == "builtin"
    assert again["providers"][0]["status"] == "answered"
    other = say(client, acme, "Which food am I allergic to?", "sven")
    assert other["recalled"] == []
    assert "peanut" not in other["reply"].lower()


def test_a_chinese_conversation_is_remembered(acme: World):
    client = acme.bob.client()
    first = say(client, acme, "你好，我叫林晓，在杭州做产品经理。", "linxiao")
    say(client, acme, "请记住：我对海鲜过敏，喜欢喝龙井茶。", "linxiao", first["conversationId"])
    drain()
    again = say(client, acme, "我对什么过敏？", "linxiao")
    assert "海鲜" in again["reply"]


def test_the_files_that_were_written_can_be_read_with_their_history(acme: World):
    client = acme.bob.client()
    first = say(client, acme, SAID[0], "nora")
    say(client, acme, SAID[1], "nora", first["conversationId"])
    drain()
    base = f"/api/v1/agents/{acme.agent_id}/workspace/files"
    listed = client.get(base, {"endUserId": "nora", "bucket": "personal"}).json()["results"]
    names = {one["name"] for one in listed}
    assert "PROFILE.md" in names
    profile = client.get(f"{base}/PROFILE.md", {"endUserId": "nora"}).json()
    assert "peanut" in profile["content"]
    assert "Nora" in profile["content"]
    runs = client.get(f"/api/v1/memory/{acme.agent_id}/runs", {"endUserId": "nora"}).json()["results"]
    assert runs[0]["status"] == "stored"
    detail = client.get(f"/api/v1/memory/{acme.agent_id}/runs/{runs[0]['id']}", {"endUserId": "nora"}).json()
    assert {change["target"] for change in detail["changes"]} >= {"PROFILE.md"}
