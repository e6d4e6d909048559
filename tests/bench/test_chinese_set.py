from collections import Counter

from bench.chinese_make import DATA, KINDS, made, read


def test_the_committed_set_is_what_the_generator_makes() -> None:
    assert made() == DATA.read_text("utf-8")


def test_it_is_large_enough_and_every_answer_is_in_it() -> None:
    lines, questions = read()
    known = {line.id for line in lines}
    assert len(lines) == len(known) >= 1000
    assert len(questions) >= 200
    assert all(question.evidence and known.issuperset(question.evidence) for question in questions)
    assert dict.fromkeys(KINDS, 36) == Counter(question.kind for question in questions)


def test_who_is_asked_about_has_said_it() -> None:
    lines, questions = read()
    speaker_of = {line.id: line.speaker for line in lines}
    asked = [question for question in questions if question.kind == "who"]
    assert all(speaker_of[question.evidence[0]] in question.query for question in asked)


def test_a_question_in_other_words_shares_few_characters_with_its_answer() -> None:
    lines, questions = read()
    text_of = {line.id: line.text for line in lines}

    def shared(kind: str) -> float:
        """Pairs of characters that stand in both, a question."""
        found = [
            sum(
                question.query[at : at + 2] in text_of[question.evidence[0]]
                for at in range(len(question.query))
            )
            for question in questions
            if question.kind == kind
        ]
        return sum(found) / len(found)

    assert shared("other words") < shared("same words") / 2
