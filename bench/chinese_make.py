"""`python -m bench.chinese_make`: writes `bench/data/chinese.jsonl` from the vocabulary, the same bytes each time.

Each line of the file is one row: first the messages (`id`, `day`, `speaker`, `text`), then the questions (`kind`,
`query`, `evidence`: ids of messages). A day has one conversation. What two people tell about a topic differs in the
thing, and several topics are told of the same thing, so that every question has distractors that nearly fit.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from bench import chinese_words as words

DATA: Final = Path(__file__).parent / "data" / "chinese.jsonl"
KINDS: Final = ("same words", "other words", "two characters", "Latin", "date", "negation", "who")
A_KIND: Final = 36
"""Questions of each kind."""

_SEED = 52
_TELLERS = 10  # people who tell about a topic
_BEGIN = date(2024, 1, 2)
_NUMERALS = "〇一二三四五六七八九十"


@dataclass(frozen=True)
class Line:
    """A message of the conversation of its day."""

    id: str
    day: str
    speaker: str
    text: str


@dataclass(frozen=True)
class Asked:
    """A question and the messages that answer it."""

    kind: str
    query: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """Somebody tells about a topic; `line` is the message, once it is written."""

    topic: int
    person: str
    said: str
    word: str
    other_word: str
    day: str = ""
    line: str = ""


def main() -> None:
    DATA.write_text(made(), "utf-8")


def made() -> str:
    """The content of the file."""
    rng = random.Random(_SEED)
    lines, told = _talks(rng, _tellings(rng))
    rows: Iterator[Line | Asked] = iter((*lines, *_questions(rng, told)))
    return "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)


def read(path: Path = DATA) -> tuple[list[Line], list[Asked]]:
    """What the file holds."""
    lines: list[Line] = []
    questions: list[Asked] = []
    for text in path.read_text("utf-8").splitlines():
        row = json.loads(text)
        if "query" in row:
            questions.append(Asked(row["kind"], row["query"], tuple(row["evidence"])))
        else:
            lines.append(Line(**row))
    return lines, questions


def _tellings(rng: random.Random) -> list[Told]:
    """Each topic is told by several people, by each with another thing; who denies has not said the opposite."""
    told: list[Told] = []
    for number, topic in enumerate(words.TOPICS):
        people = rng.sample(words.PEOPLE, _TELLERS)
        values = rng.sample(topic.values, _TELLERS)
        if number in words.NEGATED:
            said = {(one.person, one.word) for one in told}
            while any(pair in said for pair in zip(people, (value[0] for value in values), strict=True)):
                rng.shuffle(values)
        told += [
            Told(number, person, rng.choice(topic.said).format(v=word), word, other)
            for person, (word, other) in zip(people, values, strict=True)
        ]
    rng.shuffle(told)
    return told


def _talks(rng: random.Random, told: Sequence[Told]) -> tuple[list[Line], list[Told]]:
    """Conversations of two things each, with what people say around them."""
    lines: list[Line] = []
    placed: list[Told] = []
    day = _BEGIN
    for start in range(0, len(told), 2):
        first_line = len(lines)
        listener = rng.choice(
            [one for one in words.PEOPLE if one not in {t.person for t in told[start : start + 2]}]
        )

        def say(speaker: str, text: str) -> str:
            filled = text.format(n=rng.randrange(3, 40) * 5, t=rng.choice(words.TIMES))
            if speaker == words.WRITES_TRADITIONAL:
                filled = filled.translate(words.TRADITIONAL)
            key = f"{day:%m%d}-{len(lines) - first_line + 1}"  # noqa: B023 - called within the round
            lines.append(Line(key, day.isoformat(), speaker, filled))  # noqa: B023
            return key

        say(listener, rng.choice(words.OPENINGS))
        for one in told[start : start + 2]:
            placed.append(replace(one, day=day.isoformat(), line=say(one.person, one.said)))
            say(listener, rng.choice(words.ANSWERS))
            say(one.person, rng.choice(words.FOLLOW_UPS))
        say(listener, rng.choice(words.CLOSINGS))
        if rng.random() < 0.6:
            say(told[start].person, rng.choice(words.CLOSINGS))
        day += timedelta(days=rng.choice((1, 1, 2, 3)))
    return lines, placed


def _questions(rng: random.Random, told: Sequence[Told]) -> Iterator[Asked]:
    plain = [one for one in told if one.topic not in (*words.NEGATED, *words.LATIN)]
    denied = [one for one in told if one.topic in words.NEGATED]
    latin = [one for one in told if one.topic in words.LATIN]
    for one in rng.sample(plain, A_KIND):
        yield Asked("same words", words.TOPICS[one.topic].same_words.format(v=one.word), (one.line,))
    for one in rng.sample([t for t in plain if t.word != t.other_word], A_KIND):
        yield Asked("other words", words.TOPICS[one.topic].other_words.format(w=one.other_word), (one.line,))
    yield from _of_two_characters(rng, told)
    for number, one in enumerate(rng.sample(latin, A_KIND)):
        topic = words.TOPICS[one.topic]
        mixed = f"{topic.of_person.format(p=one.person)}是{one.word.lower()}吗"
        yield Asked("Latin", topic.same_words.format(v=one.word) if number % 2 else mixed, (one.line,))
    yield from _of_days(rng, told)
    for number, one in enumerate(rng.sample(denied, A_KIND)):
        topic = words.TOPICS[one.topic]
        query = (
            topic.same_words.format(v=one.word),
            topic.other_words.format(w=one.word),
            topic.other_words.format(w=one.other_word),
        )[number % 3]
        yield Asked("negation", query, (one.line,))
    for one in rng.sample(plain, A_KIND):
        yield Asked("who", words.TOPICS[one.topic].of_person.format(p=one.person), (one.line,))


def _of_two_characters(rng: random.Random, told: Sequence[Told]) -> Iterator[Asked]:
    """A word alone, or the other word for it, which no line holds; all who told of the thing are meant."""
    meant: dict[str, list[str]] = {}
    for one in told:
        for word in {one.word, one.other_word}:
            if len(word) == 2:
                meant.setdefault(word, []).append(one.line)
    for word in rng.sample(sorted(meant), A_KIND):
        yield Asked("two characters", word, tuple(meant[word]))


def _of_days(rng: random.Random, told: Sequence[Told]) -> Iterator[Asked]:
    """What was told on a day, written in one of three ways; every third time only what one of the two told."""
    days: dict[str, list[Told]] = {}
    for one in told:
        days.setdefault(one.day, []).append(one)
    for number, day in enumerate(rng.sample(sorted(days), A_KIND)):
        when = date.fromisoformat(day)
        written = (
            f"{when.month}月{when.day}号", f"{when.month}月{when.day}日",
            f"{_in_numerals(when.month)}月{_in_numerals(when.day)}号",
        )[number % 3]  # fmt: skip
        if number % 4 == 3:
            one = days[day][0]
            yield Asked("date", f"{one.person}{written}说了什么？", (one.line,))
        else:
            yield Asked("date", f"{written}聊了什么？", tuple(one.line for one in days[day]))


def _in_numerals(number: int) -> str:
    tens, ones = divmod(number, 10)
    before = ("" if tens < 2 else _NUMERALS[tens]) + "十" * (tens > 0)
    return before + (_NUMERALS[ones] if ones else "")


if __name__ == "__main__":
    main()
