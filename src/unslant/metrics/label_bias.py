"""How unevenly right answers are spread over the labels: RStd, RSD, CKLD, Cramér's V."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.estimate import Estimate
from unslant.metrics.labels import Slots
from unslant.metrics.registry import Measured, Numbers, metric
from unslant.metrics.sampling import Codes, by_unit, too_few

CKLD_PSEUDO_COUNT = 1.0
MIN_GOLD = 10
"""A label's recall counts towards the corrected spreads when it rests on at least this many right answers."""
_LEAST_EXPECTED = 5.0
"""Right and wrong answers at every place for chi-squared's distribution (Cochran 1954)."""
_DRAWS = 9999


def slot_counts(slots: Slots) -> Floats:
    """(Q, 3N) gold, hit and predicted of the questions with one right option; zeros for the others."""
    single = ~np.isnan(slots.gold[:, :1])
    return np.concatenate([np.where(single, np.nan_to_num(x), 0) for x in (slots.gold, slots.hit, slots.predicted)], 1)


def _recall_moments(totals: Floats) -> tuple[Floats, Floats]:
    """(R, 3L) totals of gold, hit, predicted to the mean of L recalls and their population standard deviation, (R,).

    A label that is never the right one has no recall; nan where none has.
    """
    gold, hit, _ = np.split(totals, 3, axis=1)
    recalls = np.divide(hit, gold, out=np.full_like(hit, np.nan), where=gold > 0)
    with np.errstate(invalid="ignore"):
        count = (~np.isnan(recalls)).sum(axis=1)
        mean = np.nansum(recalls, axis=1) / count
        return mean, np.sqrt(np.nansum((recalls - mean[:, None]) ** 2, axis=1) / count)


def rstd(totals: Floats) -> Floats:
    """Standard deviation of recalls (P1 eq. 4; Zheng et al. 2024) from totals of gold, hit, predicted.

    Population standard deviation, 0 to 1/2, over the labels that are right at least once: others have no recall.
    """
    return _recall_moments(totals)[1]


def rsd(totals: Floats) -> Floats:
    """Relative standard deviation of label-wise accuracy (Croce et al. 2021; Reif and Schwartz 2024).

    RStd divided by the mean recall; nan when nothing is right.
    """
    mean, deviation = _recall_moments(totals)
    return np.asarray(np.divide(deviation, mean, out=np.full(len(totals), np.nan), where=mean > 0))


