"""Whether what an audit in two phases prints is right: bias, coverage and width, from tables of all orders.

    python -m benchmarks.two_phase [TABLE.parquet ...] [--repeats 2000] [--questions 1000] [--write docs/two-phases.md]
    python -m benchmarks.two_phase --replies 0.25 [--repeats 2000] [--questions 1000]

A pool of questions is known in all orders: planted models (``benchmarks/planted.py``) with habits of labels and places,
with noise of every page, and with pulls between neighbours; and recorded tables of audits with ``--orders all``. The
truth is the mean over the pool. Each repeat draws questions at random, a Latin square for each, and the part that is
shown in all orders, which grows as that of an audit does. Compared is the interval of the same questions in all orders.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.planted import Planted, at, planted_scores
from unslant.auditing import PART
from unslant.metrics import METRICS, Bootstrap, Estimate, OrderScores, read_scores
from unslant.metrics.bootstrap import spread_answers
from unslant.metrics.labels import order_slots
from unslant.metrics.order_curve import next_part, noise_between_squares
from unslant.metrics.registry import bounds_of, question_metrics
from unslant.metrics.two_phase import (
    TwoPhaseValues,
    known_values,
    least_margin,
    over_squares,
    two_phase_values,
)
from unslant.presentations import rotations
from unslant.responses import Responses

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POOL = 4_000
OF_QUESTIONS = {one.key: one for one in question_metrics()}
ESTIMATED = ("pbm", "normalised_pbm", "consistency", "robust_accuracy", "vote_accuracy", "hard_vote_accuracy")


def neighbours(share: float, pull: float, model: Planted, seed: int = 1) -> OrderScores:
    """Planted scores in which an option gets a pull right after a certain other one, in a share of the questions."""
    scores = planted_scores(model, POOL, seed=3)
    rng, (block,) = np.random.default_rng(seed), scores.blocks
    rows = np.arange(POOL)
    option = rng.integers(4, size=POOL)
    before = (option + 1 + rng.integers(3, size=POOL)) % 4
    there = block.positions[rows, :, option] == block.positions[rows, :, before] + 1
    logs = np.log(np.maximum(block.probs, 1e-300))
    logs[rows, :, option] += pull * there * (rng.random(POOL) < share)[:, None]
    probs = np.exp(logs - logs.max(axis=2, keepdims=True))
    return replace(scores, blocks=(replace(block, probs=probs / probs.sum(axis=2, keepdims=True)),))


def _planted(model: Planted, sizes: Sequence[int] = (4,)) -> OrderScores:
    return planted_scores(model, POOL, sizes, seed=3)


WORLDS: Mapping[str, Callable[[], OrderScores]] = {
    "always A": partial(_planted, Planted(label=at(0, 60), knows=0, hard=True)),
    "mostly A when unsure": partial(_planted, Planted(label=at(0))),
    "mildly A": partial(_planted, Planted(label=at(0, 0.4))),
    "last place, weakly sure": partial(_planted, Planted(position=at(-1, 0.7), sure=4, noise=1.0)),
    "first place, never sure": partial(_planted, Planted(position=at(0, 1.0), sure=2, taste=1)),
    "fair": partial(_planted, Planted()),
    "fair, knows 95 %": partial(_planted, Planted(knows=0.95)),
    "mostly A, knows 99 %": partial(_planted, Planted(label=at(0), knows=0.99)),
    "noisy pages": partial(_planted, Planted(noise=1.5, taste=1.0)),
    "neighbours": partial(neighbours, 1.0, 2.0, Planted()),
    "neighbours and A": partial(neighbours, 0.5, 3.0, Planted(label=at(0, 1.0))),
    "neighbours, in 10 %": partial(neighbours, 0.1, 30.0, Planted(knows=0.9)),
    "2 to 6 options": partial(_planted, Planted(label=at(0, 1.5)), (2, 3, 4, 5, 6)),
}


def recorded(path: str) -> OrderScores:
    """Scores of an audit in all orders."""
    return read_scores(Responses.from_parquet(path))


@dataclass(frozen=True)
class Pool:
    """What is known of each question in all orders, and in each of its squares.

    Attributes:
        whole: number -> (Q,) over all orders.
        squares: number -> (P,) over each square; ``margin`` with them.
        starts, counts: (Q,) where the squares of a question are among the P.
        given: (Q,) right in the published order.
        single: (Q,) whose orders are one square.
        noise: (Q,) variance between the squares of a question, of the share right.
        unsure: (Q,) whose answers are shared among options.
    """

    whole: Mapping[str, Floats]
    squares: Mapping[str, Floats]
    starts: Ints
    counts: Ints
    given: Floats
    single: NDArray[np.bool_]
    noise: Floats
    unsure: NDArray[np.bool_]

    @classmethod
    def of(cls, scores: OrderScores) -> Pool:
        pairs, rows = over_squares(replace(scores, full=np.ones(len(scores), bool)))
        by_question = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=len(scores))
        keys = [*ESTIMATED, "expected_accuracy"]
        whole = {key: OF_QUESTIONS[key].values(scores) for key in keys}
        squares = {key: OF_QUESTIONS[key].values(pairs)[by_question] for key in keys}
        for of, into, order in ((scores, whole, slice(None)), (pairs, squares, by_question)):
            slots = order_slots(of)
            into |= {f"{name} A": getattr(slots, name)[:, 0][order] for name in ("predicted", "hit", "gold")}
        squares["margin"] = least_margin(pairs)[by_question]
        starts, given = np.cumsum(counts) - counts, OF_QUESTIONS["accuracy"].values(scores)
        noise = noise_between_squares(replace(scores, full=np.ones(len(scores), bool)))
        return cls(whole, squares, starts, counts, given, scores.single, noise, spread_answers(scores))

    def draw(self, n: int, part: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
        """(n,) questions, of which the first ``part`` are shown in all orders; (p,) squares, and (p,) their questions'
        places among the n."""
        usable = np.flatnonzero(self.counts > 0)
        drawn = usable[rng.integers(len(usable), size=n)]
        one = self.starts[drawn] + (rng.random(n) * self.counts[drawn]).astype(np.int64)
        rows = np.repeat(np.arange(part), self.counts[drawn[:part]])
        first = np.repeat(np.cumsum(self.counts[drawn[:part]]) - self.counts[drawn[:part]], self.counts[drawn[:part]])
        every = self.starts[drawn[rows]] + np.arange(len(rows)) - first
        return drawn, np.concatenate([every, one[part:]]), np.concatenate([rows, np.arange(part, n)])

    def over_squares(self, key: str, squares: Ints, rows: Ints, n: int) -> Floats:
        """(n,) mean over the squares shown of each question."""
        mean: Floats = np.bincount(rows, self.squares[key][squares], n) / np.bincount(rows, minlength=n)
        return mean

    def estimated(self, drawn: Ints, squares: Ints, rows: Ints, part: int) -> TwoPhaseValues:
        """The numbers that need all orders."""
        values, known, n = {}, {}, len(drawn)
        full, single = np.arange(n) < part, self.single[drawn]
        for key in ESTIMATED:
            whole = np.where(full | single, self.whole[key][drawn], np.nan)
            about = np.column_stack([self.squares[key][squares], self.squares["margin"][squares]])
            values[key] = two_phase_values(whole, about, rows, single, key)
            known[key] = known_values(key, whole, about[:, 0], rows)
        return TwoPhaseValues(values, known, part)


class Tally:
    """Of one number: intervals that hold the truth, their width, that of all orders, and errors."""

    def __init__(self, truth: float) -> None:
        self.truth, self.errors = truth, list[float]()
        self.printed = self.held = 0
        self.width = self.usual = 0.0

    def add(self, found: Estimate, usual: Estimate) -> None:
        self.errors.append(found.value - self.truth)
        if found.low == found.low and usual.low == usual.low:
            self.printed += 1
            self.held += found.low - 1e-9 <= self.truth <= found.high + 1e-9
            self.width, self.usual = self.width + found.high - found.low, self.usual + usual.high - usual.low

    def cell(self) -> str:
        """Bias in standard deviations of the estimate, coverage, and width over that of all orders."""
        if not self.printed:
            return "no interval"
        errors = np.asarray(self.errors)
        bias = errors.mean() / errors.std() if errors.std() > 1e-12 else 0.0
        return f"{bias:+.2f}, {self.held / self.printed:.3f}, {self.width / self.usual:.2f}"


def trial(pool: Pool, n: int, repeats: int, seed: int = 0) -> tuple[dict[str, Tally], float]:
    """Every number of many audits in two phases, and the mean size of their parts."""
    rng, parts = np.random.default_rng(seed), []
    truths = {key: float(np.nanmean(pool.whole[key])) for key in (*ESTIMATED, "expected_accuracy", "predicted A")}
    truths["order_advantage"] = float(np.nanmean(pool.given - pool.whole["expected_accuracy"]))
    truths["recall A"] = float(np.nansum(pool.whole["hit A"]) / np.nansum(pool.whole["gold A"]))
    tallies = {key: Tally(truth) for key, truth in truths.items()}
    for _ in range(repeats):
        part, again = min(PART, n), rng.integers(2**32)
        while True:
            drawn, squares, rows = pool.draw(n, part, np.random.default_rng(again))
            found = pool.estimated(drawn, squares, rows, part)
            means = pool.over_squares("expected_accuracy", squares, rows, n)
            bootstrap = Bootstrap(n, unsure=pool.unsure[drawn])
            larger = next_part(found, np.arange(n) < part, means, pool.noise[drawn[:part]], bootstrap)
            if larger == part:
                break
            part = larger
        parts.append(part)
        for key in ESTIMATED:
            bounds, whole = bounds_of(key), pool.whole[key][drawn]
            usual = bootstrap.mean(whole, bounds=bounds, room="bounds, unsure")
            tallies[key].add(bootstrap.two_phase(found.values[key], found.known[key], part, bounds=bounds), usual)
        own = {key: pool.over_squares(key, squares, rows, n) for key in _AVERAGED}
        every = {key: pool.whole[key][drawn] for key in _AVERAGED}
        for name, function in _MEANS.items():
            pair = (function(bootstrap, values, pool.given[drawn]) for values in (own, every))
            tallies[name].add(*pair)
    return tallies, float(np.mean(parts))


_AVERAGED = ("expected_accuracy", "predicted A", "hit A", "gold A")
_MEANS: Mapping[str, Callable[[Bootstrap, Mapping[str, Floats], Floats], Estimate]] = {
    "expected_accuracy": lambda bootstrap, own, _: bootstrap.mean(own["expected_accuracy"], room="bounds, unsure"),
    "order_advantage": lambda bootstrap, own, given: bootstrap.mean(given - own["expected_accuracy"], share=False),
    "predicted A": lambda bootstrap, own, _: bootstrap.mean(own["predicted A"], room="unsure"),
    "recall A": lambda bootstrap, own, _: bootstrap.ratio(
        np.nan_to_num(own["hit A"]), np.nan_to_num(own["gold A"]), room="unsure"
    ),
}


def of_replies(
    scores: OrderScores, n: int, repeats: int, share: float, seed: int = 0
) -> tuple[dict[str, Tally], float]:
    """Every number of audits in words that ask a share of the questions in all rotations, and the mean requests.

    Replies name an option, so each counts as probability 1 for the most probable one; all rotations of all questions
    are what they are compared with.
    """
    rng, bootstrap, (block,) = np.random.default_rng(seed), Bootstrap(n), scores.blocks
    places = [k for k in range(block.k) if tuple(block.contents[0, k]) in rotations(block.n)]
    said = block.only(np.arange(len(scores)), np.asarray(places))
    said = replace(said, probs=np.eye(block.n)[said.chosen])
    whole = {key: OF_QUESTIONS[key].values(replace(scores, blocks=(said,))) for key in REPLIES}
    published = OF_QUESTIONS["accuracy"].values(scores)
    tallies = {key: Tally(float(values.mean())) for key, values in whole.items()}
    part = np.arange(n) < round(share * n)
    for _ in range(repeats):
        drawn = rng.integers(len(scores), size=n)
        for key, values in whole.items():
            same = OF_QUESTIONS[key].unmoved
            predicted = published[drawn] if isinstance(same, str) else np.full(n, same)
            known = np.column_stack([predicted, published[drawn]])
            found = two_phase_values(np.where(part, values[drawn], np.nan), known, np.arange(n), np.zeros(n, bool))
            tallies[key].add(bootstrap.mean(found), bootstrap.mean(values[drawn]))
    return tallies, float(n + part.sum() * (len(places) - 1))


REPLIES = ("expected_accuracy", "robust_accuracy", "vote_accuracy", "consistency")


def replies_table(results: Mapping[str, tuple[Mapping[str, Tally], float]], n: int) -> str:
    """A row a world."""
    heads = ["questions", "requests", "of", *(METRICS[name].label for name in REPLIES)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for world, (tallies, requests) in results.items():
        cells = [world, f"{requests:,.0f}", f"{4 * n:,}", *(tallies[name].cell() for name in REPLIES)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table(results: Mapping[tuple[str, int], tuple[Mapping[str, Tally], float]]) -> str:
    """A row a world and number of questions."""
    names = list(next(iter(results.values()))[0])
    heads = ["questions", "N", "in all orders", *(METRICS[name].label if name in METRICS else name for name in names)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for (world, n), (tallies, part) in results.items():
        cells = [world, f"{n:,}", f"{part:.0f}", *(tallies[name].cell() for name in names)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="Parquet files of audits with --orders all")
    parser.add_argument("--repeats", type=int, default=2_000)
    parser.add_argument("--questions", type=int, nargs="+", default=[1_000])
    parser.add_argument("--worlds", nargs="*", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--replies", type=float, help="replies, and this share of the questions in all rotations")
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    given = parser.parse_args(arguments)
    pools: dict[str, Callable[[], OrderScores]] = {Path(path).stem: partial(recorded, path) for path in given.tables}
    if given.replies:
        (n, *_), of_worlds = given.questions, {name: WORLDS[name]() for name in given.worlds if "2 to 6" not in name}
        found = {name: of_replies(one, n, given.repeats, given.replies) for name, one in of_worlds.items()}
        print(replies_table(found, n))
        return
    results = {}
    for name, made in ({name: WORLDS[name] for name in given.worlds} | pools).items():
        pool = Pool.of(made())
        for n in given.questions:
            results[name, n] = trial(pool, n, given.repeats)
            print(table({(name, n): results[name, n]}).splitlines()[-1], flush=True)
    if given.write:
        before, rest = given.write.read_text("utf-8").split(START)
        given.write.write_text(f"{before}{START}\n\n{table(results)}\n\n{END}{rest.split(END)[1]}", "utf-8")


START, END = "<!-- two phases: generated -->", "<!-- end of two phases -->"

if __name__ == "__main__":
    main()
