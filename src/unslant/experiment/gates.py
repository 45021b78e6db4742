"""What a result is checked against: an earlier one (``--baseline``), and conditions on its numbers (``--fail-if``)."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import pyarrow.compute as pc

from unslant.arrays import jsonable
from unslant.errors import InputError, one_of, shown
from unslant.experiment.comparison import Comparison, metric_of
from unslant.experiment.result import RecordedResult, StudyResult, responses_in
from unslant.files import parse_json, read_text
from unslant.metrics import METRICS, Estimate, PairedDifference, Verdict, verdicts
from unslant.metrics.catalogue import metric_at
from unslant.metrics.measures import Counts
from unslant.metrics.registry import impossible
from unslant.models import Cost
from unslant.presentations import CONTROL
from unslant.questions import QuestionSet
from unslant.questions.question import Question, same_questions, texts_known
from unslant.reports import Page, Panel
from unslant.reports.numbers import APART, count, listed, named_rows, numbers, with_interval
from unslant.responses import Responses, Run
from unslant.responses.provenance import Provenance, checked_provenance

MOST_CHANGES = 4
"""Differences in the notes; the table has all."""
MOST_NAMES = 12
"""Names of numbers in a message."""
_OTHER_QUESTIONS = "was made on other questions, so there is nothing to compare"
_OTHER_DIGEST = "was made on other questions, or on the same ones in another sequence, so it cannot be compared"
_BY_ROW = "; the Parquet file of an audit is compared on the questions that both have"


@dataclass(frozen=True)
class Baseline:
    """An earlier result.

    Attributes:
        values: the result as JSON.
        result: the result itself, if its responses were read.
    """

    path: Path
    values: Mapping[str, Any]
    result: StudyResult | None = None

    @classmethod
    def read(cls, path: Path, kind: type[StudyResult]) -> Baseline:
        """The result in a JSON or Parquet file of ours, or the audit of a log.

        Args:
            kind: the class of result to read a table of responses as.

        Raises:
            InputError: if the file cannot be read, or holds no result.
        """
        if (values := cls._numbers(path)) is None:
            result = _recorded(kind, path).from_parquet(path)
            return cls(path, result.to_dict(), result)
        return cls(path, values)

    @staticmethod
    def _numbers(path: Path) -> Mapping[str, Any] | None:
        """The JSON of a result of ours; None for a table of responses or a log; InputError if it is neither."""
        from unslant.responses.importers import Head, importers

        head = Head.of(path)
        if {"unslant", "study", "provenance"} <= set(head.first):
            values: Mapping[str, Any] = parse_json(read_text(path))
            checked_provenance(values["provenance"], path)
            for place, parts in numbers(values):
                if "method" in parts and (reason := impossible("".join(place[-1:]), parts)):
                    raise InputError.at(path, f"{reason}; write the file again with --json", field=".".join(place))
            return values
        if not any(importer.recognises(head) for importer in importers()):
            reason = "holds no result to compare with: give the file of --json, or responses that --log reads"
            raise InputError.at(path, reason)
        return None

    @classmethod
    def check(
        cls,
        path: Path,
        kind: type[StudyResult] | None = None,
        study: str = "",
        questions: QuestionSet[Any] | None = None,
    ) -> None:
        """Raise InputError for a file that cannot be compared with, without computing anything from it.

        Args:
            kind: the class of result of one model, if known.
            study: that of the result to come, if known: of one model, or of the comparison of several.
            questions: those to be asked, if known.
        """
        if (values := cls._numbers(path)) is None:
            responses = responses_in(path, _recorded(kind, path, study).study if kind else study)
            if questions and kind and _paired(kind):
                before, asked = _questions(responses), {one.id: one for one in questions}
                if same_questions(before, asked):
                    return
                if texts_known(before, asked):
                    raise InputError.at(path, _OTHER_QUESTIONS)
            digests, hint = {responses.run.questions_digest} - {""}, ""
        elif kind and not (values["study"] == study if study else str(values["study"]).startswith(kind.study)):
            raise _of_another(path, values["study"], study or kind.study)
        else:
            digests, hint = _digests(values), _BY_ROW if kind and _paired(kind) else ""
        if questions and digests and questions.digest not in digests:
            raise InputError.at(path, _OTHER_DIGEST + hint)

    def compared_with(self, result: StudyResult) -> StudyResult:
        """The result with its differences from this one.

        Raises:
            InputError: if the two are of different studies, or have no questions in common.
        """
        if self.values["study"] != result.study:
            raise _of_another(self.path, self.values["study"], result.study)
        paired = result.paired_with(self.result) if self.result else None
        before, now = _digests(self.values), {one.digest for one in result.provenance.questions if one.digest}
        remarks = list(paired.remarks) if paired else []
        if before != now:
            remarks.insert(0, "The questions are not all the same, or it is not known whether they are.")
        caveat = "" if before and now else "; it is not known whether the questions are the same"
        if paired and paired.differences:
            runs: dict[str, dict[str, Estimate]] = {"before": {}, "now": {}}
            comparison = Comparison(runs, [pair.measure for pair in paired.differences], lambda *_: paired)
            return WithBaseline(result, self, comparison, remarks)
        both = [_questions(one.responses) for one in cast("Any", (self.result, result))] if paired else []
        if both and texts_known(*both) and not same_questions(*both):
            raise InputError.at(self.path, _OTHER_QUESTIONS)
        if before and now and before != now:
            raise InputError.at(self.path, _OTHER_DIGEST + _BY_ROW * (not paired and _paired(type(result))))
        comparison, of = self._unpaired(result)
        whole = WithBaseline(result, self, comparison, remarks, of, caveat)
        keys = {metric_of(".".join(path)).key: None for path in result.compared_numbers} | of
        compared = {pair.measure for _, pair in comparison.differences}
        if left := [whole.label(key) for key in keys if key not in compared]:
            why = "Missing or undefined in one, on different scales or over different numbers of orders"
            remarks.append(f"{why}: {listed(left, MOST_NAMES)}.")
        return whole

    def _unpaired(self, result: StudyResult) -> tuple[Comparison, dict[str, str]]:
        """The differences, and by key what each is of, where the result has several numbers of the metric."""
        before, now = (dict(numbers(named_rows(values), APART)) for values in (self.values, result.to_dict()))
        paths = list(result.numbers_compared_with(before))
        if not paths:
            tiles = {tile.metric.key for tile in result.page().tiles}
            paths = [path for path in now if (metric := metric_at(path)) and (not tiles or metric.key in tiles)]
        runs: dict[str, dict[str, Estimate | None]] = {"before": {}, "now": {}}
        of: dict[str, str] = {}
        metrics = {path: metric_at(path) for path in paths}
        for path, metric in metrics.items():
            pair = [Estimate.from_dict(one[path]) if "method" in one.get(path, ()) else None for one in (before, now)]
            if metric is not None and any(one and one.defined for one in pair):
                key = metric.key if result.compared_numbers else ".".join(path)
                for values, estimate in zip(runs.values(), pair, strict=True):
                    values[key] = estimate
                same = [other for other, one in metrics.items() if one is metric]
                shared = set(path).intersection(*same) if len(same) > 1 else set(path)
                of[key] = " / ".join(part for part in path[1:] if part not in shared)
        comparison = Comparison(runs, list(runs["now"]))
        if not comparison.differences:
            raise InputError.at(self.path, "has no number in common with the result")
        return comparison, of


def _recorded(kind: type[StudyResult], path: Path, study: str = "") -> type[RecordedResult]:
    """The class, if a result of ``study`` can be read from responses of one model; InputError if not."""
    study = study or kind.study
    if not issubclass(kind, RecordedResult) or study != kind.study:
        raise InputError.at(path, f"holds responses; compare results of {study} by their JSON files")
    return kind


def _paired(kind: type[StudyResult]) -> bool:
    """Whether results of the class are compared with earlier ones question by question."""
    return kind.paired_with is not StudyResult.paired_with


def _questions(responses: Responses) -> dict[str, Question | int]:
    """The questions asked, by id; their numbers of options where the text was not recorded."""
    asked = responses.table.filter(pc.field("kind") != CONTROL)
    return responses.by_id(asked["question_id"].unique().to_pylist())


def _of_another(path: Path, study: str, expected: str) -> InputError:
    return InputError.at(path, f"holds a result of the study {study}, not of {expected}")


def _digests(values: Mapping[str, Any]) -> set[str]:
    """Digests of the questions that a result in JSON rests on, as far as they were recorded."""
    return {one.digest for one in Provenance.model_validate(values["provenance"]).questions if one.digest}


@dataclass(frozen=True)
class WithBaseline(StudyResult):
    """A result, and how it differs from an earlier one.

    Attributes:
        of: key of a difference -> what it is of (a method, a model), where the result has several of the metric.
        caveat: ends the sentence on the differences; empty if nothing limits them.
    """

    study = "with-baseline"

    result: StudyResult
    baseline: Baseline
    comparison: Comparison
    remarks: Sequence[str]
    of: Mapping[str, str] = field(default_factory=dict)
    caveat: str = ""

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
        claims = verdicts([pair.difference for pair in pairs], p=[pair.p_value for pair in pairs])
        changes = [self._words(pair, claim) for pair, claim in zip(pairs, claims, strict=True) if claim.differs]
        outcome = listed(changes, MOST_CHANGES) if changes else f"no change shown in {count(len(pairs), 'number')}"
        left_out = max(pair.n_unpaired for pair in pairs)
        outcome += f" on the {count(max(pair.difference.n for pair in pairs), 'question')} of both" * (left_out > 0)
        how = "Paired by question." if self.comparison.paired else "Not paired: intervals are rough, often too wide."
        figure = self.comparison.difference_figure("baseline", f"Differences from {name}", explanation=how)
        rows = [
            {**row, "metric": f"{self._of(pair.measure)}{row['metric']}"}
            for row, pair in zip(figure.rows, pairs, strict=True)
        ]
        panel = Panel(
            "baseline",
            "Baseline",
            f"This result against the baseline {name}. {how}",
            figures=(replace(figure, rows=rows),),
            notes=(*self.remarks, *[f"Missing or undefined in one: {count(left_out, 'question')}."] * (left_out > 0)),
        )
        lines = (f"Against {name}: {outcome}{self.caveat}.", *page.lines)[:3]
        return replace(page, lines=lines, panels=(panel, *page.panels))

    def _words(self, pair: PairedDifference, claim: Verdict) -> str:
        """A change with an interval that holds for all numbers at once; the table has that of each alone."""
        change = claim.joint if metric_of(pair.measure).share else claim.jointly()
        return f"{self.label(pair.measure)} {with_interval(change, METRICS['difference'])}"

    def label(self, key: str) -> str:
        """A metric's label, after what the difference is of."""
        return f"{self._of(key)}{metric_of(key).label}"

    def _of(self, key: str) -> str:
        return f"{of}: " if (of := self.of.get(key)) else ""


