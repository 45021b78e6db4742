"""Runs side by side: what each scores, how they differ, how they rank, and whether another ranking agrees."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from unslant.errors import InputError
from unslant.experiment.provenance import settings_rows
from unslant.experiment.result import Paired, RecordedResult, StudyResult, write_each
from unslant.metrics import Estimate, Metric, Numbers, PairedDifference, Verdict, agreement, verdict
from unslant.metrics.registry import metric_at
from unslant.reports import Chart, Column, Figure, Page, Plot, model_charts
from unslant.reports.numbers import count

EQUAL = 1e-12
"""Scores nearer than this are a tie: rounding."""
UNPAIRED = "unpaired: from the intervals of both, approximate (Zou and Donner 2008)"

T = TypeVar("T", bound=RecordedResult)


@dataclass(frozen=True)
class Comparison:
    """Runs of one study, each as its numbers.

    Attributes:
        runs: name -> metric key -> value, in the order shown; differences are from the first.
        metrics: keys of the metrics compared.
        pairing: differences of one run from another, by name, on the questions of both; None where there are none. By
            default differences come from the intervals of both.
        ranking: scores of the runs elsewhere, higher is better; empty without another ranking.

    Example:
        >>> runs = {name: {"accuracy": Estimate.bare(value, 9, "made")} for name, value in (("a", 0.5), ("b", 0.75))}
        >>> Comparison(runs, ["accuracy"]).ranks("accuracy")
        {'a': 2, 'b': 1}
    """

    runs: Mapping[str, Mapping[str, Any]]
    metrics: Sequence[str]
    pairing: Callable[[str, str], Paired | None] | None = None
    ranking: Mapping[str, float] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """Name of the run that the others are compared with."""
        return next(iter(self.runs))

    def scores(self, key: str) -> dict[str, Estimate]:
        """One metric of every run."""
        return {name: numbers[key] for name, numbers in self.runs.items()}

    def best_first(self, key: str) -> tuple[str, ...]:
        """Names of the runs by one metric; those where it is undefined last."""
        scores = self.scores(key)
        return tuple(sorted(scores, key=lambda name: -scores[name].value if scores[name].defined else math.inf))

    def ranks(self, key: str) -> dict[str, int | None]:
        """1 for the highest; equal ones share a rank, None for those undefined."""
        scores = self.scores(key)
        return dict(zip(scores, ranks_of(list(scores.values())), strict=True))

    @cached_property
    def pairs(self) -> Mapping[str, Paired | None]:
        """How each other run differs from the first on the questions of both, where these can be compared."""
        return {name: self.pairing(name, self.base) if self.pairing else None for name in list(self.runs)[1:]}

    @cached_property
    def differences(self) -> tuple[tuple[str, PairedDifference], ...]:
        """Run and difference from the first run, metric by metric."""
        every = [(name, one) for name, pairs in self.pairs.items() for one in self._differences(name, pairs)]
        place = {key: i for i, key in enumerate(dict.fromkeys((*self.metrics, *(one.measure for _, one in every))))}
        return tuple(sorted(every, key=lambda pair: place[pair[1].measure]))

    def _differences(self, name: str, pairs: Paired | None) -> Sequence[PairedDifference]:
        if pairs is not None:
            return pairs.differences
        both = [(key, self.runs[name].get(key), self.runs[self.base].get(key)) for key in self.metrics]
        return [
            PairedDifference(key, now, before, unpaired_difference(now, before), 0, 0, math.nan, 0)
            for key, now, before in both
            if isinstance(now, Estimate) and isinstance(before, Estimate) and now.defined and before.defined
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the differences have to be read with."""
        return tuple(dict.fromkeys(remark for pairs in self.pairs.values() if pairs for remark in pairs.remarks))

    def agreement(self, key: str) -> Numbers | None:
        """Of one metric with the other ranking, over the runs in both; None without one."""
        scores = {name: score.value for name, score in self.scores(key).items()}
        return agreement(scores, self.ranking) if self.ranking else None

    @property
    def unranked(self) -> list[str]:
        """A note on the runs that the other ranking does not hold, if any."""
        missing = [name for name in self.runs if name not in self.ranking]
        if not missing or not self.ranking:
            return []
        names = ", ".join(sorted(self.ranking))
        return [f"Not in the ranking by this name: {', '.join(missing)}; it holds {names}."]

    def figure(
        self, id: str, title: str, columns: Sequence[str | Column], plots: Sequence[Plot | Chart] = ()
    ) -> Figure:
        """One row a run: its numbers."""
        rows = [{"model": name, **numbers} for name, numbers in self.runs.items()]
        return Figure(id, title, ["model"], columns, rows, plots)

    def by_run(
        self,
        id: str,
        title: str,
        names: Sequence[str],
        values: Mapping[tuple[str, ...], Mapping[str, Any]],
        metric: Metric,
        plots: Sequence[Plot | Chart] = (),
        *,
        folded: bool = False,
    ) -> Figure:
        """One column a run.

        Args:
            names: columns that name a row.
            values: cells under ``names`` -> run -> value.
        """
        columns = [Column(name, metric) for name in self.runs]
        rows = [{**dict(zip(names, cells, strict=True)), **by_run} for cells, by_run in values.items()]
        return Figure(id, title, names, columns, rows, plots, folded=folded)

    @property
    def paired(self) -> bool:
        """Whether answers to the same question were compared."""
        return any(pairs is not None for pairs in self.pairs.values())

    def difference_figure(
        self, id: str, title: str, plots: Sequence[Plot | Chart] = (), explanation: str = ""
    ) -> Figure:
        """One row a metric and run: its value in the first run and in this one, and the difference.

        Plots find the short name of the metric under ``label``.
        """
        two = len(self.runs) == 2
        before, now = list(self.runs) if two else (self.base, "this run")
        columns = [Column(before, key="b"), Column(now, key="a"), Column.of("difference")]
        if self.paired:
            only = "questions where the measure holds only for this one"
            columns += [Column(f"only {now}", 3, only, "only_a"), Column(f"only {before}", 3, only, "only_b")]
            columns += [Column.of("p_value", "McNemar p")]
            columns += [Column("left out", 3, "questions missing or undefined in either", "n_unpaired")]
        metrics = [metric_of(pair.measure) for _, pair in self.differences]
        rows = []
        for (run, pair), metric in zip(self.differences, metrics, strict=True):
            counts = dict.fromkeys(("only_a", "only_b")) if math.isnan(pair.p_value) else {}  # not yes or no
            rows.append({**vars(pair), **counts, "metric": metric.name, "label": metric.label, "run": run})
        names = ["metric"] if two else ["metric", "run"]
        return Figure(id, title, names, columns, rows, plots, explanation, by_row=tuple(metrics))


