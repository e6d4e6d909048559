"""Okapi BM25 over texts kept in memory: the words-only baseline."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from snowballstemmer.english_stemmer import EnglishStemmer

from recall.logic.stopwords import STOP_WORDS

_K1, _B = 1.2, 0.75
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_RUN = re.compile(r"[\u3400-\u9fff]+|[a-z0-9]+")
_stem = EnglishStemmer().stemWord

Words = Callable[[str], Sequence[str]]


def english_words(text: str) -> list[str]:
    """Stems without stop words."""
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS["english"]]


def bigrams(text: str) -> list[str]:
    """Every two neighbours of a Chinese run (one that stands alone by itself), and Latin words and numbers whole."""
    return [part for run in _RUN.findall(text.lower()) for part in _of_run(run)]


def _of_run(run: str) -> Iterator[str]:
    if run.isascii() or len(run) == 1:
        yield run
        return
    yield from (run[at : at + 2] for at in range(len(run) - 1))


class Bm25:
    """An index of texts by their keys."""

    def __init__(self, texts: dict[str, str], words: Words) -> None:
        self._words = words
        self._keys = list(texts)
        counted = [Counter(words(text)) for text in texts.values()]
        sizes = [counts.total() for counts in counted]
        mean = sum(sizes) / len(sizes)
        self._norms = [_K1 * (1 - _B + _B * size / mean) for size in sizes]
        self._places: dict[str, list[tuple[int, int]]] = {}
        for number, counts in enumerate(counted):
            for word, count in counts.items():
                self._places.setdefault(word, []).append((number, count))

    def ranked(self, query: str, limit: int) -> list[str]:
        """The keys of the best texts that share a word with the query, best first."""
        scores: Counter[int] = Counter()
        for word in dict.fromkeys(self._words(query)):
            places = self._places.get(word, [])
            rarity = math.log(1 + (len(self._keys) - len(places) + 0.5) / (len(places) + 0.5))
            for number, count in places:
                scores[number] += rarity * count * (_K1 + 1) / (count + self._norms[number])  # type: ignore[assignment]
        return [self._keys[number] for number, _ in scores.most_common(limit)]
