"""``predictions/*.json`` of OpenCompass: generated answers (also circular, and ``tmp_*.jsonl`` of an unfinished run),
perplexities (PPL), log-likelihoods (LL), conditional probabilities (CLP).

Perplexities are of whole prompts with an answer in them, not scores of labels, so only the choice, the least of them,
is read. Log-likelihoods are of the same continuation after each option. Entries are numbered, except in a circular
evaluation, and every shard (``_0.json``, ``_1.json``) begins at 0. OpenCompass's own verdicts are in
``results/MODEL/`` under the same name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unslant.errors import InputError, shown
from unslant.files import parse_json, read_text
from unslant.presentations import ALPHABETS, labels_for
from unslant.responses.importers.logged import Log, Logged, as_score, understood, unit_share
from unslant.responses.importers.page_text import PageText, differing, prompt_text
from unslant.responses.importers.registry import Head, Importer

_PPL = "label: "
_ACCURACY = "accuracy"
_NOTE = "Perplexities are of whole prompts: only which answer has the least is read, as a choice."
_NO_GOLD = "In {} entries OpenCompass logged no right option; as those of the others are numbers, theirs is 0."
_TEMPORARY = "The file is the temporary one of a run that did not end: only part of the data set is in it."


def recognises(head: Head) -> bool:
    first = head.first if {"idx", "prediction"} <= head.names else head.first.get("0")
    if not isinstance(first, Mapping) or "prediction" not in first:
        return False
    return bool({"origin_prompt", "prompt"} & set(first)) or any(str(key).startswith(_PPL) for key in first)


def read(head: Head) -> list[Log]:
    path = head.path
    temporary = "idx" in head.names
    rows: dict[str, Any] = (
        {str(one.data["idx"]): one.data for one in head.rows()} if temporary else parse_json(read_text(path))
    )
    # OpenCompass leaves out a gold of 0 (`if gold:` in icl_base_inferencer.py, 0.5.4); numbers count from 0.
    golds = [row.get("gold") for row in rows.values() if isinstance(row, Mapping)]
    by_number = any(gold is not None for gold in golds) and all(isinstance(gold, int | None) for gold in golds)
    missing = golds.count(None)
    pages: list[Logged] = []
    kinds: dict[str, None] = {}
    for number, row in rows.items():
        place = f"{path}, entry {number}"
        with understood(place, "prediction of OpenCompass"):
            gold = {"gold": 0} if by_number and row.get("gold") is None else {}
            kind, page = _page({**row, **gold}, str(number), place)
        kinds[kind] = None
        pages.append(page)
    if len(kinds) > 1:
        raise InputError.at(path, f"holds {' and '.join(kinds)}; give a file of one kind")
    (kind,) = kinds
    task = re.sub(r"_\d+$", "", path.stem.removeprefix("tmp_") if temporary else path.stem)
    notes = [_NOTE] * (kind == "perplexities") + [_NO_GOLD.format(missing)] * (by_number and missing > 0)
    notes += [_TEMPORARY] * temporary
    scores = {"labels": "labels", "log-likelihoods": "texts"}.get(kind, "words")
    log = Log(path.parent.name or path.stem, "OpenCompass", scores, tuple(pages), task, notes=tuple(notes))
    shards, folder = _shards(path), _beside(path, "results")
    results = (folder or path.parent) / (path.name if shards == [path] else f"{task}.json")
    compared = folder is not None and not temporary and os.path.isfile(results)
    return [_with_results(log, results, path, shards) if compared else log]


def _beside(path: Path, name: str) -> Path | None:
    """The folder of the same model in ``predictions`` or ``results``, next to that of a file; None without one."""
    parents = path.absolute().parents
    return parents[2] / name / parents[0].name if len(parents) > 2 else None


def _shards(path: Path) -> list[Path]:
    """The files that together are the predictions of a data set: ``set_0.json``, ``set_1.json``, ..., or the file."""
    part = re.fullmatch(r"(.+)_(\d+)", path.stem)
    folder = _beside(path, "results")
    if part is None or folder is None or os.path.exists(folder / path.name):
        return [path]
    numbers = (re.fullmatch(rf"{re.escape(part[1])}_(\d+)", other.stem) for other in path.parent.glob("*.json"))
    return [path.with_stem(f"{part[1]}_{k}") for k in sorted(int(number[1]) for number in numbers if number)]


def _with_results(log: Log, path: Path, predictions: Path, shards: Sequence[Path]) -> Log:
    """The log with OpenCompass's own verdicts, from the file of results next to its predictions.

    Details of the evaluation (``--dump-eval-details``) have one for each entry; without them there is the accuracy of
    all entries, also of a circular evaluation (``acc_4``), in percent. The entries of shards are numbered one after the
    other.
    """
    with understood(path, "file of results of OpenCompass"):
        results = parse_json(read_text(path))
        entries = {shard: parse_json(read_text(shard)) for shard in shards}
        first, n = sum(len(entries[shard]) for shard in shards[: shards.index(predictions)]), len(log.pages)
        details = results.get("details")
        if isinstance(details, Mapping) and set(map(str, range(first, first + n))) <= set(details):
            verdicts = [details[str(i)] for i in range(first, first + n)]
            rights = [one.get("correct", one["predictions"] == one["references"]) for one in verdicts]
            pages = tuple(replace(page, score=float(right)) for page, right in zip(log.pages, rights, strict=True))
            return replace(log, pages=pages, metric=f"OpenCompass's {_ACCURACY}")
        golds = [str(row.get("gold")) for rows in entries.values() for row in rows.values()]
        orders = len({gold.partition("--")[2][1:] for gold in golds})
        name = _ACCURACY if _ACCURACY in results else f"acc_{orders}"
        share = unit_share(results[name] / 100) if name in results else None
        of = sum(map(len, entries.values()))
        return log if share is None else replace(log, means={f"OpenCompass's {name}": share}, of=of)


def _page(row: Mapping[str, Any], number: str, place: str) -> tuple[str, Logged]:
    names = [str(key) for key in row if str(key).startswith(_PPL)]
    first = row[names[0]] if names else {}
    text = prompt_text(row.get("origin_prompt") or row.get("prompt") or first.get("testing input") or first["prompt"])
    page_text = PageText(text)
    common: dict[str, Any] = {
        "id": number,
        "place": place,
        "question": page_text.question,
        "context": page_text.passage,
    }
    if names:
        labels = tuple(name.removeprefix(_PPL) for name in names)
        right = _gold(row["gold"], labels)
        if "Loglikelihood" in first:
            likelihoods = [as_score(row[name]["Loglikelihood"]) for name in names]
            _check_chosen("prediction", row.get("prediction"), labels, likelihoods, "the highest log-likelihood")
            texts = differing([prompt_text(row[name].get("testing input") or row[name]["prompt"]) for name in names])
            common["question"] = common["question"] or texts[0]
            page = Logged.of_scores(likelihoods, labels=labels, options=texts, answers=right, **common)
            return "log-likelihoods", page
        perplexities = np.array([as_score(row[name]["PPL"]) for name in names])
        if np.isnan(perplexities).any() or np.isinf(perplexities).all():
            return "perplexities", Logged(labels=labels, answers=right, status="error", **common)
        _check_chosen("prediction", row.get("prediction"), labels, -perplexities, "the least perplexity")
        best, options = frozenset({int(np.argmin(perplexities))}), page_text.options(labels)
        return "perplexities", Logged(labels=labels, options=options, answers=right, chosen=best, **common)
    if isinstance(row["prediction"], list):
        if not all(isinstance(one, int | float) for one in row["prediction"]):
            raise ValueError("prediction is a list of replies to one prompt; give a file of one run (n=1)")
        n = len(row["prediction"])
        named = tuple(str(text).strip() for text in row.get("choices") or ())
        labels = named if len(named) == n else labels_for(ALPHABETS["A"], n)
        with np.errstate(divide="ignore"):
            scores = np.log([as_score(one) for one in row["prediction"]])
        right = _gold(row["gold"], labels)
        options = page_text.options(labels)
        _check_chosen("pred_label", row.get("pred_label"), labels, scores, "the highest probability")
        return "labels", Logged.of_scores(scores.tolist(), labels=labels, options=options, answers=right, **common)
    parts = str(row["gold"]).split("--")
    order = None
    if len(parts) == 3:  # circular, ID--LETTER--PATTERN: option i of the file is under letter PATTERN[i]
        common["id"], gold, pattern = parts
        labels = tuple(sorted(pattern))
        order = tuple(pattern.index(label) for label in labels)
        options = page_text.options(labels)
    else:
        gold, options = row["gold"], page_text.options()
        labels = labels_for(ALPHABETS["A"], len(options))
        if not options:
            raise ValueError("its prompt lists no options, so that there is no order to audit")
    right = _gold(gold, labels)
    page = Logged.of_reply(row["prediction"], labels=labels, options=options, answers=right, order=order, **common)
    return "replies", page


def _gold(gold: Any, labels: Sequence[str]) -> frozenset[int]:
    """The right place; ValueError if there is none."""
    gold = gold[0] if isinstance(gold, list) and len(gold) == 1 else gold
    name = str(gold).strip().strip("().")
    if name in labels:
        return frozenset({list(labels).index(name)})
    if not (name.isdigit() and int(name) < len(labels)):
        raise ValueError(f"gold {gold!r} is not one of its {len(labels)} options ({', '.join(labels)}; or 0, 1, ...)")
    return frozenset({int(name)})


def _check_chosen(key: str, said: Any, labels: tuple[str, ...], scores: Any, what: str) -> None:
    """Raises ValueError if the entry names another answer than its scores, where it has them all."""
    best = labels[int(np.argmax(scores))]
    if str(said) in labels and str(said) != best and not np.isnan(scores).any():
        raise ValueError(f"{key} is {said!r}, but {what} is that of {best!r}")


def instead(head: Head) -> str:
    """The predictions, if this is the file of their results."""
    predictions = _beside(head.path, "predictions")
    if predictions is None or head.path.absolute().parents[1].name != "results" or not os.path.isdir(predictions):
        return ""
    files = sorted(file.name for file in predictions.glob(f"{head.path.stem}*.json"))
    return f"give {' '.join(files)} in {shown(predictions)}" if files else ""


IMPORTER = Importer("predictions of OpenCompass", recognises, read, instead)
