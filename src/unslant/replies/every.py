"""Rules for replies that speak of every option: none, all, all but some, one by one, and those that are left."""

from __future__ import annotations

import re

from unslant.replies.collapse import NUMBERS
from unslant.replies.grammar import ANY, Kind, mentions, options_of, pattern
from unslant.replies.reading import NONE_STATED, SHORT, Outcome, Reading, Unreadable

_ALL_BUT = pattern(
    r"\b{all_but}(?P<before>{all_but_are})?,? {except}(?P<said>{either})"
    r"(?:{they_are}(?P<after>{right}|{wrong_verdict})|(?P<alone>[ .!]*\Z))"
)
"""Every option but these: "all except B are correct", "everything but B is wrong"."""
_ANY_WRONG = pattern("{^any_wrong$}")
_NOT_ANY_OF_THEM = pattern(
    r"(?:(?!\b{clause_head}\b)[^.,;\n]){0,80}(?:{not_ending}|\b{not_word}){not_any_of_them}\b[^,;\n]*\Z"
)
_NONE_FIRST = pattern(r"\W*{none_first}[,;:-] ?\w")
_ALL_OF_THEM = pattern(r"\W*{all_of_them}[^,;\n]{0,40}\Z")
"""Replies that name no option and say that none is right, or all."""
_SUPPOSED = pattern(r"{^supposed$}[^.;,\n]*\Z")
_SAID_OF = pattern(r"(?P<said>{subject})[)]? {said_of}\b")
_OTHERS_ARE_NOT = pattern(
    r"(?P<right>{subject}) {are_have} \w{3,20}[,;]? (?:{contrast} |{plain_and} |{but} )?"
    r"(?P<wrong>{subject}) {are_have} {not}\W*\Z"
)
"""What is said of some and simply denied of the others: "A and C are plausible, B and D are not"."""
_ONLY_WRONG = pattern(
    r"(?P<said>{any}) {be_word} {the} {only_wrong}|{the} {only_wrong}[^.\n{not_any}]{0,40} {be_word} (?P<named>{any})"
)
_THE_REST = pattern(r"\b{the_rest}\b(?! {be_word} {wrong_verdict})")


def all_but(reading: Reading) -> Outcome:
    """Every option but some: "all except B are correct", "everything but B is wrong"."""
    only = _ONLY_WRONG.search(reading.plain)
    if only:  # "B is the only false one" answers which are true, and which is false
        named = options_of(only[only.lastgroup or 0])
        if not frozenset(range(reading.n)) - named <= reading.asserted():
            raise Unreadable("the one called wrong or the others", named, frozenset(range(reading.n)) - named)
    match = _ALL_BUT.search(reading.plain)
    if match is None or (match["alone"] is not None and match["before"] is None and match.start()):
        return None
    named = options_of(mentions(match["said"], *range(Kind.MASKED + 1)))
    wrong = _ANY_WRONG.search(f"{match['before']} {match['after']}")
    return named if wrong else frozenset(range(reading.n)) - named, "all but"


def one_by_one(reading: Reading) -> Outcome:
    """Options that the same is said about, where it is denied of others: "B is prime. A and C are not."."""
    elliptical = _OTHERS_ARE_NOT.match(reading.plain)
    if elliptical:
        return options_of(mentions(elliptical["right"])), "one by one"
    said = [
        (options_of(mentions(match["said"])), match["what"].casefold()) for match in _SAID_OF.finditer(reading.text)
    ]
    right = frozenset().union(*(options for options, _ in said))
    every = options_of(re.findall(ANY, reading.text))
    denied = options_of(mentions(reading.text, Kind.MASKED))
    if (
        not right
        or not denied
        or mentions(reading.plain, Kind.TEXT, Kind.WORD)
        or len({what for _, what in said}) > 1
        or right | denied != every
        or right & denied
    ):
        return None
    return (right, "one by one") if len(reading.text) <= SHORT else None


def none_stated(reading: Reading) -> Outcome:
    """A sentence that no option is right, or every option called wrong."""
    stated = (match.start() for match in NONE_STATED.finditer(reading.plain, reading.retracted()))
    if any(not _SUPPOSED.search(reading.plain[max(0, at - 80) : at]) for at in stated):
        return reading.none(), "none stated"
    if len(reading.asserted(Kind.WRONG)) == reading.n > 1 and reading.complete():
        return reading.none(), "none stated"
    if len(reading.plain) <= SHORT and not re.search(ANY, reading.plain):
        if _NOT_ANY_OF_THEM.match(reading.plain) or _NONE_FIRST.match(reading.plain):
            return reading.none(), "none stated"
        every = _ALL_OF_THEM.match(reading.plain)
        if every and NUMBERS.get((every["n"] or "").casefold(), reading.n) == reading.n:
            return reading.chosen(""), "all stated"
    return None


def left_over(reading: Reading) -> Outcome:
    """The options that are left where a short reply calls the others wrong, and names only these."""
    wrong = reading.asserted(Kind.WRONG)
    if len(reading.plain) > SHORT or not wrong or options_of(re.findall(ANY, reading.plain)) != wrong:
        return None
    others = frozenset(range(reading.n)) - wrong
    said = _THE_REST.search(reading.plain) is not None
    return (others, "the others") if said or (len(others) == 1 < len(wrong)) else None
