"""Read which of two answers a judge prefers: the first, the second, or neither (a tie).

The first applicable rule reads the reply:

1. ``brackets``: ``[[A]]``, ``[[A>>B]]``, ``[[C]]`` (a tie), ``[[7, 5]]``; several that disagree are read only if the
   last is called final;
2. ``field``: "Winner: B", JSON, ``\\boxed{}``; the last one counts; ``whole reply``: "A", "Output (b)", "tie";
3. ``scores``: two numbers alone on the first line, or one number for each answer;
4. ``sentence``: "Assistant A is slightly better", "I prefer the second response"; sentences that disagree are read only
   where the last is a conclusion.

Preferences that are denied ("A is not better") or supposed are masked. The words are cues (:mod:`grammar`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from unslant.replies.choice import extract_labels
from unslant.replies.grammar import BEGIN_OF_LINE, REFUSAL, pattern
from unslant.replies.reading import Extracted
from unslant.replies.text import clean

FIRST, SECOND, TIE = ">", "<", "="
"""The first is preferred, the second, or neither."""
# Words that end at a letter of an alphabet; in Chinese there is no boundary of words between "助手", "A" and "更好".
_BEGIN, _END = (rf"(?{look}[^\W\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])" for look in ("<!", "!"))
_SIDE = {
    "begin_word": _BEGIN,
    "end_word": _END,
    "verdict": r"(?:(?P<relation>[AB12] ?[<>=≈]{1,3} ?[AB12])|(?P<tie>C\b|{tie_word}\b)"
    r"|(?P<first>{one})|(?P<second>{two}))",
}
for _name, _letter, _digit, _place in (("one", "A", "1", "{compared_first}"), ("two", "B", "2", "{compared_second}")):
    _placed = rf"(?:the )?{_place}(?: ?{{compared_noun}}| one)?"
    _SIDE[_name] = (
        rf"(?:(?:the )?(?:{{compared_noun}}[ _]?)?[(\[\"']{{0,2}}(?-i:{_letter}|{_letter.lower()}|{_digit})"
        rf"[)\]\"']{{0,2}}(?!\w)|{_placed})"
    )
    # In a sentence a bare "a" is an article and a bare "1" a number, so the noun must come before them.
    _SIDE[f"said_{_name}"] = (
        rf"(?:{{begin_word}}(?:{{compared_noun}} ?[(\[\"']{{0,2}}(?:{_letter}|{_digit}|{_name}){{end_word}}"
        rf"|(?-i:{_letter}){{end_word}}|{_placed}{{end_word}})(?:'s (?:{{compared_noun}}))?[)\]\"']{{0,2}})"
    )
_rule = partial(pattern, parts=_SIDE)
_BRACKET = _rule(r"\[\[ ?(?:{verdict}|(?P<left>-?\d+(?:\.\d+)?) ?[,;:] ?(?P<right>-?\d+(?:\.\d+)?)) ?\]\]")
_WHOLE = _rule(r"(?!\W{0,3}[-+−]\d)\W{0,4}{verdict}\W{0,4}")  # -1 is a rating
_FIELD = _rule(
    r"(?:(?:^|(?<=[.!?] ))[ \[(]{0,3}{preference_field}[\])]{0,2}(?: is)? ?(?:[:=]|(?<=\]) ?)[ \"'(]{0,3}|⟦ ?)"
    r"{verdict}(?= ?(?:[.,;!)\]\"'⟧]|\n|\Z|\(| - |{preferred_after}))",
    BEGIN_OF_LINE,
)
_NUMBER = r"[-+]?\d{1,6}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?"
_FINAL = pattern(r"\b{preference_final}\b")
_SCORED = [
    _rule(
        rf"(?:{{{side}}}(?:'s)?[ _]?(?:{{score_noun}})?|{{score_noun}}[ _]?(?:of |for )?{{{side}}})"
        r" ?(?:[:=]|is|->| a|{receives}|(?= \d{1,3} ?/ ?\d)) ?[\[(]{0,2}(?P<number>-?\d{1,6}(?:\.\d{1,12})?)(?! ?[<>=])"
    )
    for side in ("one", "two")
]
_PREFERRED = r"{preferred_before}:? ?(?:{preference_filler} ){0,3}"
_CONCLUDED, _STOP = r"\b{preference_final}[,:] ?", r"(?= ?(?:[.!;\n]|\Z))"
"""Around an answer that is all a conclusion says: "Overall, B."."""
_SENTENCES = (
    (FIRST, _rule(rf"{{said_one}},? ?{{preferred_after}}|{_PREFERRED}{{said_one}}|{_CONCLUDED}{{said_one}}{_STOP}")),
    (SECOND, _rule(rf"{{said_two}},? ?{{preferred_after}}|{_PREFERRED}{{said_two}}|{_CONCLUDED}{{said_two}}{_STOP}")),
    (SECOND, _rule(r"{said_one},? ?{dispreferred_after}")),
    (FIRST, _rule(r"{said_two},? ?{dispreferred_after}")),
    (TIE, _rule(r"{begin_word}{tie_said}")),
)
_DENIED = pattern(
    r"(?:{^not_word$}|{not_ending}|{^if$}|{^reported$}|{^preference_denied$}|{^denied_claim})[^.,;。，；\n]{0,80}"
)
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s|\n|(?<=[。！？；])")
_MIRRORED = {FIRST: SECOND, SECOND: FIRST, TIE: TIE}


def extract_preference(reply: str, labels: Sequence[str] = ("A", "B")) -> Extracted:
    """The answer that a judge's reply prefers, under its label; both labels for a tie.

    Args:
        labels: of the first and the second answer. The reply may also call them A and B, 1 and 2, first and second.
            If there are more than two, :func:`~unslant.replies.choice.extract_labels` reads which one is chosen.

    Examples:
        >>> sorted(extract_preference("Both are correct. My verdict: [[A=B]]").labels)
        ['A', 'B']
        >>> extract_preference("Assistant B is slightly better.").labels
        frozenset({'B'})
    """
    if len(labels) != 2:
        return extract_labels(reply, labels)
    text = _as_letters(clean(reply), labels)
    if not text:
        return Extracted("unparsed", rule="empty")
    for name, rule in (("brackets", _bracketed), ("field", _field), ("whole reply", _whole), ("scores", _scores),
                       ("sentence", _sentences)):  # fmt: skip
        verdicts = list(rule(text))
        distinct = dict.fromkeys(verdict for verdict, _ in verdicts)
        if len(distinct) > 1 and not (verdicts[-1][1] and len({v for v, final in verdicts if final}) == 1):
            readings = tuple(_labels(verdict, labels) for verdict in distinct)
            return Extracted("unparsed", rule=f"several verdicts ({name})", readings=readings)
        if verdicts:
            return Extracted("ok", _labels(verdicts[-1][0], labels), name)
    refused = REFUSAL.search(text) is not None
    return Extracted("refused", rule="refusal") if refused else Extracted("unparsed", rule="no verdict found")


def _as_letters(text: str, labels: Sequence[str]) -> str:
    """The text with labels of other alphabets written as A and B."""
    if tuple(labels) in (("A", "B"), ("1", "2"), ("a", "b")):
        return text
    for label, letter in zip(labels, "AB", strict=True):
        text = re.sub(rf"(?<!\w){re.escape(label)}(?!\w)", letter, text)
    return text


def _labels(verdict: str, labels: Sequence[str]) -> frozenset[str]:
    return frozenset({FIRST: labels[:1], SECOND: labels[1:], TIE: labels}[verdict])


def _verdict(match: re.Match[str]) -> str:
    if relation := match["relation"]:
        sign = next(s for s in relation if s in "<>=≈").replace("≈", TIE)
        return sign if relation[0] in "A1a" or sign == TIE else _MIRRORED[sign]
    return TIE if match["tie"] else FIRST if match["first"] else SECOND


def _compared(left: float, right: float) -> str:
    return TIE if left == right else FIRST if left > right else SECOND


def _bracketed(text: str) -> Iterator[tuple[str, bool]]:
    """Every verdict in double brackets, and whether its sentence calls it final."""
    for match in _BRACKET.finditer(text):
        before = _SENTENCE_END.split(text[max(0, match.start() - 200) : match.start()].rstrip(" :"))[-1]
        scored = match["left"] is not None
        verdict = _compared(float(match["left"]), float(match["right"])) if scored else _verdict(match)
        yield verdict, _FINAL.search(before) is not None


def _whole(text: str) -> Iterator[tuple[str, bool]]:
    """The whole reply, or its first line, if that is a verdict alone."""
    if match := _WHOLE.fullmatch(text) or _WHOLE.fullmatch(text.split("\n")[0]):
        yield _verdict(match), True


def _field(text: str) -> Iterator[tuple[str, bool]]:
    """The last field, as those before it were considered and dropped."""
    yield from [(_verdict(match), True) for match in _FIELD.finditer(text)][-1:]


def _scores(text: str) -> Iterator[tuple[str, bool]]:
    if match := re.fullmatch(rf"[(\[ ]{{0,3}}({_NUMBER})[,; ]{{1,3}}({_NUMBER})[)\]. ]{{0,3}}", text.split("\n")[0]):
        yield _compared(float(match[1]), float(match[2])), True
        return
    each = [[float(match["number"]) for match in scored.finditer(text)] for scored in _SCORED]
    if all(each):
        yield _compared(each[0][-1], each[1][-1]), True


def _sentences(text: str) -> Iterable[tuple[str, bool]]:
    """Preferences in sentences, and whether each is a conclusion, in their order."""
    said = _DENIED.sub(lambda match: " " * len(match.group()), text)
    verdicts: list[tuple[int, str, bool]] = []
    for verdict, sentence in _SENTENCES:
        for match in sentence.finditer(said):
            before = _SENTENCE_END.split(said[max(0, match.start() - 200) : match.start()])[-1]
            verdicts.append((match.start(), verdict, _FINAL.search(before + match.group()) is not None))
    return [(verdict, final) for _, verdict, final in sorted(verdicts)]
