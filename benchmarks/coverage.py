"""How often the intervals of an audit hold the true value: a simulation of many audits of models whose habit is known.

    python -m benchmarks.coverage [--repeats 2000] [--questions 20 60 400] [--write docs/intervals.md]

For each kind of question set and each planted model (``benchmarks/planted.py``), a pool of questions is answered, whose
own values are the truth. Each repeat draws N of its questions at random (within subjects, or whole contexts, where the
set has these) and computes every interval as an audit does. What is printed without an interval is not counted.

Told apart are *edge* cases: fewer than five of the N questions, on average, have a value at all, differ from all the
others, or make up the variance (N divided by the kurtosis). An interval that holds the truth even when a sample happens
to show none of these holds it nearly always.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.planted import Planted, at, none, planted_scores
from unslant.metrics import Bootstrap, Estimate, OrderScores, measure
from unslant.metrics.bootstrap import DIFFERENCE, SHARE, UNBOUNDED
from unslant.metrics.labels import at_slot, given_slots, order_slots
from unslant.metrics.nvr import nvr_values
from unslant.metrics.preference.slots import SlotValues, has_probabilities, slot_groups, unsure_questions
from unslant.metrics.registry import bounds_of

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
LEAST, MOST = 0.93, 0.98
"""What the coverage of usual cases has to lie between; edge cases may have more."""
EDGE = 5
POOL = 20_000


@dataclass(frozen=True)
class Set:
    """A kind of question set: numbers of options, subjects, and questions that share a context."""

    sizes: tuple[int, ...] = (4,)
    subjects: int = 1
    context: int = 1

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
        if self.subjects > 1:
            stride = len(self.sizes) * self.subjects
            places = rng.integers(POOL // stride, size=n) * stride
            return places + np.arange(n) % self.subjects * len(self.sizes)
        return rng.integers(POOL, size=n)


SETS: Mapping[str, Set] = {
    "4 options": Set(),
    "2 to 8 options": Set((2, 3, 4, 5, 6, 7, 8)),
    "4 options, 10 subjects": Set(subjects=10),
    "4 options, 5 questions a context": Set(context=5),
}


@dataclass(frozen=True)
class Number:
    """One number of an audit, as the sums it is a ratio of: (Q,) each."""

    numerators: Floats
    denominators: Floats
    bounds: tuple[float, float] = SHARE

    @classmethod
    def mean(cls, values: Floats, bounds: tuple[float, float] = SHARE) -> Number:
        known = np.isfinite(values)
        return cls(np.where(known, values, 0.0), known.astype(np.float64), bounds)

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
    """Every number that an audit prints with an interval; the differences to ``debiased``, too, if that is given."""
    values = measure(scores)
    found = {name: Number.mean(column, bounds_of(name)) for name, column in values.items()}
    found["vote less as reported"] = Number.mean(values["vote_accuracy"] - values["accuracy"], DIFFERENCE)
    found["mean over orders less chance"] = Number.mean(values["expected_accuracy"] - values["chance"], DIFFERENCE)
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
    found["confidence, given order"] = Number.mean(confidence)
    found["Brier score"] = Number.mean((confidence - values["accuracy"]) ** 2)
    unsure = unsure_questions(scores)
    found["unsure"] = Number.mean(unsure)
    unit = "nats" if has_probabilities(scores) else "shares"
    slots = SlotValues.of(scores, unsure, slot_groups(scores, unsure, unit), unit)
    for kind, at_kind in (("label A", 0), ("first position", 1)):
        found[f"{kind}, nats"] = Number.mean(slots.nats[at_kind][:, 0], UNBOUNDED)
    found["A chosen when unsure"] = Number.mean(slots.share[:, 0])
    right, _ = nvr_values(scores)
    found["Nvr-A"] = Number.mean(right[:, 0])
    return {name: number for name, number in found.items() if number.denominators.any()}


@dataclass(frozen=True)
class Coverage:
    """How one number fared: share of intervals that hold the truth, share of repeats with an interval."""

    number: str
    set: str
    model: str
    n: int
    covered: float
    printed: float
    edge: bool


@lru_cache(maxsize=1)
def _pool(name: str, model: str) -> tuple[OrderScores, dict[str, Number]]:
    """The pool and its numbers, for all N."""
    kind = SETS[name]
    scores = kind.scores(MODELS[model])
    return scores, numbers(scores, kind.scores(replace(MODELS[model], label=none, hard=False)))


def cover(name: str, model: str, n: int, repeats: int, seed: int = 0, only: Sequence[str] = ()) -> Iterator[Coverage]:
    """Coverage of every number, or of ``only`` some, for one kind of set, one model, and N questions."""
    kind = SETS[name]
    scores, found = _pool(name, model)
    found = {key: number for key, number in found.items() if not only or key in only}
    subjects, contexts = np.asarray(scores.subjects), np.arange(len(scores)) // kind.context
    rng = np.random.default_rng([seed, n])
    covered, printed = (dict.fromkeys(found, 0) for _ in range(2))
    for _ in range(repeats):
        rows = kind.draw(n, rng)
        # a context that is drawn twice is two contexts
        drawn = [f"{c}/{i}" for i, c in enumerate(contexts[rows[:: kind.context]]) for _ in range(kind.context)]
        bootstrap = Bootstrap(n, subjects[rows].tolist(), contexts=drawn if kind.context > 1 else None)
        for key, number in found.items():
            estimate = interval(bootstrap, number, rows)
            if np.isfinite(estimate.low):
                printed[key] += 1
                covered[key] += estimate.low - 1e-9 <= number.truth <= estimate.high + 1e-9
    for key, number in found.items():
        share = covered[key] / printed[key] if printed[key] else float("nan")
        yield Coverage(key, name, model, n, share, printed[key] / repeats, number.edge(n))


def interval(bootstrap: Bootstrap, number: Number, rows: NDArray[np.intp]) -> Estimate:
    """The number of some rows of the pool."""
    return bootstrap.ratio(number.numerators[rows], number.denominators[rows], bounds=number.bounds)


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
            told = [f"{min(usual):.3f} to {max(usual):.3f}"] if usual else []
            told += [f"(edge: {min(edge):.3f} and more)"] if edge else []
            row.append(" ".join(told) or "no interval")
        lines.append(f"| {key} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def outside(results: Sequence[Coverage], repeats: int) -> list[Coverage]:
    """What does not lie where it should, the simulation's own error (two standard errors) allowed for."""
    error = 2 * (0.95 * 0.05 / repeats) ** 0.5
    return [
        r
        for r in results
        if r.printed >= 0.05 and (r.covered < LEAST - error or (not r.edge and r.covered > MOST + error))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--questions", type=int, nargs="+", default=[20, 60, 400])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--only", nargs="+", default=[], help="these numbers; their rows are added to the page's table")
    parser.add_argument("--write", type=Path, help="page whose table, between its markers, is written anew")
    arguments = parser.parse_args()
    results: list[Coverage] = []
    for name in arguments.sets:
        for model in arguments.models:
            for n in arguments.questions:
                start = time.monotonic()
                results += cover(name, model, n, arguments.repeats, only=arguments.only)
                print(f"{name}, {model}, N = {n}: {time.monotonic() - start:.1f} s", flush=True)
    print(table(results))
    print(f"\noutside {LEAST} to {MOST}:")
    for r in outside(results, arguments.repeats):
        print(
            f"{r.number}; {r.set}; {r.model}; N = {r.n}: {r.covered:.3f}{' (edge)' * r.edge}, printed {r.printed:.2f}"
        )
    if arguments.write:
        page = arguments.write.read_text("utf-8")
        before, rest = page.split(START)
        old, after = rest.split(END)
        made = table(results)
        if arguments.only:
            own = made.splitlines()[2:]
            kept = [row for row in old.strip().splitlines() if row.split("|")[1] not in {o.split("|")[1] for o in own}]
            made = "\n".join([*kept, *own])
        arguments.write.write_text(f"{before}{START}\n\n{made}\n\n{END}{after}", "utf-8")


START, END = "<!-- coverage: generated -->", "<!-- end of coverage -->"

if __name__ == "__main__":
    main()