OPERATORS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
PARTS = ("value", "low", "high")
_CONDITION = re.compile(r"([^<>=]*[^<>=\s])\s*(<=|>=|<|>)\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)")
_NO_RESULT = ("provenance", "settings", "loading", "identity")
Number = tuple[tuple[str, ...], Mapping[str, Any]]
"""Path in JSON, and the parts of an estimate, or only its value."""


@dataclass(frozen=True)
class Condition:
    """``NAME<NUMBER`` (or <=, >, >=): a condition on a number of the result.

    Attributes:
        text: as written.
        name: path of the number in JSON, or a unique ending of it.
        part: the value, or an end of its interval.
    """

    text: str
    name: str
    part: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition; InputError if it is malformed, or no result can have a number of that name."""
        if not (match := _CONDITION.fullmatch(text.strip())):
            form = 'NAME<NUMBER (<, <=, >, >=), as in "expected_accuracy<0.6"'
            raise InputError(f"--fail-if {text!r}: write it as {form}")
        before, dot, last = match[1].rpartition(".")
        name, part = (before, last) if dot and last in PARTS else (match[1], "value")
        counted = {f.name for kind in (Counts, Cost) for f in fields(kind)}
        keys = counted | {key.rpartition(".")[2] for key in METRICS}
        places = name.split(".")
        changed = places[0] == "baseline" and len(places) == 3  # baseline.accuracy.difference
        key = places[1 if changed else -1]
        # Other prefixes (of methods, conditions, models) lead to numbers that only the result itself knows.
        simple = changed or len(places) == 1 or {"means", "by_subject"} & set(places)
        if simple and key not in keys and not _named(name):
            raise InputError(f"--fail-if {text!r}: no number is called {key!r}: {_near(key, sorted(keys))}")
        return cls(text, name, part, match[2], float(match[3]))

    def find(self, result: Sequence[Number]) -> Number:
        """The number of the result that it names; InputError if there is none of this name, or several."""
        dotted = [("." + ".".join(path), (path, parts)) for path, parts in result]  # keys under baseline have dots
        metrics, singles = _named(self.name), [number for number in result if _single(number[0])]
        matches = [number for path, number in dotted if path.endswith(f".{self.name}")]
        # The first kind of match that there is decides: the whole path, an ending that JSON has once, any ending, and
        # last the printed name of a metric.
        for candidates in (
            [number for path, number in dotted if path == f".{self.name}"],
            [number for number in matches if number in singles],
            matches,
            [number for number in singles if number[0][0] != "baseline" and metric_at(number[0]) in metrics],
        ):
            if len(candidates) == 1:
                return candidates[0]
            if candidates:
                n, names = len(candidates), [".".join(path) for path, _ in candidates[:5]]
                listing = ", ".join(names + ["..."] * (n > len(names)))
                raise InputError(f"--fail-if {self.text!r}: {n} numbers match: {listing}; give a longer name")
        estimates_first = sorted(singles, key=lambda number: "method" not in number[1])
        paths = [".".join(path) for path, _ in estimates_first]
        names_in_result = list(dict.fromkeys([*paths, *(path.rpartition(".")[2] for path in paths)]))
        raise InputError(f"--fail-if {self.text!r}: the result has no such number: {_near(self.name, names_in_result)}")

    def failure(self, result: Sequence[Number]) -> str:
        """The number that meets the condition, in one line; empty if it does not hold."""
        path, parts = self.find(result)
        name = ".".join(path) + (f".{self.part}" if self.part != "value" else "")
        if self.part not in parts:
            raise InputError(f"--fail-if {self.text!r}: {'.'.join(path)} has no interval")
        if (value := parts[self.part]) is None:
            note = parts.get("note")
            return f"--fail-if {self.text!r}: {name} is undefined{f' ({note})' if note else ''}"
        holds, value = OPERATORS[self.sign], float(value)
        if not holds(value, self.limit):
            return ""
        digits = 4 if holds(float(f"{value:.4g}"), self.limit) else 12  # rounding must not contradict the condition
        ends = [parts.get(end) for end in ("low", "high")]
        interval = f" ({ends[0]:.4g} to {ends[1]:.4g}, N {parts['n']:,})" if None not in ends else ""
        return f"--fail-if {self.text!r}: {name} is {value:.{digits}g}{interval if self.part == 'value' else ''}"


def failed_conditions(texts: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """A line for each condition that holds, or whose number is undefined.

    Args:
        values: the result as for JSON.

    Raises:
        InputError: if a condition names no number of the result, or several.
    """
    result = list(numbers(values, _NO_RESULT))
    return [line for condition in map(Condition.parse, texts) if (line := condition.failure(result))]


def _single(path: tuple[str, ...]) -> bool:
    """Whether JSON has this number once, rather than for each subject, label or method, or as a part of another."""
    return not {*APART, "variance_components"} & set(path) and not any(part.isdigit() for part in path)


def _named(name: str) -> list[Any]:
    """Metrics by their printed name, with its words in any order: ``mean_over_orders.accuracy``."""
    words = sorted(re.findall(r"\w+", name.lower().replace("_", " ")))
    return [metric for metric in METRICS.values() if sorted(re.findall(r"\w+", metric.name.lower())) == words]


def _near(name: str, names: Sequence[str]) -> str:
    """:func:`one_of` without its list, or if no name is near, with those that contain it, or with the first."""
    near = one_of(name, names)
    if near.startswith("did you mean"):
        return near.partition("? ")[0] + "?"
    names = [one for one in names if name.lower() in one.lower()] or names
    return f"use one of {', '.join(names[:MOST_NAMES])}{', ...' * (len(names) > MOST_NAMES)}; see docs/metrics.md"
