"""Options that refer to other options ("all of the above", "both A and C"): which of them must keep their place, and
which name others by a label that changes with the labels.

Only the wording decides. The patterns are narrow on purpose: an option that merely contains such words ("vitamins A and
D", "both parents", "I and III only" where the stem lists I to III) stays free to move. A letter names an option only if
it can mean nothing else: not where the question or the other options call something by that letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unslant.questions.question import ROMAN
from unslant.questions.records import BadRecord, parse_list

_LONGEST = 1_000
_NEITHER = r"(?:neither|nither|nether)"
_QUANTITY = (
    rf"(?:all|none|any|both|{_NEITHER}|either|each|every(?:one)?|some|most|more than one|(?:a )?combinations?"
    r"|(?:any )?(?:one|two|three|four|\d)(?: or combinations?)?)"
)
_ANSWER = r"(?:options?|choices?|answers?|alternatives?|responses?)"
_NOUN = rf"(?:{_ANSWER}|statements?|items?)"
_SHOWN = r"(?:given|listed|provided|mentioned|shown|stated|described|here|offered)"
_TRUE = r"(?:correct|true|right|valid|false|incorrect|wrong|possible|applicable|appropriate)"
_VERDICT = rf"(?:(?:are|is|were|was|may be|can be|could be|must be)(?: \w+)? {_TRUE}|apply|applies|(?:about )?equally)"
_GOES_ON = r"(?: ?[,;:(–-]| (?:are|is|were|was|will|would|can|could|may|do|does|for|except|but|because|produces?)\b)"

_OTHER_LANGUAGES = (
    r"(?:ningun[ao]s?|tod[ao]s) (?:de )?(?:las |los )?(?:(?:opciones|respuestas|alternativas) )?anteriores"
    r"|(?:nenhuma?|tod[ao]s) (?:d?[ao]s )(?:(?:opções|respostas|alternativas) )?(?:anteriores|acima)"
    r"|(?:nessun[ao]|tutt[ei]) (?:d?[ei]?l?l[ei] )(?:(?:opzioni|risposte) )?precedenti"
    r"|(?:aucune?|toutes?) (?:des|les|de ces) (?:(?:réponses|options|propositions) )?(?:ci-dessus|précédentes)"
    r"|(?:keine|alle)s? (?:der |die )?(?:(?:obigen|oben genannten|vorherigen|genannten)(?: antworten| optionen)?|obige)"
    r"|(?:ни один из|ничего из|все) (?:выше)?(?:перечисленн\w+|указанн\w+)(?: вариантов)?"
    r"|(?:以上|上述)(?:选项|各项|答案)?(?:都|皆|均|全)?(?:不?(?:对|是|正确)|错误?)|(?:上記|以上)の(?:いずれでもない|すべて)"
    r"|위의? (?:모두|어느 것도 아님|보기 모두)"
)
_PLACED = re.compile(
    rf"{_OTHER_LANGUAGES}"
    rf"|(?:{_QUANTITY} (?:of )?(?:the |these )?(?:\w+ )?(?:above|aforementioned|preceding|foregoing)\b.*"
    r"|(?:\w+ ){1,4}of the (?:above|aforementioned|preceding|foregoing)\b.*"
    rf"|{_QUANTITY} (?:of )?(?:the |these )?{_NOUN} (?:{_SHOWN} )?above\b.*"
    rf"|(?:.* )?all (?:of )?the \w+ {_SHOWN} above"
    rf"|(?:the )?above (?:all|both|two|three|{_NOUN})\b.*)"
)
"""Refers to options *above* it."""
_BELOW = re.compile(rf"{_QUANTITY} (?:of )?(?:the |these )?(?:{_NOUN} )?(?:below|following)\b.*")
"""Refers to options *below* it."""
_UNPLACED = re.compile(
    rf"{_QUANTITY} of these{_GOES_ON}.*"
    rf"|{_QUANTITY} of (?:these|those) (?:two|three|four|five|\d)(?: \w+)?|(?:all|none) (?:are|is) {_TRUE}"
    rf"|(?:all|none) (?:of )?{_ANSWER} (?:{_SHOWN}|(?:{_SHOWN} )?{_VERDICT})"
    rf"|{_QUANTITY} (?:of (?:these|them|those|the (?:other )?{_NOUN})|the (?:other )?{_NOUN}"
    rf"|(?:of )?(?:these|those) {_NOUN}|(?:of )?the others?|of the following)(?: {_SHOWN})?(?: {_VERDICT})?"
)
"""Refers to the other options wherever they are."""
_BARE = re.compile(rf"(?:all|none|both|either|{_NEITHER})")
"""Refers to the other options when it ends the list, unless it is a quantity."""
_QUANTITIES = {"some", "most", "many", "few", "one", "two", "three", "0", "1", "2", "3"}

_ORDINAL = r"(?:first|second|third|fourth|last|previous|1st|2nd|3rd|4th)"
_BY_ORDINAL = re.compile(
    rf"(?:(?:both|either|{_NEITHER}|only|just|all)(?: of)? )?(?:the )?{_ORDINAL}(?:(?:,|,? and|,? or| nor) (?:the )?"
    rf"{_ORDINAL})*(?: (?:two|three|four))? ?{_ANSWER}?(?: (?:only|alone|together|{_VERDICT}))?"
)
"""Names options by their places: "the first two", "first and third options"."""

_NAMES = {
    "letter": r"(?:\([a-z]\)|[a-z][.)]?(?!\w))",
    "number": r"(?:\(\d{1,2}\)|\d{1,2}\b)",
    "numeral": r"(?:\((?:i{1,3}|iv|vi{0,3}|ix|x)\)|(?:i{1,3}|iv|vi{0,3}|ix|x)\b)",
}
_JOIN = (
    r"(?: ?[,;] ?(?:(?:and|or|and/or|but not|not) )?| ?[&+/] ?| (?:and|or|and/or|nor|as well as|and not|but not|not) | "
    r"|(?<=\))(?=\())"
)
_THROUGH = r" ?(?:to|through|thru|-|–) ?"
_LEAD = (
    rf"(?:(?:the )?(?:correct )?answer is |it is |the above )?(?P<lead>(?:both|either|{_NEITHER}|only|just|not|all"
    rf"|at least|{_QUANTITY} of) (?:of )?(?:the )?)?(?:the )?"
)
_TAIL = (
    rf"(?:(?:,? (?P<tail>only|both|together|above|alone|(?:both |all )?{_VERDICT}))?"
    r"(?: (?:because|since|as|but|depending|except)\b.*)?| ?[;:,(].*)?"
)


def _naming(item: str, tail: str) -> re.Pattern[str]:
    """A list of names ("a and c", "a, b & d", "a b and c", "a to d"), each perhaps after a word such as "option"."""
    one = rf"(?:(?:the )?{_NOUN}:? )?{item}"
    return re.compile(rf"{_LEAD}(?P<names>{one}(?:{_THROUGH}{one}|(?:{_JOIN}{one})+)){tail}")


_LISTS = {kind: _naming(item, _TAIL) for kind, item in _NAMES.items()}
_MERE_LISTS = tuple(_naming(item, r"(?: (?:only|both|together|alone))?(?: ?\(.*)?") for item in _NAMES.values())
_SINGLE = re.compile(
    rf"(?:same as |only |just )?(?:the )?(?:{_ANSWER} (?P<noun>{_NAMES['letter']}|{_NAMES['number']})(?: .*)?"
    rf"|(?P<bare>{_NAMES['letter']}) (?:only |alone )?{_VERDICT})"
    rf"|same as (?P<same>{_NAMES['letter']})|(?:only|just) (?P<only>{_NAMES['letter']})"
    rf"|(?P<alone>{_NAMES['letter']}) (?:only|alone)"
    rf"|(?:all|none|any|each|every\w*)\b.{{0,40}}\b(?:except|but)(?: for)? (?:{_ANSWER} )?(?P<but>{_NAMES['letter']})"
)
"""One name that can only be an option's: "option B", "B is correct", "same as B", "all of these except B"."""
_ONE_NAME = re.compile(
    rf"(?:only )?(?:{_NOUN} )?(?:{'|'.join(_NAMES.values())})(?: only| alone|,? but not {_NAMES['letter']})?"
)
"""A bare name ("A only", "II", "3"): such an option names things listed in the stem."""
_LETTERED = re.compile(
    r"\b(?:vitamins?|hepatitis|blood (?:groups?|types?)|alleles?|genotypes?|notes?|chords?|keys?|strains?)\b", re.I
)
"""Things called by letters: in a question about them, a mere "A and D" means those things."""


