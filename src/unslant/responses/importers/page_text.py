"""The question and its options as they stand in the text of a prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unslant.presentations.labels import ALPHABETS

_LINE = re.compile(r"^\s*\(?(?P<label>[A-Z]|\d{1,2})[).:]\s+(?P<text>.+?)\s*$", re.MULTILINE)
_CUES = re.compile(r"\A(?:question|q)\s*:\s*|\s*\b(?:answer|a)\s*:?\s*\Z", re.IGNORECASE)


def options_on_page(text: str, labels: Sequence[str] = ()) -> tuple[str, ...]:
    """Texts of the last run of lines ``A. text``, ``B) text``, ...; empty where there is none, or not one a label."""
    return tuple(found["text"] for found in _last_run(text, labels))


def question_on_page(text: str) -> str:
    """The paragraph before the options, or the last one where there are none, without ``Question:`` and ``Answer:``."""
    run = _last_run(text, ())
    before = (text[: run[0].start()] if run else text).strip()
    return _CUES.sub("", before.rpartition("\n\n")[2].strip()).strip()


def shown_options(known: Sequence[str], page: str, labels: Sequence[str] = ()) -> tuple[str, ...]:
    """Option texts from the top of a page; as a record lists them, unless the page has them in another order."""
    found = options_on_page(page, labels)
    same = sorted(text.strip() for text in known) == sorted(found)
    return found if same or not known else tuple(map(str, known))


def _last_run(text: str, labels: Sequence[str]) -> list[re.Match[str]]:
    runs: list[list[re.Match[str]]] = []
    for found in _LINE.finditer(text):
        label = found["label"]
        alphabet = ALPHABETS["A"] if label.isalpha() else ALPHABETS["1"]
        if label == alphabet[0]:
            runs.append([])
        if runs and len(runs[-1]) < len(alphabet) and label == alphabet[len(runs[-1])]:
            runs[-1].append(found)
    wanted = [run for run in runs if len(run) > 1 and (not labels or [one["label"] for one in run] == list(labels))]
    return wanted[-1] if wanted else []
