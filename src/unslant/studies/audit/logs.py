"""The audit of answers that were logged before, by unslant or another harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from unslant.errors import InputError
from unslant.responses import Responses
from unslant.responses.importers import load_logs
from unslant.responses.importers.logged import placed
from unslant.studies.audit.comparison import AuditComparison
from unslant.studies.audit.result import AuditResult, result_of


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
    tables = audit_tables(logs, fields)
    with placed(_listed(logs)):
        return [result_of(table) for table in tables]


def audit_tables(logs: str | Path | Sequence[str | Path], fields: Mapping[str, str] | None = None) -> list[Responses]:
    """The responses of each model; see :func:`audit_logs`.

    Raises:
        InputError: naming a file that cannot be read or is another study's.
    """
    tables = load_logs([logs] if isinstance(logs, str | Path) else list(logs), fields)
    for table in tables:
        study = table.run.study
        if study != "audit":
            raise InputError(
                f"{_listed(logs)}: contains responses of the study {study}; this command reads those of audit"
            )
    return tables


def _listed(logs: str | Path | Sequence[str | Path]) -> str:
    return str(logs) if isinstance(logs, str | Path) else ", ".join(map(str, logs))
