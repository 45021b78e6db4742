"""Read the answer out of a reply in words: which labels it chooses, that none is right, or a verdict.

What counts as an answer, from the strongest sign to the weakest:

1. said to be the answer: "the answer is A and C", "Answer: none", ``\\boxed{B}``, "A and D are correct"; the last wins;
2. a line, or the whole reply, that is nothing but an answer: "1, 3", "(A)/(C)", "None of the above.";
3. the label a reply opens with ("B. Paris", "2, though 3 cannot be ruled out"), or the one that opens a line;
4. the text of one option and nothing else;
5. a statement that no option is right (or that all are) anywhere;
6. the only label mentioned at all.

So an explicit choice outranks a no-answer word elsewhere in the reply. Doubt ("unclear", "A or B") is ``unparsed``,
never "none". A question that the model asks itself after its answer, as base models do, is not read.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from unslant.presentations.presentation import NONE, Presentation
from unslant.questions.question import JudgingQuestion
from unslant.responses.cues import (
    ALL_PHRASE,
    CUE,
    DENIED,
    NONE_PHRASE,
    NONE_STATEMENT,
    REFUSAL,
    SUFFIX_CUE,
    VERDICT_CUE,
    VERDICT_PHRASES,
)

VERDICTS = JudgingQuestion.VERDICTS


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read from a reply.

    Attributes:
        status: one of ``unslant.responses.STATUSES``; here ``ok`` (an answer), ``unparsed`` or ``refused``.
        labels: the labels chosen; with ``ok``, empty means "no option is right".
        rule: which sign it was read by, for the record: ``cue``, ``boxed``, ``line``, ``opening``, ``option text``,
            ``statement``, ``only mention``; or why there is no answer: ``empty``, ``refusal``, ``no answer found``.
    """

    status: str
    labels: frozenset[str] = frozenset()
    rule: str = ""


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    labels: frozenset[str]
    rule: str


def extract(reply: str, presentation: Presentation) -> Extracted:
    """The answer to ``presentation``; a verdict where its labels are True, False and Unknown."""
    if presentation.labels == VERDICTS:
        return extract_verdict(reply)
    return extract_labels(reply, presentation.labels, [option.text for option in presentation.shown])


def chosen_contents(extracted: Extracted, presentation: Presentation) -> frozenset[int] | None:
    """Content codes answered: ``{NONE}`` for "no option is right"; None if there is no answer."""
    if extracted.status != "ok":
        return None
    return frozenset(presentation.content_of(label) for label in extracted.labels) or frozenset({NONE})


def extract_labels(reply: str, labels: Sequence[str], options: Sequence[str] = ()) -> Extracted:
    """The set of ``labels`` that a reply chooses.

    Args:
        labels: every label that is an answer, as shown; letters may come back in either case.
        options: text under each of the first labels, so that an answer given as an option's text is understood.
    """
    text = _tidy(reply)
    if not text:
        return Extracted("unparsed", rule="empty")
    reader = _reader(tuple(labels))
    found = (
        reader.last_cue(text)
        or _by_option_text(text, labels, options)
        or reader.line(text)
        or reader.opening(text)
        or reader.statement(text)
        or reader.only_mention(text)
    )
    if found is not None:
        return Extracted("ok", found.labels, found.rule)
    return _nothing(text)


def extract_verdict(reply: str) -> Extracted:
    """The verdict of a reply to a judging question, as one of ``True``, ``False``, ``Unknown``."""
    text = _tidy(reply)
    if not text:
        return Extracted("unparsed", rule="empty")
    for match in reversed(list(VERDICT_CUE.finditer(text))):
        verdicts = _verdicts(match["answer"])
        if len(verdicts) == 1:
            return Extracted("ok", frozenset(verdicts), "cue")
    lines = [line for line in text.splitlines() if line.strip()]
    for rule, part in (("line", lines[-1]), ("line", lines[0]), ("opening", re.split(r"[.,;:!\n]", text)[0])):
        verdict = _sole_verdict(part)
        if verdict:
            return Extracted("ok", frozenset({verdict}), rule)
    verdicts = _verdicts(text)
    if len(verdicts) == 1:
        return Extracted("ok", frozenset(verdicts), "only mention")
    return _nothing(text)


def _nothing(text: str) -> Extracted:
    if REFUSAL.search(text):
        return Extracted("refused", rule="refusal")
    return Extracted("unparsed", rule="no answer found")


