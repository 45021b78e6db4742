"""Control presentations: a question without content, shown under every order of its labels (P5, section 3.1).

What a model answers here is habit alone. Each label stands at each position equally often, so that the pull of a label
and the pull of a position can be told apart.
"""

from __future__ import annotations

import itertools
import math

from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.presentations.orders import DEFAULT_CAP
from unslant.presentations.presentation import Presentation, present
from unslant.presentations.seeds import question_rng
from unslant.questions.question import Question

CONTROL = "control"
"""Kind of control presentations, and prefix of the ids of control questions."""
STEM = "Select an answer choice"
OPTION = "choice"


def control_question(n: int, stem: str = STEM, option: str = OPTION) -> Question:
    """A question of ``n`` options that all read ``option``; none of them is right. Its id is ``control/N``."""
    return Question(f"{CONTROL}/{n}", stem, (option,) * n, frozenset(), subject=CONTROL)


def label_orders(n: int, cap: int = DEFAULT_CAP, seed: int = 0) -> list[tuple[int, ...]]:
    """Index of the label at each position, balanced: every label stands at every position equally often.

    All ``n!`` orders where there are at most ``cap`` (lexicographic, so the usual order is first); otherwise
    ``ceil(cap / n)`` random Latin squares, ``n`` orders each, of which the first begins with the usual order.
    """
    if math.factorial(n) <= cap:
        return list(itertools.permutations(range(n)))
    rng = question_rng(f"{CONTROL}/{n}", seed, "label orders")
    orders: dict[tuple[int, ...], None] = {}
    base = list(range(n))
    while len(orders) < cap:
        square = [tuple(base[k:] + base[:k]) for k in range(n)]
        if square[0] not in orders:
            orders.update(dict.fromkeys(square))
        rng.shuffle(base)
    return list(orders)


def control_presentations(
    n: int,
    alphabet: tuple[str, ...] = ALPHABETS["A"],
    *,
    stem: str = STEM,
    option: str = OPTION,
    cap: int = DEFAULT_CAP,
    seed: int = 0,
) -> list[tuple[Question, Presentation]]:
    """The control question of ``n`` options under its label orders, ready to be asked.

    Args:
        alphabet: the labels are its first ``n``.
        cap, seed: see :func:`label_orders`.

    Raises:
        InputError: if the alphabet has fewer than ``n`` labels.
    """
    question = control_question(n, stem, option)
    labels = labels_for(alphabet, n)
    return [
        (question, present(question, kind=CONTROL, labels=[labels[i] for i in order]))
        for order in label_orders(n, cap, seed)
    ]
