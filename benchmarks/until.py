"""``unslant audit --until``: how often its intervals hold the true value, and what it saves.

    python -m benchmarks.until coverage [--repeats 2000] [--write docs/until.md]
    python -m benchmarks.until savings MODEL QUESTIONS [--widths 0.1 0.05 0.02] [--limit N] [--dtype bfloat16]
    python -m benchmarks.until recorded FILE [--size 2000]

*coverage*: for each kind of question set and each planted model (``benchmarks/planted.py``), a pool of 20,000 questions
answered in all 24 orders is the truth. Each repeat draws a set of 400 from it and searches it as the audit does, with
:class:`unslant.auditing.until_rule.Search`. Counted is how often an interval holds the truth where one stops at
the width asked for, where one stops as soon as the interval excludes a value (chance; 0 for the difference; 0.02 for
PBM), and where one looks after every single question and stops at the worst moment there is: at the first interval, if
any, that does not hold the truth. No way to stop does worse than the last.

*savings*: tokens of the audit with ``--until`` and of the whole audit, both run.

*recorded*: a log of scores in all orders (whatever ``unslant audit --log`` reads) stands for a set of many such
questions, drawn from it with replacement.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage import MODELS, SETS
from unslant.auditing.until_rule import BOUNDS as NUMBERS
from unslant.auditing.until_rule import Search
from unslant.metrics import Bootstrap, OrderScores, measure
from unslant.metrics.permutation import by_round
from unslant.metrics.registry import bounds_of

Floats = NDArray[np.float64]
REFERENCE = {"accuracy": 0.25, "expected_accuracy": 0.25, "order_advantage": 0.0, "pbm": 0.02}
SIZE = 400
RULES = ("at the width", "once a value is excluded", "at the worst question")


@dataclass(frozen=True)
class Pool:
    """Questions of which everything is known, by round.

    Attributes:
        values: number -> (Q,) over all orders.
        right, within: (Q, R) share right, and variance of the probabilities, in each round.
        means: (Q, R, n) mean probabilities in each round.
    """

    values: Mapping[str, Floats]
    right: Floats
    within: Floats
    means: Floats
    size: int

    @classmethod
    def of(cls, scores: OrderScores) -> Pool:
        measured = measure(scores)
        (block,) = scores.blocks
        ((_, right),) = by_round(block, block.right)
        ((_, probs),) = by_round(block, block.probs)
        values = {name: measured[name] for name in NUMBERS}
        within = probs.var(axis=2).mean(axis=-1)
        return cls(values, right.mean(axis=2), within, probs.mean(axis=2), probs.shape[2])

    @property
    def rounds(self) -> int:
        return int(self.right.shape[1])

    def some(self, rows: NDArray[np.intp], rounds: NDArray[np.intp]) -> tuple[dict[str, Floats], Floats]:
        """Values and noise of questions asked in some rounds, (Q, r), as the audit computes them."""
        r = rounds.shape[1]
        right, means = self.right[rows[:, None], rounds], self.means[rows[:, None], rounds]
        expected, accuracy = right.mean(axis=1), self.values["accuracy"][rows]
        between = means.var(axis=1, ddof=1).mean(axis=1) * (1 - 1 / self.rounds) if r > 1 else 0.0
        pbm = self.within[rows[:, None], rounds].mean(axis=1) + between
        found = {
            "accuracy": accuracy,
            "expected_accuracy": expected,
            "order_advantage": accuracy - expected,
            "pbm": pbm,
        }
        return found, right.var(axis=1, ddof=1) if r > 1 else np.zeros(len(rows))


@dataclass
class Searched:
    """One search: intervals after each step, and the search itself."""

    steps: list[dict[str, tuple[float, float]]]
    search: Search
    ended: str


def searched(
    pool: Pool, rows: NDArray[np.intp], width: float, rng: np.random.Generator, sampling: Mapping[str, list[str]]
) -> Searched:
    """Search a set, drawn from the pool, in the order of ``rows``."""
    contexts = sampling.get("contexts")
    sizes = np.diff(np.flatnonzero(np.r_[True, np.asarray(contexts[1:]) != contexts[:-1], True])) if contexts else None
    sizes = np.ones(len(rows), np.int64) if sizes is None else sizes
    rounds = rng.permuted(np.tile(np.arange(pool.rounds), (len(rows), 1)), axis=1)
    search = Search(width, sizes, np.full(len(rows), pool.rounds), lambda r: 100 + 4 * 40 * r)
    steps: list[dict[str, tuple[float, float]]] = []
    ended = ""
    while not ended:
        n, r = search.questions, search.rounds
        values, noise = pool.some(rows[:n], rounds[:n, :r])

        def usual(name: str, values: dict[str, Floats] = values) -> tuple[float, float]:
            own = Bootstrap(len(rows), sampling.get("subjects"), contexts=contexts)
            found = own.mean(values[name], bounds=bounds_of(name))
            return found.low, found.high

        steps.append(search.look(values, usual))
        ended = search.next(steps[-1], values, noise)
    return Searched(steps, search, ended)


@lru_cache(maxsize=1)
def _pool(name: str, model: str) -> tuple[Pool, OrderScores]:
    scores = SETS[name].scores(MODELS[model])
    return Pool.of(scores), scores


def cover(name: str, model: str, width: float, repeats: int, seed: int = 0) -> dict[tuple[str, str], float]:
    """Coverage of every number under every stopping rule; and under ``("questions", "")`` the mean number asked."""
    kind = SETS[name]
    pool, scores = _pool(name, model)
    subjects = np.asarray(scores.subjects)
    truth = {number: float(np.nanmean(values)) for number, values in pool.values.items()}
    held = dict.fromkeys(itertools.product(NUMBERS, RULES), 0)
    rng = np.random.default_rng([seed, round(1000 * width)])
    questions = 0
    for _ in range(repeats):
        rows = kind.draw(SIZE, rng)
        sampling: dict[str, list[str]] = {}
        if kind.context > 1:
            sampling["contexts"] = [str(i // kind.context) for i in range(SIZE)]
        else:
            rows = rng.permutation(rows)
            sampling |= {"subjects": subjects[rows].tolist()} if kind.subjects > 1 else {}
        one = searched(pool, rows, width, rng, sampling)
        questions += one.search.questions
        anytime = one.steps[:-1] if one.search.complete and len(one.steps) > 1 else one.steps
        for number in NUMBERS:
            true, value, last = truth[number], REFERENCE[number], one.steps[-1][number]
            excluding = (step[number] for step in anytime if not step[number][0] <= value <= step[number][1])
            for rule, (low, high) in zip(RULES[:2], (last, next(excluding, last)), strict=True):
                held[number, rule] += low - 1e-9 <= true <= high + 1e-9
            held[number, RULES[2]] += not one.search.sequences[number].ever_excluded(true)
    return {key: count / repeats for key, count in held.items()} | {("questions", ""): questions / repeats}


def table(found: Mapping[tuple[str, str, float], Mapping[tuple[str, str], float]]) -> str:
    """For each kind of set and width, the least coverage over the models, and where it was."""
    lines = ["| questions | half-width | number | " + " | ".join(RULES) + " | asked |", "|---" * 7 + "|"]
    for name, width in dict.fromkeys((name, width) for name, _, width in found):
        own = [values for (other, _, at), values in found.items() if (other, at) == (name, width)]
        asked = [values["questions", ""] for values in own]
        for number in NUMBERS:
            least = [f"{min(values[number, rule] for values in own):.3f}" for rule in RULES]
            span = f"{min(asked):.0f} to {max(asked):.0f} of {SIZE}"
            lines.append(f"| {name} | {width:g} | {number} | " + " | ".join(least) + f" | {span} |")
    return "\n".join(lines)


def coverage(arguments: argparse.Namespace) -> None:
    found = {}
    for name, model, width in itertools.product(arguments.sets, arguments.models, arguments.widths):
        start = time.monotonic()
        found[name, model, width] = cover(name, model, width, arguments.repeats)
        least = min((share, key) for key, share in found[name, model, width].items())
        print(f"{name}, {model}, {width:g}: least {least}, {time.monotonic() - start:.1f} s", flush=True)
    print(table(found))
    if arguments.write:
        page = arguments.write.read_text("utf-8")
        before, rest = page.split(START)
        old, after = rest.split(END)
        kept = [row for row in old.strip().splitlines()[2:] if row.split(" | ")[0][2:] not in arguments.sets]
        made = "\n".join([*table(found).splitlines(), *kept])
        arguments.write.write_text(f"{before}{START}\n\n{made}\n\n{END}{after}", "utf-8")


def savings(arguments: argparse.Namespace) -> None:
    from unslant import audit, open_model

    model = open_model(arguments.model, dtype=arguments.dtype)
    whole = audit(model, arguments.questions, limit=arguments.limit)
    spent, means = whole.cost.tokens, whole.metrics.means
    print(f"{whole.name}: {len(whole.scores)} questions, {spent:,} tokens; mean {means['expected_accuracy'].value:.3f}")
    print("| half-width | asked | tokens | saved | mean over orders | whole audit | PBM | whole audit |")
    print("|---" * 8 + "|")
    for width in arguments.widths:
        found = audit(model, arguments.questions, limit=arguments.limit, until=width)
        told, own = found.run.until, found.metrics.means
        cells = [
            f"{width:g}{'' if told.reached else ' (not reached)'}",
            f"{told.questions} questions, {told.orders} orders",
            f"{found.cost.tokens:,}",
            f"{1 - found.cost.tokens / spent:.0%}",
            *(
                f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"
                for name in ("expected_accuracy", "pbm")
                for one in (own[name], means[name])
            ),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


def recorded(arguments: argparse.Namespace) -> None:
    from unslant.auditing.logs import audit_logs

    pool = Pool.of(audit_logs([arguments.file]).scores)
    orders = pool.rounds * pool.size
    print(f"{len(pool.right)} recorded questions, drawn {arguments.size:,} times")
    print("| half-width | questions asked | orders | scores, of those of the whole | reached |")
    print("|---|---|---|---|---|")
    for width in arguments.widths:
        rng = np.random.default_rng(0)
        found = []
        for _ in range(arguments.repeats):
            rows = rng.integers(len(pool.right), size=arguments.size)
            one = searched(pool, rows, width, rng, {})
            n, r = one.search.questions, one.search.rounds
            given = 1 - r / pool.rounds  # the given order, where it is in none of the rounds
            asked = n * (r * pool.size + given) / (arguments.size * orders)
            found.append((n, r * pool.size, asked, one.ended == "width"))
        n, k, share, reached = np.asarray(found, np.float64).mean(axis=0)
        print(f"| {width:g} | {n:,.0f} | {k:.1f} | {share:.0%} | {reached:.0%} |")


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    covering = commands.add_parser("coverage")
    covering.add_argument("--repeats", type=int, default=2000)
    covering.add_argument("--sets", nargs="+", default=[name for name, kind in SETS.items() if kind.sizes == (4,)])
    covering.add_argument("--models", nargs="+", default=list(MODELS))
    covering.add_argument("--widths", type=float, nargs="+", default=[0.1, 0.02])
    covering.add_argument("--write", type=Path, help="page of which the rows of these sets are written anew")
    covering.set_defaults(run=coverage)
    saving = commands.add_parser("savings")
    saving.add_argument("model")
    saving.add_argument("questions")
    saving.add_argument("--limit", type=int)
    saving.add_argument("--dtype", default="auto")
    saving.add_argument("--widths", type=float, nargs="+", default=[0.1, 0.05, 0.02])
    saving.set_defaults(run=savings)
    of_log = commands.add_parser("recorded")
    of_log.add_argument("file", type=Path)
    of_log.add_argument("--size", type=int, default=2000)
    of_log.add_argument("--repeats", type=int, default=20)
    of_log.add_argument("--widths", type=float, nargs="+", default=[0.1, 0.05, 0.02])
    of_log.set_defaults(run=recorded)
    arguments = parser.parse_args(given)
    arguments.run(arguments)


START, END = "<!-- coverage: generated -->", "<!-- end of coverage -->"

if __name__ == "__main__":
    main()