def ckld(totals: Floats, pseudo_count: float = 0.0) -> Floats:
    """Choice KL divergence sum_i p_i log(p_i / q_i) in nats (P1 eq. 5; Choi et al. 2024), from the same totals.

    p is the share of each label among right options, q among answers. A label that is never right adds 0; one that is
    sometimes right but never answered makes the raw value infinite. With ``pseudo_count`` c, c is added to the right
    and the answered count of every label first, which keeps it finite, at least 0, and 0 where the counts agree.
    """
    gold, _, predicted = np.split(totals, 3, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = (gold + pseudo_count) / (gold + pseudo_count).sum(axis=1, keepdims=True)
        q = (predicted + pseudo_count) / (predicted + pseudo_count).sum(axis=1, keepdims=True)
        terms = np.where(p > 0, p * np.log(p / q), 0.0)
        divergence: Floats = np.where(np.isnan(p).any(axis=1), np.nan, np.maximum(terms.sum(axis=1), 0.0))
    return divergence


@dataclass(frozen=True)
class LabelBias(Measured):
    """The label metrics of the given order, over the questions with exactly one right option; none has an interval.

    A spread of recalls holds their chance as well, and no interval we know covers as it should (``docs/intervals.md``):
    the paper's numbers are followed by those without the part of chance, and by the p-value of equal recalls.

    Attributes:
        numbers: see :func:`label_bias`.
        left_out: labels with fewer than ``MIN_GOLD`` right answers, for each number of options: not in the corrected.
    """

    numbers: Numbers
    left_out: int


@metric("rstd", "RStd", "spread of recall over the labels", source="P1 eq. 4; Zheng et al. 2024")
@metric("rsd", "RSD", "spread of recall relative to its mean", source="Reif and Schwartz 2024")
@metric("ckld", "CKLD", "divergence of predicted from gold shares", unit="nats", source="P1 eq. 5; Choi et al. 2024")
@metric("ckld_smoothed", "CKLD, smoothed", "CKLD with 1 added to every count", unit="nats", short="CKLD")
@metric("rstd_corrected", "RStd, chance taken out", "RStd minus chance, by number of options, pooled by N")
@metric("rsd_corrected", "RSD, chance taken out", "RSD minus chance, by number of options, pooled by N")
@metric("cramers_v", "Cramér's V", "association of the right option's place with being right, corrected for chance",
        unit="share", source="Bergsma 2013")  # fmt: skip
@metric("label_bias.p", "p", "test that recall is the same in every position of the right option", unit="p")
def label_bias(slots: Slots, unit: Codes | None = None) -> LabelBias:
    """RStd, RSD and CKLD, as published and corrected; the association of being right with the right option's place.

    The corrected ones are computed for each number of options, less the part of chance (of the variance), and pooled by
    N (root mean square). The test takes the places of right options as dealt at random among the questions with as many
    options; see :func:`cramers_v`.

    Args:
        unit: (Q,) number of the passage of each question, where some share one: answers about it can fall back on the
            same place, so that chance does more (:func:`_design_effect`).
    """
    single, totals = ~np.isnan(slots.gold[:, 0]), slot_counts(slots).sum(axis=0, keepdims=True)
    n = int(single.sum())
    never = int((totals[0, : slots.gold.shape[1]] == 0).sum())
    note = f"the right option never has {never} of the labels; " if never and n else ""

    def plain(value: Floats, note: str) -> Estimate:
        if not n or np.isnan(value[0]):
            return Estimate.undefined("nothing right" if n else "no question has exactly one right option", n)
        return Estimate.bare(float(value[0]), n, note)

    chance = note + "holds chance as well: no interval"
    smoothed = f"{CKLD_PSEUDO_COUNT:g} added to every count; holds chance as well"
    groups = [*_by_size(slots.gold[single], slots.hit[single], np.arange(n) if unit is None else unit[single])]
    spread, relative, left_out = _corrected(groups)
    v, p = cramers_v(groups)
    if unit is not None and too_few(unit[single]):
        p = math.nan
    numbers: dict[str, Estimate | float] = {
        "rstd": plain(rstd(totals), chance),
        "rsd": plain(rsd(totals), chance),
        "ckld": plain(ckld(totals), chance),
        "ckld_smoothed": plain(ckld(totals, CKLD_PSEUDO_COUNT), smoothed),
        "rstd_corrected": spread,
        "rsd_corrected": relative,
        "cramers_v": v,
        "label_bias.p": p,
    }
    return LabelBias(Numbers(numbers), left_out)


def _by_size(gold: Floats, hit: Floats, unit: Codes) -> Iterator[tuple[Floats, Floats, float]]:
    """Right options and right answers under each label, and the effect of the design, for each number of options."""
    sizes = (~np.isnan(gold)).sum(axis=1)
    for size in np.unique(sizes).tolist():
        golds, hits, same = (x[sizes == size] for x in (gold[:, :size], hit[:, :size], unit))
        yield golds.sum(axis=0), hits.sum(axis=0), _design_effect(golds, hits, same)


def _design_effect(gold: Floats, hit: Floats, unit: Codes) -> float:
    """By how much right answers under a label vary more than those of as many questions without passages; 1 at least.

    The mean over labels, as for the chi-squared test of Rao and Scott (1981).
    """
    terms = (hit - gold * hit.sum() / len(hit)) / np.sqrt(np.maximum(1.0, gold.sum(axis=0)))
    squares = (terms**2).sum()
    return max(1.0, float((by_unit(terms, unit) ** 2).sum() / squares)) if squares else 1.0


def _corrected(groups: Sequence[tuple[Floats, Floats, float]]) -> tuple[Estimate, Estimate, int]:
    questions, left_out = 0, 0
    pooled = np.zeros(2)
    for golds, hits, effect in groups:
        enough = golds >= MIN_GOLD
        left_out += int((~enough).sum())
        if enough.sum() < 2:
            continue
        golds, recalls = golds[enough], hits[enough] / golds[enough]
        # the population variance over labels of recalls that differ by chance alone: with few questions a label, the
        # spread of a fair model is far from 0
        noise = effect * (recalls * (1 - recalls) / (golds - 1)).mean() * (1 - 1 / len(recalls))
        variance = recalls.var() - noise
        pooled += golds.sum() * variance * np.array([1.0, 1 / max(recalls.mean() ** 2, 1e-12)])
        questions += int(golds.sum())
    if not questions:
        nothing = Estimate.undefined(f"no two labels with {MIN_GOLD} right answers each")
        return nothing, nothing, left_out
    note = "chance taken out: no interval" + (f"; {left_out} labels with few right answers left out" * (left_out > 0))
    spread, relative = np.sqrt(np.maximum(0.0, pooled / questions)).tolist()
    return Estimate.bare(spread, questions, note), Estimate.bare(relative, questions, note), left_out


def cramers_v(groups: Sequence[tuple[Floats, Floats, float]], seed: int = 0) -> tuple[Estimate, float]:
    """Cramer's V between a place and being right there, and the p-value of "there is none", over groups of questions.

    V is corrected for chance (Bergsma 2013): 0 on average, before it is cut off at 0, where there is no association.
    Over several groups its square is their mean weighted by N. It has no interval. The test adds up Pearson's
    chi-squared over the groups: by its distribution where at least 5 right and 5 wrong are expected at every place
    (Cochran 1954), else by 9,999 draws with the counts of every place and of right ones fixed, which is exact.

    Args:
        groups: how many questions have each place, and how many of these are right: (places,) each, whole numbers;
            and by how much chance makes chi-squared larger than where no two share a passage (Rao and Scott 1981).
            Places of no question, and groups with nothing to compare, are left out.

    Returns:
        V from 0 to 1, and p; nan where all are right, all wrong, or at one place.
    """
    association = room = statistic = 0.0
    tables = [(counts[counts > 0], right[counts > 0], effect) for counts, right, effect in groups]
    tables = [table for table in tables if len(table[0]) > 1 and 0 < table[1].sum() < table[0].sum()]
    if not tables:
        return Estimate.undefined("all right, all wrong, or all at one place"), math.nan
    usual = True
    for counts, right, effect in tables:
        n, share = counts.sum(), right.sum() / counts.sum()
        chi2 = float(_pearson(counts, right))
        association += chi2 - effect * (len(counts) - 1) * n / (n - 1)
        room += n - n / (n - 1)  # N times the corrected number of rows (right, wrong) minus one
        statistic += chi2 / effect
        usual &= bool((min(share, 1 - share) * counts >= _LEAST_EXPECTED).all())
    if usual:
        from scipy.special import chdtrc

        p = float(chdtrc(sum(len(counts) - 1 for counts, *_ in tables), statistic))
    else:
        # of a model that knows 90 %, so few answers are wrong that chi-squared's distribution misleads
        rng, draws = np.random.default_rng(seed), np.zeros(_DRAWS)
        for counts, right, _ in tables:
            deals = rng.multivariate_hypergeometric(counts.astype(np.int64), int(right.sum()), size=_DRAWS)
            draws += _pearson(counts, deals.astype(np.float64))
        p = float((1 + (draws >= statistic - 1e-9).sum()) / (1 + _DRAWS))
    questions = int(sum(counts.sum() for counts, *_ in tables))
    if room <= 0:
        return Estimate.undefined("two questions", questions), p
    value = min(1.0, math.sqrt(max(0.0, association) / room))
    return Estimate.bare(value, questions, "corrected for chance: no interval"), p


def _pearson(counts: Floats, right: Floats) -> Floats:
    """Pearson's chi-squared of right and wrong (..., places), with as many right in all."""
    share = right.sum(axis=-1, keepdims=True) / counts.sum()
    return np.asarray(((right - counts * share) ** 2 / (counts * share * (1 - share))).sum(axis=-1))
