"""Structured consolidation: nightly and when asked, once, with a trace, and never against a person."""

from __future__ import annotations

import json
import threading
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from memory.models import Entry, EntryRevision
from memory.queries import current_entries
from memory.services import consolidate, rounds
from memory.services.entries import Draft, put_entry
from memory.services.rounds import KIND, TOPIC, queue_consolidation
from memory.services.undo import undo_entry_change
from tests import factories
from tests.stubs.openai_server import Say, StubServer
from workspaces import outbox
from workspaces.errors import Conflict
from workspaces.logic.backoff import PARK_AFTER
from workspaces.models import Change, OutboxMessage, Run, Schedule
from workspaces.outbox import drain
from workspaces.services.files import Author
from workspaces.services.overrides import Editor, Place, set_override
from workspaces.services.tick import tick
from workspaces.tenancy import Door, door, tenant, workspace
from workspaces.types import AuthorKind

EVENING = datetime(2026, 3, 2, 20, tzinfo=UTC)
MORNING = datetime(2026, 3, 3, 6, tzinfo=UTC)
DAY = timedelta(days=1)
TWINS = (("tea", "Likes green tea."), ("drink", "likes GREEN tea"))
OTHERS = tuple(
    (key, f"{key.title()} matters to them.")
    for key in ("sailing", "chess", "bridges", "gardens", "opera", "trains")
)
EIGHT = (*TWINS, *OTHERS)


def put(bucket, key, content, *, kind="user", by=AuthorKind.MACHINE, **options):
    with tenant(bucket):
        author = Author(by, "agent:1" if by is AuthorKind.MACHINE else "user:1")
        draft = Draft(type=kind, key=key, content=content, **options)
        return put_entry(bucket, draft, author=author, now=timezone.now()).entry


def fill(bucket, entries=EIGHT, **options):
    for key, content in entries:
        put(bucket, key, content, **options)


def keys(bucket, kind="user") -> set[str]:
    with tenant(bucket):
        rows = current_entries(bucket, now=timezone.now()).filter(type=kind)
        return set(rows.values_list("key", flat=True))


def runs(bucket) -> list[Run]:
    with tenant(bucket):
        return list(Run.objects.of(bucket).filter(kind=KIND).order_by("pk"))


def changes(bucket) -> list[Change]:
    with tenant(bucket):
        return list(Change.objects.of(bucket).order_by("pk"))


def override(world, key, value) -> None:
    with door(Door.OPERATOR):
        set_override(
            Place(world.workspace.pk), f"mate.memory.{key}", value, by=Editor(world.alice.user.pk, "system")
        )


def ask(person, agent_id, body=None, *, wait=0, status=202):
    address = f"/api/v1/memory/{agent_id}/structured-consolidation?wait={wait}"
    answer = person.client().post(address, body or {}, format="json")
    assert answer.status_code == status, answer.content
    return answer.json()


@pytest.fixture
def bob(acme):
    """Bob's own bucket."""
    return acme.personal(acme.bob.owner_key)


# --- one bucket ---------------------------------------------------------------------------------------------


def test_entries_that_say_the_same_become_one_with_a_trace_of_both(acme, bob):
    fill(bob)
    ask(acme.bob, acme.agent_id)
    drain()
    # The newest stays.
    assert keys(bob) == {key for key, _ in EIGHT} - {"tea"}
    [run] = runs(bob)
    assert (run.status, run.reason, run.trigger) == ("stored", "stored", "manual")
    assert run.actor.startswith("token:")
    assert run.written["entries"] == 1
    into, gone = changes(bob)
    assert (into.target, into.before, into.after) == ("user/drink", "likes GREEN tea", "likes GREEN tea")
    assert into.quotes == [{"entry": "user/tea", "author": "machine", "text": "Likes green tea."}]
    assert (gone.target, gone.before, gone.after) == ("user/tea", "Likes green tea.", "")
    with tenant(bob):
        last = EntryRevision.objects.of(bob).filter(entry__key="tea").order_by("-number").first()
    assert (last.op, last.run_id) == ("delete", run.pk)
    assert "Merged into user/drink" in last.reason


