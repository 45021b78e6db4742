"""How often the intervals of an audit hold the true value: a simulation of many audits of models whose habit is known.

    python -m benchmarks.coverage [--repeats 1000] [--questions 20 60 400] [--only NAME...] [--write docs/intervals.md]
    python -m benchmarks.coverage --strong [--write docs/intervals.md]

For each kind of question set and each planted model (``benchmarks/planted.py``), a pool of questions is answered, whose
own values are the truth. Each repeat draws N of its questions at random (within subjects, in proportion to them, or
whole contexts, where the set has these) and computes every interval as an audit does. What is printed without an
interval is not counted.

``--strong`` is about models that know nearly everything and take A otherwise, for 5 to 500 questions.

*Edge* cases are shown apart: fewer than five of the N questions, on average, have a value at all, differ from all the
others, or make up the variance (N divided by the kurtosis). An interval that holds the truth even when a sample happens
to show none of these holds it nearly always.

Each interval is also compared with the better of Wilson's (of the mean as if of N yes-or-no answers) and Student's: the
narrower of those that cover at least 0.93 themselves, or the one that covers more where neither does.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isnan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from benchmarks.planted import Planted, at, none, planted_scores
from unslant.metrics import Bootstrap, Estimate, OrderScores, measure, wilson
from unslant.metrics.bootstrap import DIFFERENCE, SHARE, UNBOUNDED, Room, spread_answers
from unslant.metrics.labels import at_slot, effects_of, given_slots, order_slots, place_shares
from unslant.metrics.nvr import nvr_values
from unslant.metrics.permutation import unsure_questions
from unslant.metrics.registry import bounds_of, question_metrics

Floats = NDArray[np.float64]

MODELS: Mapping[str, Planted] = {
    "always A": Planted(label=at(0, 60), knows=0, hard=True),
    "A when unsure": Planted(label=at(0, 6)),
    "mostly A, at chance": Planted(label=at(0), knows=0),
    "mildly A": Planted(label=at(0, 0.4)),
    "mostly A, knows 95 %": Planted(label=at(0), knows=0.95),
    "fair": Planted(),
    "fair, at chance": Planted(knows=0),
    "fair, knows 95 %": Planted(knows=0.95),
}
"""From always A to fair."""
STRONG: Mapping[str, Planted] = {
    f"{habit}, knows {100 * known:.0f} %{words}": Planted(label=at(0, pull), knows=known, sure=sure)
    for habit, words, pull, sure in (
        ("always A", "", 60, 90),
        ("mostly A", "", 2.5, 12),
        ("always A", ", moderately sure", 6, 10),
        ("mostly A", ", hardly sure", 2.5, 4),
    )
    for known in (0.9, 0.95, 0.97, 0.99)
} | {
    f"mostly A, one in five mildly, knows {100 * known:.0f} %": Planted(
        label=at(0, 6), others=((at(0, 1), none),), which=lambda subject, rng: rng.integers(5, size=len(subject)) // 4,
        knows=known, sure=20,
    )
    for known in (0.9, 0.95, 0.97, 0.99)
}  # fmt: skip
"""Models that take A where they do not know: in the last, four unsure questions in five look like known ones."""
NUMBERS = (
    "accuracy", "expected_accuracy", "order_advantage", "price of the habit", "vote_accuracy", "robust_accuracy", "pbm",
    "normalised_pbm", "fr", "margin", "confidence, given order", "Brier score", "predicted A, given order",
    "recall A, given order", "first position, nats", "mean over orders less chance", "pbm less that before debiasing",
)  # fmt: skip
"""Those of the table in docs/intervals.md."""
STRONG_NUMBERS = ("expected_accuracy", "pbm", "normalised_pbm", "margin", "confidence, given order")
STRONG_QUESTIONS = (5, 10, 20, 50, 100, 200, 500)
LEAST, MOST = 0.93, 0.985
"""What the coverage of usual cases has to lie between; edge cases may have more."""
WIDER = 1.5
"""How much wider than the better of Wilson and t an interval may be."""
EDGE = 5
POOL = 19_950
"""A multiple of all numbers of subjects and of questions a context."""


@dataclass(frozen=True)
class Set:
    """A kind of question set: numbers of options, subjects, and questions that share a context."""

    sizes: tuple[int, ...] = (4,)
    subjects: int = 1
    context: int = 1
    limit: bool = False

    def scores(self, model: Planted) -> OrderScores:
        """The pool; with subjects or contexts, these differ in what is known of them."""
        spread = 0.3 * (self.subjects > 1 or self.context > 1)
        how = {"subjects": self.subjects, "context": self.context, "spread": spread}
        return planted_scores(model, POOL, self.sizes, seed=1, **how)

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """N rows of the pool."""
        if self.context > 1:
            first = rng.integers(POOL // self.context, size=n // self.context) * self.context
            return (first[:, None] + np.arange(self.context)).ravel()
        if self.limit:
            size = POOL // self.subjects  # of a subject; see unslant.questions.loaders.sample
            places = (np.arange(size)[:, None] + rng.random(self.subjects)) / size
            drawn = np.bincount(np.argsort(places, axis=None)[:n] % self.subjects, minlength=self.subjects)
            rows = [rng.permutation(size)[:k] * self.subjects + s for s, k in enumerate(drawn)]
            return np.concatenate(rows)
        if self.subjects > 1:
            stride = len(self.sizes) * self.subjects
            places = rng.integers(POOL // stride, size=n) * stride
            return places + np.arange(n) % self.subjects * len(self.sizes)
        return rng.integers(POOL, size=n)


SETS: Mapping[str, Set] = {
    "4 options": Set(),
    "2 to 8 options": Set((2, 3, 4, 5, 6, 7, 8)),
    "4 options, 10 subjects": Set(subjects=10),
    "4 options, 57 subjects, with a limit": Set(subjects=57, limit=True),
    "4 options, 5 questions a context": Set(context=5),
}


@dataclass(frozen=True)
class Number:
    """One number of an audit, as the sums it is a ratio of: (Q,) each."""

    numerators: Floats
    denominators: Floats
    bounds: tuple[float, float] = SHARE
    swings: bool = False
    room: Room = "bounds, unsure"
    unsure: NDArray[np.bool_] | None = None
    """Questions that show what the model does when unsure, if fewer than for other numbers."""

    @classmethod
    def mean(cls, values: Floats, bounds: tuple[float, float] = SHARE, swings: bool = False) -> Number:
        known = np.isfinite(values)
        return cls(np.where(known, values, 0.0), known.astype(np.float64), bounds, swings)

    @property
    def varies(self) -> bool:
        kept = self.denominators > 0
        return bool(kept.any() and np.ptp(self.numerators[kept] / self.denominators[kept]) > 1e-6)

    def same(self, other: Number) -> bool:
        sums = ((self.numerators, other.numerators), (self.denominators, other.denominators))
        return all(np.array_equal(*pair) for pair in sums)

    @property
    def truth(self) -> float:
        return float(self.numerators.sum() / self.denominators.sum())

    def edge(self, n: int) -> bool:
        """Whether few of n questions, on average, have a value, one that differs from the others', or make it vary."""
        kept = self.denominators > 0
        ratios = self.numerators[kept] / self.denominators[kept]
        width = min(1.0, self.bounds[1] - self.bounds[0])
        _, counts = np.unique(np.round(ratios / (1e-3 * width)), return_counts=True)
        differ = 1 - counts.max() / counts.sum()
        second, fourth = (((ratios - ratios.mean()) ** power).mean() for power in (2, 4))
        vary = second**2 / fourth if fourth > 0 else 0.0
        return bool(n * kept.mean() * min(differ, vary) < EDGE)


