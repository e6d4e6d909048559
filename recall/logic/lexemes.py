"""Text as lexemes, the units that the index holds and queries look for.

Words are folded and stemmed, scripts without spaces give every two neighbours, dates are written one way.
Lexemes with a colon are not words: `d:2023-05-02`, `md:05-02`, `m:2023-05`, `mon:05`, `y:2023` (a date in the
text, or the record's own), `w:5` (a weekday, Monday is 1), `s:anna` (who said it) and the marks `is:…`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from snowballstemmer.english_stemmer import EnglishStemmer
from snowballstemmer.french_stemmer import FrenchStemmer
from snowballstemmer.german_stemmer import GermanStemmer
from snowballstemmer.italian_stemmer import ItalianStemmer
from snowballstemmer.portuguese_stemmer import PortugueseStemmer
from snowballstemmer.russian_stemmer import RussianStemmer
from snowballstemmer.spanish_stemmer import SpanishStemmer

from recall.logic.dates import FoundDate, dates_in
from recall.logic.folding import WINDOWED, folded, normalized, without_accents
from recall.logic.marks import marks_of
from recall.logic.stopwords import PARTICLES, QUESTION_RUNS, QUESTION_WORDS, STOP_WORDS

MAX_LEXEME_CHARS = 64
MAX_LEXEMES = 4096
"""Distinct lexemes of one record; what comes later in the text is not indexed. 8,000 Chinese characters stay
below it."""
MAX_RECORD_CHARS = 40_000
MAX_QUERY_TERMS = 64
_QUERY_EDGE = 1000  # characters that count from each end of a long query

_STEMMERS = {
    "english": EnglishStemmer,
    "german": GermanStemmer,
    "french": FrenchStemmer,
    "spanish": SpanishStemmer,
    "italian": ItalianStemmer,
    "portuguese": PortugueseStemmer,
    "russian": RussianStemmer,
}
_TELLING = {"german": "äöüß", "spanish": "ñ¿¡", "portuguese": "ãõ", "french": "œêèç"}
_LATIN = ("german", "french", "spanish", "italian", "portuguese")

_LETTER = f"[^\\W_{WINDOWED}]"
_MARKED = f"(?:{_LETTER}|[\u0300-\u036f\u0900-\u0dff])"
_PIECE = re.compile(f"{_MARKED}+")
_TOKEN = re.compile(
    rf"(?P<run>[{WINDOWED}]+)"
    rf"|(?P<number>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?!{_LETTER}))"
    rf"|(?P<word>{_MARKED}+(?:[._@'/+-]{{1,2}}{_MARKED}+)*(?:\+\+|#(?!{_LETTER}))?)"
    "|(?P<sign>[\u2600-\u27bf\U0001f000-\U0001faff])"
)
_CONTRACTION = re.compile("'(?:s|m|d|re|ve|ll)$")
# parseRequest, getUserName; not iPhone or eBay
_CAMEL = re.compile(r"(?<![^\W_])[a-z]{3,}(?:[A-Z][a-z0-9]+)+(?![^\W_])")
_CAMEL_PART = re.compile(r"[A-Z]?[a-z0-9]+")
_QUESTION_RUN = re.compile(QUESTION_RUNS)
_is_han = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]").match
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday montag lundi lunes lunedì понедельник",
            "tuesday dienstag mardi martes martedì вторник",
            "wednesday mittwoch mercredi miércoles mercoledì среда",
            "thursday donnerstag jeudi jueves giovedì четверг",
            "friday freitag vendredi viernes venerdì пятница",
            "saturday samstag samedi sábado sabato суббота",
            "sunday sonntag dimanche domingo domenica воскресенье",
        ),
        start=1,
    )
    for name in names.split()
}
_WINDOWED_WEEKDAY = re.compile("(?:周|星期|礼拜)([一二三四五六日天])")


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """What a query looks for, each once, in its order: `terms` any record, `speakers` (`s:…`) who said it."""

    terms: tuple[str, ...]
    speakers: tuple[str, ...]


def lexemes_of(text: str, *, when: date | None = None, speaker: str | None = None) -> dict[str, int]:
    """The lexemes to index a record by, with how often each stands in it; at most MAX_LEXEMES of the first
    MAX_RECORD_CHARS characters, each of 1 to MAX_LEXEME_CHARS letters, without NUL.

    `when` is the record's own day and `speaker` who said it; both are found as if they stood in the text.
    """
    counts: Counter[str] = Counter()
    if when is not None:
        counts.update(FoundDate(0, 0, when.year, when.month, when.day).lexemes())
    if speaker is not None:
        counts.update(speaker_lexemes(speaker))
    text = text[:MAX_RECORD_CHARS]
    found = [*_lexemes(text, is_query=False)] or _bare_words(text)
    holds_date = any(lexeme.startswith(("d:", "md:", "m:", "mon:")) for lexeme in found)
    for lexeme in (*marks_of(folded(text), holds_date=holds_date), *found):
        if lexeme in counts or len(counts) < MAX_LEXEMES:
            counts[lexeme] += 1
    return dict(counts)


def query_terms(text: str, *, days: Collection[date] = (), speakers: Collection[str] = ()) -> QueryTerms:
    """What to look for; at most MAX_QUERY_TERMS, of a long query from its first and last thousand characters.

    Stop words and the words that questions are put with are left out unless nothing else is there. `days` are
    those that the query's relative dates were resolved to (`cues.date_cues`), `speakers` the names known to be
    in it (`cues.speakers_named`).
    """
    if len(text) > 2 * _QUERY_EDGE:
        text = text[:_QUERY_EDGE] + "\n" + text[-_QUERY_EDGE:]
    found = [*_lexemes(text, is_query=True)] or [*_lexemes(text, is_query=False)] or _bare_words(text)
    found += [f"d:{day:%Y-%m-%d}" for day in days]
    names = [lexeme for name in speakers for lexeme in speaker_lexemes(name)]
    return QueryTerms(tuple(dict.fromkeys(found))[:MAX_QUERY_TERMS], tuple(dict.fromkeys(names)))


def speaker_lexemes(name: str) -> tuple[str, ...]:
    """`s:anna_berg`, `s:anna`, `s:berg` for Anna Berg; nothing for a name without letters."""
    words = [without_accents(word) for word in _PIECE.findall(folded(name[:200]))]
    words += re.findall(f"[{WINDOWED}]+", folded(name[:200]))
    joined = ["_".join(words)] if len(words) > 1 else []
    return tuple(dict.fromkeys(("s:" + word)[:MAX_LEXEME_CHARS] for word in (*joined, *words)))


def size_of(lexemes: Collection[str]) -> int:
    """How many different words a record has; dates, speakers and marks are none."""
    return sum(":" not in lexeme for lexeme in lexemes)


def name_terms(name: str) -> frozenset[str]:
    """The terms that a name gives when it stands in a text."""
    return frozenset(_lexemes(name[:200], is_query=False))


def language_of(folded_text: str) -> str:
    """The Snowball name of a Latin text's language: English unless another is clear, that is, at least two
    of its stop words or telling letters, and more than of English ones.
    """
    words = folded_text[:2000].split()
    best, most = "english", sum(word in STOP_WORDS["english"] for word in words)
    most = max(1, most)
    for language in _LATIN:
        hits = sum(word in STOP_WORDS[language] for word in words)
        hits += 2 * any(letter in folded_text for letter in _TELLING.get(language, ""))
        if hits > most:
            best, most = language, hits
    return best


def _lexemes(text: str, *, is_query: bool) -> Iterator[str]:
    plain = normalized(text)
    compared = folded(plain)
    at = 0
    language = language_of(compared)
    for found in dates_in(compared):
        yield from _of_stretch(compared[at : found.start], language, is_query=is_query)
        yield from found.lexemes()
        at = found.end
    yield from _of_stretch(compared[at:], language, is_query=is_query)
    for camel in _CAMEL.finditer(plain):
        yield from (stemmed(part.lower(), "english") for part in _CAMEL_PART.findall(camel[0]))


def _of_stretch(text: str, language: str, *, is_query: bool) -> Iterator[str]:
    for token in _TOKEN.finditer(text):
        if token["run"]:
            yield from _of_run(token["run"], is_query=is_query)
        elif token["word"]:
            yield from _of_word(token["word"], language, is_query=is_query)
        elif token["number"]:
            yield token["number"].replace(",", "")[:MAX_LEXEME_CHARS]
        else:
            yield token["sign"]


def _of_run(run: str, *, is_query: bool) -> Iterator[str]:
    """Windows of two, and every Han character that says something: a query of one character, one alone between
    particles, and compounds put another way (喝茶 for 喝了一杯茶) are found by these.
    """
    for match in _WINDOWED_WEEKDAY.finditer(run):
        yield f"w:{min(7, '一二三四五六日天'.index(match[1]) + 1)}"
    for part in _QUESTION_RUN.split(run) if is_query else (run,):
        says = [char not in PARTICLES for char in part]
        for n, char in enumerate(part):
            if n + 1 < len(part) and (says[n] or says[n + 1]):
                yield part[n : n + 2]
            is_alone = not (n and says[n - 1]) and not (n + 1 < len(part) and says[n + 1])
            if says[n] and (is_alone or _is_han(char)):
                yield char


def _of_word(word: str, language: str, *, is_query: bool) -> Iterator[str]:
    """The stem; of a compound, itself and its pieces' stems."""
    word = _CONTRACTION.sub("", word)
    if word.endswith("n't") or _says_nothing(word, language, is_query=is_query):
        return
    weekday = _WEEKDAYS.get(word)
    if weekday:
        yield f"w:{weekday}"
    pieces = _PIECE.findall(word)
    if len(pieces) == 1 and pieces[0] == word:
        yield from _stems(word, language)
        return
    yield without_accents(word)[:MAX_LEXEME_CHARS]
    if "-" in word or "'" in word:
        yield without_accents("".join(pieces))[:MAX_LEXEME_CHARS]
    for piece in pieces:
        if (len(piece) > 1 or piece.isdecimal()) and not _says_nothing(piece, language, is_query=is_query):
            yield from _stems(piece, language)


