"""``--baseline``: how a result differs from an earlier one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from unslant.arrays import Jsonable, jsonable
from unslant.errors import InputError, shown
from unslant.experiment.recorded import responses_in
from unslant.experiment.result import Paired, RecordedResult, StudyResult
from unslant.metrics import METRICS, Estimate
from unslant.metrics.records import record_of
from unslant.reports import Column, Page, Panel, Table
from unslant.reports.frames import APART, numbers
from unslant.reports.numbers import Cell, with_interval
from unslant.responses import Run
from unslant.responses.provenance import Provenance, checked_provenance

UNPAIRED = "unpaired: from the intervals of both, approximate (Zou and Donner 2008)"

MOST_TOLD = 4
"""Differences in the notes; the table has all."""


@dataclass(frozen=True)
class Change(Jsonable):
    """One metric before and now.

    Attributes:
        metric: key of its record.
        before, now: in the baseline and in the result; where they are paired, on the questions that both have.
        difference: now minus before.
        paired: whether answers to the same question were compared; else see :func:`unpaired_difference`.
        p_value: of McNemar's test, where the metric is yes or no for each question and paired; nan elsewhere.
        n_unpaired: questions left out of a paired difference.
    """

    metric: str
    before: Estimate
    now: Estimate
    difference: Estimate
    paired: bool = False
    p_value: float = math.nan
    n_unpaired: int = 0


def unpaired_difference(now: Estimate, before: Estimate) -> Estimate:
    """``now`` minus ``before`` as if measured on independent questions.

    The interval is made of the distances of both values to the ends of their own intervals (MOVER, Zou and Donner
    2008). On the same questions answers are usually correlated, and the interval is then too wide.
    """
    if not (now.defined and before.defined):
        return Estimate.undefined((now if not now.defined else before).note)
    value, n = now.value - before.value, min(now.n, before.n)
    if not math.isfinite(value):
        return Estimate.undefined("both are infinite" if math.isnan(value) else "one is infinite", n)
    below = math.hypot(now.value - now.low, before.high - before.value)
    above = math.hypot(now.high - now.value, before.value - before.low)
    if not math.isfinite(below + above):
        return Estimate.bare(value, n, "no interval: one of the two has none")
    return Estimate(value, value - below, value + above, n, UNPAIRED, now.confidence)


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

    def beside(self, result: StudyResult) -> StudyResult:
        """The result together with its differences from this one.

        Raises:
            InputError: if the two are of other studies, or have no question in common.
        """
        if self.values["study"] != result.study:
            raise InputError.at(self.path, f"is of the study {self.values['study']}, the result of {result.study}")
        paired = result.paired_with(self.result) if self.result else None
        found = _changes(paired)
        before, now = _digests(Provenance.model_validate(self.values["provenance"])), _digests(result.provenance)
        same = before == now
        if not found and before and now and not same:
            rows = "" if paired else "; the Parquet file of an audit is compared on the questions that both have"
            raise InputError.at(self.path, f"is of other questions, so there is nothing to compare{rows}")
        found = found or self._unpaired(result)
        told = tuple(paired.remarks) if paired else ()
        if not same:
            told = ("The questions are not all the same, or it is not known whether they are.", *told)
        return WithBaseline(result, self, found, told)

    def _unpaired(self, result: StudyResult) -> dict[str, Change]:
        new = result.to_dict()
        before, now = (dict(numbers(values, APART)) for values in (self.values, new))
        paths = list(result.compared_numbers)
        if not paths:
            shown = {tile.metric.key for tile in result.page().tiles}
            known = {path: record.key for path in now if (record := record_of(path))}
            paths = [path for path, key in known.items() if not shown or key in shown]
        found = {}
        for path in paths:
            record, two = record_of(path), (before.get(path, {}), now.get(path, {}))
            if record is None or not all("method" in one for one in two):
                continue
            was, is_ = (_estimate(one, self.path) for one in two)
            if was.defined and is_.defined:
                key = record.key if result.compared_numbers else ".".join(path)
                found[key] = Change(record.key, was, is_, unpaired_difference(is_, was))
        if not found:
            raise InputError.at(self.path, "has no number in common with the result")
        return found


def _estimate(parts: Mapping[str, Any], path: Path) -> Estimate:
    try:
        return Estimate.from_dict(parts)
    except (TypeError, ValueError, KeyError):
        raise InputError.at(path, "holds numbers that unslant did not write so") from None


def _changes(paired: Paired | None) -> dict[str, Change]:
    return {
        pair.measure: Change(pair.measure, pair.b, pair.a, pair.difference, True, pair.p_value, pair.n_unpaired)
        for pair in (paired.differences if paired else ())
    }


def _digests(provenance: Provenance) -> set[str]:
    return {asked.digest for asked in provenance.questions if asked.digest}


@dataclass(frozen=True)
class WithBaseline(StudyResult):
    """A result, and how it differs from an earlier one."""

    study = "with-baseline"

    result: StudyResult
    baseline: Baseline
    changes: Mapping[str, Change]
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
        return {**self.result.to_dict(), "baseline": {**about, **jsonable(self.changes)}}

    def page(self) -> Page:
        page = self.result.page()
        told = [
            f"{METRICS[change.metric].label} {with_interval(change.difference, METRICS['difference'])}"
            for change in list(self.changes.values())[:MOST_TOLD]
        ]
        note = f"Differences from {self.baseline.path.name}: {'; '.join(told)}."
        return replace(page, notes=(note, *page.notes), panels=(self._panel(), *page.panels))

    def to_parquet(self, path: str | Path) -> None:
        """Write the responses, if there are any."""
        if write := getattr(self.result, "to_parquet", None):
            write(path)

    def _panel(self) -> Panel:
        paired = any(change.paired for change in self.changes.values())
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (METRICS[change.metric].name, change.before, change.now, change.difference, *[change.p_value] * paired)
            for change in self.changes.values()
        )
        p_values = [Column.of("p_value", "McNemar p")] * paired
        columns = (Column("metric"), Column("before"), Column("now"), Column.of("difference"), *p_values)
        by_row = tuple(METRICS[change.metric] for change in self.changes.values())
        name = self.baseline.path.name
        how = "Paired by question." if paired else "Not paired: intervals are approximate and, as a rule, too wide."
        table = Table("baseline", f"Differences from {name}", columns, rows, how, by_row=by_row)
        left_out = max(change.n_unpaired for change in self.changes.values())
        notes = (*self.remarks, *([f"{left_out:,} questions are only in one of the two."] if left_out else []))
        explanation = f"This result against the baseline {name}. {how}"
        return Panel("baseline", "Baseline", explanation, (), (table,), notes, first_screen=True)
