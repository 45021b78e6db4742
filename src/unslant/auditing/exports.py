"""An audit in the formats that others collect results in.

=================  ====================================================================================================
``flat``           one JSON object of numbers, for ``mlflow.log_metrics`` and ``wandb.log``
``eval-results``   ``.eval_results/*.yaml`` of a model on the Hugging Face Hub
``model-index``    the older block of a model card
``every-eval``     a record of Every Eval Ever (schema 0.3.0) and its samples
=================  ====================================================================================================

The score is the mean over option orders; published score, interval and number of orders are given with it, as
far as the format has a place for them. The two formats of the Hub are made and checked by ``huggingface_hub``.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from unslant import __version__
from unslant.auditing.result import AuditResult
from unslant.errors import InputError, needed
from unslant.experiment.result import StudyResult
from unslant.files import dump_json
from unslant.metrics import METRICS, Estimate
from unslant.metrics.catalogue import metric_at
from unslant.questions import Question
from unslant.reports.numbers import APART, has_interval, numbers
from unslant.responses import Response
from unslant.responses.importers.every_eval import ANSWERS, CHOSEN, LABELS, LOGPROBS, ORDER
from unslant.writing import make_folder, write_all, write_atomically

SCHEMA_VERSION = "0.3.0"
"""Of Every Eval Ever."""
_SCORE = "expected_accuracy"
_RECORDED = (_SCORE, "accuracy", "vote_accuracy", "robust_accuracy", "consistency", "pbm")
"""Metrics in a record of Every Eval Ever; all are shares from 0 to 1."""
_LOWER_IS_BETTER = frozenset({"pbm"})


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Facts that a format asks for and a run does not record."""

    dataset: str = ""
    """Id of the questions' data set on the Hub, such as allenai/ai2_arc."""
    task: str = ""
    """Task within the data set, as its leaderboard names it (eval-results), or a name for people."""
    subset: str = ""
    """Configuration of the data set."""
    split: str = ""
    """Split of the data set, such as test."""
    source_url: str = ""
    """Address where the run or its report can be seen."""
    organization: str = ""
    """Organization that ran the evaluation (every-eval)."""
    relationship: str = "third_party"
    """Its relationship to the model: first_party, third_party, collaborative or other (every-eval)."""


def flat(result: StudyResult) -> dict[str, float]:
    """Every defined number of a result: key -> value, and ``key/low``, ``key/high`` and ``key/n``."""
    values: dict[str, float] = {}
    for path, parts in numbers(result.to_dict(), APART):
        if metric_at(path) is not None and parts["value"] is not None:
            key = ".".join(path)
            values[key] = float(parts["value"])
            for part in ("low", "high", "n"):
                if parts.get(part) is not None:
                    values[f"{key}/{part}"] = float(parts[part])
    return values


def eval_results(result: AuditResult, options: ExportOptions) -> str:
    """The YAML of ``.eval_results/``: the mean over orders, with its interval in the notes."""
    hub = needed("huggingface_hub", "the format eval-results", InputError)
    check_options("eval-results", options)
    entry = hub.EvalResultEntry(
        dataset_id=options.dataset,
        task_id=options.task,
        value=_estimate(result, _SCORE).value,
        date=result.provenance.date or None,
        source_url=options.source_url or None,
        notes=_notes(result),
    )
    return str(hub.utils.yaml_dump(hub.eval_result_entries_to_yaml([entry])))


def model_index(result: AuditResult, options: ExportOptions) -> str:
    """The front matter of a model card with a ``model-index``."""
    hub = needed("huggingface_hub", "the format model-index", InputError)
    check_options("model-index", options)
    entries = [
        hub.EvalResult(
            task_type="multiple-choice",
            task_name=options.task or None,
            dataset_type=options.dataset,
            dataset_name=result.run.question_set,
            dataset_config=options.subset or None,
            dataset_split=options.split or None,
            metric_type="accuracy",
            metric_name=name,
            metric_value=_estimate(result, key).value,
            source_name=f"unslant {__version__}" if options.source_url else None,
            source_url=options.source_url or None,
        )
        for key, name in ((_SCORE, f"accuracy, {_notes(result)}"), ("accuracy", "accuracy, published order"))
    ]
    card = hub.ModelCardData(model_name=result.run.name, eval_results=entries)
    return f"---\n{card.to_yaml()}\n---\n"


def _record(result: AuditResult, options: ExportOptions) -> dict[str, Any]:
    """A record of Every Eval Ever."""
    check_options(EVERY_EVAL, options)
    now, run = str(time.time()), result.run
    name, model, means = run.question_set, run.name, result.metrics.means
    about = {"dataset_name": options.dataset or name, "source_type": "hf_dataset" if options.dataset else "other"}
    if options.dataset:
        about |= _given(hf_repo=options.dataset, hf_split=options.split)
    local = bool(result.provenance.models and result.provenance.models[0].digest and not run.server)
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{name}/{model}/{now}",
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": "unslant",
            "source_type": "evaluation_run",
            "source_organization_name": options.organization,
            "evaluator_relationship": options.relationship,
            **_given(source_organization_url=options.source_url),
        },
        "eval_library": {"name": "unslant", "version": __version__},
        "model_info": {
            "name": model,
            "id": model,
            **_given(inference_engine=_given(name=run.server or run.engine)),
            "additional_details": {
                "deployment_type": "self_deployed" if local else "unknown",
                "model_availability": "open_weights" if local else "unknown",
            },
        },
        "evaluation_results": [_recorded(result, key, name, about) for key in _RECORDED if has_interval(means[key])],
        **_given(evaluation_timestamp=result.provenance.date),
    }


def _given(**entries: Any) -> dict[str, Any]:
    """The entries that are not empty."""
    return {name: value for name, value in entries.items() if value}


