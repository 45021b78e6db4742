"""Rules for replies that speak of every option, or of all but some: "all except B", "none of them", "the rest"."""

from __future__ import annotations

import re

from unslant.replies.explicit import RULED_OUT
from unslant.replies.grammar import ANY, Kind, mentions, options_of, pattern, words
from unslant.replies.reading import NONE_STATED, SHORT, Outcome, Reading, Unreadable

_PREDICATE = pattern(r" {be_verb}(?! ?{right}\b)")
_ALL_BUT = pattern(
    r"\b(?:{all_but}(?P<before>{all_but_are})?|(?P<none>{none})),? {except}(?P<said>{either})"
    r"(?:{they_are}(?P<after>{right}|{wrong_verdict})|(?P<alone>[ .!]*\Z))"
)
"""Every option but these: "all except B are correct", "everything but B is wrong"; or only these: "none but B"."""
_BUT_FOR = pattern(
    r"(?:{but_for} ?)?(?P<said>{either}) ?{outside},? ?(?:{outside_all} ?)?"
    r"(?:(?P<wrong>{outside_wrong})|{outside_right})"
)
"""The same in Chinese and Japanese: "除了B以外都不对"."""
_NOT_ANY_OF_THEM = pattern(
    r"(?:(?!\b{clause_head}\b)[^.,;\n]){0,80}(?:{not_ending}|\b{not_word}){not_any_of_them}\b[^,;\n]*\Z"
)
_ALL_OF_THEM = pattern(r"\W*{all_of_them}[^,;\n]{0,40}\Z")
_NONE_OR_ALL_FIRST = pattern(r"\W{0,3}(?P<said>(?P<all>{is_all})|{is_none})(?:,? {opening_reason}\b| - |[.!;] )")
"""Replies that name no option and say that none is right, or all."""
_OTHERS_ARE_NOT = pattern(
    r"(?P<right>{subject}) {are_have} \w{3,20}[,;]? (?:{contrast} |{plain_and} |{but} )?"
    r"(?P<wrong>{subject}) {are_have} {not}\W*\Z"
)
"""A statement about some options that is denied of the others: "A and C are plausible, B and D are not"."""
_ONLY_WRONG = pattern(
    r"(?P<said>{any}) {be_word} {the} {only_wrong}|{the} {only_wrong}[^.\n{not_any}]{0,40} {be_word} (?P<named>{any})"
)

_PROBABILITY = pattern(r"({one})[ :=(,-]{1,3}(\d{1,3}(?:\.\d{1,4})?|\.\d{1,4})(?![\d.])")


def most_probable(reading: Reading) -> Outcome:
    """The most probable option, if a reply only gives each its probability, and they add up to 1 or 100."""
    shares = [(one, float(share)) for one, share in _PROBABILITY.findall(reading.plain)]
    total, best = sum(share for _, share in shares), max((share for _, share in shares), default=0)
    each = options_of(one for one, _ in shares)
    if not 1 < len(each) == len(shares) == len(re.findall(ANY, reading.plain)) or not reading.options.texts:
        return None
    if RULED_OUT.search(reading.plain):  # "eliminate A: 0.7, B: 0.3"
        return None
    rest = pattern(r"{confidence}|{probability}|{percent}").sub("", reading.plain)
    if "%" in rest and re.search(r"[^\W\d_]", rest):
        return None  # shares of something else: "Purity: A: 10%, B: 90%"
    likeliest = options_of(one for one, share in shares if share == best)
    adds_up = abs(total - 1) < 0.03 or abs(total - 100) < 3
    return (likeliest, "most probable") if adds_up and len(likeliest) == 1 else None


def statement_verdicts(reading: Reading) -> Outcome:
    """The option that lists the verdicts of a reply on numbered statements: "Statement 1: True ..."."""
    said = pattern(r"\b{statement_verdict}\b").findall(reading.plain.casefold())
    verdicts_of_options = [pattern("{true_or_false}").findall(text.casefold()) for text in reading.options.texts]
    answer = frozenset(i for i, verdicts in enumerate(verdicts_of_options) if len(verdicts) > 1 and verdicts == said)
    return (answer, "statement verdicts") if len(answer) == 1 else None


