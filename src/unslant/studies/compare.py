"""Results of several models side by side."""

from __future__ import annotations

from pathlib import Path

from unslant.errors import InputError
from unslant.studies.audit.comparison import AuditComparison
from unslant.studies.audit.result import AuditResult
from unslant.studies.readers import read_result
from unslant.studies.result import StudyResult
from unslant.studies.unbiased.comparison import UnbiasedComparison, compare_models
from unslant.studies.unbiased.result import UnbiasedResult


def compare(*results: StudyResult | str | Path) -> AuditComparison | UnbiasedComparison:
    """Compare audits with the first, question by question, or models under the unbiased evaluator.

    Args:
        results: two or more of one study, or Parquet files of their responses.

    Raises:
        InputError: if a file cannot be read, or the results cannot be compared.
    """
    if len(results) < 2:
        raise InputError("nothing to compare: give two results or more")
    read = [read_result(item) if isinstance(item, str | Path) else item for item in results]
    audits = [item for item in read if isinstance(item, AuditResult)]
    others = [item for item in read if isinstance(item, UnbiasedResult)]
    if len(audits) == len(read):
        names = [Path(item).stem if isinstance(item, str | Path) else str(i) for i, item in enumerate(results, start=1)]
        return AuditComparison.of(audits, names)
    if len(others) == len(read):
        return compare_models(others)
    kinds = ", ".join(sorted({getattr(item, "study", type(item).__name__) for item in read}))
    raise InputError(f"results of {kinds} cannot be compared: give audits only, or results of study unbiased only")
