"""From candidates to a ranking: what words and vectors say, what stands beside it, who said it and when.

Every signal is a term of one sum, so that each result can explain itself. All constants are in `Tuning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np

from recall.logic.arrays import Bools, Floats, Ints
from recall.logic.times import DateCue, closeness

_EPOCH: Final = date(1970, 1, 1)


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
    sure: float = 0.4
    """Share of the question (by weight) that a record must hold for words to have their whole share; where the best
    holds less, they have less by that much, and the vectors more: a chance word should not outvote a clear meaning.
    Measured on 252 Chinese questions: 81.8 → 88.6, those in other words than the answer's 42 → 72; on the English ones
    nothing. Flat from .3 to .5."""
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
class Candidates:
    """Records that the search found or that stand next to one: arrays side by side, a place for each.

    `dense` (higher is nearer) and `lexical` are NaN where that leg did not score. Records with one `thread` (-1 for
    none) and next `position`s are neighbours. `held` has a bit for each of the question's terms, in their order.
    `day` counts from 1970, `NO_DAY` where unknown; `trust` is NaN where unknown; `size` is the number of different
    words. Of those with one `root` (-1 for none) or one `content` only the best is shown.
    """

    id: Ints
    thread: Ints
    position: Ints
    dense: Floats
    lexical: Floats
    held: Ints
    asks: Bools
    timed: Bools
    said: Bools
    """Whether the speaker whom the question names said it."""
    day: Ints
    size: Ints
    trust: Floats
    root: Ints
    content: Ints

    def __len__(self) -> int:
        return len(self.id)


NO_DAY: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Question:
    """What is known of the question: what each of its terms is worth, in the order of the candidates' bits (0 for
    one that does not count), the times it is about, whether it names one speaker, whether it asks for a time, and
    the day on which it was asked.
    """

    weights: tuple[float, ...] = ()
    dates: tuple[DateCue, ...] = ()
    names_speaker: bool = False
    asks_when: bool = False
    asked_on: date | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place: `index` into the candidates. `why` adds up to `score`, which compares only within
    one ranking."""

    index: int
    score: float
    why: dict[str, float]


def rank(
    question: Question,
    candidates: Candidates,
    *,
    limit: int | None = None,
    showable: Bools | None = None,
    tuning: Tuning = TUNING,
) -> list[Ranked]:
    """The candidates, best first, duplicates folded into their best; the same whatever their order was.

    Those not `showable` only lend: they are left out. Equals stand by their id.
    """
    if not len(candidates):
        return []
    signals = _Signals(question, candidates, tuning).all()
    totals = np.sum(np.stack(list(signals.values())), axis=0)
    best = np.lexsort((candidates.id, -totals.round(9)))
    if showable is not None:
        best = best[showable[best]]
    return [
        Ranked(n, float(totals[n]), {name: float(values[n]) for name, values in signals.items() if values[n]})
        for n in _folded(best, candidates, limit)
    ]


_STEPS: Final = (-1, 1, -2, 2)


