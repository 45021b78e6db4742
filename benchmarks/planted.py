"""Planted answerers: made-up models whose habit is known exactly, asked as an audit asks, many questions at once.

    scores = planted_scores(Planted(label=at(0, 2.0)), 400, sizes=(4,), seed=1)

The log-probability of an option is what it attracts by itself (knowledge or taste), plus a weight of the label it
carries and of the position it stands at, plus noise of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unslant.metrics.scores import Block, OrderScores, View
from unslant.presentations import ALPHABETS
from unslant.presentations.orders import auto_orders
from unslant.questions.question import Question

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Weights = Callable[[int], Floats]
"""From a number of options n to (n,) natural-log weights, by label or by position."""


def none(n: int) -> Floats:
    """No habit."""
    return np.zeros(n)


def at(place: int, weight: float = 2.5, *more: int) -> Weights:
    """``weight`` at one place or several, counted from 0, or from the end if negative; nothing where there is none."""

    def weights(n: int) -> Floats:
        found = np.zeros(n)
        for i in (place, *more):
            if -n <= i < n:
                found[i] += weight
        return found

    return weights


def middle(weight: float = 2.5) -> Weights:
    """``weight`` in the middle: one place of an odd number, two of an even one."""
    return lambda n: weight * np.isin(np.arange(n), ((n - 1) // 2, n // 2)).astype(np.float64)


@dataclass(frozen=True)
class Planted:
    """One made-up model.

    Attributes:
        label, position: its habit.
        others: other habits (label, position), one of which replaces it in a question by ``which``.
        which: (Q,) subject codes and the generator -> (Q,) 0 for the habit itself, i for ``others[i - 1]``.
        by_size: number of options -> (label, position) instead.
        knows: share of questions it knows, and ``sure``: the natural-log weight of the right option there.
        taste: standard deviation of what options attract by themselves, per option.
        noise: standard deviation of the noise of each page.
        hard: answers with all the probability on its choice.
    """

    label: Weights = none
    position: Weights = none
    others: tuple[tuple[Weights, Weights], ...] = ()
    which: Callable[[Ints, np.random.Generator], Ints] | None = None
    by_size: dict[int, tuple[Weights, Weights]] = field(default_factory=dict)
    knows: float = 0.5
    sure: float = 12.0
    taste: float = 0.5
    noise: float = 0.5
    hard: bool = False


def planted_scores(
    model: Planted,
    count: int,
    sizes: Sequence[int] = (4,),
    *,
    seed: int = 0,
    subjects: int = 1,
    context: int = 1,
    spread: float = 0.0,
    right: Callable[[int, np.random.Generator], int] | None = None,
    relabelled: bool = True,
) -> OrderScores:
    """Scores of ``count`` questions, with numbers of options and then subjects in turn.

    Args:
        context: questions that share one.
        spread: by how much the share of known questions differs, up and down, between subjects (between contexts,
            where questions share one), if half are known; the less, the nearer that is to none or all.
        right: number of options and generator -> place of the right option in the file; default any, evenly.
        relabelled: whether the pages with other labels were asked, too.
    """
    rng = np.random.default_rng(seed)
    width = max(sizes)
    n_options = np.asarray([sizes[q % len(sizes)] for q in range(count)], np.int64)
    subject = np.arange(count) // len(sizes) % subjects
    shared = np.arange(count) // context
    gold = np.asarray([right(int(n), rng) if right else rng.integers(n) for n in n_options])
    level = rng.uniform(-1, 1, count)[shared] if context > 1 else np.linspace(-1, 1, subjects)[subject]
    known = rng.random(count) < model.knows + 4 * model.knows * (1 - model.knows) * spread * level
    variant = model.which(subject, rng) if model.which else np.zeros(count, np.int64)
    answers = np.zeros((count, width), bool)
    answers[np.arange(count), gold] = True
    attraction = rng.normal(0, 1, (count, width)) * model.taste
    attraction[known] *= 0
    attraction[np.arange(count), gold] += np.where(known, model.sure, 0.0)
    names = tuple(f"s{s:02d}" for s in subject)
    ids = tuple(f"q{q:05d}" for q in range(count))
    ranks = np.tile(np.arange(width), (count, 1))

    def ask(rows: Ints, n: int, contents: Ints, labels: Ints) -> tuple[Floats, Ints]:
        """Probabilities and positions by content, (Q, K, n), of K pages."""
        choices = [model.by_size.get(n, (model.label, model.position)), *model.others]
        habits = np.stack([label(n)[labels] + position(n) for label, position in choices])
        logits = attraction[rows][:, contents] + habits[variant[rows]]
        logits = logits + model.noise * rng.standard_normal(logits.shape)
        probs = np.exp(logits - logits.max(axis=-1, keepdims=True))
        if model.hard:
            probs = (probs == 1).astype(np.float64)
        probs /= probs.sum(axis=-1, keepdims=True)
        places = np.argsort(contents, axis=-1)
        return np.take_along_axis(probs, np.broadcast_to(places, probs.shape), axis=-1), places

    views = {name: _no_view(count, width) for name in _PAGES}
    blocks = []
    for n in sorted(set(sizes)):
        rows = np.flatnonzero(n_options == n)
        orders = np.asarray(sorted(auto_orders(Question("q", "?", tuple("x" * n), frozenset()))))
        probs, places = ask(rows, n, orders, np.tile(np.arange(n), (len(orders), 1)))
        positions = np.broadcast_to(places, probs.shape)
        blocks.append(
            Block(
                rows,
                probs,
                np.ascontiguousarray(positions),
                answers[rows, :n],
                np.zeros((len(rows), n), bool),
                ranks[rows, :n],
            )
        )
        for name, (backwards, labels_of) in _PAGES.items():
            order = np.arange(n)[::-1] if backwards else np.arange(n)
            view = views[name]
            if labels_of is None:
                k = int(np.flatnonzero((orders == order).all(axis=1))[0])
                own, at_place, label = probs[:, k], places[k], places[k]
            elif not relabelled or (name == "labels_shifted" and n < 3):
                continue
            else:
                labels = labels_of(n)
                own, at_places = ask(rows, n, order[None], labels[None])
                own, at_place = own[:, 0], at_places[0]
                label = labels[at_place]
            view.ok[rows] = True
            view.probs[rows[:, None], np.arange(n)] = own
            view.positions[rows[:, None], np.arange(n)] = at_place
            view.labels[rows[:, None], np.arange(n)] = label
    pinned, contexts = np.zeros_like(answers), tuple(f"c{c}" * (context > 1) for c in shared)
    labels = ALPHABETS["A"][:width]
    return OrderScores(ids, names, n_options, answers, pinned, ranks, contexts, labels, tuple(blocks), **views)


_PAGES: dict[str, tuple[bool, Callable[[int], Ints] | None]] = {
    "given": (False, None),
    "reversed": (True, None),
    "labels_reversed": (False, lambda n: np.arange(n)[::-1]),
    "both_reversed": (True, lambda n: np.arange(n)[::-1]),
    "labels_shifted": (False, lambda n: (np.arange(n) + 1) % n),
}
"""Page -> whether options stand in reversed order, and the label at each position (None: the standard ones)."""


def _no_view(count: int, width: int) -> View:
    positions = np.tile(np.arange(width, dtype=np.int64), (count, 1))
    return View(np.zeros(count, bool), np.zeros((count, width)), positions, positions.copy())
