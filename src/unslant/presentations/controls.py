"""Control presentations: a question without content, shown under every order of its labels (P5, section 3.1).

A model can only answer it by habit. Each label stands at each position equally often, which separates the pull of a
label from the pull of a position.
"""

from __future__ import annotations

import itertools
import math

from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.presentations.orders import DEFAULT_CAP
from unslant.presentations.presentation import Asked, present
from unslant.presentations.seeds import question_rng
from unslant.questions.question import Question

CONTROL = "control"
"""Kind of control presentations, and prefix of the ids of control questions."""
STEM, OPTION = "Select an answer choice", "choice"


def label_orders(n: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Index of the label at each position, balanced: every label stands at every position equally often.

    All ``n!`` orders where there are at most 24 (lexicographic, so the usual order is first); otherwise
    ``ceil(24 / n)`` random Latin squares of ``n`` orders each, the first beginning with the usual order.
    """
    if math.factorial(n) <= DEFAULT_CAP:
        return list(itertools.permutations(range(n)))
    rng = question_rng(f"{CONTROL}/{n}", seed, "label orders")
    orders: dict[tuple[int, ...], None] = {}
    base = list(range(n))
    while len(orders) < DEFAULT_CAP:
        square = [tuple(base[k:] + base[:k]) for k in range(n)]
        if square[0] not in orders:
            orders.update(dict.fromkeys(square))
        rng.shuffle(base)
    return list(orders)


def control_presentations(n: int, alphabet: tuple[str, ...] = ALPHABETS["A"], *, seed: int = 0) -> list[Asked]:
    """The control question of ``n`` equal options under :func:`label_orders`; no option is right.

    Raises:
        InputError: if the alphabet has fewer than ``n`` labels.
    """
    question = Question(f"{CONTROL}/{n}", STEM, (OPTION,) * n, frozenset(), subject=CONTROL)
    labels = labels_for(alphabet, n)
    return [
        (question, present(question, kind=CONTROL, labels=[labels[i] for i in order]))
        for order in label_orders(n, seed)
    ]
