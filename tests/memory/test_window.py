"""The three stages that make a conversation fit."""

from hypothesis import given
from hypothesis import strategies as st

from memory.logic.window import Sized, emergency, hard_trim, plan_compaction


@st.composite
def conversations(draw):
    """Messages in which calls may be answered at once, later, twice, or never, and results may be orphans."""
    messages: list[Sized] = []
    open_calls: list[str] = []
    for index in range(draw(st.integers(0, 30))):
        tokens = draw(st.integers(0, 200))
        kind = draw(st.sampled_from(["user", "assistant", "call", "result", "orphan"]))
        if kind == "call":
            ids = tuple(f"c{index}-{part}" for part in range(draw(st.integers(1, 3))))
            open_calls.extend(ids)
            messages.append(Sized("assistant", tokens, calls=ids))
        elif kind == "result" and open_calls:
            messages.append(Sized("tool", tokens, result_of=draw(st.sampled_from(open_calls))))
        elif kind == "orphan":
            messages.append(Sized("tool", tokens, result_of=f"lost-{index}"))
        else:
            messages.append(Sized("user" if kind == "user" else "assistant", tokens))
    return messages


def plain(count: int, tokens: int = 10) -> list[Sized]:
    return [Sized("user" if index % 2 == 0 else "assistant", tokens) for index in range(count)]


def plan(messages, **change):
    options = {
        "fixed_tokens": 0,
        "budget": 1000,
        "trigger_ratio": 0.75,
        "preserve_pairs": 2,
        "protect_min": 4,
    } | change
    return plan_compaction(messages, **options)


def calls_of_kept_results(messages, kept):
    for index in kept:
        wanted = messages[index].result_of
        if wanted is not None:
            yield any(wanted in messages[other].calls for other in kept if other < index)


def test_below_the_trigger_everything_stays():
    found = plan(plain(50))
    assert not found.is_needed
    assert found.keep == range(50)


def test_above_the_trigger_the_oldest_are_summarised():
    # 0.85 of 1000 (a small window) is the trigger, a fifth of it stretched by half the tail: 255 tokens.
    found = plan(plain(100))
    assert found.keep == range(75, 100)
    assert found.summarise == range(75)


def test_a_large_window_uses_the_ratio_it_was_given():
    messages = plain(100, tokens=1000)
    assert not plan(messages, budget=140_000).is_needed
    assert plan(messages, budget=130_000).is_needed


def test_the_tail_holds_the_larger_floor_even_when_it_is_expensive():
    messages = plain(20, tokens=500)
    assert plan(messages, protect_min=6).keep == range(14, 20)
    assert plan(messages, protect_min=2, preserve_pairs=4).keep == range(12, 20)


def test_what_is_not_worth_a_summary_is_left():
    assert not plan(plain(5, tokens=500), protect_min=4).is_needed
    assert plan(plain(6, tokens=500), protect_min=4).is_needed


def test_a_cut_never_falls_between_a_call_and_its_result():
    messages = [
        *plain(6, tokens=300),
        Sized("assistant", 5, calls=("a", "b")),
        Sized("tool", 5, result_of="a"),
    ]
    messages += [Sized("tool", 5, result_of="b"), *plain(3, tokens=300)]
    assert plan(messages, protect_min=4).keep == range(6, 12)


def test_an_emergency_keeps_the_last_two_turns():
    assert emergency(plain(10)) == (6, 7, 8, 9)
    assert emergency(plain(3)) == (0, 1, 2)
    assert emergency([]) == ()
    messages = [
        *plain(4),
        Sized("user", 1),
        Sized("assistant", 1, calls=("a",)),
        Sized("tool", 1, result_of="a"),
    ]
    assert emergency([*messages, Sized("assistant", 1), Sized("user", 1)]) == (4, 5, 6, 7, 8)


def test_a_hard_trim_drops_from_the_front_and_the_last_two_always_stay():
    assert hard_trim(plain(10), fixed_tokens=50, budget=100) == (5, 6, 7, 8, 9)
    assert hard_trim(plain(10), fixed_tokens=50, budget=10) == (8, 9)
    assert hard_trim(plain(10), fixed_tokens=0, budget=1000) == tuple(range(10))
    assert hard_trim(plain(1), fixed_tokens=0, budget=0) == (0,)


def test_a_hard_trim_keeps_the_call_of_a_result_that_stays():
    messages = [
        *plain(4),
        Sized("assistant", 90, calls=("a",)),
        Sized("tool", 90, result_of="a"),
        Sized("user", 90),
    ]
    assert hard_trim(messages, fixed_tokens=0, budget=100) == (4, 5, 6)


@given(conversations(), st.integers(0, 500), st.integers(1, 4000), st.integers(0, 5), st.integers(0, 12))
def test_a_plan_covers_all_messages_and_splits_no_call(messages, fixed, budget, pairs, protect):
    found = plan(messages, fixed_tokens=fixed, budget=budget, preserve_pairs=pairs, protect_min=protect)
    assert [*found.summarise, *found.keep] == list(range(len(messages)))
    if found.is_needed:
        assert len(found.keep) >= min(max(protect, 2 * pairs), len(messages))
        called_before = {call for index in found.summarise for call in messages[index].calls}
        assert not any(messages[index].result_of in called_before for index in found.keep)


@given(conversations(), st.integers(0, 500), st.integers(0, 3000))
def test_a_trim_keeps_the_end_fits_if_it_can_and_orphans_nothing(messages, fixed, budget):
    kept = hard_trim(messages, fixed_tokens=fixed, budget=budget)
    assert list(kept) == sorted(set(kept))
    assert all(calls_of_kept_results(messages, kept))
    wanted = [i for i in range(max(0, len(messages) - 2), len(messages)) if messages[i].result_of is None]
    assert set(wanted) <= set(kept)
    whole = hard_trim(messages, fixed_tokens=0, budget=10**9)
    if fixed + sum(messages[index].tokens for index in whole) <= budget:
        assert kept == whole
    smallest = hard_trim(messages, fixed_tokens=0, budget=-1)
    if fixed + sum(messages[index].tokens for index in smallest) <= budget:
        assert fixed + sum(messages[index].tokens for index in kept) <= budget


@given(conversations())
def test_an_emergency_keeps_a_suffix_without_orphans(messages):
    kept = emergency(messages)
    assert all(calls_of_kept_results(messages, kept))
    if messages and messages[-1].result_of is None:
        assert kept[-1] == len(messages) - 1
