"""PriDe: divide by the prior over labels (Zheng et al. 2024, "Large Language Models Are Not Robust ...")."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from unslant.arrays import Floats, grouped
from unslant.debiasing.asker import Asker, ask_orders
from unslant.debiasing.base import Method, OrderDebiaser, Outcome
from unslant.errors import InputError
from unslant.presentations import Order, cyclic_orders, given_order, question_rng
from unslant.presentations.orders import wording
from unslant.questions import Question

ALPHA = 0.05
EPSILON = 1e-10
"""Added to probabilities before the logarithm."""


@dataclass(frozen=True)
class Pride(Method):
    """Debias by a prior over labels, estimated on a share of the questions. No right answers needed.

    For each estimation question the prior is the softmax over labels of the mean, over its n cyclic orders, of the
    log-probability of each label: content cancels out. The global prior of n labels is the mean over estimation
    questions with n options. A debiased answer has log-probabilities log P - log prior of the label an option is shown
    under, in the order of the file; estimation questions are answered by the mean over their cyclic orders instead.
    Cost: 1 + alpha (n - 1) presentations per question. Fitted on other questions than it answers, the prior is
    transferred.

    Args:
        alpha: share of the questions to estimate on, above 0 and up to 1; at least one question per number of options.
        seed: for drawing them, by question id.
    """

    alpha: float = ALPHA
    seed: int = 0
    name = "pride"
    needs_fit = True

    def __post_init__(self) -> None:
        check_share("alpha", self.alpha)

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> PrideDebiaser:
        """Estimate the prior; InputError if all questions have pinned options."""
        free = [question for question in questions if not question.pinned]
        if not free:
            raise InputError("PriDe: no question to estimate the prior on (all have options that keep their place)")
        sample = drawn_questions(free, self.alpha, self.seed)
        by_label = ask_labels(asker, sample, cyclic_orders)
        priors = {n: label_prior(np.stack(probs)) for n, probs in by_label.items()}
        return PrideDebiaser(asker, priors, frozenset(map(wording, sample)))


def label_prior(by_label: Floats) -> Floats:
    """(n,) prior over labels from (Q, n, n) label probabilities of Q questions, one row per cyclic order."""
    # Over the n cyclic orders every option is under every label once, so the content's share of the mean is the same
    # for all labels and cancels in the softmax.
    priors = softmax(np.log(by_label + EPSILON).mean(axis=1), axis=-1)
    return np.asarray(priors.mean(axis=0))


def without_prior(by_label: Floats, prior: Floats) -> Floats:
    """(..., n) label probabilities with the (n,) prior divided out, normalised again."""
    return np.asarray(softmax(np.log(by_label + EPSILON) - np.log(prior), axis=-1))


def drawn(ids: Sequence[str], sizes: Sequence[int], share: float, seed: int) -> list[int]:
    """Indices of a share of the questions, at least one per number of options; independent of the order of the file.

    Args:
        ids, sizes: id and number of options of each question.
    """
    groups = grouped((sizes[i], i) for i in sorted(range(len(ids)), key=lambda i: ids[i]))
    sample = []
    for n, group in sorted(groups.items()):
        sample += question_rng("", seed, f"estimation-{n}").sample(group, max(1, round(share * len(group))))
    return sample


def check_share(what: str, share: float) -> None:
    """Raise InputError unless 0 < ``share`` <= 1."""
    if not 0 < share <= 1:
        raise InputError(f"{what} {share:g} is not a share; give more than 0 and at most 1")


def drawn_questions(questions: Sequence[Question], share: float, seed: int) -> list[Question]:
    """The questions that :func:`drawn` draws."""
    indices = drawn([q.id for q in questions], [len(q.options) for q in questions], share, seed)
    return [questions[i] for i in indices]


def ask_labels(
    asker: Asker, questions: Sequence[Question], orders_of: Callable[[Question], list[Order]]
) -> dict[int, list[Floats]]:
    """By number of options n, the (K, n) label probabilities of each question under its K orders."""
    orders = [orders_of(question) for question in questions]
    pairs = zip(orders, ask_orders(asker, questions, orders), strict=True)
    return grouped((probs.shape[1], np.take_along_axis(probs, np.asarray(order), axis=1)) for order, probs in pairs)


def sizes_without(sizes: Collection[int], questions: Sequence[Question]) -> list[int]:
    """Numbers of options of the questions that are not among ``sizes``."""
    return sorted({len(question.options) for question in questions}.difference(sizes))


@dataclass(eq=False)
class PrideDebiaser(OrderDebiaser):
    """Answers with an estimated prior.

    Attributes:
        priors: number of options -> (n,) prior over labels.
        estimated_on: :func:`~unslant.presentations.orders.wording` of the questions the prior comes from.
    """

    priors: Mapping[int, Floats]
    estimated_on: frozenset[tuple[str, ...]]

    def orders(self, question: Question) -> list[Order]:
        return cyclic_orders(question) if wording(question) in self.estimated_on else [given_order(question)]

    def outcome(self, question: Question, orders: Sequence[Order], probs: Floats) -> Outcome:
        n = len(question.options)
        if wording(question) in self.estimated_on:
            return Outcome.by_place(probs.mean(axis=0), len(orders))
        return Outcome.by_place(without_prior(probs[0], self.priors.get(n, np.ones(n))), 1)

    def notes(self, questions: Sequence[Question]) -> tuple[str, ...]:
        missing = sizes_without(self.priors, questions)
        own = (f"no prior for {n} options: their answers are the model's own" for n in missing)
        return (*super().notes(questions), *own)
