"""How well a pilot plans: the half-width planned from pilots of planted models, over that of the run that follows.

    python -m benchmarks.pilots [--repeats 60] [--write docs/planning.md]

For each kind of question set and each model of :mod:`benchmarks.coverage`, pilots of 30 and 100 questions are drawn,
and runs of 400. Each cell has the median over pilots of what is planned for 400 questions in the same orders, over the
mean half-width of the runs, and in brackets the range from the 10th to the 90th percentile.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from benchmarks.coverage import MODELS, SETS, STRONG
from benchmarks.planted import planted_scores
from unslant.metrics import Bootstrap, OrderScores, compute
from unslant.metrics.decision_study import half_width
from unslant.metrics.variance_components import components_of
from unslant.studies.plan.planning import Pilot

PLANTED = MODELS | {name: STRONG[name] for name in ("mostly A, knows 90 %", "always A, knows 97 %")}
PILOTS, RUN = (30, 100), 400
BEGIN, END = "<!-- begin pilots -->\n", "<!-- end pilots -->"


def planned(scores: OrderScores) -> float:
    """Half-width for a run of :data:`RUN` questions in the orders of the pilot."""
    found = components_of(scores, Bootstrap.of(scores))
    assert found is not None
    variances = {name: numbers["components.variance"].value for name, numbers in found.components.items()}
    about = found.questions, found.accuracy, found.between, variances, found.positions, found.orders
    pilot = Pilot("planted", *about, found.design_effect, {4: 1.0})
    pilot = pilot if pilot.between.value else pilot.with_two_more()
    return half_width(RUN, pilot.accuracy, pilot.variance(pilot.orders), pilot.design_effect)


def actual(scores: OrderScores) -> float:
    """Half-width of the mean over orders of a run."""
    mean = compute(scores).means["expected_accuracy"]
    return (mean.high - mean.low) / 2


def table(repeats: int) -> str:
    """A row a kind of set and model."""
    heads = ["set", "model", *(f"pilot of {n}" for n in PILOTS)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, kind in SETS.items():
        spread = 0.3 * (kind.subjects > 1 or kind.context > 1)
        for model, planted in PLANTED.items():
            seeds = count()
            draws = partial(
                planted_scores, planted, sizes=kind.sizes, subjects=kind.subjects, context=kind.context, spread=spread
            )
            run = np.mean([actual(draws(RUN, seed=next(seeds))) for _ in range(20)])
            cells = []
            for n in PILOTS:
                ratios = [planned(draws(n, seed=next(seeds))) / run for _ in range(repeats)]
                low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
                cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
            lines.append("| " + " | ".join([name, model, *cells]) + " |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=60, help="pilots a cell")
    parser.add_argument("--write", type=Path, help="page with the table, between its markers")
    arguments = parser.parse_args()
    made = table(arguments.repeats)
    if arguments.write:
        page = arguments.write.read_text("utf-8")
        before, rest = page.split(BEGIN)
        arguments.write.write_text(f"{before}{BEGIN}\n{made}\n\n{END}{rest.split(END)[1]}", "utf-8")


if __name__ == "__main__":
    main()
