"""What a judge's verdicts say of the judge: numbers over pairs, each with its interval and N."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from unslant.arrays import Bools, Floats
from unslant.metrics import Estimate, Numbers, metric
from unslant.replies import extract_preference
from unslant.responses import Responses
from unslant.studies.judge.verdicts import Verdicts

NO_ORDERS = "needs pairs shown in both orders"
NO_LABELS = "needs labels"


@metric("places.consistency", "same verdict in both orders", "pairs whose verdict is the same in every order; a page "
        "without a decision agrees with none", unit="share", short="consistency")  # fmt: skip
@metric("places.consistency_decided", "same verdict, where decided", "of pairs with a decision in every order",
        unit="share")  # fmt: skip
@metric("places.reversed", "winner follows the place", "pairs in which the answer at one place wins in every order",
        unit="share")  # fmt: skip
@metric("places.first", "first answer preferred", "of the verdicts for one answer, those for the one shown first",
        unit="share")  # fmt: skip
@metric("places.moved", "verdict moved by the place", "credit of the answer shown first less that of the last, "
        "averaged over orders: 0 without a preference for a place", unit="difference")  # fmt: skip
@metric("places.ties", "ties", "decisions that prefer no answer", unit="share")
@metric("places.tie_orders", "ties by order", "ties in the swapped order less ties in that of the file, same pairs",
        unit="difference")  # fmt: skip
@metric("places.undecided", "without a decision", "pages without a decision", unit="share")
@metric("places.stability", "same verdict when asked again", "samples of one page with the verdict of its first",
        unit="share")  # fmt: skip
@metric("places.reading", "own reading", "decisions that unslant's own reading of the judge's words or scores shares",
        unit="share")  # fmt: skip
def place_numbers(verdicts: Verdicts, read: Sequence[Reading]) -> Numbers:
    """How verdicts depend on the order of the answers, and how often there is none."""
    v, mean = verdicts, verdicts.bootstrap.mean
    complete = v.in_orders & (np.bincount(v.pair[~v.decided], minlength=len(v)) == 0)
    clear = v.decided & ~v.tied & v.placed
    hits = clear & (np.nan_to_num(v.by_place[:, 0]) == 1)
    firsts, clears = (np.bincount(v.pair[kept], minlength=len(v)).astype(float) for kept in (hits, clear))
    tied = np.where(v.decided, v.tied, np.nan).astype(float)
    ties = v.per_pair(tied, v.decided)
    by_order = v.per_pair(tied, v.placed & v.swapped) - v.per_pair(tied, v.placed & ~v.swapped)
    undecided = v.per_pair((~v.decided).astype(float), np.ones(len(v.pair), bool))
    note = "" if v.in_orders.any() else NO_ORDERS

    def of_orders(values: Floats | Bools, kept: Bools, *, share: bool = True) -> Estimate:
        return mean(np.where(kept, values, np.nan), share=share, note=note)

    found = {
        "consistency": of_orders(v.same, v.in_orders),
        "consistency_decided": of_orders(v.same, complete),
        "reversed": of_orders(v.follows, v.in_orders),
        "first": v.bootstrap.ratio(firsts, clears, note="" if clears.any() else "places are not logged"),
        "moved": of_orders(v.moved, complete, share=False),
        "ties": mean(ties),
        "tie_orders": of_orders(by_order, complete, share=False),
        "undecided": mean(undecided),
        "stability": mean(_stability(v), note="" if v.repeat.any() else "each page was judged once"),
        "reading": _own_reading(v, read),
    }
    return Numbers({f"places.{name}": value for name, value in found.items()})


def _stability(v: Verdicts) -> Floats:
    """(Q,) share of further samples of a page whose verdict is that of its first; nan where there is none."""
    first = {(int(v.pair[r]), tuple(v.order[r])): r for r in np.flatnonzero(v.repeat == 0)}
    values = np.full(len(v.pair), np.nan)
    for r in np.flatnonzero(v.repeat > 0):
        before = first.get((int(v.pair[r]), tuple(v.order[r])))
        if before is not None:
            values[r] = v.agree([int(before), int(r)])
    return v.per_pair(values, v.repeat > 0)


class Reading(NamedTuple):
    """A logged page with words: whether it was decided, whether unslant's reading is the same, and by which rule."""

    id: str
    decided: bool
    same: bool
    rule: str


def readings(responses: Responses) -> list[Reading]:
    """Every logged page with words, read by unslant's own reader."""
    found = []
    for row in responses.rows() if responses.run.logged else ():
        if row.raw and row.status != "error":
            read = extract_preference(row.raw, row.labels)
            named = frozenset(row.contents[row.labels.index(label)] for label in read.labels)
            same = read.status == "ok" and named == row.chosen
            found.append(Reading(row.question_id, row.status == "ok", same, read.rule))
    return found


def _own_reading(v: Verdicts, read: Sequence[Reading]) -> Estimate:
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
@metric("rights.kappa", "agreement with the labels", "Cohen's kappa of voted verdict and label: 1 is perfect, 0 "
        "chance", source="Cohen 1960", short="kappa")  # fmt: skip
def right_numbers(v: Verdicts) -> Numbers:
    """Agreement with the labels; pages without a decision are not right."""
    mean, note = v.bootstrap.mean, "" if v.labelled.any() else NO_LABELS
    exact, half = page_right(v), _credit_right(v)
    of_label = np.where(v.labelled, 1.0, np.nan)
    given = v.per_pair(exact, v.placed & ~v.swapped if v.placed.any() else np.ones(len(v.pair), bool))
    both = np.array([bool(pages) and bool(exact[list(pages)].all()) for pages in v.pages_of], float)
    return Numbers(
        {
            "rights.right_given": mean(given * of_label, note=note),
            "rights.right_mean": mean(v.per_pair(half, np.ones(len(v.pair), bool)) * of_label, note=note),
            "rights.right_both": mean(np.where(v.in_orders, both, np.nan) * of_label, note=note or
                                     ("" if v.in_orders.any() else NO_ORDERS)),
            "rights.right_voted": mean(agrees(v.voted, v.right, v.exists).astype(float) * of_label, note=note),
            "rights.kappa": kappa(_codes(v.voted), _codes(v.right), v.labelled & v.voted.any(axis=1), v),
        }
    )  # fmt: skip