def find_pinned(options: Sequence[str], stem: str = "") -> tuple[int, ...]:
    """Indices of the options that must keep their place, ascending; empty if no option refers to another.

    An option that names others by letter or number pins itself and those it names. An option that refers to those above
    it pins itself and, if options that could move are below it, all above it too; likewise for "below". An option that
    names others by place ("the first two") pins all.

    Args:
        options: option texts without numbering.
        stem: the question and its context; a letter or number that names something there does not name an option.
    """
    texts = [_normal(option) for option in options]
    everything = set(range(len(texts)))
    placed = {i for i, text in enumerate(texts) if _PLACED.fullmatch(text)}
    below = {i for i, text in enumerate(texts) if i + 1 < len(texts) and _BELOW.fullmatch(text)}
    pinned = placed | below | {i for i, text in enumerate(texts) if _UNPLACED.fullmatch(text)}
    pinned |= _closing(texts, pinned, stem)
    for i, names in label_references(options, stem).items():
        pinned |= {i, *names.values()}
    for others in (*(range(i) for i in placed), *(range(i + 1, len(texts)) for i in below)):
        if not everything - pinned <= set(others):
            pinned |= set(others)
    by_place = [i for i, text in enumerate(texts) if _by_place(text)]
    if len(by_place) == 1 and not re.search(_ORDINAL, stem.lower()):
        return tuple(everything)
    return tuple(sorted(pinned))


