"""From candidates to a ranking: what words and vectors say, what stands beside it, who said it and when.

Every signal is a term of one sum, so that each result can explain itself. All constants are in `Tuning`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TypeAlias

from recall.logic.cues import same_name
from recall.logic.marks import ASKS, TIMED
from recall.logic.times import DateCue, closeness

Place: TypeAlias = tuple[Hashable, int]


@dataclass(frozen=True, slots=True)
class Tuning:
    """The weights of the signals, in standard deviations of the candidates' scores unless said otherwise.

    "Measured" is what recall of evidence among the first ten became as the signals were added one after the other,
    over 760 questions about five long English conversations: next to each, thread, two away, and so on. Each
    one raised or held both the three conversations it was tuned on and the two others. All is flat around these
    values: changing one of them by about a half moves recall by less than a point.
    """

    lexical: float = 0.4
    """Share of the words; the rest is the vectors'. Measured: 55.3 vectors, 66.6 words, 71.0 both."""
    next_to: float = 0.4
    """Share of the better neighbour's score that a record takes. Measured: 71.0 → 75.4."""
    two_away: float = 0.15
    """The same at distance 2. Measured: → 78.6."""
    thread: float = 0.5
    """For the mean of the thread's `thread_best` best. Measured: → 77.1."""
    thread_best: int = 3
    thread_cap: float = 3.0
    """The most standard deviations that a thread counts above the others: among hundreds, one can stand at ten."""
    speaker: float = 1.2
    """For records of the one speaker whom the question names. Measured: → 79.8 (and fewer where
    the question names the wrong one)."""
    answer: float = 0.4
    """Share of the score of the question just before, which a record probably answers. Measured: → 80.7."""
    asking: float = -0.7
    """For a record that ends by asking: it tells little. Measured: → 81.8."""
    coverage: float = 1.0
    """For all of the question's words (by weight) in the record and two around it. Measured: → 82.0."""
    length: float = 0.3
    """For each e-fold of different words, up to `length_cap`: "Wow, great!" answers nothing.
    Measured: → 82.2."""
    length_cap: int = 24
    timed: float = 0.7
    """For a record that says when, if the question asks when. Measured: → 82.4."""
    date: float = 1.0
    """For a record of the time that the question is about, less the farther from it. Measured: nothing, where
    dates are lexemes too; the order of the first few gains."""
    alone: float = 0.6
    """Share of its own score that a record without a thread gets, in place of neighbours and thread. Measured on
    evidence: those gave 1.0 to records of own score .5, 1.9 to 2.5, 2.4 to 5."""
    trust: float = 0.5
    """For trust 1, and the opposite for trust 0; nothing at .5 or when unknown. Reasoned, not measured."""
    recency: float = 0.2
    """For a record of this moment, halved every `recency_days`: decides between equals. Reasoned, not measured."""
    recency_days: float = 60.0


TUNING = Tuning()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that a leg of the search found, or that stands next to one.

    `dense` (higher is nearer) and `lexical` are None when that leg did not score it. Records with one `thread`
    and next `position`s are neighbours. `lexemes` need to hold only the question's terms and the marks; `size` is
    the number of different words. Of those with one `root` or one `content_hash` only the best is shown.
    """

    id: Hashable
    thread: Hashable | None = None
    position: int = 0
    speaker: str | None = None
    at: datetime | None = None
    dense: float | None = None
    lexical: float | None = None
    lexemes: Mapping[str, int] = field(default_factory=dict)
    size: int = 0
    trust: float | None = None
    root: Hashable | None = None
    content_hash: Hashable | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is known of the question: its lexemes' weights (without speakers' names), the speaker it names if it
    is exactly one, the times it is about, whether it asks for a time, and when it was asked.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    speaker: str | None = None
    dates: tuple[DateCue, ...] = ()
    asks_when: bool = False
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place. `why` adds up to `score`, which compares only within one ranking."""

    candidate: Candidate
    score: float
    why: dict[str, float]


