"""What a judge's verdicts say about the judge: numbers over pairs, each with its interval and N."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from unslant.arrays import Bools, Floats
from unslant.metrics import Bootstrap, Estimate, Numbers, metric
from unslant.replies import extract_preference
from unslant.responses import Responses
from unslant.studies.judge.verdicts import Verdicts

NO_ORDERS = "needs pairs shown in both orders"
_FEWEST_BY_SUBJECT = 20


@metric("places.consistency", "same verdict in both orders", "pairs whose verdict is the same in every order; a page "
        "without a decision agrees with none", unit="share", short="consistency")  # fmt: skip
@metric("places.first", "first answer preferred", "of the verdicts for one answer, those for the one shown first",
        unit="share")  # fmt: skip
@metric("places.moved", "verdict moved by the place", "credit of the answer shown first minus that of the last, "
        "averaged over orders: 0 without a preference for a place", unit="difference")  # fmt: skip
@metric("places.ties", "ties", "decisions that prefer no answer", unit="share")
@metric("places.tie_orders", "ties by order", "ties in the swapped order minus ties in that of the file, same "
        "pairs", unit="difference")  # fmt: skip
@metric("places.undecided", "without a decision", "pages without a decision", unit="share")
@metric("places.stability", "same verdict when asked again", "samples of one page with the verdict of its first",
        unit="share")  # fmt: skip
@metric("places.reading", "own reading", "decisions that unslant's own reading of the judge's words or scores shares",
        unit="share")  # fmt: skip
def place_numbers(v: Verdicts, read: Sequence[OwnReading]) -> Numbers:
    """How verdicts depend on the order of the answers, and how often there is none."""
    mean, ratio = v.bootstrap.mean, v.bootstrap.ratio
    clear = v.decided & ~v.tied & v.placed
    first = np.where(clear, v.by_place[:, 0] == 1, np.nan)
    tied = np.where(v.decided, v.tied, np.nan)
    by_order = v.per_pair(tied, v.placed & v.swapped) - v.per_pair(tied, v.placed & ~v.swapped)
    note = "" if v.in_orders.any() else NO_ORDERS
    whole = note or "needs every answer first as often as last, with a decision"
    return Numbers(
        {
            "places.consistency": mean(np.where(v.in_orders, v.same, np.nan), note=note),
            "places.first": ratio(*_counts(v, first), note="" if clear.any() else "no such verdict"),
            "places.moved": mean(v.moved, share=False, note="" if np.isfinite(v.moved).any() else whole),
            "places.ties": mean(v.per_pair(tied, v.decided), note="" if v.decided.any() else "no decision"),
            "places.tie_orders": mean(np.where(v.complete, by_order, np.nan), share=False,
                                      note="" if np.isfinite(by_order[v.complete]).any() else whole),
            "places.undecided": mean(v.per_pair((~v.decided).astype(float))),
            "places.stability": mean(v.per_pair(v.as_first(v.page).astype(float), v.repeat > 0),
                                     note="" if v.repeat.any() else "each page was judged once"),
            "places.reading": _own_reading(v, read),
        }
    )  # fmt: skip


def _counts(v: Verdicts, values: Floats) -> tuple[Floats, Floats]:
    """(Q,) each: sum and number of page values."""
    mask = ~np.isnan(values)
    total, n = (np.bincount(v.pair, weights, len(v)) for weights in (np.nan_to_num(values), mask.astype(float)))
    return np.asarray(total, float), np.asarray(n, float)


class OwnReading(NamedTuple):
    """A logged page with words: whether it was decided, whether unslant's reading is the same, and by which rule."""

    id: str
    decided: bool
    same: bool
    rule: str


def readings(responses: Responses) -> list[OwnReading]:
    """Every logged page with words, read by unslant's own reader."""
    pages = []
    for row in responses.rows() if responses.run.logged else ():
        if row.raw and row.status != "error":
            reading = extract_preference(row.raw, row.labels)
            contents = frozenset(row.contents[row.labels.index(label)] for label in reading.labels)
            same = reading.status == "ok" and contents == row.chosen
            pages.append(OwnReading(row.question_id, row.status == "ok", same, reading.rule))
    return pages