_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_NEXT_QUESTION = re.compile(r"\n\s*(?:Question|Q)\s*\d*\s*:.*", re.DOTALL)
_TEX_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|operatorname)\{([^{}]*)\}")
_BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
_AFTER_LABEL = "and|or|because|since|as|is|are|was|with|seems|but|due|given"
BOXED_CUE = "\nBoxed answer: "


def _tidy(reply: str) -> str:
    """The reply without thinking, mark-up, odd quotes, and whatever question the model went on to ask itself."""
    text = unicodedata.normalize("NFKC", reply).replace("’", "'")
    text = _THINKING.sub("", text)
    text = _NEXT_QUESTION.sub("", text) if not _NEXT_QUESTION.match(text) else text
    text = _TEX_TEXT.sub(r"\1", text)
    text = _BOXED.sub(lambda m: f"{BOXED_CUE}{m[1]}\n", text)
    text = re.sub(r"[*`$\"“”]|(?<!\w)_+|_+(?!\w)|^#+\s*|^\s*[-•>]\s+", "", text, flags=re.MULTILINE)
    return text.strip()


class _LabelReader:
    """Finds answers made of one presentation's labels."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.by_key = {label.lower(): label for label in labels}
        # Two labels that differ by case alone are told apart by it.
        self.fold = len(self.by_key) == len(labels)
        if not self.fold:
            self.by_key = {label: label for label in labels}
        alternatives = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
        # Inside a word, a number ("1.5", "2-butanol") or an abbreviation a letter is no label.
        bare = rf"(?<![\w.\\^-])(?:{alternatives})(?![\w\\^=]|[.]\d|-\w|'\w|%)"
        # "a" and "I" are words as well; as labels they stand at an end or before a word that may follow a label.
        word = rf"(?!(?<=[aAiI])(?<![\w(\[]\w)\s+(?!(?:{_AFTER_LABEL}|{alternatives})\b)[^\W\d_]{{2,}})"
        named = r"(?:(?:options?|choices?|answers?|statements?|letters?|numbers?|no\.|#)\s*)?"
        item = rf"{named}(?:[\[({{<']{{1,3}}[ \t]*)?(?:{bare}{word})(?:[ \t]*[\])}}>']{{1,3}})?"
        mark = r"[ \t]*(?:,[ \t]*(?:and\b|&)?|;[ \t]*(?:and\b)?|/|&|\+|\||\band\b|\bas well as\b)[ \t]*"
        end = rf"(?=[ \t]*(?:\Z|[\n.,;:)\]&/+}}]|and\b|{item}))"
        flags = re.IGNORECASE if self.fold else 0
        self._label = re.compile(bare + word, flags)
        self._mention = re.compile(bare, flags)
        own_line = rf"\n[ \t]*{item}(?=[ \t.,;]*(?:\Z|\n))"
        listed = rf"{item}(?:{mark}{item}|[ \t]+{item}{end}|{own_line})*"
        compact = rf"(?:{'|'.join(re.escape(x) for x in labels if len(x) == 1 and x.isupper()) or '(?!)'}){{2,}}(?!\w)"
        self._listed = re.compile(rf"{listed}|(?-i:{compact})" if self.fold else rf"{listed}|{compact}", flags)
        self._compact = re.compile(compact)
        self._hedge = re.compile(rf"[ \t]*[.,;]?[ \t]*(?:\bor\b|\beither\b)[ \t]*{item}", flags)
        self._before_suffix = re.compile(rf"(?P<list>{listed})(?={SUFFIX_CUE})", flags | re.IGNORECASE)
        self._judged_lines = re.compile(
            rf"^\s*(?P<list>{item})\s*[.:)-]+\s*(?:correct|true|yes|right)\b", flags | re.I | re.M
        )
        self._line_opening = re.compile(rf"^[ \t]*(?P<list>{item})[ \t]*[.:)\]-]", flags | re.MULTILINE)

    def read(self, piece: str) -> frozenset[str]:
        """The labels of a matched list."""
        stripped = piece.strip()
        if self._compact.fullmatch(stripped) and not self._key(stripped):
            return frozenset(stripped) if list(stripped) == sorted(set(stripped)) else frozenset()
        keys = (self._key(match.group()) for match in self._mention.finditer(piece))
        return frozenset(label for label in keys if label)

    def _key(self, text: str) -> str | None:
        return self.by_key.get(text.lower() if self.fold else text)

    def _answer_at(self, text: str, position: int) -> frozenset[str] | None:
        """The answer that stands at ``position``: labels, the empty set for "none", or None."""
        for start in {position, position + text[position:].startswith(("(", "[", "{"))}:
            if ALL_PHRASE.match(text, start):
                return frozenset(self.by_key.values())
            nothing = NONE_PHRASE.match(text, start)
            if nothing and not DENIED.match(text, nothing.end()):
                return frozenset()
        listed = self._listed.match(text, position)
        if position and text[position - 1] == "\n" and not (listed and _LINE_END.match(text, listed.end())):
            lines = self._opened_lines(text[position:])
            if lines:
                return lines
        if listed is None or self._hedge.match(text, listed.end()) or DENIED.match(text, listed.end()):
            return None
        return self.read(listed.group()) or None

    def _opened_lines(self, text: str) -> frozenset[str]:
        """Labels that open the first run of lines: ``A) Lisbon`` and below it ``C) Rome``."""
        found: frozenset[str] = frozenset()
        for line in text.splitlines():
            match = self._line_opening.match(line)
            if match is None or DENIED.match(line, match.end()):
                break
            found |= self.read(match["list"])
        return found

    def last_cue(self, text: str) -> _Found | None:
        """The last answer that is said to be one."""
        named: _Found | None = None
        for cue in CUE.finditer(text):
            answer = self._answer_at(text, cue.end())
            if answer is not None:
                rule = "boxed" if cue.group().startswith(BOXED_CUE.strip()) else "cue"
                named = _Found(cue.start(), answer, rule)
        after = named.start if named else -1
        called: set[str] = set()
        for pattern in (self._before_suffix, self._judged_lines):
            for match in pattern.finditer(text):
                if match.start() > after and not self._hedged_before(text, match.start()):
                    called |= self.read(match["list"])
        if called and (named is None or not (called <= named.labels)):
            return _Found(after, frozenset(called), "cue")
        return named

    def _hedged_before(self, text: str, start: int) -> bool:
        return bool(
            re.search(
                r"\b(?:or|not|if|neither|either|whether)\b\s*(?:(?:option|choice)\s+)?\s*$",
                text[max(0, start - _BEFORE) : start],
                re.I,
            )
        )

    def line(self, text: str) -> _Found | None:
        """The last run of lines that are nothing but an answer."""
        runs: list[tuple[int, set[str], bool]] = []
        for number, line in enumerate(text.splitlines()):
            bare = line.strip()
            if not bare:
                continue
            answer = self._whole(bare)
            if answer is None:
                continue
            if runs and runs[-1][0] == number - 1 and answer and runs[-1][1]:
                runs[-1] = (number, runs[-1][1] | answer, True)
            else:
                runs.append((number, set(answer), False))
        if not runs:
            return None
        return _Found(0, frozenset(runs[-1][1]), "line")

    def _whole(self, line: str) -> frozenset[str] | None:
        body = line.rstrip(" .!;:,")
        for start in (0, self._lead(body)):
            for pattern in (NONE_PHRASE, ALL_PHRASE):
                match = pattern.match(body, start)
                if match and match.end() >= len(body.rstrip(")]}")):
                    return frozenset() if pattern is NONE_PHRASE else frozenset(self.by_key.values())
            match = self._listed.match(body, start)
            if match and match.end() == len(body):
                return self.read(match.group()) or None
        return None

    @staticmethod
    def _lead(body: str) -> int:
        match = re.match(
            r"(?:both|only|just|so|thus|therefore|hence|it's|it is|probably|i think|i believe)[ ,:]+", body, re.I
        )
        return match.end() if match else 0

    def opening(self, text: str) -> _Found | None:
        """The label a reply opens with; or the one label that opens lines, as in ``B) Paris``."""
        lines = [match for match in self._line_opening.finditer(text) if not DENIED.match(text, match.end())]
        lines = [match for match in lines if self._meant(match["list"], text)]
        opened = [self.read(match["list"]) for match in lines]
        distinct = frozenset().union(*opened) if opened else frozenset()
        n_lines = sum(bool(line.strip()) for line in text.splitlines())
        if len(distinct) == 1 or (1 < len(distinct) < len(self.by_key) and len(opened) == n_lines):
            return _Found(lines[0].start(), distinct, "opening")
        first = self._listed.match(text)
        if (
            first is None
            or distinct
            or not self._meant(first.group(), text)
            or self._hedge.match(text, first.end())
            or DENIED.match(text, first.end())
        ):
            return None
        labels = self.read(first.group())
        others = {label for label, denied in self._mentions(text) if not denied}
        return _Found(0, labels, "opening") if labels and others <= labels else None

    def _meant(self, piece: str, text: str) -> bool:
        """Whether the labels are written as shown; in a long text "(a)" counts parts of the argument."""
        shown = set(self.by_key.values())
        return len(text) <= _SHORT or all(match.group() in shown for match in self._mention.finditer(piece))

    def statement(self, text: str) -> _Found | None:
        """A sentence that no option is right."""
        for match in NONE_STATEMENT.finditer(text):
            if not DENIED.match(text, match.end()):
                return _Found(match.start(), frozenset(), "statement")
        return None

    def only_mention(self, text: str) -> _Found | None:
        """The only label in the reply, if it is not denied."""
        if len(text) > _SHORT:  # in a long derivation a lone letter is a quantity
            return None
        mentions = self._mentions(text)
        found = frozenset(label for label, _ in mentions)
        if len(found) != 1 or any(denied for _, denied in mentions):
            return None
        return _Found(0, found, "only mention")

    def _mentions(self, text: str) -> list[tuple[str, bool]]:
        """Labels meant as such, and whether each is denied: capital letters, others after "option" or in brackets."""
        mentions = []
        for match in self._label.finditer(text):
            label, before = match.group(), text[max(0, match.start() - _BEFORE) : match.start()]
            if _NAMED.search(before) or (label.isalpha() and label.isupper()):
                denied = DENIED.match(text, match.end()) or _DENIED_BEFORE.search(before)
                mentions.append((self.by_key[label.lower() if self.fold else label], bool(denied)))
        return mentions


_LINE_END = re.compile(r"[ \t.]*(?:\n|\Z)")
_BEFORE = 40
"""Characters before a label that say how it is meant."""
_SHORT = 200
"""Characters up to which weak signs are trusted."""
_NAMED = re.compile(r"(?:\b(?:option|choice|answer|number|letter|no\.)\s*|[(\[#])$", re.IGNORECASE)
_DENIED_BEFORE = re.compile(r"\b(?:not|isn't|except|excluding|eliminate)\s+(?:\w+\s+)?[(\[]?$", re.IGNORECASE)


@lru_cache(maxsize=512)
def _reader(labels: tuple[str, ...]) -> _LabelReader:
    return _LabelReader(labels)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", " ", text.casefold()).split())


def _by_option_text(text: str, labels: Sequence[str], options: Sequence[str]) -> _Found | None:
    """The option whose text is the whole reply (after "the answer is", if that is said)."""
    cue = CUE.search(text)
    said = {_plain(text), _plain(text[cue.end() :]) if cue else ""} - {""}
    own = {label.casefold() for label in labels}
    matches = [
        label
        for label, option in zip(labels, options, strict=False)
        if _plain(option) and _plain(option) in said and _plain(option) not in own
    ]
    return _Found(0, frozenset(matches), "option text") if len(matches) == 1 else None


def _verdicts(text: str) -> set[str]:
    """The verdicts mentioned; a list of all three, as in the question, is not a mention."""
    text = re.sub(
        r"\btrue,?\s*(?:/|or|,|and)\s*false\b(?:,?\s*(?:/|or|,|and)\s*(?:unknown|uncertain))?", " ", text, flags=re.I
    )
    found: set[str] = set()
    rest = text
    for verdict, pattern in VERDICT_PHRASES:  # longer phrases first: "not true" is no "true"
        if pattern.search(rest):
            found.add(verdict)
            rest = pattern.sub(" ", rest)
    return found


def _sole_verdict(part: str) -> str | None:
    """The verdict that a line or clause consists of, apart from little words."""
    verdicts = _verdicts(part)
    rest = part
    for _, pattern in VERDICT_PHRASES:
        rest = pattern.sub(" ", rest)
    little = set(re.findall(r"[a-z]+", rest.lower())) - _LITTLE
    return next(iter(verdicts)) if len(verdicts) == 1 and not little else None


_LITTLE = set(
    "the a an it is this that statement answer conclusion claim so therefore thus hence verdict clearly i think".split()
)
