"""One reply, collapsed and masked, as the rules see it."""

from __future__ import annotations

import re

from unslant.responses.answer_patterns import NONE, RETRACTED
from unslant.responses.collapse import Collapser
from unslant.responses.label_words import ALL_TEXT, NONE_TEXT
from unslant.responses.masks import masked
from unslant.responses.mentions import (
    AMBIGUOUS,
    ANY,
    BARE,
    BOTH,
    CONFLICT,
    LABEL,
    NOT_ANY,
    ONE,
    kind_of,
    mentions,
    option_of,
    options_of,
)

_NONE = re.compile(NONE, re.IGNORECASE)
_SO_TOO = re.compile(rf"({ONE}) is( [\w ]{{1,30}}),? and so is ({ONE})", re.IGNORECASE)
"""What is said of one option, and then of another."""
_OPENED_BY_ANY = re.compile(rf"^[ \"'(]{{0,4}}({ANY})")
_OPENED_LINE = re.compile(rf"^[ \"'(]{{0,4}}({ONE})")
_ENDED = re.compile(rf"(?:[.!?)\]\"'⟧:;]|{ANY}|\b(?:no|yes|correct|incorrect|right|wrong|true|false))\Z", re.IGNORECASE)
_JOINED_FIELDS = re.compile(r"⟧ ?(?:,|and|&) ?⟦")
_QUOTATION = re.compile(rf'"[^"\n{NOT_ANY}]{{12,200}}"')


def _unquoted(match: re.Match[str]) -> str:
    """A quotation, of the question for example, says nothing; but "none of these" may be quoted."""
    return match.group() if _NONE.match(match.group(), match.start() + 1) else '"…"'


class Unreadable(Exception):
    """A reply that gives an answer, but not one: contradictory, ambiguous, or only a list of the options."""


class Reading:
    """One reply to one presentation.

    Attributes:
        options: the options' texts.
        n: number of labels.
        plain: the reply with every mention of an option as one character.
        text: the same with the mentions masked that the reply does not assert.
    """

    def __init__(self, shown: Collapser, reply: str) -> None:
        self.labels = shown.labels
        self.options = shown.options
        self.n = len(shown.labels)
        collapsed = _SO_TOO.sub(r"\1 and \3 are\2", _JOINED_FIELDS.sub(", ", shown.collapse(reply)))
        self.plain = _QUOTATION.sub(_unquoted, collapsed)
        self.text = masked(self.plain)

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
            every = self._saying(ALL_TEXT)
            return every or frozenset(range(self.n))
        kinds, chosen = set(map(kind_of, named)), options_of(named)
        by_label = options_of(one for one in named if kind_of(one) in (LABEL, BARE, BOTH, AMBIGUOUS))
        if CONFLICT in kinds:
            raise Unreadable("label and text of different options")
        if (AMBIGUOUS in kinds and not as_label) or (by_label and by_label != chosen):
            raise Unreadable("label or text")
        return chosen

    def none(self) -> frozenset[int]:
        """What "none of these" chooses: the option that says so, if one does."""
        return self._saying(NONE_TEXT)

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
        return options_of(one for one in opened if one and kind_of(one) in (LABEL, BOTH, CONFLICT))

    def set_apart(self, chosen: frozenset[int]) -> bool:
        """Whether the reply opens with ``chosen`` apart from the lines below on other options: another line stands
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

    def breaks_off_at_first(self, chosen: frozenset[int]) -> bool:
        """Whether the reply names the first option, goes on about it and breaks off: perhaps going through them all."""
        return chosen == {0} and len(self.text) > 100 and not self.complete()