def numbers(scores: OrderScores, debiased: OrderScores | None = None) -> dict[str, Number]:
    """Every number that an audit prints with an interval; the differences to ``debiased``, too, if that is given.

    Those that are the same for every question, or equal to others, are left out.
    """
    values = measure(scores)
    found = {one.key: Number.mean(values[one.key], one.bounds, one.swings) for one in question_metrics()}
    price = values["vote_accuracy"] - values["expected_accuracy"]
    found["price of the habit"] = Number.mean(price, DIFFERENCE, swings=True)
    found["vote less as reported"] = Number.mean(values["vote_accuracy"] - values["accuracy"], DIFFERENCE)
    chance = values["chance"]
    bounds = -float(chance.max()), 1 - float(chance.min())
    found["mean over orders less chance"] = Number.mean(values["expected_accuracy"] - chance, bounds)
    if debiased is not None:
        now = measure(debiased)
        for name in ("pbm", "fr", "accuracy"):
            low, high = bounds_of(name)
            change = now[name] - values[name]
            found[f"{name} less that before debiasing"] = Number.mean(change, (low - high, high - low))
    last = scores.n_options - 1
    for order, slots in (("given order", given_slots(scores)), ("all orders", order_slots(scores))):
        for label, column in (("A", np.zeros(len(scores), np.int64)), ("last", last)):
            predicted, gold, hit = (at_slot(x, column) for x in (slots.predicted, slots.gold, slots.hit))
            found[f"predicted {label}, {order}"] = Number.mean(predicted)
            found[f"recall {label}, {order}"] = Number(np.nan_to_num(hit), np.nan_to_num(gold))
    given = given_slots(scores)
    found["predicted less gold A, given order"] = Number.mean((given.predicted - given.gold)[:, 0], DIFFERENCE)
    confidence = np.where(np.isfinite(values["accuracy"]), scores.given.probs.max(axis=1), np.nan)
    found["confidence, given order"] = Number.mean(confidence, (1 / scores.width, 1.0))
    brier, wrong = Number.mean((confidence - values["accuracy"]) ** 2), values["accuracy"] == 0
    found["Brier score"] = replace(brier, unsure=spread_answers(scores) & wrong)
    unsure = unsure_questions(scores)
    found["unsure"] = Number.mean(unsure)
    if nats := effects_of(scores, unsure).get("nats"):
        found["label A, nats"] = Number.mean(nats.labels[:, 0], UNBOUNDED)
        found["first position, nats"] = Number.mean(nats.positions[:, 0], UNBOUNDED)
    found["A chosen when unsure"] = Number.mean(place_shares(scores, unsure)[0][:, 0])
    right = nvr_values(scores)
    found["Nvr-A"] = Number.mean(right[:, 0])
    distinct: dict[str, Number] = {}
    for name, number in found.items():
        if name in ("Nvr-A", "vote less as reported"):
            number = replace(number, room="bounds")
        elif name.startswith(("predicted", "recall", "A chosen")):
            number = replace(number, room="unsure")
        if name != "chance" and number.varies and not any(number.same(other) for other in distinct.values()):
            distinct[name] = number
    return distinct


