"""``predictions/*.json`` of OpenCompass: generated answers (also circular), perplexities (PPL), conditional
probabilities (CLP).

In a circular evaluation ``gold`` is ``ID--LETTER--PATTERN``: option i of the file stands under letter ``PATTERN[i]``.
Entries of other files are numbered, and every shard (``_0.json``, ``_1.json``) begins at 0. The perplexities are of
whole prompts with an answer in them: no scores of labels, so only the choice, the least of them, is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from unslant.files import parse_json, read_text
from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.responses.importers.logged import Log, Logged, options_on_page, question_on_page, understood
from unslant.responses.importers.registry import Head, Importer

_PPL = "label: "
_NOTE = "Perplexities are of whole prompts: only which answer has the least is read, as a choice."


def recognises(head: Head) -> bool:
    first = head.first.get("0")
    return isinstance(first, Mapping) and "prediction" in first and bool({"origin_prompt", "prompt"} & set(first))


def read(head: Head) -> list[Log]:
    path = head.path
    pages: list[Logged] = []
    kinds: dict[str, None] = {}
    for number, row in parse_json(read_text(path)).items():
        place = f"{path}, entry {number}"
        with understood(place, "prediction of OpenCompass"):
            kind, page = _page(row, str(number), place)
        kinds[kind] = None
        pages.append(page)
    task = re.sub(r"_\d+$", "", path.stem)
    notes = (_NOTE,) if "perplexities" in kinds else ()
    scores = "labels" if list(kinds) == ["labels"] else "words"
    return [Log(path.parent.name or path.stem, "OpenCompass", scores, tuple(pages), task, notes=notes)]


def _page(row: Mapping[str, Any], number: str, place: str) -> tuple[str, Logged]:
    text = _text(row.get("origin_prompt") or row["prompt"])
    common: dict[str, Any] = {"id": number, "place": place, "question": question_on_page(text)}
    if names := [str(key) for key in row if str(key).startswith(_PPL)]:
        labels = tuple(name.removeprefix(_PPL) for name in names)
        best = int(np.argmin([float(row[name]["PPL"]) for name in names]))
        right = frozenset({labels.index(str(row["gold"]))})
        _check_chosen("prediction", row.get("prediction"), labels, best, "the least perplexity")
        shown = options_on_page(text, labels)
        return "perplexities", Logged(labels=labels, options=shown, answers=right, chosen=frozenset({best}), **common)
    if isinstance(row["prediction"], list):
        n = len(row["prediction"])
        named = tuple(str(text).strip() for text in row.get("choices") or ())
        labels = named if len(named) == n else labels_for(ALPHABETS["A"], n)
        with np.errstate(divide="ignore"):
            scores = np.log(np.array(row["prediction"], np.float64))
        right = frozenset({labels.index(str(row["gold"])) if str(row["gold"]) in labels else int(row["gold"])})
        options = options_on_page(text, labels)
        best = int(np.argmax(scores)) if not np.isnan(scores).any() else -1
        _check_chosen("pred_label", row.get("pred_label"), labels, best, "the highest probability")
        return "labels", Logged.of_scores(scores.tolist(), labels=labels, options=options, answers=right, **common)
    parts = str(row["gold"]).split("--")
    order = None
    if len(parts) == 3:
        common["id"], letter, pattern = parts
        labels = tuple(sorted(pattern))
        order = tuple(pattern.index(label) for label in labels)
        options = options_on_page(text, labels)
    else:
        letter, options = str(row["gold"]).strip().strip("()."), options_on_page(text)
        labels = labels_for(ALPHABETS["A"], len(options))
        if letter not in labels:
            raise ValueError(f"gold {row['gold']!r} is none of the {len(options)} options that its prompt lists")
    page = Logged.of_reply(
        str(row["prediction"]),
        labels=labels,
        options=options,
        answers=frozenset({labels.index(letter)}),
        order=order,
        **common,
    )
    return "replies", page


def _check_chosen(key: str, said: Any, labels: tuple[str, ...], best: int, what: str) -> None:
    """Raises ValueError if the entry names another answer than its scores."""
    if best >= 0 and str(said) in labels and str(said) != labels[best]:
        raise ValueError(f"{key} is {said!r}, but {what} is that of {labels[best]!r}")


def _text(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(str(part.get("prompt", "")) for part in prompt)


IMPORTER = Importer("predictions of OpenCompass", recognises, read)