def page_right(v: Verdicts) -> Floats:
    """(R,) 1 where the answers preferred are those of the label, 0 elsewhere."""
    return agrees(np.nan_to_num(v.credit) > 0, v.right[v.pair], v.exists[v.pair]).astype(float)


def agrees(preferred: Bools, right: Bools, exists: Bools) -> Bools:
    """(R,) whether (R, N) answers preferred are right: some of the right ones and no other; of a label that is a tie,
    all."""
    tie = (right == exists).all(axis=1)
    inside = preferred.any(axis=1) & ~(preferred & ~right).any(axis=1)
    return np.asarray(np.where(tie, (preferred == right).all(axis=1), inside))


def _credit_right(v: Verdicts) -> Floats:
    """(R,) credit that goes to right answers; of a label that is a tie, whether the verdict is one."""
    right = v.right[v.pair]
    tie = right.sum(axis=1) == v.exists[v.pair].sum(axis=1)
    return np.where(tie, page_right(v), (np.nan_to_num(v.credit) * right).sum(axis=1))


def _codes(chosen: Bools) -> Floats:
    """(Q,) a number for each set of answers."""
    return np.asarray(chosen @ (2.0 ** np.arange(chosen.shape[1])))


def kappa(one: Floats, other: Floats, kept: Bools, v: Verdicts) -> Estimate:
    """Cohen's kappa of two codings of pairs, with its bootstrap interval.

    Args:
        one, other: (Q,) codes; ``kept``: the pairs that both have coded.
    """
    codes = np.unique(np.concatenate([one[kept], other[kept]])) if kept.any() else np.array([])
    if len(codes) < 2:
        return Estimate.undefined("needs two different verdicts or more", int(kept.sum()))
    features = [kept & (one == other), *(kept & (one == c) for c in codes), *(kept & (other == c) for c in codes), kept]
    k = len(codes)

    def statistic(totals: Floats) -> Floats:
        n = totals[:, -1]
        agreed = totals[:, 0] / n
        chance = (totals[:, 1 : 1 + k] * totals[:, 1 + k : 1 + 2 * k]).sum(axis=1) / n**2
        found: Floats = np.divide(agreed - chance, 1 - chance, out=np.full(len(n), np.nan), where=chance < 1)
        return found

    return v.bootstrap.statistic(np.stack(features, 1).astype(float), statistic, int(kept.sum()), low=-1.0, high=1.0)


@metric("longer", "longer answer preferred", "of the verdicts for one answer, those for the longest",
        unit="share", short="longer wins")  # fmt: skip
@metric("longer_right", "longer answer right", "of the same pairs, those whose label is the longest answer",
        unit="share", short="longer is right")  # fmt: skip
def length_numbers(v: Verdicts, kept: Bools | None = None) -> Numbers:
    """How often the longest answer is preferred, and how often it is right; pairs of one length are left out."""
    kept = np.ones(len(v), bool) if kept is None else kept
    lengths = np.nan_to_num(v.doublings, nan=-1.0)
    longest = (lengths == lengths.max(axis=1, keepdims=True)) & v.exists
    usable = kept & (longest.sum(axis=1) == 1) & np.isfinite(v.doublings[:, 0])
    clear = v.decided & ~v.tied & usable[v.pair]
    hits = clear & (np.where(longest[v.pair], np.nan_to_num(v.credit), 0).sum(axis=1) == 1)
    n = np.bincount(v.pair[clear], minlength=len(v)).astype(float)
    labelled = (n > 0) & v.labelled & (v.right.sum(axis=1) < v.exists.sum(axis=1))
    note = "" if usable.any() else "needs texts of different lengths"
    return Numbers(
        {
            "longer": v.bootstrap.ratio(np.bincount(v.pair[hits], minlength=len(v)).astype(float), n, note=note),
            "longer_right": v.bootstrap.mean(
                np.where(labelled, (longest & v.right).any(axis=1), np.nan),
                note=note or NO_LABELS * (not labelled.any()),
            ),
        }
    )


def by_subject(v: Verdicts, least: int = 20) -> Mapping[str, Numbers]:
    """Length numbers of the subjects with enough pairs, the largest first."""
    names = np.array(v.subjects)
    sizes = {name: int((names == name).sum()) for name in dict.fromkeys(v.subjects) if name}
    large: Sequence[str] = sorted((name for name, n in sizes.items() if n >= least), key=lambda name: -sizes[name])
    return {name: length_numbers(v, names == name) for name in large} if len(sizes) > 1 else {}


def changes(v: Verdicts) -> dict[str, int]:
    """What becomes of the verdict when the order changes -> pairs: every pair in two orders or more is counted once."""
    counts = dict.fromkeys(
        ("same verdict", "winner follows the place", "to or from a tie", "no decision in an order"), 0
    )
    for pages, several in zip(v.pages_of, v.in_orders, strict=True):
        if several:
            if not v.decided[list(pages)].all():
                counts["no decision in an order"] += 1
            elif v.agree(pages):
                counts["same verdict"] += 1
            else:
                counts["to or from a tie" if v.tied[list(pages)].any() else "winner follows the place"] += 1
    return counts