def test_the_answer_tells_what_came_of_it(acme, bob):
    fill(bob)
    ask(acme.bob, acme.agent_id)
    drain()
    with tenant(bob):
        Run.objects.of(bob).update(status="queued", finished_at=None)
    # The same run is answered, since one is active; then it is over.
    told = ask(acme.bob, acme.agent_id)
    assert len(runs(bob)) == 1
    assert (told["updated"], told["entriesBefore"], told["entriesAfter"]) == (1, 8, 7)
    assert (told["ownersConsolidated"], told["pending"], told["failed"]) == (0, 1, 0)


def test_user_and_feedback_are_merged_each_for_itself_and_no_other_type(acme, bob):
    fill(bob)
    for kind in ("feedback", "project"):
        fill(bob, kind=kind)
    ask(acme.bob, acme.agent_id)
    drain()
    assert (len(keys(bob)), len(keys(bob, "feedback")), len(keys(bob, "project"))) == (7, 7, 8)


def test_below_the_least_number_nothing_is_touched_and_the_run_says_so(acme, bob):
    fill(bob, EIGHT[:7])
    ask(acme.bob, acme.agent_id)
    drain()
    assert len(keys(bob)) == 7
    assert [(run.status, run.reason) for run in runs(bob)] == [("skipped", "too_few_entries")]
    override(acme, "structured-consolidation-min-entries", 7)
    ask(acme.bob, acme.agent_id)
    drain()
    assert len(keys(bob)) == 6


def test_what_a_person_wrote_stays_word_for_word_and_takes_the_others_in(acme, bob):
    fill(bob)
    put(bob, "mine", "Likes green tea!", by=AuthorKind.PERSON)
    put(bob, "also_mine", "Likes green tea?", by=AuthorKind.PERSON)
    ask(acme.bob, acme.agent_id)
    drain()
    assert keys(bob) == {"mine", "also_mine"} | {key for key, _ in OTHERS}
    with tenant(bob):
        entry = Entry.objects.of(bob).get(key="mine")
    assert (entry.content, entry.author_kind, entry.revision) == ("Likes green tea!", "person", 1)


def test_an_entry_that_changes_while_the_model_thinks_is_left_alone(acme, bob, monkeypatch):
    fill(bob)
    think = consolidate._think

    def thinking(work, kind, lines):
        answered = think(work, kind, lines)
        if kind == "user":
            put(bob, "tea", "Likes black tea now.")
        return answered

    monkeypatch.setattr(consolidate, "_think", thinking)
    ask(acme.bob, acme.agent_id)
    drain()
    assert len(keys(bob)) == 8
    [run] = runs(bob)
    assert (run.status, run.reason) == ("nothing", "nothing_to_merge")
    assert "changed meanwhile" in run.detail


def test_a_run_is_undone_change_by_change(acme, bob):
    fill(bob)
    override(acme, "structured-consolidation-min-entries", 2)
    put(bob, "favorite_drinks", "Cocoa")
    put(bob, "drink_favourite", "Milk")
    ask(acme.bob, acme.agent_id)
    drain()
    with tenant(bob):
        assert Entry.objects.of(bob).get(key="drink_favourite").content == "Milk; Cocoa"
        for change in Change.objects.of(bob):
            undo_entry_change(bob, change, actor="user:1", now=timezone.now())
            undo_entry_change(bob, change, actor="user:1", now=timezone.now())
        rows = current_entries(bob, now=timezone.now())
        assert dict(rows.values_list("key", "content")) == dict(EIGHT) | {
            "favorite_drinks": "Cocoa",
            "drink_favourite": "Milk",
        }
        assert set(rows.values_list("author_kind", flat=True)) == {"machine"}
    assert {change.decision for change in changes(bob)} == {"undone"}


