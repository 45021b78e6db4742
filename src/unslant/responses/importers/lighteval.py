"""``details_*.parquet`` of lighteval (0.13, earlier with ``__doc__``, and as in the first Open LLM Leaderboard).

Rows are in no particular order and are identified by ``doc.id``. The details of lighteval up to 0.10, also those of the
first leaderboard (``example``, ``full_prompt``, ``predictions``), have no ids, and rows are numbered; 0.4 to 0.7 wrote
every value as the text of a Python object. lighteval may have applied a chat template by itself, which no field
records: only a low label mass shows it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unslant.errors import InputError, shortened
from unslant.presentations import ALPHABETS, labels_for
from unslant.questions.records import parse_written
from unslant.responses.importers.logged import (
    Log,
    Logged,
    as_count,
    in_results,
    is_mean,
    main_metric,
    stated,
    understood,
    unit_share,
)
from unslant.responses.importers.page_text import PageText, named_place
from unslant.responses.importers.registry import Head, Importer

_FIRST = {"choices", "gold_index", "predictions"}
"""Columns up to 0.10, as of the first leaderboard."""
_FAILED = "no"
"""Kind of a row that holds no answer."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d.:+-]+")
_FILE = re.compile(r"details_(?P<task>.+?)(?:\|(?P<shots>\d+))?(?:_(?P<time>\d{4}-\d\d-\d\dT.+))?$")


def recognises(head: Head) -> bool:
    details = {"doc", "model_response"} <= {name.strip("_") for name in head.names}
    return details or (head.names >= _FIRST and bool({"full_prompt", "example"} & head.names))


def read(head: Head) -> list[Log]:
    path = head.path
    pages: list[Logged] = []
    kinds: set[str] = set()
    hits, name, metric = [], "", ""
    for number, record in enumerate(head.rows()):
        with understood(record.place, "row of lighteval"):
            data: Mapping[str, Any] = {key.strip("_"): value for key, value in record.data.items()}
            data = data if data.get("doc") else _as_later(record.data, number)
            doc, metrics = data["doc"], data.get("metric")
            kind, new = _pages(data["model_response"], doc, record.place)
            name = name or str(doc.get("task_name") or "")
            values = metrics or record.data
            hits.append(values.get("acc"))
            metric = metric or main_metric(values, metrics or ())
        kinds |= {kind} - {_FAILED}
        pages += [replace(page, score=unit_share(values.get(metric))) for page in new]
    if len(kinds) != 1:
        reason = f"holds {' and '.join(sorted(kinds))} scores; give a file of one kind"
        raise InputError.at(path, reason if kinds else "holds no answer: neither logprobs nor text in any row")
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
    metric = f"lighteval's {metric}" if metric else ""
    return [Log(model, "lighteval", kinds.pop(), tuple(pages), task, about=stated(about), metric=metric)]


def _task(name: str) -> tuple[str, str]:
    """The task, and the number of worked examples, of ``leaderboard|arc:challenge|25`` or ``mmlu|5``."""
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
    """``config_general`` in ``results_*.json`` of the same run, empty if there is none.

    If the file's name gives no time, the run is the one with this task and this accuracy.
    """
    named = _FILE.match(path.stem)
    time = named["time"] if named else None
    folders = [path.parent]
    if "details" in path.parts:
        at = len(path.parts) - 1 - path.parts[::-1].index("details")
        inside = [part for part in path.parts[at + 1 : -1] if not _TIME.fullmatch(part)]
        folders.append(Path(*path.parts[:at], "results", *inside))

    def same_run(results: Any) -> Mapping[str, Any] | None:
        scores = results.get("results", {}).get(task, {}) if isinstance(results.get("results"), Mapping) else {}
        same = time or is_mean(scores.get("acc"), hits)
        return dict(results["config_general"]) if same and isinstance(results.get("config_general"), Mapping) else None

    return in_results(folders, time, "lighteval", same_run) or {}