def _stems(word: str, language: str) -> Iterator[str]:
    """The stem; outside English also the English one, since a short query's language is not known."""
    english = stemmed(word, "english")
    yield english
    if language != "english":
        other = stemmed(word, language)
        if other != english:
            yield other


@lru_cache(maxsize=65536)
def stemmed(word: str, language: str) -> str:
    """A folded word's stem without accents, cut to MAX_LEXEME_CHARS; Russian for Cyrillic, as it is with
    digits in it.
    """
    word = word[:MAX_LEXEME_CHARS]
    if not word.isalpha():
        return without_accents(word)[:MAX_LEXEME_CHARS]
    if "\u0400" <= word[0] <= "\u04ff":
        language = "russian"
    # A stemmer keeps the word it works on, so that one shared by two threads would mix theirs up.
    stem = _STEMMERS[language]().stemWord(word)
    return without_accents(stem or word)[:MAX_LEXEME_CHARS]


def _says_nothing(word: str, language: str, *, is_query: bool) -> bool:
    if "\u0400" <= word[0] <= "\u04ff":
        language = "russian"
    if word in STOP_WORDS[language] or (language == "english" and is_query and word in QUESTION_WORDS):
        return True
    return len(word) == 1 and word.isascii() and word.isalpha()


def _bare_words(text: str) -> list[str]:
    """Of a text of stop words or signs alone, its words as they are."""
    words = [without_accents(word)[:MAX_LEXEME_CHARS] for word in folded(text).split()]
    return [word for word in words if ":" not in word]