def test_what_was_changed_after_a_run_is_not_undone_over_it(acme, bob):
    fill(bob)
    ask(acme.bob, acme.agent_id)
    drain()
    put(bob, "tea", "Likes white tea.", by=AuthorKind.PERSON)
    change = next(one for one in changes(bob) if one.target == "user/tea")
    with pytest.raises(Conflict) as stale, tenant(bob):
        undo_entry_change(bob, change, actor="user:1", now=timezone.now())
    assert stale.value.code == "changed_since"


# --- with a model -------------------------------------------------------------------------------------------


@pytest.fixture
def model(settings):
    with StubServer([]) as stub:
        settings.MATE_MODEL = "openai:stub"
        settings.OPENAI_BASE_URL = stub.url
        yield stub


def test_a_model_says_what_to_merge_and_drop(acme, bob, model):
    fill(bob)
    # The newest is number 1.
    model.add(
        Say(
            json.dumps(
                {
                    "merge": [{"numbers": [8, 7], "text": "Likes green tea a lot.", "reason": "Same."}],
                    "drop": [{"number": 1, "reason": "Only of the moment."}],
                }
            )
        )
    )
    ask(acme.bob, acme.agent_id)
    drain()
    [run] = runs(bob)
    assert (run.status, run.model, run.prompt_version) == ("stored", "openai:stub", 1)
    assert run.input_tokens > 0
    assert keys(bob) == {key for key, _ in EIGHT} - {"drink", "trains"}
    with tenant(bob):
        entry = Entry.objects.of(bob).get(key="tea")
        version = EntryRevision.objects.of(bob).filter(entry=entry).order_by("-number").first()
    assert entry.content == "Likes green tea a lot."
    assert (version.model, version.prompt_version, version.run_id) == ("openai:stub", 1, run.pk)


def test_a_broken_answer_is_asked_for_again_then_retried_then_parked(acme, bob, model):
    fill(bob)
    for _ in range(2 * PARK_AFTER):
        model.add(Say('{"merge": [{"numbers": [1, 99], "text": "Everything."}]}'))
    ask(acme.bob, acme.agent_id)
    drain(now=timezone.now() + 30 * DAY)
    assert len(keys(bob)) == 8
    [run] = runs(bob)
    assert (run.status, run.reason) == ("failed", "model_bad_answer")
    assert "unknown_numbers: 99" in run.detail
    with door(Door.OPERATOR):
        message = OutboxMessage.unscoped.get(topic=TOPIC)
    assert message.parked_at is not None
    # Run again by hand, with a model that has come to its senses.
    model.add(Say('{"merge": [{"numbers": [7, 8], "text": "Likes green tea."}]}'))
    outbox.rerun(message.pk)
    drain()
    assert [run.status for run in runs(bob)] == ["stored"]
    assert len(keys(bob)) == 7


def test_a_text_that_would_grow_or_lose_is_not_written_and_the_run_says_so(acme, bob, model):
    fill(bob, (*EIGHT, ("when", "Green tea at 17:30.")))
    answer = {"merge": [{"numbers": [1, 9], "text": "Likes green tea."}, {"numbers": [2], "text": "Trains!"}]}
    model.add(Say(json.dumps(answer)))
    ask(acme.bob, acme.agent_id)
    drain()
    assert len(keys(bob)) == 9
    [run] = runs(bob)
    assert run.status == "nothing"
    assert "17:30 would be lost" in run.detail
    assert "would not fall" in run.detail


# --- nights -------------------------------------------------------------------------------------------------


def owners(world, count: int) -> list:
    made = [world.personal(f"api:owner-{number:03}") for number in range(count)]
    for bucket in made:
        rows = [
            Entry(
                workspace_id=bucket.workspace_id,
                bucket_id=bucket.id,
                type="user",
                key=f"key_{number}",
                content=f"Number {number}.",
                author_kind="machine",
                created_at=EVENING,
                updated_at=EVENING,
            )
            for number in range(8)
        ]
        with tenant(bucket):
            Entry.objects.insert(rows)
    return made


