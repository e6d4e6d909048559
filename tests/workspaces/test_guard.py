from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deadline import deadline
from workspaces.logic.ceiling import default_marker
from workspaces.logic.guard import (
    MIN_LINES,
    Held,
    guard_rewrite,
    held_sections,
    lost_share,
    normalised,
    scrub,
)
from workspaces.logic.sections import find, split

LINES = ["## A", "## B", "## C", "### D", "- a", "- b", "- c", "- d", "", "text", "```", "<!-- x -->"]
TEXTS = st.lists(st.sampled_from(LINES), max_size=12).map("\n".join)
PLAIN = st.lists(st.sampled_from([line for line in LINES if line[:1] not in "`<"]), max_size=12).map(
    "\n".join
)

BEFORE = "# Me\n\n## Work\n- chemist\n- in Lyon\n\n## Food\n- likes tea\n- no nuts\n\n## Pets\n- a cat\n"
FOOD = "## Food\n- likes tea\n- no nuts\n\n"


def _held(text: str, *headings: str) -> list[Held]:
    return [Held(one.heading, one.text) for one in split(text) if one.heading in headings]


def test_without_anything_to_guard_the_proposal_stands():
    proposed = BEFORE.replace("chemist", "chemist at a school")
    guarded = guard_rewrite(before=BEFORE, proposed=proposed, held=[])
    assert (guarded.text, guarded.restored, guarded.refused) == (proposed, (), ())
    assert guarded.lost_share == pytest.approx(1 / 5)


@pytest.mark.parametrize(
    ("proposed", "text", "restored"),
    [
        (BEFORE, BEFORE, ()),
        (BEFORE.replace("tea", "coffee"), BEFORE, ("Food",)),
        (BEFORE.replace("- no nuts\n", ""), BEFORE, ("Food",)),
        (BEFORE.replace("## Food\n- likes tea\n- no nuts\n\n", ""), BEFORE, ("Food",)),
        # Back after the section that stood above, or the next one above that.
        (
            "# Me\n\n## Pets\n- a cat\n\n## Work\n- chemist\n- in Lyon\n",
            "# Me\n\n## Pets\n- a cat\n\n## Work\n- chemist\n- in Lyon\n\n" + FOOD,
            ("Food",),
        ),
        (
            "# Me\n\n## Pets\n- a cat\n- chemist in Lyon\n- in Lyon\n",
            "# Me\n\n## Food\n- likes tea\n- no nuts\n\n## Pets\n- a cat\n- chemist in Lyon\n- in Lyon\n",
            ("Food",),
        ),
    ],
)
def test_a_held_section_survives_word_for_word_at_its_place(proposed, text, restored):
    guarded = guard_rewrite(before=BEFORE, proposed=proposed, held=_held(BEFORE, "Food"))
    assert guarded.text == text
    assert guarded.restored == restored


def test_what_a_machine_adds_to_a_held_section_is_refused_and_told():
    proposed = BEFORE.replace("- no nuts", "- no nuts\n- loves nuts")
    guarded = guard_rewrite(before=BEFORE, proposed=proposed, held=_held(BEFORE, "Food"))
    assert guarded.text == BEFORE
    assert guarded.refused == ("- loves nuts",)


def test_the_head_can_be_held_too():
    guarded = guard_rewrite(
        before=BEFORE, proposed=BEFORE.replace("# Me", "# You"), held=[Held(None, "# Me\n\n")]
    )
    assert (guarded.text, guarded.restored) == (BEFORE, ("",))


def test_two_held_sections_of_one_name_both_survive():
    before = "## N\n- one\n\n## N\n- two\n"
    guarded = guard_rewrite(before=before, proposed="## N\n- two\n", held=_held(before, "N"))
    assert guarded.text.count("- one") == guarded.text.count("- two") == 1
    assert guarded.text.count("## N") == 2


def test_a_held_section_given_without_its_heading_line_gets_it():
    guarded = guard_rewrite(before=BEFORE, proposed="## Work\n- x\n", held=[Held("Food", "- likes tea\n")])
    food = find(split(guarded.text), "Food")
    assert food is not None
    assert food.text.strip() == "## Food\n- likes tea"


def test_a_code_fence_left_open_cannot_swallow_a_held_section():
    proposed = "## Work\n- chemist\n- in Lyon\n```\n\n## Food\nx\n\n## Pets\n- a cat\n```\n"
    guarded = guard_rewrite(before=BEFORE, proposed=proposed, held=_held(BEFORE, "Food"))
    food = find(split(guarded.text), "Food")
    assert food is not None
    assert food.text.strip() == "## Food\n- likes tea\n- no nuts"


def test_an_open_code_fence_of_the_proposal_is_closed_in_its_section():
    before = "## Work\n- chemist\n\n## Code\n```\nx\n```\n"
    proposed = "## Work\n- chemist\n```\n- new\n"
    guarded = guard_rewrite(before=before, proposed=proposed, held=_held(before, "Code"))
    assert guarded.text == "## Work\n- chemist\n```\n- new\n```\n\n## Code\n```\nx\n```\n"


