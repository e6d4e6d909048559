"""Keyword search over memory files: Latin by words, scripts without spaces by sliding windows of two.

Everything is compared folded: NFKC, case-folded, without Latin accents and invisible characters, traditional
Chinese as simplified. Matches are found in the folded text and shown on the original.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from recall.logic.combining import MOST_MARKS, nfkc
from recall.logic.folding import FOLD_TABLE, WINDOWED
from workspaces.errors import BadInput
from workspaces.logic.names import BORN_ORDER, note_date

MAX_QUERY_CHARS = 512
SNIPPET_CHARS = 80

# BM25's usual constants; lines and sections differ little in length for a reason, hence the small B.
_K1, _B = 1.2, 0.4
_STEM_WEIGHT = 0.85  # 'hobby' for 'hobbies' counts less than the word itself
_PHRASE_BONUS = 1.3  # the whole query, as it was written
_BORN_WEIGHT, _OTHER_WEIGHT, _DAILY_WEIGHT = 1.0, 0.9, 0.75
_MAX_TERMS = 96
_RECALL_QUERY_CHARS = 1000  # from each end of a long message
_MAX_SPANS = 200

_is_windowed = re.compile(f"[{WINDOWED}]").match
_MARKS = "".join(
    chr(code)
    for code in range(0x300, 0x3000)
    if unicodedata.category(chr(code)).startswith("M") and not _is_windowed(chr(code))
)
_LETTER = rf"(?:[^\W_{WINDOWED}]|[{_MARKS}])"
_PIECE = re.compile(f"{_LETTER}+")
_WORD = re.compile(rf"{_LETTER}+(?:[._@'/+-]{{1,2}}{_LETTER}+)*(?:\+\+|#)?")
_TOKEN = re.compile(f"(?P<run>[{WINDOWED}]+)|(?P<word>{_WORD.pattern})")

_STOP_WORDS = (
    "a about am an and any are as at be been but by can could did do does for from had has have he her "
    "him his how i if in is it its me my of on or our she should so some than that the their them then "
    "there these they this those to us was we were what when where which who whom whose why will with "
    "would you your"
)
_STOP = frozenset(_STOP_WORDS.split())

# Chinese and Japanese particles, pronouns and question words. A character alone between them is a word that
# windows of two miss: 我的猫 asks for 猫.
_PARTICLES = re.compile(
    "[的了吗呢吧着是在和与或也都就还我你您他她它们这那有不没很个只什么谁哪怎はがをにでともへやのか]+"
)
_is_han = re.compile("[\u3400-\u9fff\U00020000-\U0003ffff]").fullmatch

_INVISIBLE = "\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
# Text with any of these is folded character by character: accents, invisible ones, letters in pieces.
_needs_care = re.compile(
    f"[\u00aa-\u06ff\u1e00-\u1fff\u1100-\u11ff\u3099\u309a\ua960-\ua97f\ud7b0-\ud7ff{_INVISIBLE}]"
).search
_is_invisible = re.compile(f"[{_INVISIBLE}]").match
_is_jamo_tail = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff]").match


@dataclass(frozen=True, slots=True)
class Searchable:
    """A file to be searched."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matches: its 1-based number, a snippet of at most 80 characters of it (marks not counted)
    with the terms marked `[[term]]`, and its score (higher is better; only to be compared within one search).
    """

    name: str
    line: int
    snippet: str
    score: float


@dataclass(frozen=True, slots=True)
class _Folded:
    """`text` folded; its character n comes from `starts[n]:ends[n]` of the original. Empty: one to one."""

    text: str
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def original(self, start: int, end: int) -> tuple[int, int]:
        return (self.starts[start], self.ends[end - 1]) if self.starts else (start, end)


@dataclass(slots=True)
class _Matches:
    """Where and how often the terms stand in a text; `spans` are of the folded text, with their term."""

    folded: _Folded
    counts: dict[str, float] = field(default_factory=dict)
    spans: list[tuple[int, int, str]] = field(default_factory=list)

    def add(self, term: str, weight: float, start: int, end: int) -> None:
        self.counts[term] = self.counts.get(term, 0.0) + weight
        if len(self.spans) < _MAX_SPANS:
            self.spans.append((start, end, term))


def fold(text: str) -> str:
    """The text as it is compared."""
    return _fold(text).text


def terms(query: str) -> tuple[str, ...]:
    """What a query looks for, folded, each once, in its order.

    Runs of Han, kana, Hangul and other scripts without spaces give every two neighbours; a character alone
    (also alone between particles) gives itself. Other words give themselves, and their pieces where they are
    compound (`foo_bar`, `v1.2`, `e-mail`, `bob@example.com`). English stop words are left out unless nothing
    else is there; a query of signs alone is looked for as it stands.
    """
    folded = fold(query)
    found: list[str] = []
    for token in _TOKEN.finditer(folded):
        if token["run"]:
            run = token["run"]
            found += [run[n : n + 2] for n in range(max(1, len(run) - 1))]
            found += [part for part in _PARTICLES.split(run) if _is_han(part)]
        else:
            found += [form for form, _, _ in _forms(token)]
    wanted = [term for term in found if term not in _STOP] or found or folded.split()
    return tuple(dict.fromkeys(wanted))[:_MAX_TERMS]


def search(files: Iterable[Searchable], query: str, *, limit: int = 20, per_file: int = 5) -> list[Hit]:
    """The lines that match best, at most `per_file` of a file and `limit` in all.

    Terms are OR-ed; a line ranks by how rare its terms are among all lines, and above at a similar match when
    it stands in one of the files an agent is born with, below in a daily note (newer ones first).
    Raises BadInput `bad_query` unless the query has 1 to 512 characters.
    """
    size = len(query) if query.strip() else 0
    if not 1 <= size <= MAX_QUERY_CHARS:
        raise BadInput(
            "bad_query",
            f"The query has {size} characters; give 1 to {MAX_QUERY_CHARS}, not only spaces.",
            limit=MAX_QUERY_CHARS,
        )
    looked_for = _Query(query)
    found: list[tuple[Searchable, int, str, _Matches]] = []
    sizes: list[int] = []
    for file in files:
        for number, line in enumerate(file.text.split("\n"), start=1):
            if line.strip():
                sizes.append(len(line))
                matches = looked_for.matches(line)
                if matches is not None:
                    found.append((file, number, line, matches))
    ranking = _Ranking([matches for *_, matches in found], sizes, looked_for.phrase)
    # The whole line in place of its snippet, which is made of those that are shown alone.
    ranked = [
        (
            Hit(file.name, number, line, round(ranking.score(matches, len(line)) * _weight(file.name), 6)),
            matches,
        )
        for file, number, line, matches in found
    ]
    return [
        replace(hit, snippet=_snippet(hit.snippet, matches, ranking.idf))
        for hit, matches in _best(ranked, limit, per_file)
    ]


def score_passages(passages: Sequence[str], query: str) -> list[float]:
    """How well each passage answers the query, 0.0 when not at all; BM25 over these passages.

    Of a long query (a whole message) the first and the last thousand characters count.
    """
    if len(query) > 2 * _RECALL_QUERY_CHARS:
        query = query[:_RECALL_QUERY_CHARS] + "\n" + query[-_RECALL_QUERY_CHARS:]
    looked_for = _Query(query)
    matched = [looked_for.matches(passage) for passage in passages]
    sizes = [len(passage) for passage in passages]
    ranking = _Ranking([one for one in matched if one is not None], sizes, looked_for.phrase)
    return [
        0.0 if matches is None else ranking.score(matches, size)
        for matches, size in zip(matched, sizes, strict=True)
    ]


class _Query:
    """A query made ready to be matched against many texts."""

    def __init__(self, query: str) -> None:
        wanted = terms(query)
        self.phrase = " ".join(fold(query).split())
        words = [term for term in wanted if _WORD.fullmatch(term)]
        self._plain = [term for term in wanted if term not in words]
        self._by_stem: dict[str, list[str]] = {}
        for word in words:
            self._by_stem.setdefault(_stem(word), []).append(word)
        # A text without any of these holds no term: a stem but for its last i, which may be a y, is always a
        # prefix of the word.
        self._probes = [*self._plain, *(stem.removesuffix("i") or stem for stem in self._by_stem)]

    def matches(self, text: str) -> _Matches | None:
        """Where the terms stand in `text`; None when none does."""
        folded = _fold(text)
        bare = folded.text.replace("-", "") if "-" in folded.text else folded.text
        if not any(probe in folded.text or probe in bare for probe in self._probes):
            return None
        found = _Matches(folded)
        for term in self._plain:
            at = folded.text.find(term)
            while at >= 0:
                found.add(term, 1.0, at, at + len(term))
                at = folded.text.find(term, at + 1)
        if self._by_stem:
            self._match_words(folded.text, found)
        return found if found.counts else None

    def _match_words(self, text: str, found: _Matches) -> None:
        for token in _WORD.finditer(text):
            for form, start, end in _forms(token):
                for word in self._by_stem.get(_stem(form), ()):
                    found.add(word, 1.0 if form == word else _STEM_WEIGHT, start, end)


class _Ranking:
    """BM25 over a set of texts, of which only the matching ones are given; `sizes` are of all."""

    def __init__(self, matched: Sequence[_Matches], sizes: Sequence[int], phrase: str) -> None:
        self._mean = max(1.0, sum(sizes) / len(sizes)) if sizes else 1.0
        self._phrase = phrase
        holding = Counter(term for matches in matched for term in matches.counts)
        self.idf = {
            term: math.log(1 + (len(sizes) - count + 0.5) / (count + 0.5)) for term, count in holding.items()
        }

    def score(self, matches: _Matches, size: int) -> float:
        damping = _K1 * (1 - _B + _B * size / self._mean)
        total = sum(
            self.idf[term] * count * (_K1 + 1) / (count + damping) for term, count in matches.counts.items()
        )
        return total * (_PHRASE_BONUS if self._phrase in matches.folded.text else 1.0)


def _best(hits: Iterable[tuple[Hit, _Matches]], limit: int, per_file: int) -> list[tuple[Hit, _Matches]]:
    taken: Counter[str] = Counter()
    best: list[tuple[Hit, _Matches]] = []
    for hit, matches in sorted(hits, key=lambda one: _rank(one[0])):
        if len(best) >= limit:
            break
        if taken[hit.name] < per_file:
            taken[hit.name] += 1
            best.append((hit, matches))
    return best


def _rank(hit: Hit) -> tuple[float, int, str, int]:
    day = note_date(hit.name)
    return (-hit.score, -day.toordinal() if day else 0, hit.name, hit.line)


def _weight(name: str) -> float:
    if name in BORN_ORDER:
        return _BORN_WEIGHT
    return _DAILY_WEIGHT if note_date(name) else _OTHER_WEIGHT


def _forms(word: re.Match[str]) -> Iterator[tuple[str, int, int]]:
    """A word, its pieces, and without its hyphens, each with its place."""
    text, start, end = word[0], word.start(), word.end()
    text = text.removesuffix("'s")
    yield text, start, start + len(text)
    pieces = list(_PIECE.finditer(text))
    if len(pieces) == 1 and pieces[0][0] == text:
        return
    is_contracted = "'" in text
    for piece in pieces:
        if len(piece[0]) > 1 or not is_contracted:
            yield piece[0], start + piece.start(), start + piece.end()
    if "-" in text and "".join(piece[0] for piece in pieces) == text.replace("-", ""):
        yield text.replace("-", ""), start, end


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    """A light English stem: plural, -ed, -ing, final e and y; other words as they are."""
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith("ies"):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    word = _without_ending(word)
    if word.endswith("e") and len(word) > 3:
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


def _without_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root == word or word.endswith("eed") or not re.search("[aeiouy]", root):
            continue
        if ending == "ed" and len(root) == 2:  # used, owed
            return root + "e"
        if len(root) >= 3:
            is_doubled = root[-1] == root[-2] and root[-1] not in "aeioulsz"
            return root[:-1] if is_doubled and len(root) > 3 else root
    return word


def _fold(text: str) -> _Folded:
    if text.isascii():
        return _Folded(text.lower())
    if _needs_care(text) is None and nfkc(text) == text:
        folded = text.casefold()
        if len(folded) == len(text):
            return _Folded(folded.translate(FOLD_TABLE))
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _clusters(text):
        piece = _fold_cluster(text[start:end])
        pieces.append(piece)
        starts += [start] * len(piece)
        ends += [end] * len(piece)
    return _Folded("".join(pieces), tuple(starts), tuple(ends))


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """A character and those that combine with it, in pieces of a bounded size."""
    start = 0
    for at, char in enumerate(text):
        if at > start and (not _joins(char) or at - start > MOST_MARKS):
            yield start, at
            start = at
    if text:
        yield start, len(text)


@lru_cache(maxsize=4096)
def _joins(char: str) -> bool:
    return bool(_is_jamo_tail(char)) or unicodedata.combining(unicodedata.normalize("NFKC", char)[0]) != 0


@lru_cache(maxsize=8192)
def _fold_cluster(cluster: str) -> str:
    if _is_invisible(cluster):
        return ""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    apart = unicodedata.normalize("NFKD", folded)
    if apart[:1] < "\u0700":  # Latin, Greek, Cyrillic, Hebrew, Arabic; the marks of other scripts are letters
        bare = "".join(char for char in apart if not unicodedata.combining(char))
        folded = bare or folded
    return folded.translate(FOLD_TABLE)


def _snippet(line: str, matches: _Matches, idf: dict[str, float]) -> str:
    """The stretch of the line that holds most of what was looked for, with the matches marked."""
    places = sorted((*matches.folded.original(start, end), term) for start, end, term in matches.spans)
    start, end = _window(line, places, idf)
    text = "…" if start > 0 else ""
    at = start
    for first, last in _merged(places, start, end):
        text += f"{line[at:first]}[[{line[first:last]}]]"
        at = last
    return (text + line[at:end] + ("…" if end < len(line) else "")).strip()


def _merged(places: Iterable[tuple[int, int, str]], start: int, end: int) -> list[tuple[int, int]]:
    """The places within a window, those that touch put together."""
    merged: list[tuple[int, int]] = []
    for place in places:
        first, last = max(place[0], start), min(place[1], end)
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        elif first < last:
            merged.append((first, last))
    return merged


def _window(line: str, places: Sequence[tuple[int, int, str]], idf: dict[str, float]) -> tuple[int, int]:
    if len(line) <= SNIPPET_CHARS:
        return 0, len(line)
    width = SNIPPET_CHARS - 2  # an ellipsis at each end
    firsts = [first for first, _, _ in places]

    def worth(at: int) -> float:
        inside = places[at : bisect_left(firsts, firsts[at] + width)]
        return sum(idf[term] for term in {term for _, last, term in inside if last <= firsts[at] + width})

    best = max(range(len(places)), key=lambda at: (worth(at), -at))
    last = max((last for _, last, _ in places[best:] if last <= firsts[best] + width), default=firsts[best])
    slack = max(0, width - (last - firsts[best]))
    start = min(max(0, firsts[best] - slack // 2), len(line) - width)
    return start, start + width
