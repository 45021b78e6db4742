"""The runs a report is about: audits read once, under names that tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from unslant.metrics import Metrics, OrderScores

if TYPE_CHECKING:
    from unslant.studies.audit.result import AuditResult


@dataclass(frozen=True)
class Run:
    """One audit and the name it goes by in the report."""

    name: str
    result: AuditResult

    @cached_property
    def scores(self) -> OrderScores:
        return OrderScores.from_responses(self.result.responses)

    @property
    def metrics(self) -> Metrics:
        return self.result.metrics


def named(results: Sequence[AuditResult], files: Sequence[str] = ()) -> list[Run]:
    """Runs by the name of their model; where two have the same, the name of the file (or a number) is added."""
    models = [str(result.meta.get("model", "model")).rstrip("/").split("/")[-1] for result in results]
    often = Counter(models)
    extra = list(files) if len(set(files)) == len(results) else [str(i + 1) for i in range(len(results))]
    names = [model if often[model] == 1 else f"{model} ({more})" for model, more in zip(models, extra, strict=True)]
    return [Run(name, result) for name, result in zip(names, results, strict=True)]