def test_when_a_held_section_would_be_swallowed_nothing_changes():
    before = "## A\n```\nopen\n\n## B\n- b\n"
    proposed = "## C\n```\ncode\n```\n"  # the held ones come above it, and the open fence would end in it
    assert guard_rewrite(before=before, proposed=proposed, held=_held(before, "A", "B")).text == before


@given(TEXTS, TEXTS, st.sets(st.sampled_from(["A", "B", "C"])))
def test_every_held_section_stands_after_any_rewrite(before, proposed, headings):
    held = _held(before, *headings)
    text = guard_rewrite(before=before, proposed=proposed, held=held).text
    there = [section.text.rstrip() for section in split(text)]
    for one in held:
        assert one.text.rstrip() in there
        there.remove(one.text.rstrip())


LONG = "\n".join(f"- a line that only the earlier text has, number {number}" for number in range(MIN_LINES))


@pytest.mark.parametrize(
    ("before", "proposed", "after"),
    [
        ("- lives in Ghent\n", "- lives in Bruges\n", "- lives in Bruges\n"),
        (
            "- lives in Ghent\n- has a dog\n",
            "- lives in Bruges\n",
            "- lives in Ghent\n- has a dog\n- lives in Bruges\n",
        ),
        ("- lives in Ghent\n", "", "- lives in Ghent\n"),
    ],
)
def test_a_short_text_may_be_put_right_but_not_emptied(before, proposed, after):
    assert guard_rewrite(before=before, proposed=proposed, held=[]).text.strip() == after.strip()


@given(PLAIN, PLAIN)
def test_no_more_than_the_bound_is_ever_lost(before, proposed):
    before = f"{before}\n{LONG}"
    text = guard_rewrite(before=before, proposed=proposed, held=[], max_loss=0.3).text
    assert lost_share(before, text) <= 0.3


@given(PLAIN, PLAIN)
def test_a_union_also_has_what_is_new(before, proposed):
    before = f"{before}\n{LONG}"
    text = guard_rewrite(before=before, proposed=proposed, held=[], max_loss=0.0).text
    assert lost_share(before, text) == 0
    assert lost_share(proposed, text) == 0


def test_a_rewrite_that_would_lose_too_much_becomes_a_union():
    proposed = "# Me\n\n## Work\n- Now a baker\n\n## Sports\n- runs\n"
    guarded = guard_rewrite(before=BEFORE, proposed=proposed, held=[])
    assert guarded.lost_share == 1.0
    assert guarded.text == (
        "# Me\n\n## Work\n- chemist\n- in Lyon\n- Now a baker\n\n## Food\n- likes tea\n- no nuts\n\n"
        "## Pets\n- a cat\n\n## Sports\n- runs\n"
    )


def test_an_empty_proposal_empties_nothing():
    assert guard_rewrite(before=BEFORE, proposed="", held=[]).text == BEFORE


def test_loss_is_compared_without_marks_and_case():
    assert lost_share("- Likes **tea**.\n- [ ] Call Bob", "* likes tea\n1. call bob") == 0
    assert lost_share("- a\n- b\n- c\n- d", "- a") == 0.75
    assert lost_share("## A\n\n<!-- x -->\n", "") == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [("- Ｔｅａ　time。", "tea time"), ("> - `x`", "x"), ("## A b", "a  b"), ("2) __x__", "X")],
)
def test_lines_that_read_the_same_are_the_same(one, other):
    assert normalised(one) == normalised(other)


def test_forgotten_lines_do_not_come_back():
    proposed = BEFORE.replace("- a cat", "- a cat\n- **Owes Bob 5**")
    guarded = guard_rewrite(
        before=BEFORE, proposed=proposed, held=[], tombstones=lambda line: line == "**Owes Bob 5**"
    )
    assert guarded.text == BEFORE
    assert guarded.refused == ("- **Owes Bob 5**",)


def test_forgotten_lines_stay_out_of_a_union_and_do_not_count_as_lost():
    guarded = guard_rewrite(
        before=BEFORE, proposed="- new\n", held=[], tombstones=lambda line: "nuts" in line
    )
    assert "nuts" not in guarded.text
    assert "a cat" in guarded.text
    kept = guard_rewrite(
        before="- x nuts\n- y nuts\n- z\n", proposed="- z\n", held=[], tombstones=lambda line: "nuts" in line
    )
    assert kept.lost_share == 0


def test_a_forgotten_heading_takes_its_section_along():
    guarded = guard_rewrite(
        before=BEFORE,
        proposed=BEFORE + "\n## Secret\n- s\n",
        held=[],
        tombstones=lambda line: line == "Secret",
    )
    assert guarded.text.rstrip() == BEFORE.rstrip()
    assert guarded.refused == ("## Secret", "- s")