@dataclass(frozen=True)
class Coverage:
    """How one number fared: share of intervals that hold the truth, share of repeats with an interval.

    Attributes:
        wider: mean width over that of the better of Wilson's and Student's interval; nan with contexts.
        least: what this is at least for any interval that covers :data:`LEAST` of every population.
    """

    number: str
    set: str
    model: str
    n: int
    covered: float
    printed: float
    edge: bool
    wider: float
    least: float = 0.0

    @property
    def too_wide(self) -> bool:
        return self.wider > WIDER >= self.least


@lru_cache(maxsize=1)
def _pool(name: str, model: str) -> tuple[OrderScores, dict[str, Number]]:
    """The pool and its numbers, for all N."""
    kind, planted = SETS[name], {**MODELS, **STRONG}[model]
    scores = kind.scores(planted)
    debiased = None if model in STRONG else kind.scores(replace(planted, label=none, hard=False))
    return scores, numbers(scores, debiased)


class _Tally:
    """Intervals of one number and one way: how many there are, hold the truth, and how wide they are together."""

    def __init__(self) -> None:
        self.printed = self.covered = 0
        self.width = 0.0

    def add(self, low: float, high: float, truth: float) -> None:
        if np.isfinite(low):
            self.printed += 1
            self.covered += low - 1e-9 <= truth <= high + 1e-9
            self.width += high - low

    @property
    def coverage(self) -> float:
        return self.covered / self.printed if self.printed else float("nan")