def label_references(options: Sequence[str], stem: str = "") -> dict[int, dict[str, int]]:
    """Options that name others by letter, number or numeral: index -> name in lower case -> index of the named option.

    Such texts become wrong under other labels, or when the named option moves; see :func:`rename`.
    """
    texts = [_normal(option) for option in options]
    for option in options:  # some files repeat the options in the passage
        stem = stem.replace(option, " ") if " " in option.strip() else stem
    return {i: names for i in range(len(texts)) if (names := _named(i, texts, options, stem))}


def rename(option: str, names: Mapping[str, str]) -> str:
    """The option's text with new names for the options it names ("both A and C" -> "both 1 and 3").

    Args:
        names: name in lower case -> its replacement. If any of them is a capital in the text, only capitals are names.
    """
    article = r"(?!a (?!and|or|nor|but|as|is|are|may|can|could|must|only|alone|to|through|thru|together|above)[a-z])"
    token = re.compile(rf"(?<![\w'’]){article}(?:{'|'.join(map(re.escape, names))})(?![\w'’])", re.IGNORECASE)
    capitals = any(name.isupper() for name in token.findall(option))
    return token.sub(lambda m: names[m[0].lower()] if m[0].isupper() or not capitals else m[0], option)


def _normal(option: str) -> str:
    if len(option) > _LONGEST:
        return ""  # no option refers to others at such length
    text = re.sub(r"\s+", " ", option).strip().lower().replace("[", "(").replace("]", ")")
    text = re.sub(r"[\"'“‘](\w)[\"'”’]", r"\1", text)
    return text.strip(" .;:!\"'“”").removeprefix("- ")


def _closing(texts: Sequence[str], pinned: set[int], stem: str) -> set[int]:
    """Bare "Both", "None", ... at the end of the list, where only other referring options follow."""
    closing: set[int] = set()
    if "how many" in stem.lower() or _QUANTITIES & set(texts):
        return closing
    for i in range(len(texts) - 1, 0, -1):
        if _BARE.fullmatch(texts[i]):
            closing.add(i)
        elif i not in pinned:
            break
    return closing


def _by_place(text: str) -> bool:
    """Whether an option names options by their places; a mere "second" or "the last" is content."""
    return bool(
        _BY_ORDINAL.fullmatch(text) and re.search(rf"\b(?:{_ANSWER}|both|either|{_NEITHER}|two|three|four)\b", text)
    )


def _named(option: int, texts: Sequence[str], options: Sequence[str], stem: str) -> dict[str, int]:
    """Name -> index of the options that one option names; empty if it names none."""
    kind, names, sure = _read_names(texts[option])
    if not names:
        return {}
    indices = {name: _index(name, kind) for name in names}
    if not all(0 <= i < len(texts) for i in indices.values()) or {option} == set(indices.values()):
        return {}
    others = [
        options[i] for i, other in enumerate(texts) if i != option and not (_is_name(other) or _read_names(other)[1])
    ]
    text = " ".join((stem, *others, "" if sure else texts[option]))
    # A list that includes the option itself is content; only the last option may be left over from a longer list.
    names_itself = option in indices.values() and option < len(texts) - 1
    if not sure and (names_itself or _LETTERED.search(text)):
        return {}
    if any(i != option and _is_name(texts[i]) for i in indices.values()):
        return {}
    if kind == "number" and any(not re.search(r"[a-z]{2}", texts[i]) for i in indices.values()):
        return {}
    if any(_listed_in(stem, name) for name in names) or (kind != "number" and all(_called(text, n) for n in names)):
        return {}
    return indices