class _Signals:
    """The signals of one ranking, each an array beside the candidates."""

    def __init__(self, question: Question, candidates: Candidates, tuning: Tuning) -> None:
        self._question, self._all, self._tuning = question, candidates, tuning
        self._has_thread = candidates.thread >= 0
        self._before, self._after, self._two_before, self._two_after = self._neighbours()

    def all(self) -> dict[str, Floats]:
        tuning, candidates = self._tuning, self._all
        dense, lexical = self._legs()
        base = dense + lexical
        signals = {
            "dense": dense,
            "lexical": lexical,
            "neighbours": self._lent(base),
            "thread": self._threads(base),
            "answer": self._answers(base),
            "alone": np.where(self._has_thread, 0.0, tuning.alone * base),
            "coverage": self._coverage(),
            "length": tuning.length * np.log1p(np.minimum(candidates.size, tuning.length_cap)),
            "asking": np.where(candidates.asks, tuning.asking, 0.0),
            "trust": np.nan_to_num(tuning.trust * (2 * candidates.trust - 1)),
        }
        return signals | self._cues()

    def _legs(self) -> tuple[Floats, Floats]:
        """Both legs as z-scores, weighted. Where one did not score a candidate it had better ones: its worst."""
        share = self._tuning.lexical * self._sureness()
        if np.isnan(self._all.dense).all():
            share = 1.0
        elif np.isnan(self._all.lexical).all():
            share = 0.0
        return _z_scores(self._all.dense) * (1.0 - share), _z_scores(self._all.lexical) * share

    def _sureness(self) -> float:
        """How far the words can be trusted: 1 where a record holds enough of the question."""
        total = sum(self._question.weights)
        if not total:
            return 1.0
        best = float(weighed(self._all.held, self._question.weights).max()) / total
        return min(1.0, best / self._tuning.sure)

    def _neighbours(self) -> tuple[Ints, ...]:
        """For each the indexes of those that stand one before, one after, two before and two after it in its thread,
        -1 where there is none."""
        thread, position = self._all.thread, self._all.position
        # One number for a place, dense enough for any thread and position there may be.
        _, number = np.unique(thread, return_inverse=True)
        first = int(position.min())
        place = number * (int(position.max()) - first + 8) + (position - first + 4)
        order = np.argsort(place, kind="stable")
        ranked = place[order]
        steps = np.asarray(_STEPS)[:, None]
        found = np.minimum(np.searchsorted(ranked, place + steps), len(place) - 1)
        is_there = self._has_thread & (ranked[found] == place + steps)
        return tuple(np.where(is_there, order[found], -1))

    def _lent(self, base: Floats) -> Floats:
        floor = np.append(base, base.min())  # -1 reads the last: what nobody there lends
        near = np.maximum(floor[self._before], floor[self._after])
        far = np.maximum(floor[self._two_before], floor[self._two_after])
        return np.where(self._has_thread, self._tuning.next_to * near + self._tuning.two_away * far, 0.0)

    def _answers(self, base: Floats) -> Floats:
        is_asked = (self._before >= 0) & self._all.asks[self._before]
        return np.where(is_asked, self._tuning.answer * np.maximum(0.0, base[self._before]), 0.0)

    def _threads(self, base: Floats) -> Floats:
        """Threads by the mean of their best candidates, as z-scores; a candidate too few counts as an average one."""
        which = np.flatnonzero(self._has_thread)
        result = np.zeros(len(base))
        if not len(which):
            return result
        names, number = np.unique(self._all.thread[which], return_inverse=True)
        order = np.lexsort((-base[which], number))
        first = np.searchsorted(number[order], np.arange(len(names)))
        place = np.arange(len(which)) - first[number[order]]
        among = order[place < self._tuning.thread_best]
        sums = np.bincount(number[among], weights=base[which][among], minlength=len(names))
        scores = np.minimum(_z_scores(sums / self._tuning.thread_best), self._tuning.thread_cap)
        result[which] = self._tuning.thread * scores[number]
        return result

    def _coverage(self) -> Floats:
        """How much of the question stands in a record and the two before and after it together."""
        total = sum(self._question.weights)
        if not total:
            return np.zeros(len(self._all))
        held = np.append(self._all.held, 0)
        around = held[:-1].copy()
        for other in (self._before, self._after, self._two_before, self._two_after):
            around |= held[other]
        return self._tuning.coverage * weighed(around, self._question.weights) / total

    def _cues(self) -> dict[str, Floats]:
        question, tuning, candidates = self._question, self._tuning, self._all
        cues: dict[str, Floats] = {}
        if question.names_speaker:
            cues["speaker"] = np.where(candidates.said, tuning.speaker, 0.0)
        if question.asks_when:
            cues["timed"] = np.where(candidates.timed, tuning.timed, 0.0)
        if question.dates:
            cues["date"] = tuning.date * self._near(question.dates)
        if question.asked_on is not None:
            age = np.maximum(0, (question.asked_on - _EPOCH).days - np.where(self._dated, candidates.day, 0))
            cues["recency"] = np.where(self._dated, tuning.recency * 0.5 ** (age / tuning.recency_days), 0.0)
        return cues

    @property
    def _dated(self) -> Bools:
        return np.asarray(self._all.day != NO_DAY)

    def _near(self, dates: Sequence[DateCue]) -> Floats:
        days, number = np.unique(self._all.day, return_inverse=True)
        near = [
            0.0 if day == NO_DAY else max(closeness(cue, _EPOCH + timedelta(days=int(day))) for cue in dates)
            for day in days
        ]
        return np.asarray(near)[number]


def weighed(held: Ints, weights: Sequence[float]) -> Floats:
    """The sum of the weights of the bits that each number holds."""
    if not weights:
        return np.zeros(len(held))
    bits = (held[:, None] >> np.arange(len(weights))) & 1
    return np.asarray(bits @ np.asarray(weights, dtype=np.float64))


def _z_scores(values: Floats) -> Floats:
    """Distances from the mean in standard deviations; what is no finite number counts as the least; 0.0 when all are
    alike or none is known."""
    is_known = np.isfinite(values)
    if not is_known.any():
        return np.zeros(len(values))
    filled = np.where(is_known, values, values[is_known].min())
    spread = float(filled.std())
    if spread < 1e-9:
        return np.zeros(len(values))
    return np.asarray((filled - filled.mean()) / spread)


def _folded(best: Ints, candidates: Candidates, limit: int | None) -> list[int]:
    """Of the indexes of candidates with one root or one content, the first; as many as wanted."""
    roots: set[int] = set()
    contents: set[int] = set()
    kept: list[int] = []
    for n in best.tolist():
        if limit is not None and len(kept) >= limit:
            break
        root, content = int(candidates.root[n]), int(candidates.content[n])
        if root not in roots and content not in contents:
            kept.append(n)
        if root >= 0:
            roots.add(root)
        contents.add(content)
    return kept