def all_but(reading: Reading) -> Outcome:
    """Every option but some: "all except B are correct", "everything but B is wrong"."""
    if only := _ONLY_WRONG.search(reading.plain):  # "B is the only false one" answers which are true, and which not
        named = options_of(only[only.lastgroup or 0])
        if not frozenset(range(reading.n)) - named <= reading.asserted():
            raise Unreadable("the one called wrong or the others", named, frozenset(range(reading.n)) - named)
    if but_for := _BUT_FOR.search(reading.plain):
        named = options_of(mentions(but_for["said"]))
        return named if but_for["wrong"] else frozenset(range(reading.n)) - named, "all but"
    match = _ALL_BUT.search(reading.plain)
    if match is None or (match["alone"] is not None and not (match["before"] or match["none"]) and match.start()):
        return None
    named = options_of(mentions(match["said"], *range(Kind.MASKED + 1)))
    wrong = match["none"] or pattern("{^any_wrong$}").search(f"{match['before']} {match['after']}")
    return named if wrong else frozenset(range(reading.n)) - named, "all but"


def one_by_one(reading: Reading) -> Outcome:
    """Options with the same predicate, if it is denied of the others: "B is prime. A and C are not."."""
    if elliptical := _OTHERS_ARE_NOT.match(reading.plain):
        return options_of(mentions(elliptical["right"])), "one by one"
    statements = list(pattern(r"(?P<said>{subject})[)]? {said_of}\b").finditer(reading.text))
    right = frozenset().union(*(options_of(mentions(match["said"])) for match in statements))
    every = options_of(re.findall(ANY, reading.text))
    denied = options_of(mentions(reading.text, Kind.MASKED))
    if (
        not right
        or not denied
        or mentions(reading.plain, Kind.TEXT, Kind.WORD)
        or len({match["what"].casefold() for match in statements}) > 1
        or right | denied != every
        or right & denied
        or len(reading.text) > SHORT
    ):
        return None
    return right, "one by one"


def none_stated(reading: Reading) -> Outcome:
    """No option (``none stated``: a sentence says so, or every option is called wrong), or all (``all stated``)."""
    for stated in NONE_STATED.finditer(reading.plain, reading.retracted()):
        # "none of A, B and C" of four
        some = 0 < len(options_of(re.findall(ANY, stated[0]))) < reading.n and not reading.none()
        # "None of these is a conifer. The one with white bark is the birch.": not said of what was asked
        elsewhere = len(mentions(reading.text[stated.end() :])) == 1 and _PREDICATE.match(reading.plain, stated.end())
        before = reading.plain[max(0, stated.start() - 80) : stated.start()]
        if not some and not elsewhere and not pattern(r"{^supposed$}[^.;,\n]*\Z").search(before):
            return reading.none(), "none stated"
    left = pattern("{^left_over$}").search(reading.plain)  # "after eliminating A and B, C and D remain"
    if len(reading.asserted(Kind.WRONG)) == reading.n > 1 and reading.complete() and not left:
        return reading.none(), "none stated"
    if len(reading.plain) <= SHORT and not re.search(ANY, reading.plain):
        if _NOT_ANY_OF_THEM.match(reading.plain) or pattern(r"\W*{none_first}[,;:-] ?\w").match(reading.plain):
            return reading.none(), "none stated"
        if first := _NONE_OR_ALL_FIRST.match(reading.plain):
            return reading.answer(first["said"]), f"{'all' if first['all'] else 'none'} stated"
        if every := _ALL_OF_THEM.match(reading.plain):
            return reading.answer(every[0]), "all stated"
    return None


def left_over(reading: Reading) -> Outcome:
    """The options that are left if a short reply names only wrong ones: "B is wrong, the rest are right"."""
    wrong = reading.asserted(Kind.WRONG)
    if len(reading.plain) > SHORT or not wrong or options_of(re.findall(ANY, reading.plain)) != wrong:
        return None
    others = frozenset(range(reading.n)) - wrong
    rest = pattern(r"\b{the_rest}\b(?! {be_word} {wrong_verdict})").search(reading.plain)
    return (others, "the others") if rest or (len(others) == 1 < len(wrong)) else None


def both(reading: Reading) -> Outcome:
    """The one option that begins with "both", if a short reply says that both are: "both of them do"."""
    options = frozenset().union(*map(reading.options.beginning, words("both")))
    said = pattern(r"\A\W*{both}\W*\Z|{^both_are$}").search(reading.text)
    return (options, "both") if said and len(options) == 1 and len(reading.text) <= SHORT else None