def _own_reading(v: Verdicts, read: Sequence[OwnReading]) -> Estimate:
    """Share of decisions that our reading shares, over pages by pair."""
    decided = Counter(one.id for one in read if one.decided)
    same = Counter(one.id for one in read if one.decided and one.same)
    counts = (np.array([count[name] for name in v.ids], float) for count in (same, decided))
    return v.bootstrap.ratio(*counts, note="" if decided else "no logged words")


@metric("rights.right_given", "right in the file's order", "verdict of the order of the file that is the label's",
        unit="share", short="one order")  # fmt: skip
@metric("rights.right_mean", "right, averaged over orders", "right verdicts, averaged over orders; a tie is half right",
        unit="share", short="averaged")  # fmt: skip
@metric("rights.right_both", "right in both orders", "pairs whose verdict is the label's in every order", unit="share",
        short="both orders")  # fmt: skip
@metric("rights.right_voted", "right when voted over orders", "pairs whose answer with most credit over orders is the "
        "label's alone", unit="share", short="voted")  # fmt: skip
@metric("rights.kappa", "agreement with the labels", "Cohen's kappa of voted verdict and label, where that is one "
        "answer or a tie: 1 is perfect, 0 chance", source="Cohen 1960", short="kappa")  # fmt: skip
def right_numbers(v: Verdicts) -> Numbers:
    """Agreement with the labels; pages without a decision are not right."""
    exact = page_right(v)
    half = np.where(v.clear_label[v.pair], (np.nan_to_num(v.credit) * v.right[v.pair]).sum(axis=1), exact)
    values = {
        "given": v.per_pair(exact, v.placed & ~v.swapped if v.placed.any() else True),
        "mean": v.per_pair(half),
        "both": np.where(v.in_orders, v.on_all(exact == 1), np.nan),
        "voted": agrees(v.voted, v.right, v.exists).astype(float),
    }
    note = "" if v.labelled.any() else "needs labels"
    one = v.labelled & ((v.right.sum(axis=1) == 1) | ~v.clear_label) & v.voted.any(axis=1)
    codes = np.stack(
        [np.where(one, answers @ (2.0 ** np.arange(answers.shape[1])), 0) for answers in (v.voted, v.right)]
    )
    numbers = {
        f"rights.right_{key}": v.bootstrap.mean(np.where(v.labelled, value, np.nan),
                                                note=note or NO_ORDERS * bool(np.isnan(value[v.labelled]).all()))
        for key, value in values.items()
    }  # fmt: skip
    if len(np.unique(codes[1][one])) == 1:  # a file that lists the right answer first everywhere
        return Numbers(numbers | {"rights.kappa": Estimate.undefined("needs labels that name different places")})
    return Numbers(numbers | {"rights.kappa": beyond_chance(codes, v.bootstrap)})


def page_right(v: Verdicts) -> Floats:
    """(R,) 1 where the answers preferred are those of the label, 0 elsewhere."""
    return agrees(np.nan_to_num(v.credit) > 0, v.right[v.pair], v.exists[v.pair]).astype(float)


def agrees(preferred: Bools, right: Bools, exists: Bools) -> Bools:
    """(R,) whether (R, N) answers preferred are right: some of the right ones and no other; of a label that is a tie,
    all."""
    tie = (right == exists).all(axis=1)
    inside = preferred.any(axis=1) & ~(preferred & ~right).any(axis=1)
    return np.asarray(np.where(tie, (preferred == right).all(axis=1), inside))