def _recorded(result: AuditResult, key: str, name: str, source: Mapping[str, str]) -> dict[str, Any]:
    estimate, metric = _estimate(result, key), METRICS[key]
    interval = {"lower": estimate.low, "upper": estimate.high, "confidence_level": estimate.confidence}
    return {
        "evaluation_result_id": key,
        "evaluation_name": name,
        "source_data": dict(source),
        "metric_config": {
            "evaluation_description": metric.meaning,
            "metric_id": f"unslant.{key}",
            "metric_name": metric.name,
            "metric_kind": "accuracy" if "accuracy" in key else key,
            "metric_unit": "proportion",
            "lower_is_better": key in _LOWER_IS_BETTER,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
        },
        "score_details": {
            "score": estimate.value,
            "details": {"notes": _notes(result)},
            "uncertainty": {"confidence_interval": interval | {"method": estimate.method}, "num_samples": estimate.n},
        },
    }


def _samples(result: AuditResult, record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The samples of a record: every question with a right option, in every order, under its own labels."""
    questions = {question.id: question for question in result.responses.questions}
    for row in result.responses.where(kind="order", elicitation=result.scores.elicitation).each_row():
        # the schema has no place for an answer that is neither right nor wrong
        if row.answers and (question := questions.get(row.question_id)):
            yield _sample(row, question, record, result.run.question_set)


def _sample(row: Response, question: Question, record: Mapping[str, Any], name: str) -> dict[str, Any]:
    choices = [question.options[k] for k in row.contents]
    answer = question.options[row.choice] if row.choice >= 0 else ""
    right = row.choice in row.answers
    options = row.answers, (row.chosen or frozenset()) & {*row.contents}
    places = [sorted(map(row.contents.index, ids)) for ids in options]
    metadata = {ORDER: json.dumps([*row.contents]), LABELS: json.dumps([*row.labels]), "subject": row.subject}
    metadata |= {ANSWERS: json.dumps(places[0]), CHOSEN: json.dumps(places[1])}
    if row.logprobs is not None:
        metadata[LOGPROBS] = json.dumps([float(value) for value in row.logprobs])
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": record["evaluation_id"],
        "model_id": record["model_info"]["id"],
        "evaluation_name": name,
        "evaluation_result_id": _SCORE,
        "sample_id": row.question_id,
        "interaction_type": "single_turn",
        "input": {
            "raw": question.stem,
            "reference": [question.options[k] for k in sorted(row.answers)],
            "choices": choices,
        },
        "output": {"raw": [row.raw if row.raw is not None else answer]},
        "messages": None,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": answer,
                "extraction_method": "unslant's reader"
                if row.logprobs is None
                else "highest log-probability of a label",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": float(right), "is_correct": right},
        "error": None if row.status == "ok" else row.status,
        "metadata": metadata,
    }


def _estimate(result: AuditResult, key: str) -> Estimate:
    if not has_interval(result.metrics.means[key]):
        raise InputError(f"{result.run.question_set}: no {key}, which this format needs; audit in several orders")
    return result.metrics.means[key]


def _notes(result: AuditResult) -> str:
    """What the score is: orders, interval, number of questions, published score."""
    mean, published = _estimate(result, _SCORE), result.metrics.means["accuracy"]
    as_published = f"; in the published order {published.value:.3f}" if published.defined else ""
    interval = f"{mean.confidence:.0%} interval {mean.low:.3f} to {mean.high:.3f}"
    return f"mean over option orders, {mean.n:,} questions, {interval}{as_published}; unslant {__version__}"


def check_options(to: str, options: ExportOptions) -> None:
    """Raises InputError if a format needs more than is given."""
    if missing := [name for name in _NEEDED.get(to, ()) if not getattr(options, name)]:
        raise InputError(f"this format needs {' and '.join(f'--{name}' for name in missing)}")
    relations = ("first_party", "third_party", "collaborative", "other")
    if to == EVERY_EVAL and options.relationship not in relations:
        raise InputError(f"--relationship {options.relationship}: use one of {', '.join(relations)}")


def _write_every_eval(result: AuditResult, options: ExportOptions, out: Path) -> list[Path]:
    record = _record(result, options)
    named = make_folder(out) / f"{uuid.uuid4()}"
    contents: dict[Path, str | Callable[[IO[bytes]], object]] = {named.with_suffix(".json"): dump_json(record)}
    samples = _samples(result, record)
    if first := next(samples, None):  # a line at a time: all samples are many times what the table is
        lines = (json.dumps(sample, ensure_ascii=False) + "\n" for sample in chain([first], samples))
        encoded = (line.encode(errors="backslashreplace") for line in lines)
        contents[out / f"{named.name}_samples.jsonl"] = lambda file: file.writelines(encoded)
    write_all(*(partial(write_atomically, *file) for file in contents.items()))
    return list(contents)


FORMATS: Mapping[str, Callable[[AuditResult, ExportOptions], str]] = {
    "flat": lambda result, options: dump_json(flat(result)),
    "eval-results": eval_results,
    "model-index": model_index,
}
"""Formats of one file; ``every-eval`` writes two into a folder."""
EVERY_EVAL = "every-eval"
_NEEDED = {"eval-results": ("dataset", "task"), "model-index": ("dataset",), EVERY_EVAL: ("organization",)}


def export(result: AuditResult, to: str, out: Path, options: ExportOptions) -> list[Path]:
    """Write an audit in a format; the files that were written.

    Raises:
        InputError: if the format needs more than is given, or the audit has no mean over orders.
        OutputError: if a file cannot be written.
    """
    if to == EVERY_EVAL:
        return _write_every_eval(result, options, out)
    write_atomically(out, FORMATS[to](result, options))
    return [out]
