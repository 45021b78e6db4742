"""Numbering inside option texts: "A) foo", "(1) bar", "0. baz"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from string import ascii_lowercase

from unslant.arrays import grouped
from unslant.questions.question import ROMAN

_NAME = r"[a-z]+|\d+|الف|[^\W\d_]ـ?"
_PREFIX = re.compile(
    rf"\s*(?:(?:option|choice)\s+)?(?:[(\[（【](?P<inside>{_NAME})[)\]）】][.:]?|(?P<circled>[①-⒇㉠-㉭])[.)．]?"
    # "A.foo" and "A - foo" are numbering, unlike "1.5 hours", "A.D.", "A、B" and "1 - x".
    rf"|(?P<bare>{_NAME})(?:\s?[)）]|[\t\u3000]|、(?![a-z\d]\b)|[.:．：](?=\s|$)"
    r"|(?<=[^\W\d_])\s?[.:．：](?![^\W\d_][.．])|(?<=(?-i:[^\W\da-z_]))\s?[-–—]\s))\s*",
    re.IGNORECASE,
)
_FURTHER = re.compile(r"(?:(?<=\S)|[,、]\s*|and\s+)[(\[（]?([a-h]|\d+)[)\]）]", re.IGNORECASE)
"""Another name after the first: "(1)(2)", "(c), (a), (b)" and "(b) and (c)" name things, unlike "(C) (A) is true"."""
_MARK = re.compile(r"[(\[（]?[a-z][)\]）]", re.IGNORECASE)
_INLINE = re.compile(r"(?<![A-Za-z0-9.(（\[])(?P<open>[(（\[]?)(?P<name>[A-Za-z])\s?(?P<close>[)）\].．、:：])\s*")
# Both end a text without spaces at its end: with \s*\Z, each of a million spaces would be tried as the last.
_HEADING = re.compile(r"\b(?:answer )?(?:options|choices)\s*:?\Z", re.IGNORECASE)
_ANSWER = re.compile(r"\n[ \t]*answer[ \t]*[:：]?\Z", re.IGNORECASE)
_ASKED = re.compile(r"(?:(?:the )?(?:correct )?answer\b|a:|答案)[^\n]{0,100}", re.IGNORECASE)
_LINE = r"\n[ \t]*(?:[(（\[]?(?:[a-z]|\d{1,2})\s?[)）\].．、:：]|[-*•])\s*"


def plain_name(text: str) -> str:
    """The name of an option in one form: "(B)", "Ｂ" and "b." as "b", "②" and "٢" as "2", "أ" and "الف" as "ا"."""
    letters = unicodedata.normalize("NFKD", text.strip(" ()[].:（）．：")).casefold().strip("() ")
    name = "".join(letter for letter in letters if not unicodedata.combining(letter) and letter != "ـ")
    return str(int(name)) if name.isdecimal() and len(name) < 4 else "ا" if name == "الف" else name


_SCHEMES = [
    *([*map(str, range(first, 1000))] for first in (0, 1)),
    [*ascii_lowercase],
    ROMAN,
    *(
        [*map(plain_name, letters)]
        for letters in (
            "абвгдежзик αβγδεζηθικ אבגדהוזחטי ابجدهوزح ابتثجح 가나다라마바사아 ㄱㄴㄷㄹㅁㅂㅅㅇ アイウエオカキク "
            "あいうえおかきく イロハニホヘト 甲乙丙丁戊己庚辛 一二三四五六七八 กขคงจฉชซ कखगघङ अबसद কখগঘঙ"
        ).split()
    ),
]
"""The names of options in order: numbers, letters, numerals, and first letters or numerals of other scripts."""


def strip_numbering(options: Sequence[str]) -> tuple[str, ...]:
    """The option texts without their numbering, if all of them are numbered in one running scheme.

    Schemes: 0, 1, 2 ... / 1, 2, 3 ... / A, B, C ... / I, II, III ... / letters of other scripts, in either case, as
    ``A.``, ``A)``, ``A:``, ``A -``, ``(A)`` or ``[A]``, alone or after "Option", or circled. Letters may be out of
    order, as (A), (C), (B), (D) where a page has two columns. Double numbering ("0. 0. foo") is removed twice; "(A) (i)
    only" becomes "(i) only". Texts such as "1.5 hours" or "(ii) and (iv) only" are not numbering and stay.
    """
    starts = [0] * len(options)
    first, ends = names, _ = _numbering(options, starts)
    while ends and names == first:
        starts = ends
        names, ends = _numbering(options, starts)
    return tuple(text[start:] for text, start in zip(options, starts, strict=True))


def split_options(text: str) -> tuple[str, tuple[str, ...]] | None:
    """The text before options that are written into it after A, B, C, ..., and the options; None where that is unclear.

    As in "Which is red? A. grass B. blood C. sky", "(A) grass (B) blood" and "a ) grass , b ) blood , c ) sky". It is
    unclear where a letter occurs twice in one form, or more text follows the last option.
    """
    text = _ANSWER.sub("", text.rstrip())
    forms = grouped(((one["open"], one["close"], one["name"].isupper()), one) for one in _INLINE.finditer(text))
    runs = []
    for (opening, _, _), matches in forms.items():
        names = "".join(match["name"] for match in matches).upper()
        run = matches[max(names.find("A"), 0) :]
        # Two letters without brackets may be those who speak, as in "A: Hello! B: Good morning."
        if len(run) > 1 + (not opening) and names.endswith(ascii_lowercase[: len(run)].upper()):
            runs.append(run)
    if len(runs) != 1:
        return None
    ends = [*(match.start() for match in runs[0][1:]), len(text)]
    options = [text[match.end() : end].rstrip() for match, end in zip(runs[0], ends, strict=True)]
    between = {option[-1:] for option in options[:-1]}
    if len(between) == 1 and between < set(",;，；") - {options[-1][-1:]}:  # code ends in one everywhere
        options[:-1] = [option[:-1].rstrip() for option in options[:-1]]
    missed = rf"\n\s*(?:\n|answer\b)|(?<![a-z\d]){ascii_lowercase[len(options) % 26]}\s?\{runs[0][-1]['close']}."
    if not all(options) or re.search(missed, options[-1], re.IGNORECASE):
        return None
    return _HEADING.sub("", text[: runs[0][0].start()].rstrip()).strip(), tuple(options)


def without_options(text: str, options: Sequence[str]) -> str | None:
    """The text without these options, if it repeats all in their order after letters, or on lines also after numbers or
    bullets; None otherwise.

    What follows them stays, unless it is a line that only asks for the answer ("A: Among A through D, the answer is").
    """
    if not all(option.strip() and option in text for option in options):
        return None
    texts = [re.escape(option.strip()) for option in options]
    opening = "?" * (len(texts) > 2)  # a: 3, b: 2 may be two things
    names = (rf"[(（\[]{opening}{name}\s?[)）\].．、:：]\s*" for name in ascii_lowercase)
    inline = r"[\s,;，；]*".join(map("".join, zip(names, texts, strict=False)))
    lines = r"\s*".join(_LINE + one for one in texts)
    ends = rf"(?:{lines}|(?<![a-z\d]){inline})[.,;]?[ \t]*(?:\n|\Z)"
    if len(texts) > len(ascii_lowercase) or not (match := re.search(ends, text, re.IGNORECASE)):
        return None
    before, after = _HEADING.sub("", text[: match.start()].rstrip()).strip(), text[match.end() :].strip()
    return before if _ASKED.fullmatch(after) else f"{before}\n{after}".strip()


def names_on(options: Sequence[str]) -> tuple[str, ...]:
    """The names that the options carry, where answers need them: letters out of order, where B is then the option
    "(B) ...", numerals, and letters of other scripts."""
    names = numbers_on(options)
    return () if names[:1] in ([], ["a"], ["0"], ["1"]) and not _in_two_columns(names) else tuple(names)


def numbers_on(options: Sequence[str]) -> list[str]:
    """The letters, numbers or numerals of a numbering that all options carry; empty without one."""
    return _numbering(options, [0] * len(options))[0]


def _in_two_columns(names: Sequence[str]) -> bool:
    """Whether the names are A, C, B, D or the like; in other orders, as in MMLU-Pro, answers are places."""
    return len(names) > 3 and "".join([*names[::2], *names[1::2]]) == ascii_lowercase[: len(names)]


def _numbering(texts: Sequence[str], starts: Sequence[int]) -> tuple[list[str], list[int]]:
    """The names of one numbering that the texts have at ``starts``, and where each ends; empty without numbering."""
    matches = [match for text, start in zip(texts, starts, strict=True) if (match := _PREFIX.match(text, start))]
    if len(matches) < max(len(texts), 2) or all(match.end() == len(match.string) for match in matches):
        return [], []
    names = [plain_name(match["inside"] or match["circled"] or match["bare"]) for match in matches]
    ends = [match.end() for match in matches]
    further = zip(names, map(_FURTHER.match, texts, ends), strict=True)
    if any(m and m[1].lower() != name and m[1].isdigit() == name.isdigit() for name, m in further):
        return [], []
    shuffled = _in_two_columns(names) and not any(map(_MARK.match, texts, ends))
    return (names, ends) if shuffled or is_scheme(names) else ([], [])


def is_scheme(names: Sequence[str]) -> bool:
    """Whether the names are those of a numbering: A, B, C, ... or 0, 1, 2, ... or 1, 2, 3, ... or I, II, III, ..., or
    the letters of another script."""
    plain = [plain_name(name) for name in names]
    return any(plain == scheme[: len(plain)] for scheme in _SCHEMES)