def cover(name: str, model: str, n: int, repeats: int, seed: int = 0, only: Sequence[str] = ()) -> Iterator[Coverage]:
    """Coverage of every number, or of ``only`` some, for one kind of set, one model, and N questions."""
    kind = SETS[name]
    scores, found = _pool(name, model)
    found = {key: number for key, number in found.items() if not only or key in only}
    subjects, contexts = np.asarray(scores.subjects), np.arange(len(scores)) // kind.context
    unsure = spread_answers(scores)
    rng = np.random.default_rng([seed, n])
    tallies = {key: (_Tally(), _Tally(), _Tally()) for key in found}
    for _ in range(repeats):
        rows = kind.draw(n, rng)
        # a context that is drawn twice is two contexts
        drawn = [f"{c}/{i}" for i, c in enumerate(contexts[rows[:: kind.context]]) for _ in range(kind.context)]
        passages = drawn if kind.context > 1 else None
        bootstrap = Bootstrap(len(rows), subjects[rows].tolist(), contexts=passages, unsure=unsure[rows])
        for key, number in found.items():
            estimate = interval(bootstrap, number, rows)
            usual, *others = tallies[key]
            usual.add(estimate.low, estimate.high, number.truth)
            for other, (low, high) in zip(others, plain_intervals(number, rows), strict=True):
                other.add(low, high, number.truth)
    for key, number in found.items():
        usual, *others = tallies[key]
        valid = [one for one in others if one.coverage >= LEAST] or [max(others, key=lambda one: one.coverage)]
        width = min(one.width / max(1, one.printed) for one in valid)
        wider = usual.width / max(1, usual.printed) / width if width > 0 and kind.context == 1 else float("nan")
        least = least_width(n, number.bounds) / width if width > 0 and kind.context == 1 else 0.0
        yield Coverage(key, name, model, n, usual.coverage, usual.printed / repeats, number.edge(n), wider, least)


def least_width(n: int, bounds: tuple[float, float]) -> float:
    """Least mean width, in any population, of an interval that covers :data:`LEAST` of all with these bounds.

    Of n > 1 questions. The proof is in ``docs/intervals.md``.
    """
    (floor, ceiling), missed = bounds, 1 - LEAST
    if not np.isfinite(ceiling - floor):
        return 0.0
    share = 1 - (missed / LEAST) ** (1 / n)  # where the integrand, LEAST - missed / (1 - share)^n, is 0
    return (ceiling - floor) * (LEAST * share - (LEAST * (1 - share) - missed) / (n - 1))


def plain_intervals(number: Number, rows: NDArray[np.intp]) -> Iterator[tuple[float, float]]:
    """Wilson's interval, as if each question were yes or no, and Student's, without anything else known."""
    over, under = number.numerators[rows], number.denominators[rows]
    kept, (floor, ceiling) = under > 0, number.bounds
    n = int(kept.sum())
    if n < 2:
        yield from ((np.nan, np.nan),) * 2
        return
    value = over[kept].sum() / under[kept].sum()
    error = np.sqrt(((over - value * under)[kept] ** 2).sum() * n / (n - 1)) / under[kept].sum()
    if np.isfinite(ceiling - floor):
        shares = wilson(min(1.0, max(0.0, (value - floor) / (ceiling - floor))), n)
        yield floor + (ceiling - floor) * shares.low, floor + (ceiling - floor) * shares.high
    else:
        yield np.nan, np.nan
    half = float(stdtrit(n - 1, 0.975)) * error
    yield max(floor, value - half), min(ceiling, value + half)


def interval(bootstrap: Bootstrap, number: Number, rows: NDArray[np.intp]) -> Estimate:
    """The number of some rows of the pool."""
    numerators, denominators = number.numerators[rows], number.denominators[rows]
    bootstrap = bootstrap if number.unsure is None else bootstrap.knowing(number.unsure[rows])
    return bootstrap.ratio(numerators, denominators, bounds=number.bounds, swings=number.swings, room=number.room)


