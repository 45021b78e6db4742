"""Adaptive voting: ask in balanced rounds, and stop a question as soon as its winner is settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.special import stdtr

from unslant.arrays import Floats
from unslant.debiasing.asker import Asker, ask_orders
from unslant.debiasing.base import Debiaser, Method, Outcome
from unslant.errors import InputError
from unslant.flags import check_least
from unslant.metrics import mean_over_orders
from unslant.presentations import Order, balanced_rounds
from unslant.questions import Question

_MARGIN = 1e-6
"""How far a lead must exceed its bound, so that neither rounding nor the tie tolerance can reverse it."""
_PRIOR_SD = 0.5
_PRIOR_WEIGHT = 1.0
_NEIGHBOURS = 2.0
"""Factor on the variance within one round: its rotations keep neighbours together, so that the effect of neighbours on
each other only appears between rounds."""
_BORROWED = 2.0
"""Degrees of freedom d that a question's variance borrows from the other questions."""


@dataclass(frozen=True)
class AdaptiveVote(Method):
    """The soft vote over ``balanced:K``, stopped early. No labels, no fit; the answer does not depend on file order.

    In a round every option takes every place once. All unsettled questions are asked together, in steps of several
    rounds: rounds asked at once share the beginnings of their prompts, so there are few steps.

    *Exact* (``risk=0``): a question stops when no remaining order can change its winner. One order moves the gap
    between two options by at most 1, so with m orders to come a lead of more than m summed probabilities is safe, and
    no smaller lead is. The winner is always that of the full vote. No question can stop before half of its orders are
    in: the first step asks the fewest rounds beyond that, the second the rest.

    *Fast* (``risk`` > 0): stops earlier; an expected share ``risk`` of all answers differs from the full vote's. Steps
    are one round, two more, the rest. The gaps d_1..d_j between leader and rival, one per round, are a sample without
    replacement from the J gaps of the full vote; the probability that the rival leads in the end is that of a t above
    mean(d) / (s sqrt((1 - j/J) / j)). After the first round s comes from what content and place together leave
    unexplained in it, times :data:`_NEIGHBOURS`; later from the differences between rounds. After each step the safest
    questions stop, as long as their probabilities sum to at most half of what is left of ``risk`` times the number of
    questions. Assumptions: the mean gap is normally distributed about the full one, and the variances of the questions
    are alike enough to be averaged with a question's own, s^2 = (d s_run^2 + f s_own^2) / (d + f) with d = 2 and f its
    degrees of freedom, as in limma (Smyth 2004), so that answers equal by chance do not pass for certainty.
    ``benchmarks/adaptive_vote.py`` measures how well this holds.

    Args:
        orders: K of ``balanced:K``; all orders where there are no more.
        risk: 0 for exact, else the expected share of answers that differ from the full vote's, such as 0.01.
        seed: for sampling and arranging the rounds.
    """

    orders: int = 24
    risk: float = 0.0
    seed: int = 0
    order_invariant = True

    def __post_init__(self) -> None:
        if not 0 <= self.risk < 0.5:
            raise InputError(f"risk {self.risk} is not between 0 (exact) and 0.5")
        check_least(self, {"orders": 1})

    @property
    def needs_scores(self) -> bool:  # type: ignore[override]
        """True for *fast*, whose assumptions about the variances of gaps do not hold for choices."""
        return self.risk > 0

    @property
    def name(self) -> str:
        return "adaptive-fast" if self.risk else "adaptive"

    def fit(self, asker: Asker, questions: Sequence[Question] = ()) -> AdaptiveVoter:
        return AdaptiveVoter(asker, self)


