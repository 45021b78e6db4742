"""Results of several models side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from unslant.auditing.comparison import AuditComparison
from unslant.auditing.result import AuditResult
from unslant.errors import InputError
from unslant.experiment.result import StudyResult
from unslant.studies.instruction_boundary.comparison import BoundaryComparison, compare_boundaries
from unslant.studies.instruction_boundary.result import BoundaryStudy
from unslant.studies.readers import read_result
from unslant.studies.unbiased.comparison import UnbiasedComparison, compare_models
from unslant.studies.unbiased.result import UnbiasedResult


def compare(*results: StudyResult | str | Path) -> AuditComparison | UnbiasedComparison | BoundaryComparison:
    """Compare audits with the first, question by question, or models under the same study.

    Args:
        results: two or more audits, or results of the studies unbiased or instruction-boundary; or Parquet files of
            their responses.

    Raises:
        InputError: if a file cannot be read, or the results cannot be compared.
    """
    if len(results) < 2:
        raise InputError("nothing to compare: give two results or more")
    read = [read_result(item) if isinstance(item, str | Path) else item for item in results]
    names = [Path(item).stem if isinstance(item, str | Path) else str(i) for i, item in enumerate(results, start=1)]
    ways: dict[type, Callable[[Any], Any]] = {
        AuditResult: lambda found: AuditComparison.of(found, names),
        UnbiasedResult: compare_models,
        BoundaryStudy: compare_boundaries,
    }
    for kind, way in ways.items():
        if all(isinstance(item, kind) for item in read):
            found: AuditComparison | UnbiasedComparison | BoundaryComparison = way(read)
            return found
    kinds = ", ".join(sorted({getattr(item, "study", type(item).__name__) for item in read}))
    raise InputError(
        f"results of {kinds} cannot be compared: give results of one of audit, unbiased and instruction-boundary"
    )
