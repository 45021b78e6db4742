"""``details_*.parquet`` of lighteval (0.13, earlier with ``__doc__``, and as in the first Open LLM Leaderboard).

Rows are in no order; ids are ``doc.id``. The details of the first leaderboard (``example``, ``full_prompt``,
``predictions``) have no ids, and rows are numbered. A chat template may have been applied unasked: only the label mass
shows it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.questions.formats import whole_records
from unslant.responses.importers.logged import (
    Log,
    Logged,
    in_results,
    is_mean,
    main_metric,
    options_on_page,
    order_on_page,
    question_on_page,
    shown_options,
    stated,
    understood,
    unit_share,
)
from unslant.responses.importers.registry import Head, Importer

_DOC, _RESPONSE, _METRIC = ("doc", "__doc__"), ("model_response", "__model_response__"), ("metric", "__metric__")
_FIRST = {"choices", "gold_index", "predictions"}
"""Columns of the first leaderboard."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d.:+-]+")
_FILE = re.compile(r"details_(?P<task>.+?)(?:\|(?P<shots>\d+))?(?:_(?P<time>\d{4}-\d\d-\d\dT.+))?$")


def recognises(head: Head) -> bool:
    details = bool(set(_DOC) & head.names) and bool(set(_RESPONSE) & head.names)
    return details or (head.names >= _FIRST and bool({"full_prompt", "example"} & head.names))


def read(head: Head) -> list[Log]:
    path = head.path
    pages, kinds, hits, name, metric = [], set(), [], "", ""
    for number, record in enumerate(whole_records(path)):
        with understood(record.place, "row of lighteval"):
            doc = _either(record.data, _DOC)
            made = _page(record.data, doc, record.place) if doc else _first_page(record.data, number, record.place)
            name = name or str((doc or {}).get("task_name") or "")
            logged = _either(record.data, _METRIC) or record.data.get("metrics") or record.data
            hits.append(logged.get("acc"))
            metric = metric or main_metric(logged)
        kinds.add(made[0])
        pages.append(replace(made[1], score=unit_share(logged.get(metric))))
    if len(kinds) != 1:
        raise InputError.at(path, f"holds {' and '.join(sorted(kinds)) or 'no'} scores; give a file of one kind")
    named = _FILE.match(path.stem)
    task, shots = _task(name or (f"{named['task']}|{named['shots']}" if named else path.stem))
    general = _general(path, name, hits)
    model = str(general.get("model_name") or _model(path))
    config = general.get("model_config") or {}
    about = {
        "lighteval": general.get("lighteval_sha"),
        "worked examples": shots,
        "model revision": general.get("model_sha") or config.get("revision"),
        "dtype": general.get("model_dtype") or config.get("dtype"),
        "chat template overridden": config.get("override_chat_template"),
    }
    return [
        Log(
            model,
            "lighteval",
            kinds.pop(),
            tuple(pages),
            task,
            about=stated(about),
            metric=f"lighteval's {metric}" if metric else "",
        )
    ]


