"""The question, its passage and its options in the text of a prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from sys import intern
from typing import Any

from unslant.files import parse_json
from unslant.presentations import ALPHABETS
from unslant.responses.importers.logged import Order

_GAP = re.compile(r"\W*\w{0,3}\W*")
"""Text between two options of a list: punctuation, and a label, a number, "or" or "and"."""
_LONGEST_GAP = 20
_LINE = re.compile(r"^[^\S\n]*\(?(?P<label>[A-Z]|\d{1,2})[).:]\s+(?P<text>\S(?:.*\S)?)", re.MULTILINE)
_HEAD = re.compile(
    r"^(?:(passage|article|context|paragraph|story|text)|question|q)[ \t]*:", re.IGNORECASE | re.MULTILINE
)
_CUES = re.compile(r"\A(?:question|q)\s*:\s*|\b(?:answer|a)\s*:?\Z", re.IGNORECASE)


@dataclass(frozen=True)
class PageText:
    """The text of a prompt, in which the question and its options are looked for."""

    text: str

    @property
    def question(self) -> str:
        """The paragraph before the options, or the last one without any; without ``Question:`` and ``Answer:``."""
        run = self._last_run(())
        before = (self.text[: run[0].start()] if run else self.text).strip()
        return _CUES.sub("", before.rpartition("\n\n")[2].strip()).strip()

    @property
    def passage(self) -> str:
        """The text between ``Passage:``, or a word like it, and the last question; empty where there is none."""
        heads = list(_HEAD.finditer(self.text))
        if len(heads) < 2 or not heads[-2][1] or heads[-1][1]:
            return ""
        return intern(self.text[heads[-2].end() : heads[-1].start()].strip())  # of many pages, each with a long text

    def options(self, labels: Sequence[str] = ()) -> tuple[str, ...]:
        """Texts of the last run of lines ``A. text``, ``B) text``, ...; empty if none has a line for each label."""
        return tuple(line["text"] for line in self._last_run(labels))

    def shown(self, record: Sequence[str], labels: Sequence[str] = ()) -> tuple[str, ...]:
        """Option texts from the top: as a record lists them, unless the page shows them in another order."""
        options = self.options(labels)
        same = sorted(text.strip() for text in record) == sorted(options)
        return options if same or not record else tuple(map(str, record))

    def order(self, options: Sequence[str]) -> Order:
        """The option text at each place of the last list of them, as its index; empty if no list has all."""
        # Only texts that follow each other are a list: options also occur in a passage, far from one another.
        places = {option.strip().casefold(): k for k, option in enumerate(options)}
        if len(places) < len(options) or "" in places:
            return ()
        longest_first = sorted(places, key=len, reverse=True)
        any_option = re.compile("|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in longest_first))
        lowered = self.text.casefold()
        run: list[int] = []
        order, end = Order(), 0
        for match in any_option.finditer(lowered):
            gap, place = lowered[end : match.start()], places[match[0]]
            if place in run or len(gap) > _LONGEST_GAP or not _GAP.fullmatch(gap):
                run = []
            run.append(place)
            end = match.end()
            if len(run) == len(options):
                order = tuple(run)
        return order

    def _last_run(self, labels: Sequence[str]) -> list[re.Match[str]]:
        # The last, since worked examples list their options before the question does.
        runs: list[list[re.Match[str]]] = []
        sequence = tuple(labels) if sorted(labels) != list(labels) else ()  # a sequence such as D, C, B, A
        for match in _LINE.finditer(self.text):
            label = match["label"]
            n = len(runs[-1]) if runs else 0
            if n and runs[-1][0]["label"] == "A" and label.isdecimal() and (label,) == ALPHABETS["A"][n : n + 1]:
                runs[-1].append(match)  # labels after Z are numbers
                continue
            alphabet = sequence or ALPHABETS["A" if label.isalpha() else "1"]
            if label == alphabet[0]:
                runs.append([])
            if runs and len(runs[-1]) < len(alphabet) and label == alphabet[len(runs[-1])]:
                runs[-1].append(match)
        wanted = list(labels)
        complete = [run for run in runs if len(run) > 1 and wanted in ([], [one["label"] for one in run])]
        return complete[-1] if complete else []


def prompt_text(prompt: Any) -> str:
    """The text of a prompt that a log has as a text, as messages, or as a list of the JSON of all its messages."""
    if isinstance(prompt, str):
        return prompt
    messages = parse_json(prompt[0]) if isinstance(prompt[0], str) else prompt
    return "\n".join(str(message.get("prompt") or message.get("content") or "") for message in messages)


def named_place(text: str, labels: Sequence[str], options: Sequence[str]) -> int:
    """The place of an option given by its text, its label or its number; ValueError if it is none of them."""
    text = text.strip()
    for names in (options, labels):
        if text in names:
            return list(names).index(text)
    if text.isdecimal() and int(text) < len(options):
        return int(text)
    raise ValueError(f"{text!r} is not one of its {len(options)} options")


def differing(contexts: Sequence[str]) -> tuple[str, ...]:
    """The differing middles of texts that begin and end alike, in whole words."""
    before = "".join(_common_start(contexts).rpartition(" ")[:2])
    rest = [text[len(before) :] for text in contexts]
    after = "".join(_common_start([text[::-1] for text in rest])[::-1].partition(" ")[1:])
    return tuple(text.removesuffix(after).strip() or text for text in rest)


def _common_start(texts: Sequence[str]) -> str:
    return "".join(one[0] for one in takewhile(lambda one: len(set(one)) == 1, zip(*texts, strict=False)))
