"""Every way of mentioning an option becomes one character that says which and how."""

from __future__ import annotations

import re

import pytest

from unslant.replies import option_texts
from unslant.replies.collapse import Collapser
from unslant.replies.grammar import ANY, kind_of, option_of
from unslant.replies.option_texts import Token, tokens
from unslant.replies.reading import masked

CITIES = ("Lisbon", "Paris", "Los Angeles", "Angeles")
KINDS = "LABEL BARE BOTH TEXT WORD AMBIGUOUS CONFLICT WRONG MASKED".split()


def shown(collapsed: str, labels: str = "ABCD") -> str:
    """The collapsed text with ``<kind label>`` in place of each character."""
    return re.sub(ANY, lambda m: f"<{KINDS[kind_of(m.group())].lower()} {labels[option_of(m.group())]}>", collapsed)


def test_mentions_of_an_option(subtests: pytest.Subtests) -> None:
    for text, collapsed in (
        ("B. Paris", "<both B>"),
        ("(B) Paris.", "<both B>."),
        ("B: paris", "<both B>"),
        ("Paris (B)", "<both B>"),
        ("option B", "<label B>"),
        ("It is (B).", "It is <label B>."),
        ("It is B.", "It is <bare B>."),
        ("It is 'Paris'.", "It is <text B>."),
        ("A. Paris", "<conflict A>"),
        ("Rome (B)", "Rome <label B>"),
        ("C. Los Angeles and D. Angeles", "<both C> and <both D>"),
        ("Los Angeles", "<text C>"),
        ("the second option", "the <bare B>"),
        ("the last two are", "the <bare C><bare D> are"),
        ("AC", "<bare A><bare C>"),
        ("a lamp, a C-clamp, vitamin C and 1.5 A.m", "a lamp, a C-clamp, vitamin C and 1.5 A.m"),
    ):
        with subtests.test(text=text, collapsed=collapsed):
            assert shown(Collapser("ABCD", CITIES).collapse(text)) == collapsed


def test_a_number_may_be_one_options_label_and_anothers_text():
    numbers = Collapser("1234", ("2", "3", "4", "5"))
    assert shown(numbers.collapse("so 3"), "1234") == "so <ambiguous 3>"
    assert shown(numbers.collapse("2) 3"), "1234") == "<both 2>"
    assert shown(numbers.collapse("so 1"), "1234") == "so <bare 1>"


def test_inflection_and_small_words_are_forgiven():
    traits = Collapser("AB", ("shed its skin", "hold a lamp near the floor"))
    assert shown(traits.collapse("A. Shedding its skin")) == "<both A>"
    assert shown(traits.collapse("by holding the lamp near a floor")) == "by <text B>"


def test_what_is_not_asserted_is_masked(subtests: pytest.Subtests) -> None:
    for text, collapsed in (
        ("Not A but B", "Not <masked A> but <bare B>"),
        ("A is wrong", "<wrong A> is wrong"),
        ("The incorrect options are A, B and C.", "The incorrect options are <wrong A>, <wrong B> and <wrong C>."),
        ("A or B", "<masked A> or <masked B>"),
        ("If A were true, C", "If <masked A> were true, <masked C>"),
        ("Is it A? B", "Is it <masked A>? <bare B>"),
        ("At first I thought A, but B", "At first I thought <masked A>, but <bare B>"),
        ("While Paris is tempting, C", "While <masked B> is tempting, <bare C>"),
        ("Paris is not in Spain", "<masked B> is not in Spain"),
        ("B is not in Spain", "<masked B> is not in Spain"),
        ("not only A", "not only <bare A>"),
    ):
        with subtests.test(text=text, collapsed=collapsed):
            assert shown(masked(Collapser("ABCD", CITIES).collapse(text))) == collapsed


def test_an_option_is_read_once_however_many_pages_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(text: str) -> list[Token]:
        read.append(text)
        return tokens(text)

    monkeypatch.setattr(option_texts, "tokens", counted)
    options = ("an unheard-of town", "another such town", "no such town", "one more of them")
    for first in range(4):
        order = options[first:] + options[:first]
        assert Collapser("ABCD", order).options.texts == order
    assert sorted(read) == sorted(options)
