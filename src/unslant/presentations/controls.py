"""What P5 shows besides the questions as given: controls and Nvr-X.

Control presentations (section 3.1) are a question without content under every order of its labels. A model can only
answer it by habit. Each label appears at each position equally often, which separates the pull of a label from the pull
of a position.

Nvr-X (section 3.2, algorithm 1) are variants of a question in which the right option never has label label X. A
model that answers X when it does not know scores nothing there; one that knows scores the same as always.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.presentations.orders import DEFAULT_CAP, Order, canonical, place, question_rng
from unslant.presentations.presentation import Asked, Presentation, present
from unslant.questions.question import Question

CONTROL = "control"
"""Kind of control presentations, and prefix of the ids of control questions."""
STEM, OPTION = "Select an answer choice", "choice"


def label_orders(n: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Index of the label at each position, balanced: every label appears at every position equally often.

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


NVR = "nvr"
"""Kind of these presentations; their item is the label X."""


def nvr_order(question: Question, position: int, seed: int = 0) -> Order | None:
    """A random order in which no right option is at ``position`` (0 = top), all such orders being equally likely.

    A single right option thus goes to each of the other positions with the same probability, and the wrong ones fill
    the rest in random order. Pinned options keep their place. Drawn from the options sorted by content, so that what
    is shown does not depend on the order in the file.

    Returns:
        ``None`` where there is no such order: no such position, no right option, a right option pinned there, or
        every option that may be there is right.
    """
    if not 0 <= position < len(question.options) or not question.answers:
        return None
    rng = question_rng(question.id, seed, f"nvr {position}")
    base = list(canonical(question))
    if position in question.pinned:
        if position in question.answers:
            return None
        rng.shuffle(base)
        return place(question, base)
    wrong = [i for i in base if i not in question.answers]
    if not wrong:
        return None
    first = rng.choice(wrong)
    base.remove(first)
    rng.shuffle(base)
    base.insert(question.movable.index(position), first)
    return place(question, base)


def nvr_presentations(
    question: Question, alphabet: tuple[str, ...] = ALPHABETS["A"], seed: int = 0
) -> list[Presentation]:
    """The Nvr-X presentations of a question, one for each of its labels; X is their ``item``.

    Returns:
        An empty list where one of them does not exist, so that all variants are about the same questions.
    """
    labels = labels_for(alphabet, len(question.options))
    orders = [nvr_order(question, position, seed) for position in range(len(labels))]
    found = [
        replace(present(question, order, alphabet, NVR), item=label)
        for label, order in zip(labels, orders, strict=True)
        if order is not None
    ]
    return found if len(found) == len(labels) else []
