"""The audit of answers that were logged before, by unslant or another harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from unslant.auditing.comparison import AuditComparison
from unslant.auditing.result import AuditResult
from unslant.experiment.recorded import listed_files, tables_of
from unslant.responses.importers.logged import placed


def audit_logs(
    logs: str | Path | Sequence[str | Path], fields: Mapping[str, str] | None = None
) -> AuditResult | AuditComparison:
    """Audit logged answers, without a model and without PyTorch.

    Args:
        logs: files of any format that :mod:`unslant.responses.importers` knows. Those of one model are joined.
        fields: field -> column or key, for tables of your own.

    Returns:
        One audit, or the comparison of several models' (or of several tables that unslant wrote).

    Raises:
        InputError: naming a file that cannot be read or is another study's.
    """
    results = recorded_audits(logs, fields)
    paths = [logs] if isinstance(logs, str | Path) else list(logs)
    if len(results) == 1:
        return results[0]
    named = [Path(path).stem for path in paths] if len(paths) == len(results) else [result.name for result in results]
    return AuditComparison.of(results, files=named)


def recorded_audits(
    logs: str | Path | Sequence[str | Path], fields: Mapping[str, str] | None = None
) -> list[AuditResult]:
    """One audit a model (or a table that unslant wrote); see :func:`audit_logs`."""
    tables = tables_of("audit", logs, fields)
    with placed(listed_files(logs)):
        return [AuditResult.of(table) for table in tables]
