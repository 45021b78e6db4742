"""The options as they stand in the text of a prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unslant.presentations.labels import ALPHABETS

_LINE = re.compile(r"^\s*\(?(?P<label>[A-Z]|\d{1,2})[).:]\s+(?P<text>.+?)\s*$", re.MULTILINE)


def options_on_page(text: str, labels: Sequence[str] = ()) -> tuple[str, ...]:
    """Texts of the last run of lines ``A. text``, ``B) text``, ...; empty where there is none, or not one a label."""
    runs: list[list[tuple[str, str]]] = []
    for found in _LINE.finditer(text):
        label, option = found["label"], found["text"]
        alphabet = ALPHABETS["A"] if label.isalpha() else ALPHABETS["1"]
        if label == alphabet[0]:
            runs.append([])
        if runs and len(runs[-1]) < len(alphabet) and label == alphabet[len(runs[-1])]:
            runs[-1].append((label, option))
    wanted = [run for run in runs if len(run) > 1 and (not labels or [label for label, _ in run] == list(labels))]
    return tuple(option for _, option in wanted[-1]) if wanted else ()
