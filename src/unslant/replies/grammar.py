"""How answers are worded, in any language: the characters that replace mentions of an option in a collapsed reply
(:mod:`collapse`), and parts of regular expressions over such replies, in which runs of spaces are one space.

Words are cues: data, a file a language in ``cues/``. A file maps classes to phrases, which are regular expressions
separated by white space, with ``_`` for a space. To add a cue, add a phrase to a class; to add a language, add a file
with the classes that it has words for. :func:`pattern` puts them into the skeletons of the rules:

``{name}``
    a part of the grammar (:data:`PARTS`), or any phrase of a class, in any language;
``{^name}``, ``{name$}``, ``{^name$}``
    the same at the beginning or end of a word, or both, in languages that write spaces between words.

Every repetition is bounded: the time a reply takes must grow with its length and no faster.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from enum import IntEnum, auto
from functools import cache
from importlib import resources

_REFERENCE = re.compile(r"\{(\^?)([a-z_]+)(\$?)\}")
_END_OF_WORD = r"(?:\b|(?<=[\u0900-\u0dff])(?<!\w)(?!\w))"
"""Also behind a vowel sign, such as the last of "नहीं", which to a regular expression does not belong to the word."""
_SPACE = re.compile(r"_|\{\^?[a-z_]+\$?\}")


@cache
def languages() -> dict[str, Mapping[str, str | bool]]:
    """The cues of every language, English first: of two phrases that fit, the first is tried first."""
    folder = resources.files("unslant.replies") / "cues"
    names = sorted((file.name for file in folder.iterdir()), key=lambda name: (name != "en.toml", name))
    return {name: tomllib.loads((folder / name).read_text("utf-8")) for name in names if name.endswith(".toml")}


@cache
def _plainer() -> dict[int, str]:
    """Traditional Chinese in simplified characters, digits of other scripts as ours, and no vowel signs of Arabic."""
    digits = {zero + digit: str(digit) for zero in (0x660, 0x6F0, 0x966, 0x9E6, 0xE50) for digit in range(10)}
    marks = dict.fromkeys(range(0x64B, 0x653), "")  # few replies write these signs
    return digits | marks | {ord(pair[0]): pair[1] for pair in str(languages()["zh.toml"]["simplified"]).split()}


def normalized(text: str) -> str:
    """A text with one form of each character, for replies, options and cues alike; Chinese in simplified ones.

    Examples:
        >>> normalized("選項Ａ")
        '选项A'
    """
    return unicodedata.normalize("NFKC", text).translate(_plainer())


@cache
def _phrases(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Phrases of a class in languages that write spaces between words, and in those that do not.

    Raises:
        KeyError: if no language has it.
    """
    spaced: list[str] = []
    unspaced: list[str] = []
    for language in languages().values():
        phrases = unspaced if language.get("spaces_between_words") is False else spaced
        for phrase in normalized(str(language.get(name, ""))).split():
            phrases.append(_SPACE.sub(lambda match: " " if match.group() == "_" else match.group(), phrase))
    if not spaced and not unspaced:
        raise KeyError(f"no language has cues of the class {name!r}")
    return tuple(spaced), tuple(unspaced)


def words(name: str) -> tuple[str, ...]:
    """The phrases of a class, in all languages.

    Examples:
        >>> words("ordinal")[:3]
        ('first', 'second', 'third')
    """
    spaced, unspaced = _phrases(name)
    return spaced + unspaced


