"""One reply, collapsed and masked, as the rules see it.

A mask turns mentions that a reply does not assert into ones that say so, before any rule reads them: a mention may be
denied ("not B", "B cannot be right"), hedged ("maybe B", "A or B"), supposed ("if B were true"), asked about ("B?"),
conceded ("while B may seem right, ...") or reported ("at first I thought B").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from unslant.questions.question import JudgingQuestion
from unslant.replies.collapse import Collapser
from unslant.replies.cues import words
from unslant.replies.grammar import (
    ANY,
    BEGIN_OF_LINE,
    ONE,
    REFUSAL,
    REPLACED,
    RETRACTED,
    Kind,
    characters,
    kind_of,
    mention,
    mentions,
    option_of,
    options_of,
    pattern,
)

VERDICTS = JudgingQuestion.VERDICTS
CONFLICT = "label and text of different options"
SHORT = 200
"""Characters up to which a lone mention is trusted."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read from a reply.

    Attributes:
        status: one of ``unslant.responses.STATUSES``; here ``ok`` (an answer), ``conflict`` (a label with the text of
            another option), ``cut`` (ended before an answer), ``unparsed`` or ``refused``.
        labels: the labels chosen; with ``ok``, empty means "no option is right".
        rule: the rule it was read by, or why there is no answer, for the record.
        readings: the answers between which an unread reply leaves the choice; of a conflict, by label and by text.

    Example:
        >>> Extracted("ok", frozenset({"B"}), "last line").labels
        frozenset({'B'})
    """

    status: str
    labels: frozenset[str] = frozenset()
    rule: str = ""
    readings: tuple[frozenset[str], ...] = ()


class Unreadable(Exception):
    """A reply that gives an answer, but not one: contradictory, ambiguous, or only a list of the options.

    Args:
        readings: the answers that it can be read as.
    """

    status = "unparsed"

    def __init__(self, why: str, *readings: frozenset[int]) -> None:
        super().__init__(why)
        self.readings = tuple(dict.fromkeys(readings))


class Conflict(Unreadable):
    """A label with the text of another option: the two readings are by label and by text."""

    status = "conflict"


Outcome = tuple[frozenset[int], str] | None
"""The options (or verdicts) chosen and the name of the rule; None if the rule does not apply."""
Text = TypeVar("Text")


def by_first_rule(
    rules: Iterable[Callable[[Text], Outcome]], text: Text, labels: Sequence[str], reply: str
) -> Extracted:
    """The answer that the first rule which applies reads in a text; labels by place. Where none does, the cleaned reply
    may be a refusal: only then, for many replies apologise and answer."""
    try:
        outcome = next((outcome for rule in rules if (outcome := rule(text)) is not None), None)
    except Unreadable as why:
        named = tuple(frozenset(labels[option] for option in chosen) for chosen in why.readings)
        return Extracted(why.status, rule=str(why), readings=named if len(named) > 1 else ())
    if outcome is not None:
        chosen, rule = outcome
        return Extracted("ok", frozenset(labels[option] for option in chosen), rule)
    refused = REFUSAL.search(reply) is not None
    return Extracted("refused", rule="refusal") if refused else Extracted("unparsed", rule="no answer found")


class Mask(NamedTuple):
    """Mentions that a reply does not assert.

    Attributes:
        reason: why they are no answer.
        pattern: matches them: its group, or all of it without one.
        kind: what they become: called wrong, or not asserted.
        which: characters of the mentions that are masked within a match.
    """

    reason: str
    pattern: re.Pattern[str]
    kind: int = Kind.MASKED
    which: str = ONE

    def apply(self, text: str) -> str:
        """``text`` with these mentions masked."""

        def mask(match: re.Match[str]) -> str:
            start, end = (position - match.start() for position in match.span(match.lastgroup or 0))
            masked = re.sub(
                self.which, lambda one: mention(option_of(one.group()), self.kind), match.group()[start:end]
            )
            return match.group()[:start] + masked + match.group()[end:]

        return self.pattern.sub(mask, text)


NONE_STATED = pattern("{^none_stated}|{none_stated_within}|{^none_of_them}")
"""Statements anywhere in a reply that no option is right."""
QUESTION = pattern(r"[^.!?\n]{0,400}\?(?! ?{affirmed}\b)")
CONCEDED = pattern(r"{begin}{conceding}\b[^,.\n]{0,200},")
REPORTED = pattern(r"{^reported$}[^.;!?\n]{0,200}?(?=[.;!?\n]|,? {but}\b|\Z)")
MARKED_LINE = r"^ ?(?P<said>{one})[^\n{not_any}]{0,300}"
_BE = {"be_verb": r"(?:{be_word}\b ?)"}
# The order matters: a mask sees only what those before it left. "None of" comes first, as its options would else read
# as a list that is called right. What is supposed, asked or reported goes before "called wrong": "if B were wrong"
# calls nothing wrong. Called wrong goes before denied: only the former counts towards "every option is wrong".
MASKS = (
    Mask('the options that "none of" is said of: "none of A, B and C"', NONE_STATED),
    Mask(
        'a line about an option that ends in "incorrect"',
        pattern(MARKED_LINE + r"(?:{marked_incorrect}|[.:;-] (?:{this_is} )?{judged_wrong})[ .!]*$", BEGIN_OF_LINE),
        Kind.WRONG,
    ),
    Mask(
        "supposed and not said; a choice that somebody is forced to make is one",
        pattern(
            r"{^if$}(?!{if_forced})(?:[^.;,\n]{0,200}(?:,|\b{then}\b) ?(?:{then} |{^choose} ?)?{one}(?=[.;\n]|\Z)"
            r"|[^.;,\n]{0,200}{one}[^.;\n]{0,200})|\b(?:{if}(?!{if_forced})|{supposing})\b"
            r"[^.;!?\n]{0,200}?(?:,|\b{then}\b|(?=[.;!?\n])|\Z)"
        ),
    ),
    Mask('asked about: "is it B?"', QUESTION),
    Mask("thought before, or by others", REPORTED),
    Mask("conceded before the point is made", CONCEDED),
    Mask(
        'called wrong before they are named: "the incorrect options are B, C and D"',
        pattern(
            r"\b{wrong_before}(?: {option_noun} ?(?:{wrong_listing}\b|[:,(])?| ?[:(]| (?=\S))"
            r" ?(?:{option_adverb} )?"
            r"(?P<wrong>{either}(?: ?; ?{either}){0,9})"
            r"|\b{other_options}(?: {option_noun})? ?(?:{other_listing}\b|[:(])? ?(?P<others>{either})"
        ),
        Kind.WRONG,
    ),
    Mask(
        'called wrong: "B is wrong", "C cannot be right", "D: incorrect"',
        pattern(
            r"{said}(?:[\])}:]{0,2}(?:, (?={which_is}\b))? ?(?:[(-] ?)?(?:{which} )?"
            r"(?:{be_verb}{0,3}(?:{option_adverb} ){0,3}{wrong_word}(?!\w)"
            r"|{be_verb}{0,2}{not} (?:{not_adverb} ){0,8}(?:{determiner} )?(?:{not_degree} ){0,8}{not_right}(?!\w)"
            r"(?! {only_just}\b))| ?\? ?{asked_and_denied}\b|\. {marked_incorrect}|{wrong_after})",
            parts=_BE,
        ),
        Kind.WRONG,
    ),
    Mask(
        'ruled out: "eliminate A, C and D"',
        pattern(r"{^eliminated}(?: ?{denied_filler}(?!\w)){0,5} ?⟦?{said}"),
        Kind.WRONG,
    ),
    Mask(
        'said not to be meant: "not B", "rather than A or C"',
        pattern(r"(?:{not_ending}|{^denied})(?: ?{denied_verb} )?(?: ?{denied_filler}(?!\w)){0,5} ?⟦?{said}"),
    ),
    Mask(
        'alternatives among which no choice is made: "A or B"',
        pattern(
            r"(?:\b{either_word} )?{subject}(?:[ ,]{0,3}\b{or}\b (?:{or_filler} ){0,2}{subject}){1,25}"
            r"|{one} ?{or_joint} ?{one}|\b{between}{one}(?:, {one}){0,9},? ?{^and$} {one}"
        ),
    ),
    Mask('only considered: "maybe B"', pattern(r"\b{hedge}[ ,:]{1,3}(?:{hedge_filler} ){0,4}{said}")),
    Mask('only considered: "B is plausible"', pattern("{said}[ ,]{0,2}{hedge_after}")),
    Mask(
        'labels of whose options something is denied: "B is not prime"',
        pattern(r"{said}[\])]? {be_verb}{1,2}(?:{option_adverb} )?{not}\b(?! {not_quite}\b)", parts=_BE),
        which=characters(Kind.LABEL, Kind.BARE),
    ),
    Mask(
        'texts of options of which something is denied: "Paris is not in Norway"',
        pattern(
            r"{said} ?(?:,? ?{who} )?{be_verb}{1,2}(?:{option_adverb} )?{not}\b"
            r"|(?P<before>{either})[^.\n{not_any}]{0,80}[;,.] {and_that_is_not}\b",
            parts=_BE,
        ),
        which=characters(Kind.TEXT, Kind.WORD),
    ),
)
"""In the order in which they are applied."""


def masked(text: str) -> str:
    """A collapsed reply with every mention that is called wrong, or not asserted, turned into one that says so."""
    for mask in MASKS:
        text = mask.apply(text)
    return text


def start_of_replacement(text: str) -> int:
    """Where the answer starts that is put in the place of what was said before it; 0 where nothing is replaced."""
    first = re.search(ANY, text)
    return max((m.end() for m in REPLACED.finditer(text) if first and first.start() < m.end()), default=0)


_RUN = re.compile(rf"{ONE}(?:[ /|\[\]()]{{1,3}}{ONE}){{2,25}}")
_NONE = pattern("{is_none}")
_ALL_TEXT, _NONE_TEXT = pattern("{all_text}"), pattern("{none_text}")
_SO_TOO = pattern("({one}) {so_is} ({one})")
"""What is said of one option, and then of another."""
_OPENED_BY_ANY = re.compile(rf"^[ \"'(]{{0,4}}({ANY})")
_OPENED_LINE = re.compile(rf"^[ \"'(]{{0,4}}({ONE})")
_ENDED = pattern(r"(?:[.!?)\]\"'⟧:;]|{any}|\b{yes_no_end})\Z")
_JOINED_FIELDS = pattern("⟧ ?(?:,|{and}|&) ?⟦")
_QUOTATION = pattern(r'"[^"\n{not_any}]{12,200}"')


def _unquoted(match: re.Match[str]) -> str:
    """A quotation, of the question for example, says nothing; but "none of these" may be quoted."""
    return match.group() if _NONE.match(match.group(), match.start() + 1) else '"…"'


class Reading:
    """One reply to one presentation.

    Attributes:
        options: the options' texts.
        n: number of labels.
        texts_of: of a label with the text of another option, that option.
        plain: the reply with every mention of an option as one character.
        text: the same with the mentions masked that the reply does not assert.
    """

    def __init__(self, collapser: Collapser, reply: str) -> None:
        self.labels = collapser.labels
        self.options = collapser.options
        self.n = len(collapser.labels)
        self.texts_of: dict[int, set[int]] = {}
        reply = collapser.collapse(reply, self.texts_of)
        collapsed = _SO_TOO.sub(words("both_are_so")[0], _JOINED_FIELDS.sub(", ", reply))
        self.plain = _RUN.sub(self._restated, _QUOTATION.sub(_unquoted, collapsed))
        self.text = masked(self.plain)
        # In this one place for every rule: what was replaced is not there.
        start = start_of_replacement(self.text)
        self.plain, self.text = self.plain[start:], self.text[start:]

    def _restated(self, match: re.Match[str]) -> str:
        """All options in their order, between slashes or under marked labels, are the question again: "[A/B/C/D]"."""
        said, between = mentions(match.group()), re.sub(ONE, "", match.group())
        apart = not between.isspace() or {kind_of(one) for one in said} <= {Kind.LABEL, Kind.BOTH}
        every = self.n > 2 and list(map(option_of, said)) == list(range(self.n))
        return re.sub(ONE, "…", match.group()) if apart and every else match.group()

    def chosen(self, said: str, *, as_label: bool = True) -> frozenset[int]:
        """The options that an answer names: some, all or none.

        Args:
            as_label: whether what is one option's label and another's text counts as the label.

        Raises:
            Unreadable: if the answer names them in ways that contradict each other.
        """
        named = mentions(said)
        if _NONE.match(said):
            return self.options.beginning(said) or self.none()
        if not named:
            every = self._saying(_ALL_TEXT)
            return every or frozenset(range(self.n))
        kinds, chosen = set(map(kind_of, named)), options_of(named)
        by_label = options_of(
            one for one in named if kind_of(one) in (Kind.LABEL, Kind.BARE, Kind.BOTH, Kind.AMBIGUOUS)
        )
        if Kind.CONFLICT in kinds:
            raise self.conflict(chosen)
        if (Kind.AMBIGUOUS in kinds and not as_label) or (by_label and by_label != chosen):
            raise Unreadable("label or text", by_label, chosen - by_label)
        return chosen

    def conflict(self, by_label: frozenset[int]) -> Conflict:
        """The error for a label with the text of another option."""
        by_text = frozenset().union(*(self.texts_of.get(option, ()) for option in by_label))
        return Conflict(CONFLICT, by_label, by_text)

    def none(self) -> frozenset[int]:
        """What "none of these" chooses: the option that says so, if one does."""
        return self._saying(_NONE_TEXT)

    def _saying(self, pattern: re.Pattern[str]) -> frozenset[int]:
        return frozenset(i for i, text in enumerate(self.options.texts) if pattern.fullmatch(text.rstrip(" .")))

    def asserted(self, *kinds: int) -> frozenset[int]:
        """Options mentioned in one of these ways."""
        return options_of(mentions(self.text, *kinds))

    def opening(self, line: str) -> str | None:
        """The mention that a line opens with."""
        match = _OPENED_LINE.match(line)
        return match[1] if match else None

    def listed(self) -> frozenset[int]:
        """Options that open a line under their label."""
        opened = (self.opening(line) for line in self.text.split("\n"))
        return options_of(one for one in opened if one and kind_of(one) in (Kind.LABEL, Kind.BOTH, Kind.CONFLICT))

    def set_apart(self, chosen: frozenset[int]) -> bool:
        """Whether the reply opens with ``chosen`` apart from the lines below on other options: another line comes
        between, or they go back to an earlier option."""
        opened = [
            match and match[1]
            for line in self.text.split("\n")
            if line.strip()
            for match in [_OPENED_BY_ANY.match(line)]
        ]
        if opened[0] is None or option_of(opened[0]) not in chosen:
            return False
        first = next((k for k, one in enumerate(opened) if one and option_of(one) not in chosen), None)
        return first is None or None in opened[:first] or option_of(opened[first] or "") < max(chosen)

    def retracted(self) -> int:
        """Up to where the reply is taken back."""
        return max((match.end() for match in RETRACTED.finditer(self.text)), default=0)

    def complete(self) -> bool:
        """Whether the reply ends as sentences and answers do."""
        return _ENDED.search(self.text) is not None

    def ended(self) -> bool:
        """Whether the reply ends in a stop or a bracket."""
        return self.text.rstrip()[-1:] in ".!?)]⟧"

    def goes_through(self, said: str, start: int) -> bool:
        """Whether a last fragment names the next option of those gone through before it: "B. Jupiter"."""
        named, above = mentions(said), self.text[:start]
        before = options_of(re.findall(ANY, above))
        marked = {kind_of(one) for one in named} <= {Kind.LABEL, Kind.BOTH}
        next_one = len(named) == 1 and before == frozenset(range(option_of(named[0]))) != frozenset()
        return next_one and marked and not self.ended()

    def breaks_off_at_first(self, chosen: frozenset[int]) -> bool:
        """Whether the reply names the first option, goes on about it and breaks off: perhaps going through them all."""
        # Else replies cut off at a token limit would count for the first option: a bias of the reader, not the model.
        return chosen == {0} and len(self.text) > 100 and not self.complete()
