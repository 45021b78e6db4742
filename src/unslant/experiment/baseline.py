"""``--baseline``: how a result differs from an earlier one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from unslant.arrays import jsonable
from unslant.errors import InputError, shown
from unslant.experiment.comparison import Comparison, metric_of
from unslant.experiment.recorded import responses_in
from unslant.experiment.result import RecordedResult, StudyResult
from unslant.metrics import METRICS, Estimate, verdicts
from unslant.metrics.registry import metric_at
from unslant.reports import Page, Panel
from unslant.reports.export import APART, numbers
from unslant.reports.numbers import count, listed, with_interval
from unslant.responses import Run
from unslant.responses.provenance import Provenance, checked_provenance

MOST_CHANGES = 4
"""Differences in the notes; the table has all."""


@dataclass(frozen=True)
class Baseline:
    """An earlier result.

    Attributes:
        values: as written to JSON.
        result: the result itself, where its responses are at hand.
    """

    path: Path
    values: Mapping[str, Any]
    result: StudyResult | None = None

    @classmethod
    def read(cls, path: Path, kind: type[StudyResult]) -> Baseline:
        """The result in a JSON or Parquet file of ours, or the audit of a log.

        Args:
            kind: what a table of responses is read as.

        Raises:
            InputError: if the file cannot be read, or holds no result.
        """
        if (values := cls._numbers(path)) is None:
            if not issubclass(kind, RecordedResult):
                raise InputError.at(path, f"holds responses; compare results of {kind.study} by their JSON files")
            result = kind.from_parquet(path)
            return cls(path, result.to_dict(), result)
        checked_provenance(values["provenance"], path)
        return cls(path, values)

    @staticmethod
    def _numbers(path: Path) -> Mapping[str, Any] | None:
        """The JSON of a result of ours; None for a table of responses or a log.

        Raises:
            InputError: if it is neither.
        """
        from unslant.files import parse_json, read_text
        from unslant.responses.importers import Head, importers

        head = Head.of(path)
        if {"unslant", "study", "provenance"} <= set(head.first):
            values: Mapping[str, Any] = parse_json(read_text(path))
            return values
        if not any(importer.recognises(head) for importer in importers()):
            reason = "is not a result of ours: give the file of --json or --responses, or a log that --log reads"
            raise InputError.at(path, reason)
        return None

    @classmethod
    def check(cls, path: Path) -> None:
        """Raise InputError for a file that :meth:`read` cannot take, without computing anything from it."""
        if (values := cls._numbers(path)) is None:
            responses_in(path)
        else:
            checked_provenance(values["provenance"], path)

    def compared_with(self, result: StudyResult) -> StudyResult:
        """The result together with its differences from this one.

        Raises:
            InputError: if the two are of other studies, or have no question in common.
        """
        if self.values["study"] != result.study:
            raise InputError.at(self.path, f"is of the study {self.values['study']}, the result of {result.study}")
        paired = result.paired_with(self.result) if self.result else None
        before, now = _digests(Provenance.model_validate(self.values["provenance"])), _digests(result.provenance)
        remarks = list(paired.remarks) if paired else []
        if before != now:
            remarks.insert(0, "The questions are not all the same, or it is not known whether they are.")
        if paired and paired.differences:
            runs: dict[str, dict[str, Estimate]] = {"before": {}, "now": {}}
            comparison = Comparison(runs, [pair.measure for pair in paired.differences], lambda *_: paired)
            return WithBaseline(result, self, comparison, remarks)
        if before and now and before != now:
            rows = "" if paired else "; the Parquet file of an audit is compared on the questions that both have"
            raise InputError.at(self.path, f"is of other questions, so there is nothing to compare{rows}")
        return WithBaseline(result, self, self._unpaired(result), remarks)

    def _unpaired(self, result: StudyResult) -> Comparison:
        before, now = (dict(numbers(values, APART)) for values in (self.values, result.to_dict()))
        paths = list(result.compared_numbers)
        if not paths:
            shown = {tile.metric.key for tile in result.page().tiles}
            known = {path: record.key for path in now if (record := metric_at(path))}
            paths = [path for path, key in known.items() if not shown or key in shown]
        runs: dict[str, dict[str, Estimate]] = {"before": {}, "now": {}}
        for path in paths:
            record, two = metric_at(path), (before.get(path, {}), now.get(path, {}))
            if record is not None and all("method" in one for one in two):
                key = record.key if result.compared_numbers else ".".join(path)
                for values, one in zip(runs.values(), two, strict=True):
                    values[key] = _estimate(one, self.path)
        comparison = Comparison(runs, list(runs["now"]))
        if not comparison.differences:
            raise InputError.at(self.path, "has no number in common with the result")
        return comparison


def _estimate(parts: Mapping[str, Any], path: Path) -> Estimate:
    try:
        return Estimate.from_dict(parts)
    except (TypeError, ValueError, KeyError):
        raise InputError.at(path, "holds numbers that unslant did not write so") from None


def _digests(provenance: Provenance) -> set[str]:
    return {asked.digest for asked in provenance.questions if asked.digest}


@dataclass(frozen=True)
class WithBaseline(StudyResult):
    """A result, and how it differs from an earlier one."""

    study = "with-baseline"

    result: StudyResult
    baseline: Baseline
    comparison: Comparison
    remarks: Sequence[str]

    @cached_property
    def run(self) -> Run:
        return self.result.run

    @property
    def provenance(self) -> Provenance:
        return self.result.provenance

    def to_dict(self) -> dict[str, Any]:
        """The result, and under ``baseline`` the differences by key."""
        about = {"file": shown(self.baseline.path), "date": self.baseline.values["provenance"].get("date", "")}
        changes = {
            pair.measure: {
                "metric": metric_of(pair.measure).key,
                "before": pair.b,
                "now": pair.a,
                "difference": pair.difference,
                "paired": self.comparison.paired,
                "p_value": pair.p_value,
                "n_unpaired": pair.n_unpaired,
            }
            for _, pair in self.comparison.differences
        }
        return {**self.result.to_dict(), "baseline": {**about, **jsonable(changes)}}

    def page(self) -> Page:
        page, name = self.result.page(), self.baseline.path.name
        pairs = [pair for _, pair in self.comparison.differences]
        found = zip(pairs, verdicts([p.difference for p in pairs], p=[p.p_value for p in pairs]), strict=True)
        changed = [
            f"{metric_of(pair.measure).label} {with_interval(pair.difference, METRICS['difference'])}"
            for pair, one in found
            if one.differs
        ]
        said = listed(changed, MOST_CHANGES) if changed else f"no change shown in {count(len(pairs), 'number')}"
        how = "Paired by question."
        if not self.comparison.paired:
            how = "Not paired: intervals are approximate and, as a rule, too wide."
        left_out = max(pair.n_unpaired for pair in pairs)
        panel = Panel(
            "baseline",
            "Baseline",
            f"This result against the baseline {name}. {how}",
            figures=(self.comparison.difference_figure("baseline", f"Differences from {name}", explanation=how),),
            notes=(*self.remarks, *([f"Only in one of the two: {count(left_out, 'question')}."] if left_out else [])),
        )
        lines = (f"Against {name}: {said}.", *page.lines)[:3]
        return replace(page, lines=lines, panels=(panel, *page.panels))

    def to_parquet(self, path: str | Path) -> None:
        """Write the responses, if there are any."""
        if write := getattr(self.result, "to_parquet", None):
            write(path)
