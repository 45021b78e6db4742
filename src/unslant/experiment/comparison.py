"""Runs side by side: their scores, differences and ranks, and the agreement with another ranking."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from unslant.arrays import Floats, Ints, jsonable
from unslant.errors import InputError
from unslant.experiment.page_parts import settings_rows
from unslant.experiment.result import Paired, RecordedResult, StudyResult, write_tables
from unslant.metrics import Bootstrap, Estimate, Metric, Numbers, PairedDifference, Verdict, agreement, verdict
from unslant.metrics.association import BY_DEFAULT, Kind
from unslant.metrics.catalogue import metric_at
from unslant.metrics.estimate import CONFIDENCE
from unslant.reports import Chart, Column, Figure, Page, Plot, charts
from unslant.reports.numbers import count, listed
from unslant.responses import Responses

EQUAL = 1e-12
"""Scores nearer than this count as tied: the rest is rounding."""
UNPAIRED = "unpaired: from the intervals of both, approximate (Zou and Donner 2008)"

T = TypeVar("T", bound=RecordedResult)


@dataclass(frozen=True)
class Comparison:
    """Runs of one study, each as its numbers.

    Attributes:
        runs: name -> metric key -> value, in display order; differences are from the first.
        metrics: keys of the metrics compared.
        pairing: differences of one run from another, by name, on the questions of both, if these can be compared; by
            default differences come from the intervals of both.
        ranking: scores of the runs elsewhere, higher is better; empty without another ranking.

    Examples:
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
        """Names of the runs by one metric; runs where it is undefined come last."""
        scores = self.scores(key)
        return tuple(sorted(scores, key=lambda name: -scores[name].value if scores[name].defined else math.inf))

    def ranks(self, key: str) -> dict[str, int | None]:
        """1 for the highest; equal scores share a rank, undefined ones have None."""
        scores = self.scores(key)
        return dict(zip(scores, ranks_of(list(scores.values())), strict=True))

    @cached_property
    def pairs(self) -> Mapping[str, Paired | None]:
        """Name of each other run -> differences from the first on the questions of both, if these can be compared."""
        return {name: self.pairing(name, self.base) if self.pairing else None for name in list(self.runs)[1:]}

    @cached_property
    def differences(self) -> tuple[tuple[str, PairedDifference], ...]:
        """Run and difference from the first run, metric by metric."""
        pairs = [(name, pair) for name, paired in self.pairs.items() for pair in self._differences(name, paired)]
        keys = list(dict.fromkeys((*self.metrics, *(pair.measure for _, pair in pairs))))
        return tuple(sorted(pairs, key=lambda named: keys.index(named[1].measure)))

    def _differences(self, name: str, paired: Paired | None) -> Sequence[PairedDifference]:
        if paired is not None:
            return paired.differences
        both = [(key, self.runs[name].get(key), self.runs[self.base].get(key)) for key in self.metrics]
        return [
            PairedDifference(key, now, before, unpaired_difference(now, before), 0, 0, math.nan, 0)
            for key, now, before in both
            if isinstance(now, Estimate) and isinstance(before, Estimate) and now.defined and before.defined
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Caveats for reading the differences."""
        return tuple(dict.fromkeys(remark for pairs in self.pairs.values() if pairs for remark in pairs.remarks))

    def agreement(self, key: str, kinds: Sequence[Kind] = BY_DEFAULT) -> Numbers | None:
        """Agreement of one metric with the other ranking, over the runs in both; None without such a ranking."""
        scores = {name: score.value for name, score in self.scores(key).items()}
        return agreement(scores, self.ranking, kinds) if self.ranking else None

    @property
    def unranked(self) -> list[str]:
        """A note on the runs that are missing from the other ranking, if any."""
        missing = [name for name in self.runs if name not in self.ranking]
        if not missing or not self.ranking:
            return []
        names = ", ".join(sorted(self.ranking))
        return [f"Not in the ranking under this name: {', '.join(missing)}; the ranking has {names}."]

    def figure(
        self, id: str, title: str, columns: Sequence[str | Column], plots: Sequence[Plot | Chart] = ()
    ) -> Figure:
        """A figure with one row per run."""
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
        """A figure with one column per run.

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
        """A figure with one row per metric and run: its value in the first run and in this one, and the difference.

        Rows have the short name of the metric under ``label``, for plots.
        """
        two = len(self.runs) == 2
        before, now = self.runs if two else (self.base, "this run")
        columns = [Column(before, key="b"), Column(now, key="a"), Column.of("difference")]
        if self.paired:
            only = "questions where the measure holds only for this one"
            columns += [Column(f"only {now}", 3, only, "only_a"), Column(f"only {before}", 3, only, "only_b")]
            columns += [Column.of("p_value")]
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

    The interval combines the distances of both values to the ends of their intervals (MOVER, Zou and Donner 2008). On
    the same questions answers are usually correlated, which makes this interval too wide.
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


def mean_over_sets(
    bootstrap: Bootstrap,
    values: Floats,
    weights: Floats,
    sets: Ints,
    bounds: tuple[float, float],
    confidence: float = CONFIDENCE,
    swings: bool = False,
) -> Estimate:
    """Mean of (Q,) values over sets that count the same, however few questions they have.

    Five answers that are alike do not show how far their set varies, though they may weigh as much as 100 others. The
    mean over small sets therefore has an interval of its own, combined with that of the others (MOVER).

    Args:
        weights: (Q,) of the questions; 0 for those that do not count.
        sets: (Q,) number of the set of each question.
        bounds: least and greatest value, where the interval of a part ends that has none of its own.
        confidence, swings: see :meth:`~unslant.metrics.Bootstrap.mean`.
    """
    options: dict[str, Any] = {"bounds": bounds, "confidence": confidence, "swings": swings}
    whole = bootstrap.ratio(values * weights, weights, room="bounds, unsure", **options)
    present, sizes = np.unique(sets[weights > 0], return_counts=True)
    small = np.isin(sets, present[_SMALL * sizes < sizes.mean()])
    if not small.any() or math.isnan(whole.low):
        return whole
    below, above = 0.0, 0.0
    for some in (small, ~small):
        part, share = mean_over_sets(bootstrap, values, weights * some, sets, **options), weights @ some / weights.sum()
        below = math.hypot(below, share * (part.value - np.fmax(part.low, bounds[0])))
        above = math.hypot(above, share * (np.fmin(part.high, bounds[1]) - part.value))
    return replace(whole, low=min(whole.low, whole.value - below), high=max(whole.high, whole.value + above))


_SMALL = 2
"""Questions of the average set for each of a small one, or more."""


def lead(names: Sequence[str], difference: Callable[[str, str], Estimate]) -> Verdict:
    """Whether the first of several is ahead of all others: the verdict on its least certain lead.

    Args:
        names: two or more, the best first.
        difference: of two, paired by question.
    """
    first, *others = names
    # All pairs count as looked at, not only those of the first: it was picked as the best after looking at them.
    pairs = len(names) * len(others) // 2
    return min(
        (verdict(difference(first, other), looked_at=pairs) for other in others),
        key=lambda claim: (claim.differs, claim.estimate.value),
    )


def ranks_of(scores: Sequence[Estimate]) -> list[int | None]:
    """1 for the highest; equal scores share a rank, undefined ones have None."""
    return [
        1 + sum(other.value > score.value + EQUAL for other in scores if other.defined) if score.defined else None
        for score in scores
    ]


def slope_chart(
    id: str, places: Sequence[tuple[str, int | None, int | None]], n: int, now: str = "mean over orders"
) -> tuple[Chart, ...]:
    """A line for each model from its published rank to its rank over orders; nothing for fewer than two."""
    ranked = [(name, before, after) for name, before, after in places if before is not None and after is not None]
    chart = Chart(
        id,
        "From the published rank to the rank over all orders",
        "One line a model, the best at the top; those that change rank are highlighted.",
        lambda style: charts.slopes(ranked, style, ends=("as published", now), n=n),
    )
    return (chart,) if len(ranked) > 1 else ()


def agreements(id: str, title: str, values: Mapping[tuple[str, ...], Numbers | None], *names: str) -> Figure:
    """A table of correlations: cells under ``names`` -> correlation; those that are None are left out."""
    defined = {cells: numbers.cells() for cells, numbers in values.items() if numbers is not None}
    rows = [{**dict(zip(names, cells, strict=True)), **numbers} for cells, numbers in defined.items()]
    return Figure(id, title, names, list(next(iter(defined.values()), ())), rows)


def check_whole(results: Sequence[RecordedResult] | Sequence[Responses]) -> None:
    """Raise InputError for shards of one run: they share no question, and are one result once merged."""
    by_run: dict[tuple[str, str], set[int]] = {}
    for run in (result.run for result in results):
        if run.shard:
            shards = by_run.setdefault((run.model, run.shard.digest), set())
            shards.add(run.shard.index)
            if len(shards) > 1:
                numbers = listed([str(index) for index in sorted(shards)])
                reason = f"of {run.shard.of} of one run of {run.name}"
                raise InputError(f"shards {numbers} {reason}: join them first, with unslant merge MERGED SHARDS...")


def check_comparable(results: Sequence[RecordedResult], settings: Collection[str] | None = None) -> None:
    """Raise InputError for results of different questions or settings, naming the models and what differs.

    Args:
        settings: those that must agree; by default all.
    """
    first = results[0].run
    for other in (result.run for result in results[1:]):
        differ = ["questions"] * (other.questions_digest != first.questions_digest)
        differ += ["settings"] * (settings is None and other.settings != first.settings)
        differ += [key for key in settings or () if other.settings.get(key) != first.settings.get(key)]
        if differ:
            one, two = first.model or "model", other.model or "model"
            raise InputError(f"{one} and {two} cannot be compared: their {differ[0]} differ")


class ComparedResult(StudyResult):
    """A result that compares others: those of its field ``results``, unless it names other parts."""

    results: tuple[Any, ...]

    @property
    def named_parts(self) -> Sequence[tuple[str, RecordedResult]]:
        """The results that this one compares, each after the name of its table: by default its model."""
        return [(result.model, result) for result in self.results]

    @property
    def parts(self) -> Sequence[StudyResult]:
        return [part for _, part in self.named_parts]

    def to_parquet(self, path: str | Path) -> None:
        """Write one table of responses for each part, as ``NAME-PART``, for ``--log``."""
        write_tables(self.named_parts, path)


@dataclass(frozen=True)
class ComparedModels(ComparedResult, Generic[T]):
    """Results of several models on the same questions, one of each.

    Attributes:
        results: in display order.
        ranking: scores of the models elsewhere, higher is better; empty without another ranking.
        ranked_by: the metric of :attr:`comparison` that decides the order.
        asked: settings that decide what is asked, and must agree; by default all.
        written: properties that JSON has among the fields.
    """

    unwritten = ("results",)
    ranked_by: ClassVar[str]
    asked: ClassVar[Collection[str] | None] = None
    written: ClassVar[tuple[str, ...]] = ()

    results: tuple[T, ...]
    ranking: Mapping[str, float]

    @classmethod
    def of(cls, results: Sequence[T], ranking: Mapping[str, float] | None = None) -> Self:
        """Results side by side, the best first.

        Raises:
            InputError: if there is no result, two are of one model, or they are of different questions or settings.
        """
        if not results:
            raise InputError("nothing to compare: give the responses of one model or more")
        check_whole(results)
        names = [result.model for result in results]
        if len(set(names)) < len(names):
            raise InputError(f"two results are of the same model: {', '.join(names)}")
        check_comparable(results, cls.asked)
        unsorted = cls(tuple(results), dict(ranking or {}))
        order = unsorted.comparison.best_first(cls.ranked_by)
        return replace(unsorted, results=tuple(unsorted.models[name] for name in order))

    @property
    def comparison(self) -> Comparison:
        """The scores of every model."""
        raise NotImplementedError

    @property
    def answered(self) -> StudyResult | None:
        rest = [result for result in self.results if not result.failure]
        return self.of(rest, self.ranking) if rest else None

    @property
    def models(self) -> dict[str, T]:
        """Name -> result."""
        return {result.model: result for result in self.results}

    def to_dict(self) -> dict[str, Any]:
        """Every number, JSON-able."""
        models = {name: result.to_dict() for name, result in self.models.items()}
        return super().to_dict() | {name: jsonable(getattr(self, name)) for name in self.written} | {"models": models}

    def with_models(self, page: Page) -> Page:
        """The page with the names, settings and notes of all models."""
        names = ", ".join(self.models)
        settings = settings_rows(replace(self.results[0].run, model=names))
        return replace(page, settings=settings, name=names, compared=tuple(self.models))

    @property
    def size(self) -> str:
        """``3 models``."""
        return count(len(self.results), "model")
