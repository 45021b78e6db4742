"""The published order as lm-eval reports it: its own metrics, computed by lm-eval, and its log of samples."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unslant.arrays import Floats, jsonable
from unslant.errors import first_line
from unslant.metrics import Estimate, wilson
from unslant.plugins.lm_eval.documents import Document, TaskSet
from unslant.plugins.lm_eval.tasks import HarnessTask
from unslant.prompts import Prompt
from unslant.responses.run import TaskRecord

NEEDS_GREEDY = frozenset({"exact_match"})
"""Metrics that ask whether a continuation is what the model would generate, which is not computed here."""


@dataclass(frozen=True)
class Result:
    """One document: lm-eval's requests with their scores, and its metrics by name."""

    instances: Sequence[Any]
    metrics: Mapping[str, Any]


@dataclass(frozen=True)
class Published:
    """One task.

    Attributes:
        documents: each with its result.
        metrics: lm-eval's name of each metric -> its value over all documents.
        missing: documents without scores, left out of the metrics.
    """

    task: HarnessTask
    documents: Sequence[tuple[Document, Result]]
    metrics: Mapping[str, Estimate]
    missing: int

    def recorded(self) -> TaskRecord:
        """What the run keeps of it."""
        kinds = sorted({document.kind or "choices" for document, _ in self.documents})
        fields = sorted({document.options.name for document, _ in self.documents if document.options})
        return TaskRecord(
            version=str(self.task.task.VERSION),
            num_fewshot=self.task.num_fewshot,
            scored=", ".join(kinds),
            options_in="; ".join(fields),
            n=len(self.documents),
            missing=self.missing,
            metrics={name: jsonable(value) for name, value in self.metrics.items()},
        )


def published(
    found: TaskSet, scores: Mapping[str, Floats], score: Callable[[Sequence[Prompt]], list[Floats]]
) -> dict[str, Published]:
    """The published order of every task.

    Args:
        scores: question id -> log-probability of each continuation.
        score: scores prompts: the unconditional ones of ``acc_mutual_info``.
    """
    made = {}
    for task in found.tasks:
        own = {name: document for name, document in found.by_id.items() if document.task is task}
        instances = {name: document.instances() for name, document in own.items() if name in scores}
        more = [
            Prompt(str(one.args[0]), (str(one.args[1]),), group=name)
            for name, found_of in instances.items()
            for one in found_of[len(scores[name]) :]
        ]
        extra = iter(score(more) if more else [])
        documents = []
        for name, requests in instances.items():
            values = [*scores[name].tolist(), *(float(next(extra)[0]) for _ in requests[len(scores[name]) :])]
            for request, value in zip(requests, values, strict=True):
                request.resps = [(value, False)]
            documents.append((own[name], _measured(task, own[name], requests)))
        made[task.name] = Published(task, documents, _aggregated(task, documents), len(own) - len(documents))
    return made


def _measured(task: HarnessTask, document: Document, instances: Sequence[Any]) -> Result:
    found = task.task.process_results(document.doc, [one.resps[0] for one in instances])
    return Result(instances, {name: value for name, value in found.items() if name not in NEEDS_GREEDY})


def _aggregated(task: HarnessTask, documents: Sequence[tuple[Document, Result]]) -> dict[str, Estimate]:
    values: dict[str, list[Any]] = {}
    for _, result in documents:
        for name, value in result.metrics.items():
            values.setdefault(name, []).append(value)
    return {name: _estimate(task, name, own) for name, own in values.items()}


def _estimate(task: HarnessTask, name: str, values: Sequence[Any]) -> Estimate:
    try:
        value = float(task.task.aggregation()[name](values))
    except Exception as error:  # a metric is a program of the task's, and may not be made for these documents
        return Estimate.undefined(f"lm-eval cannot compute it: {first_line(error)}", len(values))
    if not math.isfinite(value):
        return Estimate.undefined(f"lm-eval gives {value}", len(values))
    if all(isinstance(one, int | float) and one in (0, 1) for one in values):
        return wilson(value, len(values))
    return Estimate.bare(value, len(values), "no interval: as lm-eval aggregates it")


def sample(document: Document, result: Result) -> dict[str, Any]:
    """A record as in lm-eval's log of samples; whether a continuation is greedy is not known, and null."""
    from lm_eval.utils import handle_non_serializable, hash_string

    target = document.task.task.doc_to_target(document.doc)
    answers = [[one.resps[0][0], None] for one in result.instances]
    written = json.dumps(document.doc, indent=2, default=handle_non_serializable, ensure_ascii=False)
    return {
        "doc_id": document.number,
        "doc": document.doc,
        "target": str(target),
        "arguments": {
            f"gen_args_{i}": {f"arg_{k}": arg for k, arg in enumerate(one.args)}
            for i, one in enumerate(result.instances)
        },
        "resps": [[answer] for answer in answers],
        "filtered_resps": answers,
        "filter": "none",
        "metrics": list(result.metrics),
        "doc_hash": hash_string(written),
        "prompt_hash": hash_string(str(result.instances[0].args[0])),
        "target_hash": hash_string(str(target)),
        **result.metrics,
    }