def _read_names(text: str) -> tuple[str, list[str], bool]:
    """Kind of the names in an option, the names (possibly none), and whether they can only be names of options."""
    for kind, pattern in _LISTS.items():
        match = pattern.fullmatch(text)
        if match is None:
            continue
        listed = re.sub(_NOUN, " ", match["names"])
        names = re.findall(r"(?<!\w)(?:[ivx]+|[a-z]|\d+)(?!\w)", listed)
        if through := re.fullmatch(rf"[\s(]*(\w+)\)?{_THROUGH}\(?(\w+)[).\s]*", listed):
            first, last = (_index(name, kind) for name in through.groups())
            names = [_name(i, kind) for i in range(first, last + 1)]
        if kind == "letter":  # "both A and B are true but C is false"
            names += re.findall(r"(?<=\W)([b-h])(?!\w)", text[match.end("names") :])
        marked = match["tail"] or "(" in listed
        sure = bool(match["lead"] or listed != match["names"] or (marked and kind != "numeral"))
        plain = not re.search(r"[^\w\s().]|\b(?:and|or|nor|not|to|through|as)\b", listed)
        names = list(dict.fromkeys(names))
        if len(names) < 2 or (not sure and (plain or kind != "letter")):
            return "", [], False
        return kind, names, sure
    if match := _SINGLE.fullmatch(text):
        (group,) = filter(None, match.groups())
        name = re.sub(r"\W", "", group)
        return "number" if name.isdigit() else "letter", [name], bool(match["noun"] or match["bare"] or match["same"])
    if _PLACED.fullmatch(text) or _UNPLACED.fullmatch(text):
        return "letter", list(dict.fromkeys(re.findall(r"(?<=\()[a-z](?=\))|(?<!\w)[b-h](?!\w)", text))), True
    return "", [], False


def _index(name: str, kind: str) -> int:
    """Index of the option that a name refers to: a, 1 and i are the first."""
    return ord(name) - ord("a") if kind == "letter" else int(name) - 1 if kind == "number" else ROMAN.index(name)


def _name(index: int, kind: str) -> str:
    return chr(ord("a") + index) if kind == "letter" else str(index + 1) if kind == "number" else ROMAN[index]


def _is_name(text: str) -> bool:
    """Whether an option only names things, so that a name used elsewhere cannot mean that option."""
    return any(pattern.fullmatch(text) for pattern in (_ONE_NAME, *_MERE_LISTS))


def _listed_in(stem: str, name: str) -> bool:
    """Whether the stem itself lists something under ``name``: "(a) ...", "b. ...", "Statement 1 | ..."."""
    marked = rf"(?:(?:^|[\s(,;:]){re.escape(name)}\s?[).:\]|]|statement {re.escape(name)}\b)"
    return re.search(marked, stem, re.IGNORECASE) is not None


def _called(text: str, name: str) -> bool:
    """Whether something is called by that letter or numeral: "country B", "A and B are"; not the article "A ..."."""
    capital = re.escape(name.upper())
    begins = r"(?=[,.)=]|\s*$| (?:and|or|is|are|has)\b)" if name == "a" else ""
    inside = rf"(?<=[^\s.?!:;]\s){capital}(?![\w'’])"
    return re.search(rf"{inside}|(?<![\w'’]){capital}(?![\w'’]){begins}", text) is not None


def pinned_in(value: Any, n: int) -> tuple[int, ...] | None:
    """The indices that a file gives; None where it gives none, BadRecord where they are none of ``n`` options."""
    if isinstance(value, str):
        value = parse_list(value)
    if value is None or value != value:
        return None
    if not isinstance(value, list | tuple) or any(type(i) is not int or not 0 <= i < n for i in value):
        raise BadRecord("pinned out of range", f"is {value!r}; expected a list of indices 0 to {n - 1}", "pinned")
    return tuple(sorted(set(value)))