def step_ends(rounds: int, exact: bool) -> list[int]:
    """The numbers of rounds after which a question may stop.

    Exact: the fewest rounds that can decide, then the rest. Fast: one, three, all.
    """
    return sorted({min(rounds // 2 + 1, rounds), rounds} if exact else {1, min(3, rounds), rounds})


@dataclass
class _Open:
    """A question that is not settled yet."""

    question: Question
    rounds: list[list[Order]]
    rows: list[Floats] = field(default_factory=list)
    stopped: bool = False

    @property
    def done(self) -> int:
        """Rounds answered so far."""
        return len(self.rows) // len(self.rounds[0])

    def next_orders(self, exact: bool) -> list[Order]:
        """The orders of the next step."""
        stop = next(stop for stop in step_ends(len(self.rounds), exact) if stop > self.done)
        return [order for round_ in self.rounds[self.done : stop] for order in round_]

    @property
    def settled(self) -> bool:
        # One order moves the gap between two options by at most 1, so a lead of more than the orders left is final.
        left = sum(map(len, self.rounds)) - len(self.rows)
        return left == 0 or bool((self.gaps.sum(axis=0) > left + _MARGIN).all())

    @property
    def gaps(self) -> Floats:
        """(r, n - 1) lead of the leader over each rival in each order seen."""
        probs = np.stack(self.rows)
        leader = int(mean_over_orders(probs).argmax())
        gaps: Floats = probs[:, [leader]] - np.delete(probs, leader, axis=1)
        return gaps

    def variances(self) -> tuple[Floats, int]:
        """(n - 1,) variance of a round's mean lead over each rival, and its degrees of freedom."""
        n = self.rows[0].size
        if self.done > 1:
            rounds = self.gaps.reshape(self.done, -1, n - 1).mean(axis=1)
            return rounds.var(axis=0, ddof=1), self.done - 1
        # A single round has no variance between rounds. It is a Latin square of content and place: the residual after
        # both has (n - 1)(n - 2) degrees of freedom.
        probs = np.stack(self.rows)
        places = np.argsort(np.asarray(self.rounds[0]), axis=1)
        pull = np.bincount(places.ravel(), probs.ravel(), n) / len(probs)
        left = probs - probs.mean(axis=0) - pull[places] + probs.mean()
        freedom = (n - 1) * (n - 2)
        return np.full(n - 1, _NEIGHBOURS * 2 * float((left**2).sum()) / max(1, freedom) / len(probs)), freedom

    def outcome(self) -> Outcome:
        return Outcome.by_text(self.question, mean_over_orders(np.stack(self.rows)), len(self.rows))


adaptive_fast = partial(AdaptiveVote, risk=0.01)


@dataclass(eq=False)
class AdaptiveVoter(Debiaser):
    """Asks in rounds."""

    method: AdaptiveVote

    def outcomes(self, questions: Sequence[Question]) -> list[Outcome]:
        method = self.method
        states = [_Open(question, balanced_rounds(question, method.orders, method.seed)) for question in questions]
        unsettled, budget = states, method.risk * len(states)
        while unsettled:
            orders = [state.next_orders(exact=not method.risk) for state in unsettled]
            answers = ask_orders(self.asker, [state.question for state in unsettled], orders)
            for state, rows in zip(unsettled, answers, strict=True):
                state.rows += list(rows)
            unsettled = [state for state in unsettled if not state.settled]
            if method.risk and unsettled:
                budget -= _stop_safest(unsettled, budget / 2)  # half, so that later steps may stop questions too
                unsettled = [state for state in unsettled if not state.stopped]
        return [state.outcome() for state in states]


def _stop_safest(states: Sequence[_Open], budget: float) -> float:
    """Stop the safest questions whose expected errors sum to at most ``budget``; returns that sum."""
    spread, spent = _spread(states), 0.0
    # By id where errors are equal: where a question is in the file does not matter.
    errors = sorted(((_error(state, spread), state.question.id, state) for state in states), key=lambda one: one[:2])
    for error, _, state in errors:
        if spent + error > budget:
            break
        spent += error
        state.stopped = True
    return spent


def _spread(states: Sequence[_Open]) -> float:
    """Mean variance of a round's lead over the closest rival, over questions in the same step."""
    measured = [float(s.variances()[0][s.gaps.mean(axis=0).argmin()]) for s in states if s.variances()[1]]
    # A cautious prior, that of unrelated orders, so that a single question does not look certain.
    prior = _PRIOR_SD**2 / max(len(state.rounds[0]) for state in states)
    return (_PRIOR_WEIGHT * prior + sum(measured)) / (_PRIOR_WEIGHT + len(measured))


def _error(state: _Open, spread: float) -> float:
    """Probability that the full vote has another winner: the t-test's p-values, summed over the rivals."""
    variances, freedom = state.variances()
    j, total = state.done, len(state.rounds)
    # Shrunk towards the other questions' variance, as in limma (Smyth 2004): answers that agree by chance have none.
    variance = (_BORROWED * spread + freedom * variances) / (_BORROWED + freedom)
    # The rounds are drawn without replacement, hence the finite-population factor 1 - j / J.
    t = state.gaps.mean(axis=0) / np.sqrt(variance * (1 - j / total) / j)
    return float(stdtr(_BORROWED + freedom, -t).sum())