def rank(
    question: Question,
    candidates: Sequence[Candidate],
    *,
    limit: int | None = None,
    tuning: Tuning = TUNING,
) -> list[Ranked]:
    """The candidates, best first, duplicates folded into their best; the same whatever their order was."""
    ordered = sorted(candidates, key=lambda one: str(one.id))
    signals = _Signals(question, ordered, tuning).all()
    totals = [math.fsum(values) for values in zip(*signals.values(), strict=True)]
    best = sorted(range(len(ordered)), key=lambda n: -totals[n])
    return [
        Ranked(ordered[n], totals[n], {name: values[n] for name, values in signals.items() if values[n]})
        for n in _folded(best, ordered)[:limit]
    ]


def missing_neighbours(candidates: Iterable[Candidate], *, best: int = 40) -> list[Place]:
    """Places (thread, position) within two of the `best` candidates of each leg that are no candidates yet: what
    answers a question often shares no word with it, but stands next to one that does.
    """
    all_of_them = list(candidates)
    known = {(one.thread, one.position) for one in all_of_them}
    wanted: dict[Place, None] = {}
    legs: tuple[Callable[[Candidate], float | None], ...] = (lambda one: one.dense, lambda one: one.lexical)
    for leg in legs:
        found = [
            (value, one) for one in all_of_them if (value := leg(one)) is not None and one.thread is not None
        ]
        for _, one in sorted(found, key=lambda pair: (-pair[0], str(pair[1].id)))[:best]:
            places = [(one.thread, one.position + step) for step in (1, -1, 2, -2)]
            wanted.update(dict.fromkeys(place for place in places if place not in known and place[1] >= 0))
    return list(wanted)


