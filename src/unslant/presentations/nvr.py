"""Nvr-X: variants of a question in which the right option never stands under label X (P5, section 3.2, algorithm 1).

A model that answers X when it does not know scores nothing there; one that knows scores the same as always.
"""

from __future__ import annotations

from dataclasses import replace

from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.presentations.orders import Order, canonical, place
from unslant.presentations.presentation import Presentation, present
from unslant.presentations.seeds import question_rng
from unslant.questions.question import Question

NVR = "nvr"
"""Kind of these presentations; their item is the label X."""


def nvr_order(question: Question, position: int, seed: int = 0) -> Order | None:
    """A random order in which no right option stands at ``position`` (0 = top), all such orders being equally likely.

    A single right option thus goes to each of the other positions with the same probability, and the wrong ones fill
    the rest in random order. Pinned options keep their place. Drawn from the options sorted by content, so that what
    is shown does not depend on the order in the file.

    Returns:
        ``None`` where there is no such order: no such position, no right option, a right option pinned there, or
        every option that may stand there is right.
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
