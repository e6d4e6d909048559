"""Faults that were found once and must not come back; each test names what must hold."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from memory.models import Conversation, Message, Turn
from memory.services import backlog, chat, extract, turns
from memory.services.context import build_context
from memory.services.turns import Outcome, begin_turn, finish_turn, record_turns
from memory.services.upkeep import ABANDONED, close_abandoned
from memory.types import Incoming
from tests import factories
from tests.factories import client_of, make_world
from tests.memory.test_chat import read_events
from tests.memory.test_extract import TALK, file_of, open_as, override, runs_of, tell, waiting
from tests.stubs.openai_server import Say, StubServer
from workspaces.logic.backoff import PARK_AFTER
from workspaces.models import OutboxMessage, Run
from workspaces.outbox import drain
from workspaces.services.files import Author, write_file
from workspaces.services.tokens import issue_token
from workspaces.tenancy import Door, door, tenant
from workspaces.types import AuthorKind, Role

WAIT_S = 3.0
"""How long a thread of a test waits for the other; passing tests never wait it out."""


@pytest.fixture
def model(settings):
    with StubServer([]) as stub:
        settings.MATE_MODEL = "openai:stub"
        settings.OPENAI_BASE_URL = stub.url
        yield stub


def conversation_of(opened, name="c1") -> Conversation:
    with tenant(opened.reach):
        return Conversation.objects.of(opened.own).get(external_id=name)


def answered(text="Fine.", status=Turn.Status.ANSWERED) -> Outcome:
    return Outcome(status=status, text=text, model="rules")


def in_thread(work):
    """Runs `work` in a thread with a connection of its own; gives (thread, errors)."""
    errors: list[BaseException] = []

    def run():
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told by the test
            errors.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


# --- lost writes, deadlocks -------------------------------------------------------------------------------


def test_recording_a_turn_and_applying_a_window_do_not_deadlock(committed, monkeypatch):
    world = factories.acme()
    opened = tell(world)
    lane_held, conversation_held = threading.Event(), threading.Event()
    real_announce, real_store = turns._announce, extract._store_tally

    def announce(own):
        if threading.current_thread() is not threading.main_thread():
            conversation_held.set()
            lane_held.wait(WAIT_S)
        real_announce(own)

    def store(run, tally):
        lane_held.set()
        conversation_held.wait(WAIT_S)
        real_store(run, tally)

    monkeypatch.setattr(turns, "_announce", announce)
    monkeypatch.setattr(extract, "_store_tally", store)

    def record():
        lane_held.wait(WAIT_S)
        record_turns(
            opened, conversation_id="c1", source="api", messages=[Incoming(role="user", content="And tea.")]
        )

    thread, errors = in_thread(record)
    drain()
    thread.join()
    assert errors == []
    assert [(one.attempts, one.last_error) for one in waiting() if one.attempts] == []


def test_a_message_that_commits_late_is_not_passed_by_the_watermark(committed, monkeypatch):
    world = factories.acme()
    override(world, "cooldown-minutes", 0)
    opened = tell(world)
    earlier = begin_turn(opened, conversation_id="c1", text="Remember that I play the cello.", source="api")
    stored, go_on = threading.Event(), threading.Event()
    real_touch = turns._touch

    def touch(conversation, rows):
        if rows[-1].content.startswith("I was born"):
            stored.set()
            go_on.wait(WAIT_S)
        real_touch(conversation, rows)

    monkeypatch.setattr(turns, "_touch", touch)
    thread, errors = in_thread(
        lambda: begin_turn(opened, conversation_id="c1", text="I was born in Bergen in 1980.", source="api")
    )
    assert stored.wait(WAIT_S)
    finisher, failed = in_thread(lambda: finish_turn(earlier, answered("I love fjords too, what else?")))
    finisher.join(1)  # a right order makes this one wait for the other
    drain()
    go_on.set()
    thread.join()
    finisher.join()
    assert errors == [] == failed
    drain()
    drain(now=timezone.now() + timedelta(hours=1))
    conversation = conversation_of(opened)
    with tenant(opened.reach):
        count = Message.objects.of(opened.own).filter(conversation=conversation).count()
    worked = sum(run.result["messages"] for run in runs_of(opened))
    assert worked == count
    assert conversation.extracted_upto == conversation.last_message


def test_a_turn_that_fails_does_not_move_the_last_message_back(acme):
    opened = tell(acme, TALK[:2])
    slow = begin_turn(opened, conversation_id="c1", text="A slow question, asked first.", source="api")
    quick = begin_turn(opened, conversation_id="c1", text="I love skiing in Lyngen.", source="api")
    answer = finish_turn(quick, answered())
    finish_turn(slow, answered("", Turn.Status.FAILED))
    assert conversation_of(opened).last_message == answer.pk


def test_a_key_used_by_two_callers_does_not_drop_the_seconds_message(acme):
    with door(Door.OPERATOR):
        _, other = issue_token(
            acme.workspace.pk,
            user_id=acme.bob.user.pk,
            name="rotated",
            grants=factories.ALL_GRANTS,
            actor="system",
        )
    url = f"/api/v1/memory/{acme.agent_id}/turns"
    for token, text in ((acme.bob.token, "I like tea."), (other, "I moved to Oslo.")):
        body = {
            "conversationId": "c1",
            "endUserId": "nora",
            "messages": [{"role": "user", "content": text}],
        }
        answer = client_of(token).post(url, body, HTTP_IDEMPOTENCY_KEY="1").json()
        assert (answer["stored"], answer["duplicates"]) == (1, 0)


def test_a_long_key_does_not_make_messages_twins_of_each_other(acme):
    body = {
        "conversationId": "c1",
        "messages": [{"role": "user", "content": "I like tea."}, {"role": "user", "content": "And skiing."}],
    }
    url = f"/api/v1/memory/{acme.agent_id}/turns"
    answer = acme.bob.client().post(url, body, HTTP_IDEMPOTENCY_KEY="k" * 255).json()
    assert answer["stored"] == 2


def test_messages_without_an_id_of_their_own_show_none(acme):
    body = {"conversationId": "c1", "messages": [{"role": "user", "content": "I like tea."}]}
    url = f"/api/v1/memory/{acme.agent_id}/"
    acme.bob.client().post(url + "turns", body, HTTP_IDEMPOTENCY_KEY="secret-key")
    [row] = acme.bob.client().get(url + "conversations/c1").json()["results"]
    assert row["externalId"] is None


def test_the_question_of_a_turn_whose_process_died_is_still_extracted(acme):
    opened = open_as(acme)
    begin_turn(opened, conversation_id=None, text="Remember that I hate coriander.", source="api")
    with door(Door.OPERATOR):
        Turn.unscoped.update(started_at=timezone.now() - ABANDONED - timedelta(minutes=1))
    close_abandoned(timezone.now())
    drain()
    assert "coriander" in file_of(opened, "MEMORY.md") + file_of(opened, "PROFILE.md")


def test_every_conversation_of_a_large_backlog_is_worked_without_another_turn(acme, monkeypatch):
    monkeypatch.setattr(backlog, "PAGE", 2)
    for n in range(5):
        opened = tell(acme, conversation=f"c{n}")
    drain()
    assert [conversation_of(opened, f"c{n}").extracted_upto > 0 for n in range(5)] == [True] * 5


def test_conversations_that_are_held_back_do_not_hide_an_older_one(acme, monkeypatch):
    monkeypatch.setattr(backlog, "PAGE", 2)
    opened = tell(acme, conversation="long")
    for n in range(5):
        tell(acme, conversation=f"short-{n}", texts=["Hello."])
    drain()
    assert "peanut" in file_of(opened, "PROFILE.md")
    assert conversation_of(opened, "long").extracted_upto > 0
    assert conversation_of(opened, "short-4").extracted_upto == 0


@pytest.mark.parametrize("count", [2, 60])
def test_a_long_conversation_does_not_hide_what_was_said_in_another(acme, monkeypatch, count):
    monkeypatch.setattr(backlog, "LOOKED_AT", 3)
    override(acme, "min-messages-for-summarize", 2)
    override(acme, "min-user-message-length", 20)
    opened = tell(acme, conversation="c0")
    tell(acme, conversation="c1", texts=[f"It is the {n}th time that I say it." for n in range(count)])
    drain()
    assert [conversation_of(opened, f"c{n}").extracted_upto > 0 for n in range(2)] == [True] * 2


def test_a_conversation_whose_marks_promise_messages_that_are_not_there_does_not_go_round(acme):
    override(acme, "min-user-message-length", 0)
    opened = tell(acme)
    with tenant(opened.reach):
        Message.objects.of(opened.own).delete()
    drain()
    assert [one.status for one in runs_of(opened)] == ["nothing"]
    assert list(waiting()) == []


# --- poison -----------------------------------------------------------------------------------------------


def work_until_parked(opened) -> None:
    for hours in range(PARK_AFTER + 1):
        drain(now=timezone.now() + timedelta(hours=hours))


def test_a_date_at_the_edge_of_time_does_not_stop_extraction(db):
    world = make_world("west", {"alice": Role.ADMIN, "bob": Role.MEMBER}, zone="America/New_York")
    url = f"/api/v1/memory/{world.agent_id}/turns"
    body = {
        "conversationId": "c1",
        "endUserId": "nora",
        "messages": [{"role": "user", "content": "hello", "at": "0001-01-01T00:00:00Z"}],
    }
    if world.bob.client().post(url, body).status_code == 400:
        return  # refused by name: as good
    opened = tell(world)
    work_until_parked(opened)
    assert "peanut" in file_of(opened, "PROFILE.md")


def test_a_run_that_breaks_for_good_is_told_as_failed(acme, monkeypatch):
    opened = tell(acme)

    def broken(*_args, **_options):
        raise ZeroDivisionError

    monkeypatch.setattr(extract, "_write", broken)
    work_until_parked(opened)
    assert [one.parked_at is not None for one in waiting()] == [True]
    assert [run.status for run in runs_of(opened)] == ["failed"]


def test_a_run_that_dies_before_its_end_is_told_as_what_it_did(acme, monkeypatch):
    opened = tell(acme)
    real = extract._finish
    died: list[int] = []

    def finish(*args, **options):
        if not died:
            died.append(1)
            raise ZeroDivisionError
        real(*args, **options)

    monkeypatch.setattr(extract, "_finish", finish)
    drain()
    drain(now=timezone.now() + timedelta(hours=1))
    [run] = runs_of(opened)
    assert run.written["files"]
    assert (run.status, run.reason) == ("stored", "stored")


def test_the_day_of_many_messages_does_not_go_whole_to_the_model(acme, model):
    opened = open_as(acme)
    today = timezone.now().date()
    with tenant(opened.reach):
        write_file(
            opened.own, f"memory/{today}.md", "- told\n" * 50_000, author=Author(AuthorKind.PERSON, "user:1")
        )
    model.add(Say('{"should_update": false, "reason": "nothing"}'))
    tell(acme)
    drain()
    assert len(str(model.requests[-1].body)) < 100_000


# --- what is told -----------------------------------------------------------------------------------------


def test_a_named_speaker_without_an_owners_name_is_not_silently_ignored(acme):
    url = f"/api/v1/memory/{acme.agent_id}/turns"
    body = {
        "conversationId": "c1",
        "endUserId": "nora",
        "messages": [
            {"role": "user" if n % 2 == 0 else "assistant", "content": text}
            | ({"speaker": "Nora"} if n % 2 == 0 else {})
            for n, text in enumerate(TALK)
        ],
    }
    assert acme.bob.client().post(url, body).status_code == 201
    opened = open_as(acme)
    drain()
    assert runs_of(opened) or "peanut" in file_of(opened, "PROFILE.md")


def test_an_owners_name_is_compared_without_its_outer_spaces(acme):
    opened = open_as(acme)
    record_turns(
        opened,
        conversation_id="c1",
        source="api",
        owner="Nora ",
        messages=[Incoming(role="user", content="I like tea.", speaker="Nora")],
    )
    with tenant(opened.reach):
        assert Message.objects.of(opened.own).get().is_owner


def test_a_skipped_conversation_is_told_once(acme):
    opened = None
    for n in range(4):
        opened = tell(acme, conversation=f"night-{n}", source="cron")
        drain()
    assert len(runs_of(opened)) == 4


def test_messages_beyond_the_window_are_told_as_dropped(acme):
    opened = open_as(acme)
    record_turns(
        opened,
        conversation_id="c1",
        source="api",
        messages=[
            Incoming(role="user" if n % 2 == 0 else "assistant", content=f"line {n}") for n in range(450)
        ],
    )
    window = build_context(opened, query="And now?", conversation=conversation_of(opened))
    spoken = len(window.history) - (1 if window.summarised else 0)
    assert window.summarised + window.dropped + spoken == 450


# --- streams and answers ----------------------------------------------------------------------------------


def test_a_stream_that_breaks_on_our_side_says_so_and_closes_its_turn(acme, monkeypatch):
    def broken(*_args):
        raise ZeroDivisionError

    monkeypatch.setattr(chat, "_context", broken)
    answer = acme.bob.client().post("/api/v1/chat/stream", {"message": "Hello there."})
    events = []
    with suppress(ZeroDivisionError):
        events = read_events(answer)
    with door(Door.OPERATOR):
        assert [turn.status for turn in Turn.unscoped.all()] == ["failed"]
    assert [name for name, _ in events][-1:] == ["error"]


@pytest.mark.parametrize("said", ["half \x00 an answer", "a smile \ud83d"])
def test_an_answer_with_what_postgres_cannot_hold_is_still_answered(committed, model, said):
    world = factories.acme()
    model.add(Say(said))
    answer = world.bob.client().post("/api/v1/chat", {"message": "Hello there."})
    with door(Door.OPERATOR):
        assert [turn.status for turn in Turn.unscoped.all()] == ["answered"]
    assert answer.status_code == 200


def test_a_turn_whose_answer_cannot_be_stored_is_closed(acme, monkeypatch):
    real = chat.finish_turn
    failed: list[int] = []

    def finish(begun, outcome):
        if not failed:
            failed.append(1)
            raise ZeroDivisionError
        return real(begun, outcome)

    monkeypatch.setattr(chat, "finish_turn", finish)
    acme.bob.client().post("/api/v1/chat", {"message": "Hello there."})
    with door(Door.OPERATOR):
        assert [turn.status for turn in Turn.unscoped.all()] == ["failed"]


def test_a_repeated_stream_is_a_stream_to_who_asks_for_one(acme):
    client = acme.bob.client()
    sent = {"HTTP_IDEMPOTENCY_KEY": "k", "HTTP_ACCEPT": "text/event-stream"}
    first = read_events(client.post("/api/v1/chat/stream", {"message": "Hello there."}, **sent))
    again = client.post("/api/v1/chat/stream", {"message": "Hello there."}, **sent)
    raw = again.content.decode()
    assert again["Content-Type"].startswith("application/json") or "event: done" in raw
    assert first[-1][0] == "done"


def test_a_chat_and_its_stream_put_the_same_words_before_the_model(acme, model):
    text = "My password is hunter2hunter2, what do you think?"
    model.add(Say("Hm."), Say("Hm."))
    client = acme.bob.client()
    client.post("/api/v1/chat", {"message": text})
    read_events(client.post("/api/v1/chat/stream", {"message": text}))
    one, two = (request.body["messages"][-1]["content"] for request in model.requests)
    assert one.endswith("what do you think?")
    assert one.splitlines()[-1] == two.splitlines()[-1]


def test_an_ongoing_outage_parks_by_time_and_not_by_turns(acme, monkeypatch):
    opened = tell(acme)

    def away(*_args):
        raise extract.ProviderError("away", retryable=True, kind="unavailable")

    monkeypatch.setattr(extract, "_think", away)
    for n in range(PARK_AFTER):
        tell(acme, (f"I like number {n} best.",))
        drain()
    with door(Door.OPERATOR):
        assert not OutboxMessage.unscoped.filter(parked_at__isnull=False).exists()
        assert OutboxMessage.unscoped.get().attempts == 1
    assert [run.status for run in runs_of(opened)] == ["running"]


def test_a_change_of_a_diary_does_not_hold_the_whole_diary(acme):
    opened = open_as(acme)
    today = timezone.now().date()
    with tenant(opened.reach):
        write_file(
            opened.own, f"memory/{today}.md", "- told\n" * 10_000, author=Author(AuthorKind.PERSON, "user:1")
        )
    tell(acme)
    drain()
    [run] = runs_of(opened)
    with tenant(opened.reach):
        change = run.changes.get(target=f"memory/{today}.md")
    assert len(change.before) + len(change.after) < 20_000


def test_a_run_counts_what_it_did_before_a_crash_too(acme, monkeypatch):
    override(acme, "max-transcript-messages", 2)
    opened = tell(acme)
    real, seen = extract._think, []

    def think(job, window):
        seen.append(1)
        if len(seen) == 2:
            raise ZeroDivisionError
        return real(job, window)

    monkeypatch.setattr(extract, "_think", think)
    drain()
    drain(now=timezone.now() + timedelta(hours=1))
    with tenant(opened.reach):
        [run] = Run.objects.of(opened.own)
    assert run.result["messages"] == len(TALK)


def test_what_a_deleted_conversation_held_is_not_written_after_the_deletion(acme, monkeypatch):
    opened = tell(acme)
    real = extract._think

    def think(job, window):
        with tenant(opened.reach):
            turns.delete_conversation(opened.own, window.conversation)
        return real(job, window)

    monkeypatch.setattr(extract, "_think", think)
    drain()
    assert "peanut" not in file_of(opened, "PROFILE.md")