def expand(template: str, parts: Mapping[str, str]) -> str:
    """A regular expression with the cues and the ``parts`` that it names written out.

    Raises:
        KeyError: if a name is neither.
    """

    def expression(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        if name in parts:
            return expand(parts[name], parts)
        spaced, unspaced = _phrases(name)
        # A phrase that two languages share is named once: in a list of options, each copy doubles the ways to match.
        together = "|".join(dict.fromkeys(spaced))
        if spaced and (begin or end):
            together = (r"\b" if begin else "") + f"(?:{together})" + (_END_OF_WORD if end else "")
        return expand(f"(?:{'|'.join(filter(None, (together, *unspaced)))})", parts)

    return _REFERENCE.sub(expression, template)


# A character of Unicode's private plane says both which option is meant and how: a rule's character class then selects
# kinds of mention, and no reply can hold such a character by itself (:func:`~unslant.replies.text.plain` removes them).
_FIRST, _STRIDE = 0xF0000, 0x1000


class Kind(IntEnum):
    """How an option is mentioned; masks turn a mention into one of the last two."""

    LABEL = 0  # by a label marked as one
    BARE = auto()  # by a letter or number that may be a label
    BOTH = auto()  # by its label and its text
    TEXT = auto()  # by its text
    WORD = auto()  # by its text, where that is a common word or a number
    AMBIGUOUS = auto()  # by what is one option's label and another's text
    CONFLICT = auto()  # by a label with another option's text
    WRONG = auto()  # called wrong
    MASKED = auto()  # not asserted


def characters(*kinds: int) -> str:
    """A regular expression for any one mention of these kinds."""
    ranges = (f"{chr(_FIRST + k * _STRIDE)}-{chr(_FIRST + (k + 1) * _STRIDE - 1)}" for k in kinds)
    return f"[{''.join(ranges)}]"


ONE = characters(*range(Kind.WRONG))
"""A mention that no mask has touched."""
LABELLED = characters(Kind.LABEL, Kind.BARE, Kind.BOTH, Kind.AMBIGUOUS, Kind.CONFLICT)
"""A mention by a label."""
ANY = characters(*Kind)
NOT_ANY = ANY[1:-1]
"""For use in a negated class: ``[^.\\n{NOT_ANY}]``."""


def mention(option: int, kind: int) -> str:
    """The character for a mention of an option."""
    return chr(_FIRST + kind * _STRIDE + option)


def kind_of(character: str) -> Kind:
    """How the option is mentioned."""
    return Kind((ord(character) - _FIRST) // _STRIDE)


def option_of(character: str) -> int:
    """Index of the option that a mention is of."""
    return (ord(character) - _FIRST) % _STRIDE


def options_of(characters: Iterable[str]) -> frozenset[int]:
    """The options that mentions are of."""
    return frozenset(map(option_of, characters))


def mentions(text: str, *kinds: int) -> list[str]:
    """The mentions in a collapsed text, of these kinds or (by default) of all that no mask has touched."""
    return re.findall(characters(*kinds) if kinds else ONE, text)


PARTS = {
    "one": ONE,
    "labelled": LABELLED,
    "any": ANY,
    "not_any": NOT_ANY,
    "by_text": characters(Kind.TEXT, Kind.WORD),
    "by_word": characters(Kind.WORD),
    "by_both": characters(Kind.BOTH),
    "marked": characters(Kind.LABEL, Kind.BOTH),
    "wrong": characters(Kind.WRONG),
    "masked": characters(Kind.MASKED),
    # Where a sentence or clause begins, and where it ends.
    "begin": r"(?:^|(?<=[.!?:)] )|(?<=\n))",
    "end": r"(?={tail_word}? ?(?:[.!)⟧]|\n|\Z))",
    "be_verb": r"(?:{be_word}\b ?)",
    "is_not": r"(?:(?:{be_verb}{1,2}(?:{option_adverb} )?{not}|{be_word}{not_ending}|{be_not})\b)",
    # Lists. A subject is one mention, or several joined, before a verb.
    "joined": (
        r"(?: ?(?:[,/&+|、]|{^and$}|{and_prefix}) ?(?:(?:{^and$}|&) )?(?:{list_word} ){0,2}"
        r"| (?={labelled})|(?={labelled}))"
    ),
    "subject": r"{one}(?:{joined}{one}){0,25}",
    # The same as an answer: no member is the subject of what follows; further ones may be on lines of their own.
    "listed": (
        r"{one}(?:(?! ?[,;] ?(?:{plain_and} )?{subject} {subject_verb}\b)(?:{joined}| ?; ?(?:{plain_and} )?)"
        r"{one}(?! {being_verb}\b)){0,25}(?:[.,;-]{0,3} ?\n ?{one}(?= ?[.,;:-]{0,3} ?(?:\n|\Z|⟧))){0,25}"
    ),
    # The same where "or" joins as well.
    "either": r"{one}(?:(?:{joined}|[ ,]{0,3}{^or_nor$} ){one}){0,25}",
    "said": r"(?P<said>{either})",
    # Called wrong.
    "but_not_another": r"{begin}{one}, ?(?P<others>{either}){not_behind}",
    "said_wrong": (
        r"{said}(?:[\])}:]{0,2}(?:, (?={which_is}\b))? ?(?:[(-] ?)?"
        r"(?:{which} )?(?:{be_verb}{0,3}(?:{option_adverb} ){0,3}{wrong_word}(?!\w)"
        r"|{be_verb}{0,2}{not} (?:{not_adverb} ){0,8}(?:{determiner} )?(?:{not_degree} ){0,8}{not_right}(?!\w)"
        r"(?! {only_just}\b))| ?\? ?{asked_and_denied}\b|\. {marked_incorrect}|{wrong_after})"
    ),
    "denying": r"(?:{not_ending}|{^denied}|{^negated$} ?{i_choose})",
    # None and all.
    "option": r"(?:(?:{option_adjective} ){0,4}{option_noun}\b)",
    "right": r"(?:(?:{right_adverb} )?{right_word})",
    "named": r"(?: ?\(?(?:{either})\)?)?",
    "is_none": (
        r"(?:(?!(?:{none}|{none_of_them}),? {except}{any})"
        r"(?:{none}|\{\s{0,3}\}|\[\s{0,3}\]|∅|\\emptyset|{none_of_them})(?!\w))"
    ),
    "is_all": r"(?:{all}(?!\w)(?!{all_goes_on}|,? {except}{any}))",
    # Explicit answers: an answer in the place where one is expected.
    "bracket": r"[\s:=,\"'(\[{<>⟦→-]{0,8}",
    "slot": (r"{bracket}(?:{filler}\b[ ,:]{0,3}){0,12}{bracket}(?P<slot>{is_none}|{is_all}|{listed})"),
    "field_cue": (
        r"(?:⟦ ?|{begin}[ (\[]{0,3}(?:{before_field}[ ,]{1,2}){0,5}{field}(?: ?\({plural}\)|{field_part})?"
        r" ?(?:[:=]|->|→|-(?= )|{field_is}))"
    ),
    "gap": (r"(?:(?:(?!\b{clause_start}\b)[^.,;:\n?!{not_any}]){0,80}?|,[^.;:\n?!{not_any}]{0,60},)"),
    "sentence_cue": (
        r"(?:\b{answer_noun}(?:\({plural}\))?{gap} ?(?:\b{copula}\b|=|->|→)"
        r"|\b(?:{best_word} {answer_noun}|{answer_noun}[^.,;:\n{not_any}]{0,60} {right_or_best})"
        r"[^.,;:\n?!{not_any}]{0,60}:"
        r"|\b{there_is}:|\b{the_correct}(?= {labelled})|{^is_correct}(?= {article}? ?{labelled})|{^cue})"
    ),
    "if_forced": r" {forced}\b[^.,;:\n]{0,40}(?:[,:]|(?= {chooser}\b))",
    "choosing": (
        r"(?:\b{chooser}\b(?: {before_choosing}){0,8} {chooses}{that_it_is}\b(?!,? {^why$})"
        r"|(?:{begin}|, )(?:{therefore} )?{choose}\b|\b{if}{if_forced}|{^i_choose$})"
    ),
}
"""Parts of rules that several rules share."""


def pattern(template: str, flags: int = re.IGNORECASE, parts: Mapping[str, str] | None = None) -> re.Pattern[str]:
    """A rule's regular expression, with its cues and parts written out; see the module.

    Args:
        parts: further parts, for the rules of one module.

    Examples:
        >>> pattern("{^therefore$} (?P<option>{one})").search("so it is") is None
        True
    """
    return _pattern(template, flags, tuple((parts or {}).items()))


@cache  # rules write their patterns where they search for them
def _pattern(template: str, flags: int, parts: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    return re.compile(expand(template, {**PARTS, **dict(parts)}), flags)


BEGIN_OF_LINE = re.IGNORECASE | re.MULTILINE
REPLACED = pattern(
    r"(?:{^replaced}|(?:\A|(?<=[.!…;。！；\n(])|(?<=[.!…;] )){retraction_word}(?=[,:!、-]| -)"
    r"|\b{changing} (?:{changed}|(?:{changed} )?(?:{changed_from} )?[\"'(]{0,3}{any}[\"')]{0,2})"
    r"[^.!?\n{not_any}]{0,30}? {changed_into}\b|\b{then} {changing} {changed_into}\b)"
    r"(?:[^.?\n{not_any}]{0,60}[.!…。]{1,6} ?)?[^.?!\n{not_any}]{0,60}"
    r"(?=[ \"'(\[⟦]{0,3}{one}(?![^.\n{not_any}]{0,12}\b{also}\b))"
)
"""Words that replace the answer before them by the one after them: "no, B", "scratch that: B", "I meant B"."""
RETRACTED = pattern(r"{^retracted}|(?:^|[.!?\n-] ?){wait}\b", BEGIN_OF_LINE)
"""Words that take back the answers before them."""
REFUSAL = pattern("{^refusal}")
"""Signs that the model declined; searched for only in replies without an answer."""
CALLED_RIGHT = pattern(
    r"(?P<said>{subject})[ )]{0,2}(?:(?:[:(-]|->|→) ?{it_is}?|\. (?={says_right}[ .!]{0,3}(?:\n|\Z))"
    r"| (?={judged_right}(?:[,;.!:]| -|\n|\Z))|\.? ?(?={marked_correct})|\? ?|{called_is}| (?:{called_verb} ){1,2})"
    r"(?:{called_adverb} ?){0,3}{called_right}(?!\w)(?!{called_right_if})"
)
"""Options that are called right, one by one or together."""
HEDGED_MORE = pattern(
    r"{any}(?:,[^.!?\n{not_any}]{1,20})?[.,…!?]{0,4} \(?(?:{turning}[.,…! ]{1,4})?{and_possibly}{any}"
)
"""An option, and a further one that is only considered."""
