"""The audit in two phases: how many questions are asked in all orders, where the others are asked in a square.

See :mod:`unslant.metrics.two_phase` for the estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from unslant.arrays import Bools, Floats
from unslant.auditing import OrderDesign
from unslant.metrics import Bootstrap, Estimate, read_scores, wilson
from unslant.metrics.accuracy import expected_accuracy
from unslant.metrics.estimate import normal_quantile, yes_or_no
from unslant.metrics.registry import bounds_of
from unslant.metrics.scores import OrderScores
from unslant.metrics.two_phase import TwoPhaseValues, over_squares, whole_part
from unslant.presentations import Asked
from unslant.questions import Question
from unslant.responses import SCHEMA, Responses, Run

WIDTH = 2.0
"""Widest intervals of :data:`WIDENED` allowed, relative to an audit in all orders."""
WIDENED = ("pbm", "normalised_pbm", "consistency", "robust_accuracy")
"""Numbers that need all orders and for which the part grows. Not the votes: for 1,000 questions and a model that only
follows the place, they would cost 3.8 instead of 3.0 ordinary runs, and the vote over a square is narrow."""
WIDTH_OF_MEAN = 1.15
"""The same for the mean over orders, which misses only what differs between the squares of a question."""
_SAFE = 0.9
"""Share of the allowed squared width that the next size aims at, so that the part need not grow again."""
_OF_ORDERS = ("order", "given", "reverse")


def grown(
    design: OrderDesign, responses: Responses, ask: Callable[[list[Asked]], Responses]
) -> tuple[OrderDesign, Responses]:
    """Ask more questions in all orders, until the intervals that need them are narrow enough.

    Args:
        responses: of the design.
        ask: asks further presentations.

    Returns:
        The design and responses in the end, question by question.
    """
    texts = design.questions.questions
    while design.full is not None:
        scores = read_scores(replace(responses, run=Run(two_phase=design.recorded), questions=tuple(texts)))
        values = TwoPhaseValues.of(scores)
        if values is None or scores.full is None or scores.full.all():
            break
        means, noise = expected_accuracy(scores), noise_between_squares(scores)
        size = next_part(values, scores.full, means, noise, Bootstrap.of(scores))
        if size <= len(design.full):
            break
        larger = design.with_part(size)
        new = (larger.full or frozenset()) - design.full
        further: list[Asked] = []
        for question in (question for question in texts if question.id in new):
            known = {page.contents for _, page in design.square(question)}
            pages = design.whole(question)
            further += [page for page in pages if page[1].kind not in _OF_ORDERS or page[1].contents not in known]
        responses, design = _joined(responses, ask(further), texts, new), larger
    return design, responses


def _joined(responses: Responses, more: Responses, questions: Sequence[Question], new: frozenset[str]) -> Responses:
    """Two tables, question by question; the published order of a question now asked in all orders is one of them."""
    table = pa.concat_tables([responses.table, more.table])
    ids, kinds = table["question_id"].to_pylist(), table["kind"].to_pylist()
    kinds = ["order" if kind == "given" and name in new else kind for kind, name in zip(kinds, ids, strict=True)]
    place = {question.id: i for i, question in enumerate(questions)}
    sequence = np.argsort([place.get(name, len(place)) for name in ids], kind="stable")
    at = SCHEMA.get_field_index("kind")
    table = table.set_column(at, SCHEMA.field(at), pa.array(kinds, pa.string())).take(pa.array(sequence))
    return Responses(table, responses.run, responses.questions)


def noise_between_squares(scores: OrderScores) -> Floats:
    """(n,) variance of the share right between the squares of each question shown in all orders."""
    pairs, rows = over_squares(replace(whole_part(scores), full=scores.full))
    right, counts = expected_accuracy(pairs), np.bincount(rows)
    mean, square = (np.bincount(rows, right**power) / np.maximum(1, counts) for power in (1, 2))
    return np.asarray(np.maximum(0.0, square - mean**2)[counts > 0])


def next_part(phased: TwoPhaseValues, full: Bools, means: Floats, noise: Floats, bootstrap: Bootstrap) -> int:
    """The size that the part grows to: the larger of :func:`part_needed` and :func:`part_for_mean`, at most double.

    A small part estimates its own best size poorly, so it grows in steps and is estimated again after each.
    """
    size = max(part_needed(phased, full, bootstrap), part_for_mean(means, noise, full))
    return min(size, 2 * int(full.sum()), len(full))


def part_needed(phased: TwoPhaseValues, full: Bools, bootstrap: Bootstrap) -> int:
    """Questions to ask in all orders, so that the intervals of :data:`WIDENED` are narrow enough.

    Args:
        phased: the values of every question, and those known over all orders.
        full: (Q,) questions of the part so far.

    Returns:
        The size of the part at which each interval is at most :data:`WIDTH` times as wide as if every question had been
        asked in all orders; the present size where that is so already.
    """
    size, needed = len(full), phased.shown
    for key in WIDENED:
        values, bounds = phased.values[key], bounds_of(key)
        known = phased.known[key][np.isfinite(phased.known[key]) & full]
        estimate = bootstrap.two_phase(values, phased.known[key], phased.shown, bounds=bounds)
        if len(known) < 2 or math.isnan(estimate.low):
            continue
        # The interval of all orders is that of N questions like the part, or wider, where the squares show that the
        # part by chance has fewer questions of a rare sort than the others.
        usual = _width(bootstrap.mean(np.resize(known, size), bounds=bounds, room="bounds, unsure"))
        if yes_or_no(known):
            usual = max(usual, _width(wilson(estimate.value, estimate.n)))
        else:
            spread = float(np.nanstd(values[~full])) if np.isfinite(values[~full]).any() else 0.0
            usual = max(usual, 2 * normal_quantile(estimate.confidence) * spread / math.sqrt(estimate.n))
        ratio = _width(estimate) / usual
        if ratio > WIDTH and phased.shown < size:
            # the square of the ratio is about 1 + c (1 / n - 1 / N)
            c = (ratio**2 - 1) / (1 / phased.shown - 1 / size)
            needed = max(needed, math.ceil(1 / ((_SAFE * WIDTH**2 - 1) / c + 1 / size)))
    return min(size, needed)


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def part_for_mean(means: Floats, noise: Floats, full: Bools) -> int:
    """Questions to ask in all orders, so that the interval of the mean over orders is narrow enough.

    A question's mean over its square varies by v + s: v between questions, s between the squares of one question. With
    n of N questions in all orders, the variance of the mean is (v + (1 - n / N) s) / N.

    Args:
        means: (Q,) share right over the orders shown.
        noise: (n,) of the part: s of each question.
        full: (Q,) questions of the part so far.

    Returns:
        As :func:`part_needed`, with :data:`WIDTH_OF_MEAN`.
    """
    size, shown = len(full), int(full.sum())
    far = (means - np.nanmean(means)) ** 2
    total, noisy = float(np.nanmean(far)), float(np.nansum(noise))
    if total == 0:
        return shown
    # If few questions move at all, the part may show none whose squares differ: one more is assumed, whose share right
    # varies by an eighth. (With as much as any question lies off the mean, strong models, whose squares hardly differ,
    # would be asked for half as many questions more.)
    unseen = min(float(np.nanmax(far)), 1 / 64)
    share = (noisy + unseen) / (noisy + float(np.nansum(far[full])) + unseen)  # s / (v + s)
    both = total / (1 - share * shown / size) if shown < size else total
    v, s = (1 - share) * both, share * both
    if total <= WIDTH_OF_MEAN**2 * v:
        return shown
    return max(shown, math.ceil(size * share_in_all(v, s)))


def share_in_all(v: float, s: float) -> float:
    """Share of the questions to ask in all orders, so that the mean over orders is known as :data:`WIDTH_OF_MEAN` says.

    Args:
        v: variance between questions.
        s: variance between the squares of one question.
    """
    return 1 - min(1.0, (_SAFE * WIDTH_OF_MEAN**2 - 1) * v / s) if s > (WIDTH_OF_MEAN**2 - 1) * v else 0.0