def night(now: datetime) -> None:
    tick(now=now)
    drain()


def test_a_rotation_over_120_owners_takes_three_nights_and_covers_all(acme):
    made = owners(acme, 120)
    tick(now=EVENING)
    counts = []
    for number in range(3):
        night(MORNING + number * DAY)
        with door(Door.OPERATOR):
            counts.append(
                set(
                    Run.unscoped.filter(kind=KIND, night=date(2026, 3, 3) + number * DAY)
                    .exclude(bucket_id=acme.team.id)
                    .values_list("bucket_id", flat=True)
                )
            )
    assert [len(one) for one in counts] == [50, 50, 50]
    assert set.union(*counts) == {bucket.id for bucket in made}
    assert not counts[0] & counts[1]


def test_zero_owners_a_run_is_all_and_those_with_too_few_entries_take_nobodys_turn(acme, monkeypatch):
    monkeypatch.setattr(rounds, "LOOKED_AT", 7)
    made = owners(acme, 20)
    for _ in range(3):
        acme.personal(f"api:empty-{_}")
    override(acme, "structured-consolidation-max-owners-per-run", 0)
    tick(now=EVENING)
    night(MORNING)
    with door(Door.OPERATOR):
        worked = Run.unscoped.filter(kind=KIND).exclude(bucket_id=acme.team.id)
        assert set(worked.values_list("bucket_id", flat=True)) == {bucket.id for bucket in made}


def test_a_night_that_is_triggered_a_hundred_times_is_one_run(acme, bob):
    fill(bob)
    payload = {"job": KIND, "night": "2026-03-03"}
    for number in range(100):
        with tenant(acme.team):
            outbox.emit(acme.team, TOPIC, key=f"trigger:{number}", payload=payload)
    drain()
    assert [run.night for run in runs(bob)] == [date(2026, 3, 3)]
    assert len(runs(acme.team)) == 1
    assert len(changes(bob)) == 2


def test_the_database_itself_allows_one_run_a_night_and_one_at_a_time(bob):
    own = {"workspace_id": bob.workspace_id, "bucket_id": bob.id, "kind": KIND, "created_at": EVENING}
    with tenant(bob):
        Run.objects.create(**own, night=date(2026, 3, 3), status="stored", finished_at=EVENING)
        with pytest.raises(IntegrityError, match="run_once_a_night"), transaction.atomic():
            Run.objects.create(**own, night=date(2026, 3, 3), status="stored", finished_at=EVENING)
        Run.objects.create(**own)
        with pytest.raises(IntegrityError, match="run_one_at_a_time"), transaction.atomic():
            Run.objects.create(**own)


def test_switched_off_no_night_runs_and_a_person_still_may(acme, bob):
    fill(bob)
    override(acme, "structured-consolidation-enabled", value=False)
    tick(now=EVENING)
    night(MORNING)
    assert runs(bob) == []
    ask(acme.bob, acme.agent_id)
    drain()
    assert len(keys(bob)) == 7


