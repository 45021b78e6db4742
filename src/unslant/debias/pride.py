"""PriDe: divide by the prior over labels (Zheng et al. 2024, "Large Language Models Are Not Robust ...")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from unslant.arrays import Floats
from unslant.debias.asking import Asker, ask_orders, normalised
from unslant.debias.base import Outcome, Traits, Unchanged
from unslant.errors import InputError
from unslant.presentations import cyclic_orders, given_order, question_rng
from unslant.questions.question import Question

EPSILON = 1e-10
"""Added to probabilities before the logarithm."""


@dataclass(frozen=True)
class Pride(Traits):
    """Debias by a prior over labels that is estimated on a share of the questions. No labels needed.

    For each estimation question the prior is the softmax over labels of the mean, over its n cyclic orders, of the
    log-probability of each label: content cancels out. The global prior of n labels is the mean over estimation
    questions with n options. A debiased answer has log-probabilities log P - log prior of the label an option is shown
    under, in the order of the file; estimation questions are answered by the mean over their cyclic orders instead.
    Cost: 1 + alpha (n - 1) presentations a question.

    Fitted on other questions than it answers, the prior is transferred.

    Args:
        alpha: share of the questions to estimate on, 0 to 1; at least one question per number of options.
        seed: of drawing them, by question id.
    """

    alpha: float = 0.05
    seed: int = 0
    name: str = field(default="pride", init=False)

    @property
    def needs_fit(self) -> bool:
        return True

    def fit(self, asker: Asker, questions: Sequence[Question]) -> PrideDebiaser:
        """Estimate the prior.

        Raises:
            InputError: if ``alpha`` is not in (0, 1], or all questions have pinned options.
        """
        if not 0 < self.alpha <= 1:
            raise InputError(f"PriDe: alpha {self.alpha} is not a share; give more than 0 and at most 1")
        free = [question for question in questions if not question.pinned]
        if not free:
            raise InputError("PriDe: no question to estimate the prior on (all have options that keep their place)")
        sample = drawn(free, self.alpha, self.seed)
        priors: dict[int, list[Floats]] = {}
        orders = [cyclic_orders(question) for question in sample]
        for question, own, rows in zip(sample, orders, ask_orders(asker, sample, orders), strict=True):
            by_label = np.stack([probs[list(order)] for order, probs in zip(own, rows, strict=True)])
            priors.setdefault(len(question.options), []).append(question_prior(by_label))
        return PrideDebiaser(
            asker, {n: np.mean(own, axis=0) for n, own in priors.items()}, frozenset(q.id for q in sample)
        )


def question_prior(by_label: Floats) -> Floats:
    """(n,) prior over labels from (n, n) label probabilities, one row per cyclic order."""
    return normalised(np.log(by_label + EPSILON).mean(axis=0))


def drawn(questions: Sequence[Question], share: float, seed: int) -> list[Question]:
    """A share of the questions, at least one for each number of options, by seed and ids and not by file order."""
    groups: dict[int, list[Question]] = {}
    for question in sorted(questions, key=lambda question: question.id):
        groups.setdefault(len(question.options), []).append(question)
    sample = []
    for n, group in sorted(groups.items()):
        sample += question_rng("", seed, f"estimation-{n}").sample(group, max(1, round(share * len(group))))
    return sample


class PrideDebiaser(Unchanged):
    """Answers with an estimated prior.

    Attributes:
        priors: number of options -> (n,) prior over labels.
        estimated_on: ids of the questions the prior comes from.
    """

    def __init__(self, asker: Asker, priors: Mapping[int, Floats], estimated_on: frozenset[str]) -> None:
        super().__init__()
        self.asker, self.priors, self.estimated_on = asker, priors, estimated_on

    def answer(self, questions: Sequence[Question]) -> list[Outcome]:
        orders = [
            cyclic_orders(question) if question.id in self.estimated_on else [given_order(question)]
            for question in questions
        ]
        outcomes = []
        for question, rows in zip(questions, ask_orders(self.asker, questions, orders), strict=True):
            n = len(question.options)
            if question.id in self.estimated_on:
                probs = np.mean(rows, axis=0)
            else:
                probs = normalised(np.log(rows[0] + EPSILON) - np.log(self.priors.get(n, np.ones(n))))
            outcomes.append(Outcome.by_place(probs, len(rows)))
        missing = sorted({len(question.options) for question in questions} - set(self.priors))
        self.notes = tuple(f"no prior for {n} options: their answers are as the model gave them" for n in missing)
        return outcomes