def metric_of(key: str) -> Metric:
    """The record of a metric, by its key or by its path in JSON."""
    metric = metric_at(tuple(key.split(".")))
    if metric is None:
        raise KeyError(key)
    return metric


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


def lead(names: Sequence[str], difference: Callable[[str, str], Estimate]) -> Verdict:
    """Whether the first of several is ahead of all others: the verdict on the lead that is hardest to show.

    Corrected for all pairs, because the first is picked as the best of them.

    Args:
        names: two or more, the best first.
        difference: of two, paired by question.
    """
    first, *others = names
    pairs = len(names) * len(others) // 2
    return min(
        (verdict(difference(first, other), looked_at=pairs) for other in others),
        key=lambda one: (one.differs, one.estimate.value),
    )


def ranks_of(scores: Sequence[Estimate]) -> list[int | None]:
    """1 for the highest; equal ones share a rank, None for those undefined."""
    return [
        1 + sum(other.value > one.value + EQUAL for other in scores if other.defined) if one.defined else None
        for one in scores
    ]


def slope_chart(
    id: str, places: Sequence[tuple[str, int | None, int | None]], n: int, now: str = "mean over orders"
) -> tuple[Chart, ...]:
    """Name, published rank and rank over orders of each model, one line each; nothing for fewer than two."""
    known = [(name, before, after) for name, before, after in places if before is not None and after is not None]
    chart = Chart(
        id,
        "From the published rank to the rank over all orders",
        "One line a model, the best at the top; those that change rank are highlighted.",
        lambda style: model_charts.slopes(known, style, ends=("as published", now), n=n),
    )
    return (chart,) if len(known) > 1 else ()


def agreements(id: str, title: str, found: Mapping[tuple[str, ...], Numbers | None], *names: str) -> Figure:
    """A table of correlations: the cells under ``names`` -> correlation; those that are None are left out."""
    keys = ["kendall", "kendall_p", "pearson", "pearson_p"]
    rows = [
        {**dict(zip(names, cells, strict=True)), **one.cells(*keys)} for cells, one in found.items() if one is not None
    ]
    return Figure(id, title, names, keys, rows)


def check_comparable(results: Sequence[RecordedResult], settings: Collection[str] | None = None) -> None:
    """Refuse results of different questions or of different settings.

    Args:
        settings: those that must agree; by default all.

    Raises:
        InputError: naming the models, and what differs.
    """
    first = results[0].run
    for other in (result.run for result in results[1:]):
        differ = ["questions"] * (other.questions_digest != first.questions_digest)
        differ += ["settings"] * (settings is None and other.settings != first.settings)
        differ += [key for key in settings or () if other.settings.get(key) != first.settings.get(key)]
        if differ:
            one, two = first.model or "model", other.model or "model"
            raise InputError(f"{one} and {two} cannot be compared: their {differ[0]} differ")


def check_one_of_each(results: Sequence[RecordedResult]) -> None:
    """Refuse no results, and two of one model.

    Raises:
        InputError: naming the models.
    """
    if not results:
        raise InputError("nothing to compare: give the responses of one model or more")
    names = [name_of(result) for result in results]
    if len(set(names)) < len(names):
        raise InputError(f"two of the results are of one model: {', '.join(names)}")


def name_of(result: RecordedResult) -> str:
    """Name of the model of a result."""
    return result.run.model or "model"


@dataclass(frozen=True)
class ComparedModels(StudyResult, Generic[T]):
    """Results of several models on the same questions, one of each.

    Attributes:
        results: in the order shown.
        ranking: scores of the models elsewhere; empty without another ranking.
    """

    unwritten = ("results",)

    results: tuple[T, ...]
    ranking: Mapping[str, float]

    @property
    def parts(self) -> Sequence[T]:
        return self.results

    @property
    def models(self) -> dict[str, T]:
        """Name -> result."""
        return {name_of(result): result for result in self.results}

    def to_dict(self) -> dict[str, Any]:
        """Every number, JSON-able."""
        return super().to_dict() | {"models": {name: result.to_dict() for name, result in self.models.items()}}

    def to_parquet(self, path: str | Path) -> None:
        """Write one table of responses for each model, as ``NAME-MODEL``."""
        write_each(self.results, path)

    def with_models(self, page: Page) -> Page:
        """The page with the names, settings and notes of all models."""
        names = ", ".join(self.models)
        settings = settings_rows(replace(self.results[0].run, model=names))
        return replace(page, settings=settings, name=names, compared=tuple(self.models))

    @property
    def size(self) -> str:
        """``3 models``."""
        return count(len(self.results), "model")