def table(results: Sequence[Coverage]) -> str:
    """Coverage of each number for each kind of set and N: least to greatest over models; edge cases below."""
    cells = sorted({(r.set, r.n) for r in results}, key=lambda cell: (list(SETS).index(cell[0]), cell[1]))
    heads = [f"{name}, N = {n}" for name, n in cells]
    lines = ["| number | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for key in dict.fromkeys(r.number for r in results):
        row = []
        for cell in cells:
            own = [r for r in results if r.number == key and (r.set, r.n) == cell and r.printed >= 0.01]
            usual, edge = ([r.covered for r in own if r.edge == is_edge] for is_edge in (False, True))
            parts = [f"{min(usual):.3f} to {max(usual):.3f}"] if usual else []
            parts += [f"(edge: {min(edge):.3f} and more)"] if edge else []
            row.append(" ".join(parts) or "no interval")
        lines.append(f"| {key} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def strong_table(results: Sequence[Coverage]) -> str:
    """Coverage of each number of each strong model by N, and the width over that of the better of Wilson and t.

    Edge cases have a star.
    """
    sizes = sorted({r.n for r in results})
    lines = ["| number | model | " + " | ".join(f"N = {n}" for n in sizes) + " |", "|---" * (len(sizes) + 2) + "|"]
    for key, model in dict.fromkeys((r.number, r.model) for r in results):
        own = {r.n: r for r in results if (r.number, r.model) == (key, model)}
        cells = [f"{own[n].covered:.3f}{'*' * own[n].edge} ({own[n].wider:.2f})" for n in sizes]
        lines.append(f"| {key} | {model} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def outside(results: Sequence[Coverage], repeats: int) -> list[Coverage]:
    """What does not lie where it should, the simulation's own error (two standard errors) allowed for."""
    below, above = (2 * (share * (1 - share) / repeats) ** 0.5 for share in (0.95, MOST))
    return [
        r
        for r in results
        if r.printed >= 0.05 and (r.covered < LEAST - below or (not r.edge and r.covered > MOST + above) or r.too_wide)
    ]


def exceptions(cells: Sequence[Coverage]) -> str:
    """What lies outside, as a list: each with its coverage and its relative width."""
    lines = [f"Outside {LEAST} to {MOST}, or more than {WIDER} times as wide:", ""]
    for number, kind, model in dict.fromkeys((r.number, r.set, r.model) for r in cells):
        own = [r for r in cells if (r.number, r.set, r.model) == (number, kind, model)]
        each = (f"N = {r.n}: {r.covered:.3f}{'*' * r.edge}{'' if isnan(r.wider) else f' ({r.wider:.2f})'}" for r in own)
        lines.append(f"- {number}; {kind}; {model}; {', '.join(each)}")
    return "\n".join(lines if cells else [f"Nothing is {lines[0][0].lower()}{lines[0][1:-1]}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--questions", type=int, nargs="+")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--only", nargs="+", default=[], help="these numbers instead of the table's")
    parser.add_argument("--strong", action="store_true", help="models that know nearly everything")
    parser.add_argument("--write", type=Path, help="page with the table, between its markers")
    arguments = parser.parse_args()
    strong = arguments.strong
    only = arguments.only or (STRONG_NUMBERS if strong else NUMBERS)
    results: list[Coverage] = []
    for name in arguments.sets[:1] if strong else arguments.sets:
        for model in arguments.models or (STRONG if strong else MODELS):
            for n in arguments.questions or (STRONG_QUESTIONS if strong else (20, 60, 400)):
                start = time.monotonic()
                results += cover(name, model, n, arguments.repeats, only=only)
                print(f"{name}, {model}, N = {n}: {time.monotonic() - start:.1f} s", flush=True)
    made = (strong_table if strong else table)(results)
    made += "\n\n" + exceptions(outside(results, arguments.repeats))
    print(made)
    if arguments.write:
        start, end = (f"<!-- {word} {'strong models' if strong else 'coverage'} -->" for word in ("begin", "end"))
        page = arguments.write.read_text("utf-8")
        before, rest = page.split(start)
        arguments.write.write_text(f"{before}{start}\n\n{made}\n\n{end}{rest.split(end)[1]}", "utf-8")


if __name__ == "__main__":
    main()
