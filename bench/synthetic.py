"""Made-up records of a thousand owners: sizes and words like Zipf's, vectors in clusters of topics. All of it pure
and seeded: the same numbers each time, on every machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import numpy as np

DIMENSIONS: Final = 384
TOPICS: Final = 100
OWNERS: Final = 1000
SMALLEST: Final = 20
"""Records of each of the hundred smallest owners."""
A_TALK: Final = 50
"""Messages of a conversation."""
BEGIN: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""When the first record was said; each next one a minute later."""

_SMALL_OWNERS = 100
_TEAM_SHARE = 0.03
_SLOPE = 0.8  # with it the largest of 1,000 owners has 60,000 records of a million, the middle one 400
_WORDS = 20_000
_WORDS_OF_A_TEXT = 11
_SPREAD = 1.0  # two texts of a topic have a cosine of about a half
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"

Numbers = np.ndarray[Any, Any]


def _coin(rng: np.random.Generator, count: int, syllables: int) -> list[str]:
    """So many different words; none is one of a language's, save by chance."""
    coined: dict[str, None] = {}
    while len(coined) < count:
        picks = zip(rng.integers(14, size=syllables), rng.integers(5, size=syllables), strict=True)
        coined["".join(_CONSONANTS[c] + _VOWELS[v] for c, v in picks)] = None
    return list(coined)


_rng = np.random.default_rng(20_240_101)
WORDS: Final = _coin(_rng, _WORDS, 3)
"""The commonest first."""
TOPIC_WORDS: Final = _coin(_rng, TOPICS, 5)
_CENTRES = _rng.standard_normal((TOPICS, DIMENSIONS))
_CENTRES /= np.linalg.norm(_CENTRES, axis=1, keepdims=True)
_SHARES = 1.0 / (np.arange(_WORDS) + 2.7)
_SHARES /= _SHARES.sum()
_UPTO = np.cumsum(_SHARES)
_TOPIC_OF = {word: number for number, word in enumerate(TOPIC_WORDS)}


def share_of(word: str) -> float:
    """The share of texts that a word stands in, about."""
    if word in _TOPIC_OF:
        return 1 / TOPICS
    return float(1 - (1 - _SHARES[_RANK[word]]) ** _WORDS_OF_A_TEXT)


_RANK = {word: rank for rank, word in enumerate(WORDS)}


def vectors_of(topics: Numbers, rng: np.random.Generator) -> Numbers:
    """A unit vector near the centre of each topic."""
    noise = rng.standard_normal((len(topics), DIMENSIONS)) * (_SPREAD / DIMENSIONS**0.5)
    vectors = _CENTRES[topics] + noise
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def vector_of(text: str) -> Numbers:
    """The vector of any text: near the topic that its first topic word names, else near one that its hash does."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    named = (_TOPIC_OF[word] for word in re.findall("[a-z]+", text) if word in _TOPIC_OF)
    topic = next(named, seed % TOPICS)
    return np.asarray(vectors_of(np.array([topic]), np.random.default_rng(seed))[0])


def texts_of(topics: Numbers, rng: np.random.Generator) -> list[str]:
    """A text for each topic: the topic's word, then words as Zipf draws them."""
    drawn = np.searchsorted(_UPTO, rng.random((len(topics), _WORDS_OF_A_TEXT)))
    return [
        " ".join([TOPIC_WORDS[topic], *(WORDS[min(rank, _WORDS - 1)] for rank in ranks)])
        for topic, ranks in zip(topics.tolist(), drawn.tolist(), strict=True)
    ]


def sizes_of(records: int) -> Numbers:
    """Records of each owner, the largest first, and last those of the team; their sum is `records`.

    Of ten thousand there are too few for twenty each: most owners have fewer then.
    """
    team = round(records * _TEAM_SHARE)
    ranks = np.arange(1, OWNERS - _SMALL_OWNERS + 1, dtype=float)
    left = records - team - _SMALL_OWNERS * SMALLEST
    sizes = np.maximum(1, np.floor(left * ranks**-_SLOPE / (ranks**-_SLOPE).sum())).astype(int)
    sizes[0] += left - sizes.sum()
    return np.concatenate([sizes, np.full(_SMALL_OWNERS, SMALLEST), [team]])


@dataclass(frozen=True)
class Chunk:
    """Records next to each other in time. `places` numbers them from 0 within their owner."""

    numbers: Numbers
    owners: Numbers
    places: Numbers
    texts: list[str]
    vectors: Numbers

    def at(self, index: int) -> datetime:
        return BEGIN + timedelta(minutes=int(self.numbers[index]))


@dataclass(frozen=True)
class Corpus:
    """So many records of all owners, mixed as life mixes them: an owner's rows do not lie together."""

    records: int

    @cached_property
    def sizes(self) -> Numbers:
        return sizes_of(self.records)

    @cached_property
    def owner_of(self) -> Numbers:
        """The owner of each record; OWNERS stands for the team."""
        owners = np.repeat(np.arange(OWNERS + 1), self.sizes)
        np.random.default_rng(1).shuffle(owners)
        return owners

    @cached_property
    def place_of(self) -> Numbers:
        """How many records of the same owner came before each."""
        order = np.argsort(self.owner_of, kind="stable")
        begins = np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        places = np.empty(self.records, dtype=int)
        places[order] = np.arange(self.records) - begins
        return places

    def chunk(self, number: int, size: int) -> Chunk:
        """The records from `number * size` on; each chunk has a seed of its own."""
        numbers = np.arange(number * size, min((number + 1) * size, self.records))
        rng = np.random.default_rng([2, number, size])
        topics = rng.integers(TOPICS, size=len(numbers))
        return Chunk(
            numbers,
            self.owner_of[numbers],
            self.place_of[numbers],
            texts_of(topics, rng),
            vectors_of(topics, rng),
        )

    def owners_like(self, size: str, count: int) -> list[int]:
        """Owners to ask for: of the `small`, the `middle` or the `large` ones."""
        if size == "small":
            return list(range(OWNERS - count, OWNERS))
        ranked = np.argsort(-self.sizes[:OWNERS], kind="stable")
        if size == "middle":
            return [int(owner) for owner in ranked[(OWNERS - count) // 2 : (OWNERS + count) // 2]]
        return [int(ranked[0])]


def question_about(text: str, rng: np.random.Generator) -> str:
    """The topic's word, two rare words of a text and two common ones that may stand anywhere."""
    topic, *words = text.split()
    rare = sorted(set(words), key=lambda word: -_RANK[word])[:4]
    picked = [str(word) for word in rng.choice(rare, size=min(2, len(rare)), replace=False)]
    return " ".join([topic, *picked, *(WORDS[int(rank)] for rank in rng.integers(30, size=2))])


def wordless(topic: int, number: int) -> str:
    """A question of that topic none of whose words any record has: a name that only `topic_of` knows."""
    return f"{TOPIC_WORDS[topic]} {number}"


def owner_name(owner: int) -> str:
    """The `endUserId` of an owner."""
    return f"owner-{owner:04d}"


def lines(rows: Sequence[Sequence[object]]) -> str:
    """Rows as COPY reads them; no value may hold a tab, a line break or a backslash."""
    return "".join("\t".join("\\N" if value is None else str(value) for value in row) + "\n" for row in rows)