def beyond_chance(codes: Floats, bootstrap: Bootstrap, *, pooled: bool = False) -> Estimate:
    """Agreement of raters beyond chance: 1 minus the disagreement observed over that expected, with its interval.

    Args:
        codes: (J, Q) verdict of each rater, 0 for none; pairs that one rater alone has coded are left out.
        pooled: expected of the verdicts of all raters together (Krippendorff's alpha, of any number of raters), rather
            than of each rater's own (Cohen's kappa, of two).
    """
    codes = np.where((codes > 0).sum(axis=0) > 1, codes, 0)
    kinds = np.unique(codes[codes > 0])
    votes = (codes[:, :, None] == kinds).astype(float)  # (J, Q, K)
    counts = votes.sum(axis=0)
    sizes = counts.sum(axis=1)
    if len(kinds) < 2:
        return Estimate.undefined("needs two different verdicts or more", int((sizes > 0).sum()))
    differ = (sizes**2 - (counts**2).sum(axis=1)) / np.maximum(sizes - 1, 1)

    def statistic(totals: Floats) -> Floats:
        by_rater = totals[:, 1:].reshape(len(totals), *votes.shape[::2])  # (resamples, J, K)
        together, n = by_rater.sum(axis=1), by_rater.sum(axis=(1, 2))
        if pooled:
            expected = (n**2 - (together**2).sum(axis=1)) / (n - 1)
        else:
            expected = n - 4 * by_rater.prod(axis=1).sum(axis=1) / n
        undefined = np.full(len(n), np.nan)
        return np.asarray(np.divide(expected - totals[:, 0], expected, out=undefined, where=expected > 0))

    features = np.column_stack([differ, votes.transpose(1, 0, 2).reshape(len(sizes), -1)])
    return bootstrap.statistic(features, statistic, int((sizes > 0).sum()), low=-1.0, high=1.0)


@metric("longer", "longer answer preferred", "of the verdicts for one answer, those for the longest",
        unit="share", short="longer wins")  # fmt: skip
@metric("longer_right", "longer answer right", "of the same pairs, those whose label is the longest answer",
        unit="share", short="longer is right")  # fmt: skip
def length_numbers(v: Verdicts, pairs: Bools | None = None) -> Numbers:
    """How often the longest answer is preferred, and how often it is right; pairs of one length are left out."""
    lengths = np.where(v.exists, v.doublings, -1.0)
    longest = (lengths == lengths.max(axis=1, keepdims=True)) & v.exists
    usable = (longest.sum(axis=1) == 1) & (True if pairs is None else pairs)
    clear = v.decided & ~v.tied & usable[v.pair]
    wins = np.where(clear, np.where(longest[v.pair], np.nan_to_num(v.credit), 0).sum(axis=1) == 1, np.nan)
    hits, n = _counts(v, wins)
    right = np.where((n > 0) & v.clear_label, (longest & v.right).any(axis=1), np.nan)
    note = "" if usable.any() else "needs texts of different lengths"
    return Numbers(
        {
            "longer": v.bootstrap.ratio(hits, n, note=note),
            "longer_right": v.bootstrap.mean(right, note=note or "needs labels" * bool(np.isnan(right).all())),
        }
    )


def by_subject(v: Verdicts) -> Mapping[str, Numbers]:
    """Length numbers of the subjects with enough pairs, the largest first."""
    sizes = Counter(filter(None, v.subjects))
    large = [name for name, n in sizes.most_common() if n >= _FEWEST_BY_SUBJECT]
    return {name: length_numbers(v, np.array(v.subjects) == name) for name in large} if len(sizes) > 1 else {}


def changes(v: Verdicts) -> dict[str, int]:
    """How the verdict changes with the order -> pairs: every pair in two orders or more is counted once."""
    tied = ~v.on_all(~v.tied)
    kinds = {
        "same verdict": v.complete & v.same,
        "winner follows the place": v.complete & ~v.same & v.follows,
        "to or from a tie": v.complete & ~v.same & tied,
        "another winner, not by its place": v.complete & ~v.same & ~v.follows & ~tied,
        "no decision in an order": v.in_orders & ~v.complete,
    }
    return {name: int(pairs.sum()) for name, pairs in kinds.items() if pairs.any() or "another" not in name}
