"""The same sentences in 29 languages, and options' texts as they are, are read as they are meant or not at all."""

from __future__ import annotations

import random
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import unslant
from unslant.replies import extract_labels

LANGUAGES: dict[str, dict[str, list[str]]] = tomllib.loads(
    (Path(__file__).parent / "data" / "languages.toml").read_text("utf-8")
)
OPTIONS = ("a rusty gate", "the old mill by the river", "wool", "two wet dogs")
ECHOES = ("{}", "The answer is {}.", 'The correct option is "{}".', "**{}**", "正确答案是：{}")


def read(reply: str, labels: Sequence[str], options: Sequence[str]) -> list[str] | None:
    said = extract_labels(reply, labels, options)
    return sorted(said.labels) if said.status == "ok" else None


def readings(options: Sequence[str], order: Sequence[int]) -> Iterator[tuple[str, str, list[str] | None, object]]:
    """Each sentence about these options: its language, the reply, what is read, and what is meant."""
    labels = "ABCDEFGHIJ"[: len(options)]
    chosen, other, third = (labels[i] for i in order[:3])
    meant: dict[str, object] = {
        "chosen": [chosen],
        "unread": None,
        "all": sorted(labels),
        "none": [],
        "all_but_m": sorted(set(labels) - {other}),
        "only_m": [other],
    }
    for language, kinds in LANGUAGES.items():
        for kind, sentences in kinds.items():
            for sentence in sentences:
                reply = sentence.format(l=chosen, m=other, n=third, t=options[order[0]].strip())
                yield language, reply, read(reply, labels, options), meant[kind]


def check(cases: Sequence[tuple[str, str, list[str] | None, object]]) -> None:
    wrong = [case for case in cases if case[2] not in (None, case[3])]
    assert not wrong, wrong[:5]
    unread = Counter(language for language, _, said, meant in cases if said is None and meant is not None)
    every = Counter(language for language, *_ in cases)
    assert sum(unread.values()) <= 0.03 * len(cases), unread
    assert all(unread[language] <= 0.15 * every[language] for language in every), unread


@pytest.mark.parametrize("order", [(1, 2, 3), (0, 3, 1)])
def test_sentences_in_every_language(order: tuple[int, ...]) -> None:
    check(list(readings(OPTIONS, order)))


@pytest.mark.thorough
def test_sentences_about_real_questions(shared_data: Path) -> None:
    draw = random.Random(0)
    questions = [
        question
        for name in ("mmlu_dev.jsonl", "arc_challenge_test.jsonl", "ar_lsat_dev.jsonl")
        for question in unslant.load_questions(shared_data / name)
        if len(set(question.options)) == len(question.options) > 3
        # "all of the above" answers for all, and a letter that is an option's text is that label
        and not any(
            text.lower().startswith(("all ", "none ", "no ", "both ")) or len(text) < 3 for text in question.options
        )
    ]
    for question in draw.sample(questions, 12):
        check(list(readings(question.options, draw.sample(range(len(question.options)), 3))))


@pytest.mark.thorough
def test_an_options_text_as_it_is_reads_as_that_option(shared_data: Path) -> None:
    """Also where the texts differ by case alone, or are written in labels' letters, such as "AC"."""
    draw = random.Random(0)
    wrong, unread, asked = [], 0, 0
    for path in sorted(shared_data.glob("*.jsonl")):
        try:
            questions = unslant.load_questions(path)
        except unslant.InputError:
            continue  # not a file of multiple-choice questions
        for question in draw.sample(list(questions), min(len(questions), 60)):
            labels = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(question.options)]
            if len(set(question.options)) < len(question.options) or len(labels) < len(question.options):
                continue
            i = draw.randrange(len(labels))
            if len(question.options[i].strip()) < 2:
                continue
            for echo in ECHOES:
                said = read(echo.format(question.options[i].strip()), labels, question.options)
                asked, unread = asked + 1, unread + (said is None)
                wrong += [] if said in (None, [labels[i]]) else [(path.name, question.options, labels[i], said)]
    assert not wrong, wrong[:5]
    assert asked > 0
    assert unread <= 0.01 * asked


@pytest.mark.parametrize(
    ("reply", "options", "label"),
    [
        ("AC", ("Direct current", "DC", "AC", "Alternating current"), "C"),
        ("The answer is AC.", ("Direct current", "DC", "AC", "Alternating current"), "C"),
        ("Dear Ms. Allen,", ("Dear ms. Allen,", "Dear Ms. Allen,"), "B"),
        ('The correct option is "Dear ms. Allen,".', ("Dear ms. Allen,", "Dear Ms. Allen,"), "A"),
        ("dear ms. allen,", ("Dear ms. Allen,", "Dear Ms. Allen,"), None),
        ("B", ("D", "C", "B", "A"), "B"),  # a label
        ("I do not think the answer is AC", ("Direct current", "DC", "AC", "Alternating current"), None),
    ],
)
def test_an_options_text_letter_by_letter(reply: str, options: tuple[str, ...], label: str | None) -> None:
    assert read(reply, "ABCD"[: len(options)], options) == (label and [label])


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("正确答案是**B**。", "B"),  # bold within a sentence without spaces
        ("答えは**A**ではなく**C**です。", "C"),
        ("La réponse n'est pas « B » mais « C ».", "C"),
        ("The answer is C, A and B are wrong.", "C"),
        ("Doğru cevap C, A değil.", "C"),
        ("A C a helyes.", "C"),  # the article of Hungarian
        ("Tất cả đều đúng nhưng sai.", None),  # no label C in "cả"
        ("Tanto C como A son incorrectas.", None),
        ("Die Antwort ist »B«, nicht »C«.", "B"),
    ],
)
def test_labels_within_sentences(reply: str, label: str | None) -> None:
    assert read(reply, "ABCD", OPTIONS) == (label and [label])


@pytest.mark.parametrize("digits", ["١٢٣٤", "۱۲۳۴", "१२३४", "১২৩৪", "๑๒๓๔"])
def test_digits_of_other_scripts(digits: str) -> None:
    assert read(f"**Answer: {digits[2]}**", "1234", OPTIONS) == ["3"]
    assert read(f"**Answer: {digits[2]}**", digits, OPTIONS) == [digits[2]]
