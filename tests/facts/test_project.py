"""What people write is read for facts, section by section; what machines write is no evidence."""

from __future__ import annotations

import pytest

from facts.logic.reading import read_file
from facts.models import Evidence, Fact
from tests.facts.test_learn import current, facts
from workspaces.outbox import drain
from workspaces.services.files import Author, append_to_file, delete_file, rewrite_file, write_file
from workspaces.tenancy import tenant
from workspaces.types import AuthorKind, BucketRef

PERSON = Author(AuthorKind.PERSON, "user:1")
MACHINE = Author(AuthorKind.MACHINE, "job:extract")


@pytest.fixture
def bucket(acme) -> BucketRef:
    return acme.personal(acme.bob.owner_key)


@pytest.fixture
def save(bucket, django_capture_on_commit_callbacks):
    def save(content: str, *, name: str = "PROFILE.md", author: Author = PERSON) -> None:
        with django_capture_on_commit_callbacks(execute=True), tenant(bucket):
            write_file(bucket, name, content, author=author)
        drain()

    return save


def statements(content: str) -> list[str]:
    return [one.statement for read in read_file(content) for one in read.statements]


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("# Profile\n\n- **Home**: Berlin\n- Job: baker\n", ["Home: Berlin", "Job: baker"]),
        ("- **城市**：成都\n- 喜欢喝乌龙茶\n", ["城市: 成都", "喜欢喝乌龙茶"]),
        ("## Pets\n\n- Mia\n- A dog named Rex\n", ["Pets: Mia", "A dog named Rex"]),
        ("She plays chess. She hates rain!\n", ["She plays chess.", "She hates rain!"]),
        ("```\n- secret: code\n```\n> quoted: words\n| a | b |\n|---|---|\n", []),
        ("---\ntitle: x\n---\n- [x] Paid the rent in May\n", ["Paid the rent in May"]),
        ("<!-- note: hidden -->\n- https://example.com/x\n- [a link](https://example.com)\n", []),
        ("## ## > Source: me | Updated: 2026-01-01\n\n- Drinks mate daily\n", ["Drinks mate daily"]),
        ("What does she like?\nThings she likes:\n", []),
    ],
)
def test_a_file_is_read_line_by_line(content, wanted):
    assert statements(content) == wanted


def test_what_a_person_writes_becomes_facts_with_their_place(bucket, save):
    save("# Bob\n\n## Home\n\n- **City**: Berlin\n")
    [fact] = facts(bucket)
    assert (fact.statement, fact.predicate, fact.object) == ("City: Berlin", "city", "Berlin")
    with tenant(bucket):
        [evidence] = Evidence.objects.of(bucket)
    assert (evidence.kind, evidence.heading) == ("file", "Home")


def test_an_unchanged_section_is_not_read_again_and_a_changed_one_is(bucket, save):
    save("## Home\n\n- City: Berlin\n\n## Pets\n\n- Has a dog named Rex\n")
    before = {fact.statement: fact.pk for fact in facts(bucket)}
    save("## Home\n\n- City: Rome\n\n## Pets\n\n- Has a dog named Rex\n")
    assert sorted(current(bucket)) == ["City: Rome", "Has a dog named Rex"]
    assert before["Has a dog named Rex"] in {fact.pk for fact in facts(bucket, retired_at=None)}
    [closed] = facts(bucket, retired_at__isnull=False)
    assert (closed.statement, closed.retired_why) == ("City: Berlin", "source_gone")


def test_a_fact_comes_back_with_its_section_and_is_the_same_row(bucket, save):
    save("## Home\n\n- City: Berlin\n")
    [first] = facts(bucket)
    save("# Nothing here\n")
    assert current(bucket) == []
    save("## Home\n\n- City: Berlin\n")
    [again] = facts(bucket)
    assert (again.pk, again.retired_at) == (first.pk, None)


def test_what_a_machine_writes_is_no_evidence(bucket, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True), tenant(bucket):
        rewrite_file(
            bucket, "MEMORY.md", "# Memory\n\n- Lives in Berlin now\n", read_revision=0, author=MACHINE
        )
    drain()
    assert facts(bucket) == []


def test_in_a_file_of_both_only_the_persons_sections_count(bucket, save, django_capture_on_commit_callbacks):
    save("# Memory\n\n## Mine\n\n- Plays the cello well\n", name="MEMORY.md")
    with django_capture_on_commit_callbacks(execute=True), tenant(bucket):
        append_to_file(bucket, "MEMORY.md", "## Theirs\n\n- Collects old stamps\n", author=MACHINE)
    drain()
    assert current(bucket) == ["Plays the cello well"]


def test_a_deleted_file_takes_its_facts_along(bucket, save, django_capture_on_commit_callbacks):
    save("- City: Berlin\n")
    with django_capture_on_commit_callbacks(execute=True), tenant(bucket):
        delete_file(bucket, "PROFILE.md", author=PERSON)
    drain()
    assert current(bucket) == []


def test_rules_for_the_agent_are_no_facts(bucket, save):
    save("- Always answer in English\n", name="SOUL.md")
    with tenant(bucket):
        assert not Fact.objects.of(bucket).exists()