class KilledError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("at", ["_think", "_apply", "_finish", "queue_round"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_that_is_killed_goes_on_later_and_changes_nothing_twice(acme, bob, monkeypatch, at, when):
    fill(bob)
    fill(bob, kind="feedback")
    tick(now=EVENING)
    tick(now=MORNING)
    whole = getattr(consolidate, at)

    def killed(*args, **options):
        monkeypatch.setattr(consolidate, at, whole)
        if when == "after":
            whole(*args, **options)
        raise KilledError

    monkeypatch.setattr(consolidate, at, killed)
    with pytest.raises(KilledError):
        drain()
    drain(now=timezone.now() + outbox.LEASE * 2)
    [run] = runs(bob)
    assert run.status == "stored"
    assert len(runs(acme.team)) == 1
    assert (len(keys(bob)), len(keys(bob, "feedback"))) == (7, 7)
    assert len(changes(bob)) == 4
    with tenant(bob):
        assert EntryRevision.objects.of(bob).filter(op="delete").count() == 2
    with workspace(acme.workspace.pk):
        assert Schedule.objects.of_workspace(acme.workspace.pk).get(job=KIND).cursor == bob.id


def test_a_round_that_was_made_before_a_crash_takes_nobody_elses_turn(acme, monkeypatch):
    owners(acme, 3)
    override(acme, "structured-consolidation-max-owners-per-run", 1)
    tick(now=EVENING)
    tick(now=MORNING)
    whole = consolidate.queue_round

    def killed(*args, **options):
        monkeypatch.setattr(consolidate, "queue_round", whole)
        whole(*args, **options)
        raise KilledError

    monkeypatch.setattr(consolidate, "queue_round", killed)
    with pytest.raises(KilledError):
        drain()
    drain(now=timezone.now() + outbox.LEASE * 2)
    with door(Door.OPERATOR):
        assert Run.unscoped.filter(kind=KIND).exclude(bucket_id=acme.team.id).count() == 1


def test_twenty_who_ask_at_once_get_one_run(committed):
    acme = factories.acme()
    bob = acme.personal(acme.bob.owner_key)
    fill(bob)
    with tenant(bob):
        own = {"workspace_id": bob.workspace_id, "bucket_id": bob.id, "kind": KIND, "created_at": EVENING}
        earlier = Run.objects.create(**own, status="nothing", finished_at=EVENING).pk
    start = threading.Barrier(20)
    got: list[int] = []

    def asking() -> None:
        start.wait()
        with tenant(bob):
            got.append(queue_consolidation(bob, trigger="manual", actor="user:1").pk)
        connection.close()

    threads = [threading.Thread(target=asking) for _ in range(20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(got) == 20
    assert len(set(got)) == 1
    assert earlier not in got
    drain()
    assert [run.status for run in runs(bob)] == ["nothing", "stored"]


# --- asking -------------------------------------------------------------------------------------------------


def test_an_admin_has_the_shared_entries_and_all_owners_merged(acme, bob):
    vera = acme.personal(acme.vera.owner_key)
    for bucket in (bob, vera, acme.team):
        fill(bucket)
    told = ask(acme.alice, acme.agent_id, {"bucket": "all"})
    assert (told["pending"], told["deferred"]) == (3, False)
    drain()
    for bucket in (bob, vera, acme.team):
        assert len(keys(bucket)) == 7
        assert [run.status for run in runs(bucket)] == ["stored"]
    shared = runs(acme.team)[0]
    assert runs(bob)[0].subject == f"run:{shared.pk}"


def test_the_round_is_answered_whole_once_it_has_ended(acme, bob, monkeypatch):
    fill(bob)
    fill(acme.team)
    # A worker beside us, here: it works whenever the endpoint waits.
    monkeypatch.setattr("memory.api.consolidation.release_connection", drain)
    told = ask(acme.alice, acme.agent_id, {"bucket": "all"}, wait=60, status=200)
    assert (told["ownersConsolidated"], told["updated"]) == (1, 2)
    assert (told["entriesBefore"], told["entriesAfter"], told["pending"]) == (16, 14, 0)
    assert told["run"]["status"] == "stored"


def test_who_may_ask_for_what(acme, umbra, bob):
    fill(bob)
    ask(acme.bob, acme.agent_id, {"bucket": "all"}, status=403)
    ask(acme.vera, acme.agent_id, status=403)
    ask(acme.bob, acme.agent_id, {"bucket": "shared"})
    ask(acme.bob, acme.agent_id, {"bucket": "shared", "endUserId": "nora"}, status=400)
    ask(acme.alice, acme.agent_id, {"endUserId": "nobody-yet"}, status=404)
    ask(umbra.mallory, acme.agent_id, status=404)
    acme.personal("api:nora")
    ask(acme.alice, acme.agent_id, {"endUserId": "nora"})
