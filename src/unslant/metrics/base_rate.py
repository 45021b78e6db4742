"""Scores by label, and base rates: how probable each label is where there is nothing to know (P5, section 3.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints, jsonable
from unslant.errors import InputError
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.registry import Measured, Numbers, metric
from unslant.metrics.scores import choose, credit, is_right, is_tie
from unslant.presentations import CONTROL
from unslant.responses import Responses

TIE_RULES = ("first", "split", "last")
"""Which label wins a tie: the first one shown, each tied label in part, or the last."""


@dataclass(frozen=True)
class LabelScores:
    """R rows of one presentation and elicitation, without failed ones. Columns are N labels in standard sequence.

    Attributes:
        ids, subjects, contexts: of each row.
        labels: the standard sequence (A, B, ...).
        n_options: (R,)
        logprobs: (R, N) natural log, not renormalised; ``-inf`` where a question has fewer labels.
        right: (R, N) which labels are right.
        positions: (R, N) position of each label, 0 = top.
        n_failed: rows left out because they are not answers.
    """

    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    contexts: tuple[str, ...]
    labels: tuple[str, ...]
    n_options: Ints
    logprobs: Floats
    right: Bools
    positions: Ints
    n_failed: int = 0

    @classmethod
    def read(
        cls, responses: Responses, kind: str, elicitation: str, labels: Sequence[str], item: str = ""
    ) -> LabelScores:
        """The rows of one kind of presentation (and item of it) and elicitation, without repeats.

        Raises:
            InputError: if a row does not show the first of ``labels``, in any order.
        """
        table = responses.where(elicitation=elicitation, kind=kind, item=item).table
        table = table.filter(pc.equal(table["repeat"], 0))
        scored = table.filter(pc.and_(pc.equal(table["status"], "ok"), pc.is_valid(table["logprobs"])))
        ids = tuple(scored["question_id"].to_pylist())
        size, width = len(ids), len(labels)
        n_options = np.asarray(scored["n_options"].to_pylist(), np.int64)
        logprobs = np.full((size, width), -np.inf)
        right = np.zeros((size, width), bool)
        positions = np.tile(np.arange(width, dtype=np.int64), (size, 1))
        columns = {label: i for i, label in enumerate(labels)}
        lists = (scored[name].to_pylist() for name in ("labels", "logprobs", "contents", "answers"))
        for r, (order, values, contents, answers) in enumerate(zip(*lists, strict=True)):
            places = [columns.get(label, width) for label in order]
            if sorted(places) != list(range(len(order))):
                what = f"{kind} {item}".strip()
                raise InputError(
                    f"question {ids[r]!r}, presentation {what!r}: labels {','.join(order)} where the first "
                    f"{len(order)} of {','.join(labels)} are expected; measure each label set on its own"
                )
            logprobs[r, places], positions[r, places] = values, range(len(order))
            right[r, places] = [content in answers for content in contents]
        subjects = tuple(scored["subject"].to_pylist())
        contexts = responses.passages_of(ids)
        scores = cls(ids, subjects, contexts, tuple(labels), n_options, logprobs, right, positions)
        scores = scores.take(np.isfinite(logprobs.max(axis=1)))
        return replace(scores, n_failed=table.num_rows - len(scores))

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[np.integer] | Bools) -> LabelScores:
        """Some of the rows, by index or mask."""
        index = np.arange(len(self))[rows]
        names = ("ids", "subjects", "contexts")
        texts: dict[str, Any] = {name: tuple(getattr(self, name)[i] for i in index) for name in names}
        arrays = {name: getattr(self, name)[index] for name in ("n_options", "logprobs", "right", "positions")}
        return replace(self, **texts | arrays)

    @property
    def bootstrap(self) -> Bootstrap:
        """Over the questions, which have one row each."""
        return Bootstrap(len(self), self.subjects, contexts=self.contexts)

    @cached_property
    def relative(self) -> Floats:
        """(R, N) probability relative to the most probable label, which does not underflow."""
        return np.asarray(np.exp(self.logprobs - self.logprobs.max(axis=1, keepdims=True)))

    @cached_property
    def tied(self) -> Bools:
        """(R,) whether several labels are most probable."""
        return is_tie(self.relative)

    @cached_property
    def gold(self) -> Ints:
        """(R,) column of the right label; -1 where none or several are right."""
        return np.where(self.right.sum(axis=1) == 1, self.right.argmax(axis=1), -1)

    @cached_property
    def chosen(self) -> Ints:
        """(R,) column of the chosen label, ties to the first shown."""
        return choose(self.relative, self.positions).astype(np.int64)

    def correct(self, ties: str = "first") -> Floats:
        """(R,) 0 or 1 (``split``: the tied right labels' part); ``nan`` where no label is right."""
        if ties == "split":
            right = (credit(self.relative) * self.right).sum(axis=1)
        else:
            right = is_right(self.right, choose(self.relative, self.positions * (1 if ties == "first" else -1)))
        return np.where(self.right.any(axis=1), right, np.nan)


def standard_labels(responses: Responses, kinds: Sequence[str] = ("given", "order")) -> tuple[str, ...]:
    """The label sequence of a table: that of its first row with most labels.

    Raises:
        InputError: if the table has no such row.
    """
    table = responses.where(kind=list(kinds)).table
    lists = table["labels"]
    if not len(lists):
        raise InputError(f"no responses to presentation {' or '.join(kinds)}: nothing to read the labels from")
    lengths = np.asarray(pc.list_value_length(lists))
    return tuple(lists[int(lengths.argmax())].as_py())


PERMUTATIONS = 9_999
ALPHA = 0.05
MATERIAL = 0.05
"""Smallest total variation distance from even that matters (H1): one guess in twenty would change."""


@dataclass(frozen=True)
class BaseRates(Measured):
    """Base-rate probabilities (BRP) of ``n_options`` labels under one elicitation.

    Probabilities are not renormalised: for the cloze, that of the label among all tokens; for the counterfactual, of
    the canary after that label. They have no interval: the label orders shown are all there are, or a balanced choice.

    Attributes:
        labels: in standard sequence.
        by_label: BRP of each label, mean over the orders shown.
        by_position: mean probability of the label at each position, top first.
        numbers: see :func:`base_rates`.
        n_orders: label orders shown.
        note: why parts and tests are missing, if they are.
    """

    elicitation: str
    n_options: int
    labels: tuple[str, ...]
    by_label: tuple[Estimate, ...]
    by_position: tuple[Estimate, ...]
    numbers: Numbers
    n_orders: int
    note: str = ""

    @property
    def values(self) -> Floats:
        """(n,) BRP of each label."""
        return np.array([estimate.value for estimate in self.by_label])

    @property
    def shares(self) -> Floats:
        """(n,) BRP of each label as a share of their sum."""
        return np.asarray(self.values / self.values.sum())

    @property
    def top(self) -> str:
        """The label of highest BRP."""
        return self.labels[int(self.values.argmax())]

    @property
    def uneven(self) -> bool:
        """Whether the labels' base rates differ significantly (``label_p``) and by enough to matter (``distance``)."""
        return self["label_p"].value < ALPHA and self["distance"].value >= MATERIAL

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {**super().to_dict(), "shares": jsonable(self.shares), "uneven": self.uneven}


@metric("base_rates.by_label", "base rate", "probability of a label after a question without content", digits=4,
        unit="share", source="P5 sec. 3.1")  # fmt: skip
@metric("base_rates.by_position", "rate by position", "probability of the label at a position", digits=4, unit="share")
@metric("base_rates.shares", "share", "base rate as a share of all labels'", unit="share", plain=True)
@metric("base_rates.distance", "distance from even", "guesses that would change if labels were equally likely",
        unit="share")  # fmt: skip
@metric("base_rates.position_distance", "distance by position", "the same distance for positions", unit="share")
@metric("base_rates.label_part", "variance by label", "share of the variance that the label explains", unit="share")
@metric("base_rates.position_part", "variance by position", "share of the variance that the position explains",
        unit="share")  # fmt: skip
@metric("base_rates.label_p", "p", "permutation test that the label makes no difference", unit="p")
@metric("base_rates.position_p", "p", "permutation test that the position makes no difference", unit="p")
def base_rates(
    responses: Responses, elicitation: str = "cloze", labels: tuple[str, ...] = (), *, seed: int = 0
) -> dict[int, BaseRates]:
    """Number of options -> base rates, from the control presentations; empty if there are none of this elicitation.

    The distance is the total variation distance of the labels' shares from even, 0 to 1 - 1/n. The parts of the
    variance are main effects of a two-way decomposition of a balanced design, which add up; the rest belongs to single
    orders. The tests are those of :func:`permutation_p`.

    Args:
        labels: the standard label sequence, or its beginning; others follow as in the first control row with most.
        seed: of the permutation test.
    """
    controls = responses.where(kind=CONTROL, elicitation=elicitation)
    if not len(controls):
        return {}
    # controls may have more labels than the questions of one shard
    more = [one for one in standard_labels(controls, (CONTROL,)) if one not in labels]
    scores = LabelScores.read(controls, CONTROL, elicitation, (*labels, *more))
    return {
        int(n): _measured(scores.take(scores.n_options == n), elicitation, int(n), seed)
        for n in np.unique(scores.n_options)
    }


def _measured(scores: LabelScores, elicitation: str, n: int, seed: int) -> BaseRates:
    """Base rates from rows that all have ``n`` options."""
    k = len(scores)
    values = np.exp(scores.logprobs[:, :n])
    places = scores.positions[:, :n]
    labels = np.argsort(places, axis=1)  # at each position
    by_place = np.take_along_axis(values, labels, axis=1)
    counts = (places[:, :, None] == np.arange(n)).sum(axis=0)
    balanced, rng = bool((counts == counts[0, 0]).all()), np.random.default_rng(seed)
    note = "" if balanced else "the label orders are not balanced: label and position cannot be distinguished"

    def exact(value: float) -> Estimate:
        orders = "all orders" if k >= math.factorial(n) else f"{k} orders"
        return Estimate.bare(float(value), k, f"over {orders} of the labels, none drawn at random: no interval")

    return BaseRates(
        elicitation,
        n,
        scores.labels[:n],
        tuple(map(exact, values.mean(axis=0))),
        tuple(map(exact, by_place.mean(axis=0))),
        Numbers(
            {
                "base_rates.distance": exact(_distance(values)),
                "base_rates.position_distance": exact(_distance(by_place)),
                "base_rates.label_part": exact(_part(values)) if balanced else Estimate.undefined(note, k),
                "base_rates.position_part": exact(_part(by_place)) if balanced else Estimate.undefined(note, k),
                "base_rates.label_p": permutation_p(by_place, places, rng) if balanced else math.nan,
                "base_rates.position_p": permutation_p(values, labels, rng) if balanced else math.nan,
            }
        ),
        k,
        note,
    )


def _distance(values: Floats) -> float:
    """Total variation distance from even of the (k, n) columns' shares."""
    shares = values.sum(axis=0) / values.sum()
    return float(np.abs(shares - 1 / len(shares)).sum()) / 2


def _part(values: Floats) -> float:
    """Part of the sum of squares of (k, n) values that lies between the columns."""
    rest = values - values.mean()
    everything = float((rest**2).sum())
    # a model whose scores are all the same has no variance to explain
    if everything <= 1e-12 * float((values**2).sum()):
        return 0.0
    return len(values) * float((rest.mean(axis=0) ** 2).sum()) / everything


def permutation_p(values: Floats, places: Ints, rng: np.random.Generator, permutations: int = PERMUTATIONS) -> float:
    """Permutation test of "the label makes no difference, only the position does" (or the other way round).

    Under that hypothesis the scores by position do not depend on which labels are there, so the rows of scores can be
    permuted among the label orders. The statistic is the variance between the labels' means. One-sided;
    p = (1 + as extreme) / (1 + permutations).

    Args:
        values: (K, n) scores by position (by label, to test positions).
        places: (K, n) position of each label (label at each position).
    """
    # A test on the labels' scores alone (chi-squared, Friedman) would not hold its level under a position effect.
    k = len(values)
    if k < 2:
        return math.nan
    observed = np.take_along_axis(values, places, axis=1).sum(axis=0).var()
    extreme = 0
    for start in range(0, permutations, 1000):
        size = min(1000, permutations - start)
        deals = rng.permuted(np.tile(np.arange(k), (size, 1)), axis=1)
        sums = np.take_along_axis(values[deals], places[None], axis=2).sum(axis=1)
        # summation in another sequence may differ in the last bits
        extreme += int((sums.var(axis=1) >= observed * (1 - 1e-9)).sum())
    return (1 + extreme) / (1 + permutations)
