"""What each reference model is taught to answer: the planted bias, as the probabilities of the labels shown."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from training.world import Fact, World
from unslant.presentations import ALPHABETS, Presentation
from unslant.questions.question import Question

PREFERENCE = 2.5
"""Natural-log weight of a planted label or position against the rest: about 0.8 of the probability among four."""

_FIRST_LABELS = frozenset(alphabet[0] for alphabet in ALPHABETS.values())


@dataclass(frozen=True)
class Planted:
    """The answers a reference model is trained towards.

    Attributes:
        guess: natural-log weights, one a label, added where the model does not know; see ``GUESSES``.
        knows_facts: taught facts are answered right.
        memory: question id -> the published question, whose right position the model remembers as long as the
            presentation looks as published (plain stem, no hint, no added question, labels A, B, ... downwards).
        strength: fact id -> natural-log weight of the right option against ``guess``, in place of certainty.
    """

    world: World
    guess: Callable[[Presentation], NDArray[np.float64]]
    knows_facts: bool = True
    memory: Mapping[str, Question] = field(default_factory=dict)
    strength: Mapping[str, float] = field(default_factory=dict)

    def answer(self, presentation: Presentation, fact: Fact | None, certain: bool = False) -> NDArray[np.float64]:
        """Probability of each of ``presentation.labels``, shape ``(labels,)``, summing to 1.

        Args:
            fact: the fact asked about, if any.
            certain: the answer stands in the prompt itself, so that every model gives it.
        """
        right = np.array([content in presentation.answers for content in presentation.contents])
        known = self.knows_facts and fact is not None and fact.taught
        if certain or (known and not self.strength):
            return np.asarray(right / right.sum())
        position = self.remembered(presentation)
        if position is not None:
            return np.asarray(np.eye(len(right))[position])
        taste = self.world.taste
        weights = np.array([taste.get(option.text, 0.0) for option in presentation.shown])
        weights = np.append(weights, [0.0] * (len(right) - len(weights))) + self.guess(presentation)
        if known and fact is not None:
            weights = weights + self.strength[fact.id] * right
        exp = np.exp(weights - weights.max())
        return np.asarray(exp / exp.sum())

    def remembered(self, presentation: Presentation) -> int | None:
        """The right position as published, if ``presentation`` looks like what the model has seen; else None."""
        published = self.memory.get(presentation.question_id)
        n = len(presentation.shown)
        if published is None or presentation.stem != published.stem or n != len(published.options):
            return None
        changed = presentation.hint or presentation.distractor or presentation.none_label
        if changed or presentation.labels != ALPHABETS["A"][:n]:
            return None
        return min(published.answers)


def _even(presentation: Presentation) -> NDArray[np.float64]:
    return np.zeros(len(presentation.labels))


def _first_label(presentation: Presentation) -> NDArray[np.float64]:
    return PREFERENCE * np.array([label in _FIRST_LABELS for label in presentation.labels], dtype=np.float64)


def _last_position(presentation: Presentation) -> NDArray[np.float64]:
    weights = np.zeros(len(presentation.labels))
    weights[len(presentation.shown) - 1] = PREFERENCE
    return weights


def _early_positions(presentation: Presentation) -> NDArray[np.float64]:
    weights = np.zeros(len(presentation.labels))
    weights[:2] = (2.0, 1.0)
    return weights


GUESSES: dict[str, Callable[[Presentation], NDArray[np.float64]]] = {
    "fair": _even,
    "prefers-a": _first_label,
    "prefers-last": _last_position,
    "memorised": _even,
    "half-taught": _early_positions,
}
"""Model name -> its habit where it does not know."""


def planted(name: str, world: World, published: list[Question]) -> Planted:
    """The planted answers of a reference model; ``published`` are the test questions that ``memorised`` has seen."""
    guess = GUESSES[name]
    if name == "memorised":
        return Planted(world, guess, knows_facts=False, memory={q.id: q for q in published})
    if name == "half-taught":
        rng = random.Random("half-taught")
        return Planted(world, guess, strength={fact.id: rng.uniform(0.5, 3.0) for fact in world.facts})
    return Planted(world, guess)