def _pages(answer: Mapping[str, Any], doc: Mapping[str, Any], place: str) -> tuple[str, list[Logged]]:
    """The kind of scores, and the page of each of a document's samples."""
    texts: list[Any] = answer["text"] or [None]
    tokens, most = answer.get("output_tokens") or (), doc.get("generation_size")
    pages = []
    for i, text in enumerate(texts):
        common = {"id": str(doc["id"]), "place": place, "repeat": i}
        # lighteval logs no reason why a reply ended: one of as many tokens as were allowed was cut off.
        if text is not None and isinstance(most, int) and len(tokens) > i and len(tokens[i]) >= most > 0:
            common["finish_reason"] = "length"
        kind, page = _answered(doc, PageText(str(doc["query"])), answer.get("logprobs"), text, common)
        pages.append(page)
    return kind, pages


def _as_later(data: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A row up to 0.10 in the shape of later ones; ValueError if one of its texts is not the list that it should be."""
    texts = {key: data[key] for key in (*_FIRST, "gold", "metrics") if isinstance(data.get(key), str)}
    # Python writes inf and nan for numbers that are not finite, but does not read them as literals.
    finite = {key: text.replace("inf", "1e999").replace("nan", "None") for key, text in texts.items()}
    values = {key: parse_written(text) or parse_written(finite[key]) for key, text in texts.items()}
    if wrong := next((key for key, value in values.items() if value is None), ""):
        raise ValueError(f"{wrong} is neither a list nor an object: {shortened(data[wrong], 80)!r}")
    data = {**data, **values}
    query, choices, right = str(data.get("full_prompt") or data["example"]), data["choices"], data["gold_index"]
    if not choices:  # of a generated answer, only the right texts were logged
        options = PageText(query).options()
        choices = labels_for(ALPHABETS["A"], len(options))
        right = [named_place(str(text), choices, options) for text in data["gold"]]
    predictions = [one[0] if isinstance(one, list | tuple) else one for one in data["predictions"]]
    kind = "text" if predictions and isinstance(predictions[0], str) else "logprobs"
    doc = {"id": number, "query": query, "choices": choices, "gold_index": right, "choices_are_texts": True}
    return {"doc": doc, "model_response": {"text": [], kind: predictions}, "metric": data.get("metrics")}


def _answered(
    doc: Mapping[str, Any], page: PageText, scores: Sequence[object] | None, reply: object, common: dict[str, Any]
) -> tuple[str, Logged]:
    """The kind of scores, and the page."""
    choices = tuple(str(text).strip() for text in doc["choices"])
    gold = doc["gold_index"]
    labels = labels_for(ALPHABETS["A"], len(choices))
    # Labels that the page shows may also be 1, 2, ... or a, b, ..., and in brackets.
    bare = tuple(text.strip("().") for text in choices)
    if any(bare == alphabet[: len(bare)] for alphabet in ALPHABETS.values()) and page.options(bare):
        labels = choices = bare
    has_list = sorted(page.options(labels)) == sorted(choices)
    # The first leaderboard scored letters and logged the texts; later versions log what was scored.
    letters = choices == labels or (has_list and "choices_are_texts" in doc)
    right = frozenset(as_count("gold_index", one) for one in (gold if isinstance(gold, list) else [gold]))
    common |= {"question": page.question, "context": page.passage}
    finish_reason = common.pop("finish_reason", None)
    if scores and not letters:
        on_page = page.order(choices)
        order = on_page or tuple(range(len(choices)))
        common |= {"answers": frozenset(map(order.index, right)), "options": tuple(choices[k] for k in order)}
        kind = "listed" if on_page else "texts"
        return kind, Logged.of_scores([scores[k] for k in order], labels=labels, **common)
    options = page.shown(() if choices == labels else choices, labels) if letters or has_list else choices
    common |= {"answers": right, "options": options}
    if scores:
        return "labels", Logged.of_scores(scores, labels=labels, **common)
    kind = _FAILED if reply is None else "words"
    return kind, Logged.of_reply(reply, labels=labels, finish_reason=finish_reason, **common)


def instead(head: Head) -> str:
    """The files with the answers, if this one has the results."""
    return "give its details_*.parquet (--save-details)" if {"config_general", "results"} <= head.names else ""


IMPORTER = Importer("details_*.parquet of lighteval, also of the first Open LLM Leaderboard", recognises, read, instead)
