"""``unslant audit --until``: how often its intervals hold the true value, and what it saves.

    python -m benchmarks.until coverage [--repeats 2000] [--write docs/until.md]
    python -m benchmarks.until savings MODEL QUESTIONS [--widths 0.1 0.05 0.02] [--limit N] [--dtype bfloat16]
    python -m benchmarks.until recorded FILE [--size 9702]

*coverage*: for each kind of question set and each planted model (``benchmarks/planted.py``), a pool of 20,000 questions
answered in all 24 orders is the truth. Each repeat draws a set (of 400, by default) from it and searches it as the
audit does, with :class:`unslant.auditing.until_rule.UntilSearch`. Counted is how often an interval holds the truth
where one stops at the width asked for, where one stops as soon as the interval excludes a value (chance; 0 for the
difference; 0.02 for PBM), and where one looks after every single question and stops at the worst moment there is: at
the first interval, if any, that does not hold the truth. No way to stop does worse than the last.

*savings*: tokens of the audit with ``--until`` and of the whole audit, both run.

*recorded*: scores in all orders (a JSONL log that ``unslant audit --log`` reads, or the table of an audit) stand for a
set of many such questions, drawn with replacement. Costs are those of the prompts of MMLU without examples.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage import MODELS, SETS
from benchmarks.two_phase import recorded as recorded_table
from unslant.auditing import WHOLE as WHOLE_ORDERS
from unslant.auditing.until import certainty
from unslant.auditing.until_rule import BOUNDS as NUMBERS
from unslant.auditing.until_rule import WHOLE, ConfidenceSequence, UntilSearch
from unslant.metrics import Bootstrap, OrderScores, measure
from unslant.metrics.accuracy import expected_accuracy
from unslant.metrics.registry import bounds_of
from unslant.metrics.two_phase import over_squares

Floats = NDArray[np.float64]
REFERENCE = {"accuracy": 0.25, "expected_accuracy": 0.25, "order_advantage": 0.0, "pbm": 0.02}
COSTS = (1.0, 2.41, 8.37)
"""Of a question in the published order, in a square besides, and in all orders, in ordinary runs: MMLU without
examples (``benchmarks/ORDINARY.md``)."""
BIAS = "bias"
RULES = ("at the width", "once a value is excluded", "at the worst question")


@dataclass(frozen=True)
class Pool:
    """Questions of which everything is known, over all orders and over each square.

    Attributes:
        values: number -> (Q,) over all orders; and ``certainty``, of the published one.
        squares: (Q, S) share right over each square.
    """

    values: Mapping[str, Floats]
    squares: Floats

    @classmethod
    def of(cls, scores: OrderScores) -> Pool:
        measured = measure(scores)
        pairs, rows = over_squares(replace(scores, full=np.ones(len(scores), bool)))
        right = expected_accuracy(pairs)
        counts = np.bincount(rows, minlength=len(scores))
        kept = counts == counts.max()  # but for questions with options that keep their place
        sequence = np.argsort(rows, kind="stable")
        right = right[sequence][kept[rows[sequence]]].reshape(int(kept.sum()), -1)
        values = {name: measured[name] for name in NUMBERS} | {"certainty": certainty(scores)}
        return cls({name: column[kept] for name, column in values.items()}, right)


@dataclass
class Searched:
    """One search: intervals after each step, and the search itself."""

    steps: list[dict[str, tuple[float, float]]]
    search: UntilSearch
    ended: str


def searched(
    pool: Pool, rows: NDArray[np.intp], width: float, rng: np.random.Generator, sampling: Mapping[str, list[str]]
) -> Searched:
    """Search a set, drawn from the pool, in the order of ``rows``."""
    contexts = sampling.get("contexts")
    sizes = np.diff(np.flatnonzero(np.r_[True, np.asarray(contexts[1:]) != contexts[:-1], True])) if contexts else None
    sizes = np.ones(len(rows), np.int64) if sizes is None else sizes
    square = pool.squares[rows, rng.integers(pool.squares.shape[1], size=len(rows))]
    search = UntilSearch(width, sizes, rng.random(len(sizes)), COSTS[1] - COSTS[0])
    bootstrap = Bootstrap(len(rows), sampling.get("subjects"), contexts=contexts)
    steps: list[dict[str, tuple[float, float]]] = []
    ended = ""

    def usual(name: str, values: Floats) -> tuple[float, float]:
        found = bootstrap.mean(values, bounds=bounds_of(name))
        return found.low, found.high

    while not ended:
        asked, some = search.asked, rows[: search.questions]
        known = {name: values[some] for name, values in pool.values.items()}
        known["expected_accuracy"] = np.choose(asked, [np.full(len(some), np.nan), square[: len(some)],
                                                       known["expected_accuracy"]])  # fmt: skip
        steps.append(search.look(known, usual))
        ended = search.next(steps[-1], pool.squares[some[asked == WHOLE]].var(axis=1))
    return Searched(steps, search, ended)


@lru_cache(maxsize=1)
def _pool(name: str, model: str) -> tuple[Pool, OrderScores]:
    scores = SETS[name].scores(MODELS[model])
    return Pool.of(scores), scores


def cover(name: str, model: str, width: float, repeats: int, size: int, seed: int = 0) -> dict[tuple[str, str], float]:
    """Coverage of every number under every stopping rule, and its bias in standard deviations; under
    ``("questions", "")`` the mean number asked, and under ``("cost", "")`` the mean cost in ordinary runs."""
    kind = SETS[name]
    pool, scores = _pool(name, model)
    subjects = np.asarray(scores.subjects)
    truth = {number: float(np.nanmean(values)) for number, values in pool.values.items()}
    held = dict.fromkeys(itertools.product(NUMBERS, RULES), 0)
    rng = np.random.default_rng([seed, round(1000 * width)])
    asked, costs = [], []
    errors: dict[str, list[float]] = {number: [] for number in NUMBERS}
    for _ in range(repeats):
        rows = kind.draw(size, rng)
        sampling: dict[str, list[str]] = {}
        if kind.context > 1:
            sampling["contexts"] = [str(i // kind.context) for i in range(size)]
        else:
            rows = rng.permutation(rows)
            sampling |= {"subjects": subjects[rows].tolist()} if kind.subjects > 1 else {}
        one = searched(pool, rows, width, rng, sampling)
        asked.append(one.search.questions)
        costs.append(np.asarray(COSTS)[one.search.asked].sum() / size)
        anytime = one.steps[:-1] if one.search.complete and len(one.steps) > 1 else one.steps
        for number in NUMBERS:
            true, value, last = truth[number], REFERENCE[number], one.steps[-1][number]
            excluding = (step[number] for step in anytime if not step[number][0] <= value <= step[number][1])
            for rule, (low, high) in zip(RULES[:2], (last, next(excluding, last)), strict=True):
                held[number, rule] += low - 1e-9 <= true <= high + 1e-9
            errors[number].append(float(np.nanmean(one.search.values[number])) - true)
            held[number, RULES[2]] += not ever_excluded(one.search.sequences[number], true)
    found = {key: count / repeats for key, count in held.items()}
    found |= {(number, BIAS): float(np.mean(own) / max(1e-9, np.std(own))) for number, own in errors.items()}
    return found | {("questions", ""): float(np.mean(asked)), ("cost", ""): float(np.mean(costs))}


def ever_excluded(sequence: ConfidenceSequence, mean: float) -> bool:
    """Whether the interval of a sequence excluded this mean after any of the questions."""
    m = (mean - sequence.floor) / sequence.range
    sides = (sequence._totals, m), (sequence._weights - sequence._totals, 1 - m)
    return any(bool((np.cumsum(sequence._gains(y, at)) >= sequence.target).any()) for y, at in sides)


def table(found: Mapping[tuple[str, str, float], Mapping[tuple[str, str], float]], size: int) -> str:
    """For each kind of set and width, the least coverage over the models, and the greatest bias."""
    lines = [f"| questions | half-width | number | bias | {' | '.join(RULES)} | asked | ordinary runs |"]
    lines.append("|---" * 9 + "|")
    for name, width in dict.fromkeys((name, width) for name, _, width in found):
        own = [values for (other, _, at), values in found.items() if (other, at) == (name, width)]
        ranges = (
            (what, [values[what, ""] for values in own], digits) for what, digits in (("questions", 0), ("cost", 2))
        )
        spans = [(min(values), max(values), digits) for _, values, digits in ranges]
        for number in NUMBERS:
            least = [f"{min(values[number, rule] for values in own):.3f}" for rule in RULES]
            bias = max((values[number, BIAS] for values in own), key=abs)
            cells = [f"{name}, {size:,}", f"{width:g}", number, f"{bias:+.2f}", *least]
            cells += [f"{low:,.{digits}f} to {high:,.{digits}f}" for low, high, digits in spans]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def coverage(arguments: argparse.Namespace) -> None:
    found = {}
    for name, model, width in itertools.product(arguments.sets, arguments.models, arguments.widths):
        start = time.monotonic()
        found[name, model, width] = cover(name, model, width, arguments.repeats, arguments.size)
        least = min((share, key) for key, share in found[name, model, width].items())
        print(f"{name}, {model}, {width:g}: least {least}, {time.monotonic() - start:.1f} s", flush=True)
    made = table(found, arguments.size)
    print(made)
    if arguments.write:
        page = arguments.write.read_text("utf-8")
        before, rest = page.split(START)
        old, after = rest.split(END)
        new = {row.split(" | ")[0] for row in made.splitlines()}
        made = "\n".join([made, *(row for row in old.strip().splitlines()[2:] if row.split(" | ")[0] not in new)])
        arguments.write.write_text(f"{before}{START}\n\n{made}\n\n{END}{after}", "utf-8")


def savings(arguments: argparse.Namespace) -> None:
    from unslant import audit, open_model

    model = open_model(arguments.model, dtype=arguments.dtype)
    whole = audit(model, arguments.questions, limit=arguments.limit, orders=WHOLE_ORDERS)
    spent, means = whole.cost.tokens, whole.metrics.means
    print(f"{whole.name}: {len(whole.scores)} questions, {spent:,} tokens; mean {means['expected_accuracy'].value:.3f}")
    print("| half-width | asked | tokens | saved | mean over orders | whole audit | PBM | whole audit |")
    print("|---" * 8 + "|")
    for width in arguments.widths:
        found = audit(model, arguments.questions, limit=arguments.limit, until=width)
        told, own = found.run.until, found.metrics.means
        cells = [
            f"{width:g}{'' if told.reached else ' (not reached)'}",
            f"{told.questions} questions, {told.squares} in a square, {told.whole} in all orders",
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
    from unslant.auditing.comparison import audit_logs

    scores = (
        audit_logs([arguments.file]).scores
        if arguments.file.suffix == ".jsonl"
        else recorded_table(str(arguments.file))
    )
    pool = Pool.of(scores)
    truth = {number: float(np.nanmean(pool.values[number])) for number in NUMBERS}
    print(f"{len(pool.squares)} recorded questions, drawn {arguments.size:,} times")
    print("| half-width | questions asked | in a square | in all orders | ordinary runs | reached | least coverage |")
    print("|---" * 7 + "|")
    for width in arguments.widths:
        rng, found, held = np.random.default_rng(0), [], dict.fromkeys(NUMBERS, 0)
        for _ in range(arguments.repeats):
            rows = rng.integers(len(pool.squares), size=arguments.size)
            one = searched(pool, rows, width, rng, {})
            levels = np.bincount(one.search.asked, minlength=3)
            cost = float(levels @ COSTS) / arguments.size
            found.append((one.search.questions, levels[1:].sum(), levels[WHOLE], cost, one.ended == "width"))
            for number, (low, high) in one.steps[-1].items():
                held[number] += low - 1e-9 <= truth[number] <= high + 1e-9
        n, squares, whole, cost, reached = np.asarray(found, np.float64).mean(axis=0)
        least = min(held.values()) / arguments.repeats
        print(f"| {width:g} | {n:,.0f} | {squares:,.0f} | {whole:,.0f} | {cost:.2f} | {reached:.0%} | {least:.3f} |")


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    covering = commands.add_parser("coverage")
    covering.add_argument("--repeats", type=int, default=2000)
    covering.add_argument("--size", type=int, default=400, help="questions of a set")
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
    of_log.add_argument("--size", type=int, default=9702)
    of_log.add_argument("--repeats", type=int, default=200)
    of_log.add_argument("--widths", type=float, nargs="+", default=[0.1, 0.05, 0.02])
    of_log.set_defaults(run=recorded)
    arguments = parser.parse_args(given)
    arguments.run(arguments)


START, END = "<!-- coverage: generated -->", "<!-- end of coverage -->"

if __name__ == "__main__":
    main()