def test_tombstones_do_not_touch_what_a_person_holds():
    guarded = guard_rewrite(
        before=BEFORE, proposed=BEFORE, held=_held(BEFORE, "Food"), tombstones=lambda line: "nuts" in line
    )
    assert guarded.text == BEFORE


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <memory-context>x</memory-context> b", "a  b"),
        ("a\n<memory-context source='x'>\n- recalled\n</memory-context>\nb", "a\n\nb"),
        ("a <MEMORY-CONTEXT> b", "a  b"),
        ("a < / memory-context > b", "a  b"),
        ("a <memory-context b", "a "),
        ("<memory-<memory-context>context>x", "x"),
        ("a <!-- note --> b", "a  b"),
        ("a\n" + default_marker(100) + "\nb", "a\n\nb"),
        ("a <!-- never ends\n## B", "a  never ends\n## B"),
        ("<!-<!-- x -->- y -->z", "z"),
        ("a\n--- SOUL.md ---\nb", "a\n\nb"),
        ("a\n---\nb --- c\n", "a\n---\nb --- c\n"),
        ("a <memory> b -> c", "a <memory> b -> c"),
    ],
)
def test_marks_of_ours_are_scrubbed(text, left):
    assert scrub(text).text == left
    assert bool(scrub(text).removed) == (text != left)


def test_a_comment_that_was_there_may_stay():
    scrubbed = scrub("<!-- mine --> x <!-- new -->", known="# A\n<!-- mine -->\n")
    assert (scrubbed.text, scrubbed.removed) == ("<!-- mine --> x ", ("<!-- new -->",))


@given(
    st.lists(st.sampled_from(["<!--", "-->", "<memory-context", ">", "</memory-context>", "<", "!--", "x"]))
)
def test_nothing_is_left_to_scrub(parts):
    text = scrub("".join(parts)).text
    assert "<!--" not in text
    assert "memory-context>" not in text or "<memory-context" not in text
    assert scrub(text).text == text


def test_scrubbing_hostile_text_is_linear():
    assert scrub("<memory-context>" * 60_000).text == ""
    assert "<" not in scrub("<!-" * 20_000 + "<!-- -->" + "- " * 20_000).text.replace("<!-", "")


def test_a_guarded_rewrite_is_scrubbed():
    guarded = guard_rewrite(
        before=BEFORE, proposed=BEFORE + "<memory-context>\nx\n</memory-context>\n", held=[]
    )
    assert guarded.text.rstrip() == BEFORE.rstrip()
    assert guarded.refused == ("<memory-context>\nx\n</memory-context>",)


def _names(held: tuple[Held, ...]) -> list[str | None]:
    return [one.heading for one in held]


@pytest.mark.parametrize(
    ("after", "was", "now"),
    [
        (BEFORE, [], []),
        (BEFORE + "  \n\n", [], []),
        (BEFORE, ["Food"], ["Food"]),
        (BEFORE.replace("tea", "coffee"), [], ["Food"]),
        (BEFORE.replace("tea", "coffee"), ["Pets"], ["Food", "Pets"]),
        (BEFORE + "\n## New\n", [], ["New"]),
        (BEFORE.replace("# Me", "# I"), [], [None]),
        (BEFORE.replace("## Food", "## Diet"), ["Food"], ["Diet"]),
        (BEFORE.replace("## Pets\n- a cat\n", ""), ["Pets"], []),
        ("", ["Pets"], []),
    ],
)
def test_what_a_person_changed_is_held(after, was, now):
    assert _names(held_sections(BEFORE, after, _held(BEFORE, *was))) == now


def test_held_text_is_what_the_person_saved():
    after = BEFORE.replace("tea", "coffee")
    (held,) = held_sections(BEFORE, after, _held(BEFORE, "Food"))
    assert held == Held("Food", "## Food\n- likes coffee\n- no nuts\n\n")


def test_a_copy_of_a_section_is_held_once():
    assert len(held_sections("## A\n- a\n", "## A\n- a\n\n## A\n- a\n", ())) == 1


def test_moving_a_section_does_not_hold_it():
    assert held_sections("## A\n- a\n\n## B\n- b\n", "## B\n- b\n\n## A\n- a\n", ()) == ()


@given(TEXTS, TEXTS)
def test_what_is_held_after_a_save_survives_the_next_rewrite(before, after):
    held = held_sections(before, after, ())
    assert guard_rewrite(before=after, proposed=after, held=held).restored == ()


def test_what_a_person_holds_is_found_in_linear_time():
    def text(body: str) -> str:
        return "".join(f"## {n}\n{body}\n" for n in range(60_000))

    with deadline():
        assert len(held_sections(text("a"), text("b"), ())) == 60_000


def test_a_file_of_too_many_sections_is_not_rewritten_past_what_a_person_holds():
    before = "".join(f"## {n}\na\n" for n in range(18_000))
    held = [Held(section.heading, section.text) for section in split(before)[1:]]
    with deadline():
        guarded = guard_rewrite(before=before, proposed=before.replace("a", "b"), held=held)
    assert guarded.text == before


@pytest.mark.parametrize(
    "text",
    [
        "<" + " " * 250_000,
        "<memory-context" * 17_000,
        "</memory-context " * 15_000,
        "<!--" * 62_000,
        "--- a.md" * 31_000,
        "--- a.md --- " * 19_000,
        "a" + "\u0301\u0316" * 125_000,
    ],
)
def test_what_may_not_stay_is_found_in_linear_time(text):
    with deadline():
        scrub(text)
        normalised(text)