class _Signals:
    """The signals of one ranking, each a list beside the candidates."""

    def __init__(self, question: Question, candidates: Sequence[Candidate], tuning: Tuning) -> None:
        self._question, self._candidates, self._tuning = question, candidates, tuning
        self._at_place = {
            (one.thread, one.position): n for n, one in enumerate(candidates) if one.thread is not None
        }
        self._around = [self._neighbours(one) for one in candidates]

    def all(self) -> dict[str, list[float]]:
        tuning, candidates = self._tuning, self._candidates
        dense, lexical = self._legs()
        base = [a + b for a, b in zip(dense, lexical, strict=True)]
        floor = min(base, default=0.0)
        threads = self._threads(base)
        return {
            "dense": dense,
            "lexical": lexical,
            "neighbours": [self._lent(base, n, floor) for n in range(len(candidates))],
            "thread": [
                tuning.thread * min(threads.get(one.thread, 0.0), tuning.thread_cap) for one in candidates
            ],
            "answer": [self._answers(base, n) for n in range(len(candidates))],
            "alone": [
                tuning.alone * base[n] if one.thread is None else 0.0 for n, one in enumerate(candidates)
            ],
            "coverage": self._coverage(),
            "length": [tuning.length * math.log1p(min(one.size, tuning.length_cap)) for one in candidates],
            "asking": [tuning.asking if ASKS in one.lexemes else 0.0 for one in candidates],
            **self._cues(),
        }

    def _legs(self) -> tuple[list[float], list[float]]:
        """Both legs as z-scores, weighted. Where one did not score a candidate it had better ones: its worst."""
        dense = [one.dense for one in self._candidates]
        lexical = [one.lexical for one in self._candidates]
        share = self._tuning.lexical
        if all(value is None for value in dense):
            share = 1.0
        elif all(value is None for value in lexical):
            share = 0.0
        return _z_scores(dense, 1.0 - share), _z_scores(lexical, share)

    def _neighbours(self, one: Candidate) -> tuple[int | None, int | None, int | None, int | None]:
        """The indexes of those one before, one after, two before, two after."""
        if one.thread is None:
            return None, None, None, None
        place, thread, at = self._at_place, one.thread, one.position
        return (
            place.get((thread, at - 1)),
            place.get((thread, at + 1)),
            place.get((thread, at - 2)),
            place.get((thread, at + 2)),
        )

    def _lent(self, base: Sequence[float], n: int, floor: float) -> float:
        if self._candidates[n].thread is None:
            return 0.0
        before, after, two_before, two_after = self._around[n]
        near = max(floor if before is None else base[before], floor if after is None else base[after])
        far = max(
            floor if two_before is None else base[two_before], floor if two_after is None else base[two_after]
        )
        return self._tuning.next_to * near + self._tuning.two_away * far

    def _answers(self, base: Sequence[float], n: int) -> float:
        before = self._around[n][0]
        if before is None or ASKS not in self._candidates[before].lexemes:
            return 0.0
        return self._tuning.answer * max(0.0, base[before])

    def _threads(self, base: Sequence[float]) -> dict[Hashable, float]:
        """Threads by the mean of their best candidates, as z-scores; a candidate too few counts as an average one."""
        scores: dict[Hashable, list[float]] = {}
        for value, one in zip(base, self._candidates, strict=True):
            if one.thread is not None:
                scores.setdefault(one.thread, []).append(value)
        best = self._tuning.thread_best
        means = [sum(sorted(values, reverse=True)[:best]) / best for values in scores.values()]
        return dict(zip(scores, _z_scores(means, 1.0), strict=True))

    def _coverage(self) -> list[float]:
        """How much of the question stands in a record and the two before and after it together."""
        terms = {term: weight for term, weight in self._question.weights.items() if not term.startswith("s:")}
        total = sum(terms.values())
        if not total:
            return [0.0] * len(self._candidates)
        bits = {term: 1 << n for n, term in enumerate(terms)}
        own = [sum(bits[term] for term in bits.keys() & one.lexemes.keys()) for one in self._candidates]
        shares: dict[int, float] = {0: 0.0}
        covered = []
        for n, around in enumerate(self._around):
            mask = own[n]
            for other in around:
                mask |= 0 if other is None else own[other]
            if mask not in shares:
                held = sum(weight for term, weight in terms.items() if mask & bits[term])
                shares[mask] = self._tuning.coverage * held / total
            covered.append(shares[mask])
        return covered

    def _cues(self) -> dict[str, list[float]]:
        question, tuning, candidates = self._question, self._tuning, self._candidates
        cues: dict[str, list[float]] = {}
        named = question.speaker
        if named is not None:
            theirs = {name for name in {one.speaker for one in candidates} if same_name(name, named)}
            cues["speaker"] = [tuning.speaker * (one.speaker in theirs) for one in candidates]
        if question.asks_when:
            cues["timed"] = [tuning.timed * (TIMED in one.lexemes) for one in candidates]
        if question.dates:
            days = {one.at.date() for one in candidates if one.at is not None}
            near = {day: max(closeness(cue, day) for cue in question.dates) for day in days}
            cues["date"] = [
                0.0 if one.at is None else tuning.date * near[one.at.date()] for one in candidates
            ]
        cues["trust"] = [
            0.0 if one.trust is None else tuning.trust * (2 * one.trust - 1) for one in candidates
        ]
        if question.asked_at is not None:
            cues["recency"] = [self._recency(one.at, question.asked_at.date()) for one in candidates]
        return cues

    def _recency(self, at: datetime | None, today: date) -> float:
        if at is None:
            return 0.0
        age = max(0, (today - at.date()).days)
        return self._tuning.recency * float(0.5 ** (age / self._tuning.recency_days))


def _z_scores(values: Sequence[float | None], weight: float) -> list[float]:
    """Distances from the mean in standard deviations, times `weight`; None counts as the least; 0.0 when all
    are alike or none is known.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if not known or not weight:
        return [0.0] * len(values)
    least = min(known)
    filled = [least if value is None or not math.isfinite(value) else value for value in values]
    mean = math.fsum(filled) / len(filled)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in filled) / len(filled))
    if spread < 1e-9:
        return [0.0] * len(values)
    return [weight * (value - mean) / spread for value in filled]


def _folded(best: Iterable[int], candidates: Sequence[Candidate]) -> list[int]:
    """Of the indexes of candidates with one root or one content, the first."""
    roots: set[Hashable] = set()
    contents: set[Hashable] = set()
    kept = []
    for n in best:
        root, content = candidates[n].root, candidates[n].content_hash
        if root not in roots and content not in contents:
            kept.append(n)
        if root is not None:
            roots.add(root)
        if content is not None:
            contents.add(content)
    return kept