def _either(data: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((data[key] for key in names if data.get(key) is not None), None)


def _task(name: str) -> tuple[str, str]:
    """``leaderboard|arc:challenge|25`` and ``mmlu|5``: the task, and how many examples it was asked with."""
    parts = [part for part in name.split("|") if part not in ("", "None")]
    shots = next((part for part in parts[1:] if part.isdigit()), "")
    words = [part for part in parts if not part.isdigit()]
    return (words[-1] if words else name), shots


def _model(path: Path) -> str:
    """The model that ``details/ORG/NAME/TIME/...`` or ``details_ORG__NAME/TIME/...`` names."""
    folders = [part for part in path.resolve().parts[:-1] if not _TIME.fullmatch(part)]
    if "details" in folders:
        return "/".join(folders[len(folders) - folders[::-1].index("details") :]) or path.stem
    last = folders[-1] if folders else ""
    return last.removeprefix("details_").replace("__", "/") if last.startswith("details_") else path.stem


def _general(path: Path, task: str, hits: Sequence[object]) -> Mapping[str, Any]:
    """What ``results_*.json`` of the same run says of it, empty where it is not there.

    Where names give no time, it is the run with this task and this accuracy.
    """
    named = _FILE.match(path.stem)
    time = named["time"] if named else None
    folders = [path.parent]
    if "details" in path.parts:
        at = len(path.parts) - 1 - path.parts[::-1].index("details")
        inside = [part for part in path.parts[at + 1 : -1] if not _TIME.fullmatch(part)]
        folders.append(Path(*path.parts[:at], "results", *inside))

    def same_run(found: Any) -> Mapping[str, Any] | None:
        own = found.get("results", {}).get(task, {}) if isinstance(found.get("results"), Mapping) else {}
        same = time or is_mean(own.get("acc"), hits)
        return dict(found["config_general"]) if same and isinstance(found.get("config_general"), Mapping) else None

    return in_results(folders, time, "lighteval", same_run) or {}


def _page(data: Mapping[str, Any], doc: Mapping[str, Any], place: str) -> tuple[str, Logged]:
    answer = _either(data, _RESPONSE)
    texts = answer["text"]
    reply = str(texts[0]) if isinstance(texts, list) and texts else None
    common = {"id": str(doc["id"]), "place": place}
    tokens, most = answer.get("output_tokens"), doc.get("generation_size")
    if reply is not None and isinstance(most, int) and tokens is not None and len(tokens) and len(tokens[0]) >= most:
        common["finish_reason"] = "length"
    return _answered(doc, str(doc["query"]), answer.get("logprobs"), reply, common)


def _first_page(data: Mapping[str, Any], number: int, place: str) -> tuple[str, Logged]:
    found = data["predictions"]
    single = [one[0] if isinstance(one, list | tuple) else one for one in found]
    replied = bool(single) and len(single) != len(data["choices"])
    scores, reply = (None, str(single[0])) if replied else (single, None)
    page = str(data.get("full_prompt") or data["example"])
    return _answered(data, page, scores, reply, {"id": str(number), "place": place})


def _answered(
    doc: Mapping[str, Any], page: str, scores: Sequence[object] | None, reply: str | None, common: dict[str, Any]
) -> tuple[str, Logged]:
    """What was scored, and the page."""
    choices = tuple(str(text).strip() for text in doc["choices"])
    gold = doc["gold_index"]
    labels = labels_for(ALPHABETS["A"], len(choices))
    listed = sorted(options_on_page(page, labels)) == sorted(choices)
    # The first leaderboard scored letters and logged the texts; later versions log what was scored.
    letters = choices == labels or (listed and "query" not in doc)
    right = frozenset(map(int, gold)) if isinstance(gold, list) else frozenset({int(gold)})
    common["question"] = question_on_page(page)
    finish_reason = common.pop("finish_reason", None)
    if scores and not letters:
        on_page = order_on_page(page, choices)
        order = on_page or tuple(range(len(choices)))
        common |= {"answers": frozenset(map(order.index, right)), "options": tuple(choices[k] for k in order)}
        kind = "listed" if on_page else "texts"
        return kind, Logged.of_scores([scores[k] for k in order], labels=labels, **common)
    options = shown_options(() if choices == labels else choices, page, labels) if letters or listed else choices
    common |= {"answers": right, "options": options}
    if scores:
        return "labels", Logged.of_scores(scores, labels=labels, **common)
    return "words", Logged.of_reply(reply, labels=labels, finish_reason=finish_reason, **common)


def instead(head: Head) -> str:
    """The files with the answers, for a results file."""
    return "give its details_*.parquet (--save-details)" if {"config_general", "results"} <= head.names else ""


IMPORTER = Importer("details_*.parquet of lighteval, also of the first Open LLM Leaderboard", recognises, read, instead)
