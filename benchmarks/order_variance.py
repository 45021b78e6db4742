"""What structured order sets cost in variance, against plain random ones: a simulation, no model needed.

    python benchmarks/order_variance.py [--questions 60] [--repeats 10] [--k 24] [--options 5 6 8]

A simulated model scores option i at place p under order o by

    taste_i + pull_p + context_{i, what stands right above} + context_{i, what stands first} + noise_{i, o}

(standard deviations: 1, ``pull``, and 0.5 each for the rest), and answers with the softmax. Order sets of one size
estimate the vote (mean probability of each option over all orders) and PBM; printed is their mean squared error over
questions and draws, relative to plain random orders, with the option segments a set has to compute.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence

import numpy as np

from unslant.presentations import Order, orders_for
from unslant.questions import Question

KINDS = ("{k}", "balanced:{k}", "auto", "cyclic:{k}", "shared:{k}", "given:{k}")


class Simulated:
    """One question as one simulated model sees it."""

    def __init__(self, n: int, pull: float, rng: np.random.Generator) -> None:
        self.n = n
        self.taste = rng.normal(size=n)
        self.pull = pull * rng.normal(size=n)
        self.above = 0.5 * rng.normal(size=(n, n + 1))
        self.first = 0.5 * rng.normal(size=(n, n))
        self.seed = int(rng.integers(2**32))

    def probs(self, orders: np.ndarray) -> np.ndarray:
        """(K, n) probability of each option under each order, (K, n) options from top to bottom."""
        k, n = orders.shape
        above = np.concatenate([np.full((k, 1), n), orders[:, :-1]], axis=1)
        logits = self.taste[orders] + self.pull + self.above[orders, above] + self.first[orders, orders[:, :1]]
        # noise that belongs to the order itself: hashed, so that the same order always has the same noise
        codes = (orders * (n ** np.arange(n))).sum(axis=1)
        logits += 0.5 * np.stack([np.random.default_rng([self.seed, int(code)]).normal(size=n) for code in codes])
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        by_option = np.empty_like(weights)
        np.put_along_axis(by_option, orders, weights, axis=1)
        return by_option


def option_segments(orders: Sequence[Order]) -> int:
    """Prefix-tree nodes of a set of orders, counted in option lines: how many lines have to be computed."""
    return len({order[:depth] for order in orders for depth in range(1, len(order) + 1)})


def truth(model: Simulated, rng: np.random.Generator, most: int = 5040) -> tuple[np.ndarray, float]:
    """Mean probabilities and PBM over all orders, or over many random ones."""
    if math.factorial(model.n) <= most:
        orders = np.asarray(list(itertools.permutations(range(model.n))))
    else:
        orders = np.stack([rng.permutation(model.n) for _ in range(most)])
    probs = model.probs(orders)
    return probs.mean(axis=0), float(probs.var(axis=0).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--k", type=int, default=24)
    parser.add_argument("--options", type=int, nargs="+", default=[5, 6, 8])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| n | pull of places | orders | K | segments | vote MSE, relative | winner differs | PBM MSE, relative |")
    print("|---|---|---|---|---|---|---|---|")
    for n, pull in itertools.product(arguments.options, (0.5, 2.0)):
        rng = np.random.default_rng([arguments.seed, n])
        models = [Simulated(n, pull, rng) for _ in range(arguments.questions)]
        truths = [truth(model, rng) for model in models]
        base: tuple[float, float] | None = None
        for kind in KINDS:
            spec = kind.format(k=arguments.k)
            if spec in ("auto", "cyclic:24") and (spec == "auto") == (arguments.k < 24):  # the same set
                continue
            vote, pbm, differs, sizes, segments = [], [], [], [], []
            for q, (model, (mean, spread)) in enumerate(zip(models, truths, strict=True)):
                question = Question(f"q{q}", "?", tuple(f"{i:02d}" for i in range(n)), frozenset())
                for repeat in range(arguments.repeats):
                    orders = orders_for(question, spec, seed=repeat)
                    probs = model.probs(np.asarray(orders))
                    vote.append(float(((probs.mean(axis=0) - mean) ** 2).mean()))
                    differs.append(probs.mean(axis=0).argmax() != mean.argmax())
                    pbm.append((float(probs.var(axis=0).mean()) - spread) ** 2)
                    sizes.append(len(orders))
                    segments.append(option_segments(orders))
            own = float(np.mean(vote)), float(np.mean(pbm))
            base = base or own
            print(
                f"| {n} | {pull:g} | {spec} | {np.mean(sizes):.0f} | {np.mean(segments):.0f} "
                f"| {own[0] / base[0]:.2f} | {np.mean(differs):.3f} | {own[1] / base[1]:.2f} |"
            )


if __name__ == "__main__":
    main()
