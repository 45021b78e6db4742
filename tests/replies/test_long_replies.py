"""No reply takes long, raises or hides its answer, however long it is and whatever it repeats.

A reader whose time grows with the square of a reply's length runs into the time limit of the test;
``python -m benchmarks.reliability long_replies`` tries random ones and measures.
"""

from __future__ import annotations

import json

import pytest

from benchmarks.reliability import Options
from benchmarks.reliability.long_replies import READERS, attack
from unslant.replies import extract_labels, extract_verdict, stated_confidence
from unslant.replies.grammar import words
from unslant.replies.text import LIMIT, clean

MEGABYTE = 1_000_000
CITIES = ("Lisbon", "Paris", "Oslo", "Rome")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "unit",
    [
        *('{"a":', "9", "<|im_end|>", "\u0301\u0323", "answer ", "除A外", "Sure! ", "1 1/2 "),
        *(
            pytest.param(unit, marks=pytest.mark.slow)
            for unit in (
                *("\x0b", "\u200b", "\\boxed{", "confidence (", "😊", "A and ", " 😊 x", "A yes. "),
                *("I hope this helps! ", "5 million "),
            )
        ),
    ],
)
@pytest.mark.thorough
def test_a_megabyte_of_one_token_is_read_by_every_reader(unit):
    reply = (unit * MEGABYTE)[:MEGABYTE]
    assert len(clean(reply)) <= LIMIT + 2
    for read in READERS.values():
        read(reply)


@pytest.mark.thorough
@pytest.mark.parametrize("cases", [500, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["fields", "labels", "characters", "cues"])
def test_random_hostile_replies(name, cases):
    row = attack(name, Options(cases=cases, seed=3))
    hangs = [example for example in row.examples if not example.endswith((" s", "characters"))]
    assert row.attempts >= cases // 100
    assert not hangs


def test_a_list_joined_by_a_word_of_several_languages_is_read():
    for word in filter(str.isalpha, dict.fromkeys(words("and"))):
        assert extract_labels(f"A {word} B {word} " * 15, "ABCD", CITIES).status in ("ok", "unparsed")


def test_both_ends_of_a_long_reply_are_read():
    flood = "The lamp in the garden is red. " * 40_000
    assert extract_labels(f"{flood}\n\nAnswer: B", "ABCD", CITIES).labels == {"B"}
    assert extract_labels(f"B. Paris\n\n{flood}", "ABCD", CITIES).labels == {"B"}
    assert extract_verdict(f"{flood}\n\nAnswer: False").labels == {"False"}
    assert stated_confidence(f"{flood}\nConfidence: 80%") == 0.8
    assert extract_labels(f"<think>{flood}</think>B", "ABCD", CITIES).labels == {"B"}


def test_turn_tokens_before_an_answer_hide_nothing():
    assert extract_labels("</s></s>B", "ABCD", CITIES).labels == {"B"}
    assert extract_labels("<|im_end|>" * 20_000 + "B<|im_end|>\nA", "ABCD", CITIES).labels == {"B"}


@pytest.mark.parametrize(
    "reply",
    [
        "The options are:\nB.\nLisbon",  # a label, and below it another option's text, as the last word
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        json.dumps({"answer": "A"}).replace('"A"', "[" * 5_000 + "]" * 5_000),
        '{"answer": ' + "9" * 5_000 + "}",
        "9" * 5_000 + "% sure",
        "\ud800 Answer: B \udfff",
    ],
)
def test_no_reply_raises(reply):
    for read in READERS.values():
        read(reply)
    assert extract_labels(reply, "ABCD", CITIES).status in ("ok", "unparsed", "conflict")
