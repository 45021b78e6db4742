"""Measures of each elicitation in a table of base-rate responses, and the hypotheses they decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unslant.arrays import Jsonable, json_fields, jsonable
from unslant.errors import InputError
from unslant.metrics import BaseRates, Bootstrap, Estimate, LabelScores, base_rates, standard_labels, verdict
from unslant.metrics.base_rate import MATERIAL as UNEVEN
from unslant.metrics.nvr import Nvr, nvr
from unslant.metrics.registry import metric
from unslant.presentations import NVR
from unslant.reports.numbers import count, number, p_words, percent, unsettled, with_interval
from unslant.responses import Responses
from unslant.studies.base_rate.gold_labels import (
    MIN_SUBJECTS,
    MODERATE,
    GoldAccuracy,
    PooledCorrelation,
    SubjectCorrelation,
    base_rate_correlation,
    gold_accuracy,
    subject_correlation,
    weaker,
)
from unslant.studies.base_rate.tie_robust_accuracy import Cell, cell

GIVEN = "given"
ELICITATIONS = ("cloze", "counterfactual")
GAP = 0.10
"""H3: accuracies by gold label that differ by less count as equal."""
SAME = 0.05
"""H4: a label that changes the score by less is not preferred."""

Outcome = Literal["holds", "partly", "does not hold", "unclear", "cannot be tested"]


@dataclass(frozen=True)
class Findings:
    """Everything measured under one elicitation.

    Attributes:
        n_options: the most common number of options; ``gold`` and ``correlation`` cover its questions.
        base_rates: by number of options.
        cells: accuracy and ties, as given first, then each Nvr-X.
        correlation: of this elicitation's own base rates with ``gold``, over all pairs of subject and label; ``None``
            without control responses.
        by_subject: P5's correlation of the *cloze* base rates with ``gold`` within each subject; ``None`` without
            control responses to the cloze.
        nvr: ``None`` without Nvr-X responses.
        nvr_by_subject: lowest Nvr-X accuracy, each the unweighted mean over subjects, as in P5; undefined if the number
            of options varies.
        given: label scores of the questions as given.
    """

    elicitation: str
    n_options: int
    base_rates: Mapping[int, BaseRates]
    cells: tuple[Cell, ...]
    gold: GoldAccuracy
    correlation: PooledCorrelation | None
    by_subject: SubjectCorrelation | None
    nvr: Nvr | None
    nvr_by_subject: Estimate
    given: LabelScores

    @property
    def rates(self) -> BaseRates | None:
        """Base rates of the most common number of options."""
        return self.base_rates.get(self.n_options)

    def cell(self, presentation: str) -> Cell | None:
        return next((found for found in self.cells if found.presentation == presentation), None)

    def to_dict(self) -> dict[str, object]:
        return json_fields(self, omit=("elicitation", "gold", "correlation", "by_subject", "given")) | {
            "accuracy_by_gold_label": jsonable(self.gold),
            "pooled_correlation_own_base_rates": jsonable(self.correlation),
            "subject_correlation_cloze_base_rates": jsonable(self.by_subject),
        }


def findings(responses: Responses, elicitation: str, *, cloze: Findings | None = None, seed: int = 0) -> Findings:
    """Measure one elicitation.

    Args:
        cloze: findings of the cloze, whose base rates P5 correlates with either accuracy; by default the elicitation's
            own base rates are used.

    Raises:
        InputError: if it has no usable response to a question as given.
    """
    labels = standard_labels(responses, (GIVEN,))
    given = LabelScores.read(responses, GIVEN, elicitation, labels)
    if not given.right.any():
        raise InputError(f"no usable {elicitation} response to a question as given with a right option")
    variants = [LabelScores.read(responses, NVR, elicitation, labels, label) for label in labels]
    cells = [cell(given, GIVEN, elicitation, seed=seed)]
    cells += [
        cell(scores, f"nvr-{label}", elicitation, seed=seed)
        for label, scores in zip(labels, variants, strict=True)
        if len(scores)
    ]
    n = Counter(given.n_options[given.gold >= 0].tolist() or given.n_options.tolist()).most_common(1)[0][0]
    rates = base_rates(responses, elicitation, labels, seed=seed)
    main = given.take(given.n_options == n)
    gold = gold_accuracy(main, Bootstrap(len(main), main.subjects, seed=seed))
    reference = (cloze.base_rates if cloze else rates).get(n)
    return Findings(
        elicitation,
        n,
        rates,
        tuple(cells),
        gold,
        base_rate_correlation(rates[n].values, gold, seed=seed) if n in rates else None,
        subject_correlation(reference.values, gold) if reference is not None else None,
        _nvr(given, variants, seed) if any(len(scores) for scores in variants) else None,
        _nvr_by_subject(variants, seed),
        given,
    )


def _nvr(given: LabelScores, variants: list[LabelScores], seed: int) -> Nvr:
    row = {question_id: i for i, question_id in enumerate(given.ids)}
    right = np.full((len(given), len(variants)), np.nan)
    for x, scores in enumerate(variants):
        for question_id, value in zip(scores.ids, scores.correct(), strict=True):
            if question_id in row:
                right[row[question_id], x] = value
    bootstrap = Bootstrap(len(given), given.subjects, seed=seed)
    return nvr(right, given.correct(), given.n_options, given.labels, bootstrap)


@metric(
    "nvr_by_subject",
    "Nvr-X score, mean of subjects",
    "unweighted mean over subjects",
    unit="share",
    source="P5 table 3",
)
def _nvr_by_subject(variants: list[LabelScores], seed: int) -> Estimate:
    sizes = {n for scores in variants for n in np.unique(scores.n_options).tolist()}
    if len(sizes) != 1 or not all(len(scores) for scores in variants):
        return Estimate.undefined("questions differ in their number of options" if sizes else "no Nvr-X responses")
    subjects = sorted({subject for scores in variants for subject in scores.subjects})
    means = np.full((len(subjects), len(variants)), np.nan)
    for x, scores in enumerate(variants):
        codes = np.searchsorted(subjects, scores.subjects)
        counts = np.bincount(codes, minlength=len(subjects))
        sums = np.bincount(codes, scores.correct(), len(subjects))
        means[:, x] = np.divide(sums, counts, out=means[:, x], where=counts > 0)
    means = means[np.isfinite(means).all(axis=1)]
    features = np.column_stack([means, np.ones(len(means))])
    return Bootstrap(len(means), seed=seed).statistic(
        features, lambda t: (t[:, :-1] / t[:, -1:]).min(axis=1), len(means), reflect=True, low=0, high=1
    )


@dataclass(frozen=True)
class Hypothesis(Jsonable):
    """One of P5's hypotheses and its outcome.

    Attributes:
        name: ``H1`` to ``H4``; H3 is decided twice, by P5's rule and by unslant's (``H3, own base rates``).
        claim: what it says.
        verdict: whether it holds; ``unclear`` where neither the claim nor its absence is shown.
        words: why, with its numbers.
    """

    name: str
    claim: str
    verdict: Outcome
    words: str


def hypotheses(found: Mapping[str, Findings]) -> tuple[Hypothesis, ...]:
    """H1 to H4 of P5 from the findings of ``cloze`` and, for H3, ``counterfactual``."""
    cloze, counterfactual = (found.get(name) for name in ELICITATIONS)
    return (_h1(cloze), _h2(cloze), _h3_published(cloze, counterfactual), _h3(cloze, counterfactual), _h4(cloze))


def _h1(cloze: Findings | None) -> Hypothesis:
    claim = "Labels differ in their base rates."
    rates = cloze.rates if cloze else None
    if rates is None:
        return Hypothesis("H1", claim, "cannot be tested", "No control responses under the cloze.")
    if not rates["label_p"].defined or rates.n_options < 3:
        reason = rates.note or f"{count(rates.n_orders, 'label order')} are too few for a test."
        return Hypothesis("H1", claim, "cannot be tested", reason)
    words = (
        f"Without content, {rates.top} has {percent(rates.shares.max(), 1)} of the labels' probability (uniform: "
        f"{percent(1 / rates.n_options, 1)}); {percent(rates['distance'].value, 1)} of the guesses are out of balance "
        f"(permutation test over {rates.n_orders} label orders: {p_words(rates['label_p'].value)}). The label explains "
        f"{percent(rates['label_part'].value)} of the variance, the position {percent(rates['position_part'].value)}."
    )
    if rates.uneven:
        return Hypothesis("H1", claim, "holds", words)
    if rates["distance"].value < UNEVEN:  # the label orders are all there are: no more could be drawn
        return Hypothesis("H1", claim, "does not hold", f"{words} That is below {percent(UNEVEN)}, which would matter.")
    return Hypothesis("H1", claim, "unclear", f"{words} Too few label orders to distinguish this from chance.")


def _h2(cloze: Findings | None) -> Hypothesis:
    claim = "Accuracy is higher where the right option has a label with a high base rate."
    correlation = cloze.correlation if cloze else None
    if cloze is None or correlation is None or not (correlation.testable and correlation.r.defined):
        reason = correlation.r.note if correlation else "no control responses"
        return Hypothesis("H2", claim, "cannot be tested", f"No correlation: {reason}.")
    words = f"{_correlation_words(correlation)} {_subject_words(cloze)} {_gap_words(cloze)}"
    words += _doubt(cloze, given=True)
    if correlation.holds:
        return Hypothesis("H2", claim, "holds", words)
    if correlation.absent:
        return Hypothesis("H2", claim, "does not hold", f"The correlation is below {MODERATE}. {words}")
    if correlation.shows:
        return Hypothesis("H2", claim, "unclear", f"Too many other assignments of base rates do as well. {words}")
    return Hypothesis("H2", claim, "unclear", f"The interval is too wide for a verdict. {words}")


def _h3_published(cloze: Findings | None, counterfactual: Findings | None) -> Hypothesis:
    """P5's rule: cloze base rates against counterfactual accuracy within subjects, compared with the cloze.

    The paper calls H3 refuted because the correlation is weaker but remains; that outcome is ``partly`` here.
    """
    claim = "Counterfactual prompting removes the effect of base rates."
    before = cloze.by_subject if cloze else None
    after = counterfactual.by_subject if counterfactual else None
    if cloze is None or counterfactual is None or before is None or after is None:
        return Hypothesis("H3", claim, "cannot be tested", "Needs cloze and counterfactual scores, with controls.")
    first, second = before.median, after.median
    if min(first.n, second.n) < MIN_SUBJECTS:
        return Hypothesis("H3", claim, "cannot be tested", "Too few subjects with a defined correlation.")
    drop = weaker(before, after)
    words = (
        f"Median r within subjects, cloze base rate against accuracy: cloze {with_interval(first, 2)}, "
        f"counterfactual {with_interval(second, 2)}; lower by {with_interval(drop, 2)} in {count(drop.n, 'subject')}."
    )
    if first.value < MODERATE or first.low <= 0:  # without an interval all subjects are alike
        return Hypothesis("H3", claim, "cannot be tested", f"The cloze shows no effect to remove. {words}")
    remains = verdict(second)
    if remains.kind == "above" and verdict(drop).kind == "above":
        return Hypothesis("H3", claim, "partly", f"Weaker, but it remains, which is why the paper refutes it. {words}")
    if remains.kind == "above":
        return Hypothesis("H3", claim, "does not hold", f"The correlation remains. {words}")
    if second.high < MODERATE:
        return Hypothesis("H3", claim, "holds", f"What remains is below {MODERATE}. {words}")
    return Hypothesis("H3", claim, "unclear", f"The interval under the counterfactual is too wide. {words}")


def _h3(cloze: Findings | None, counterfactual: Findings | None) -> Hypothesis:
    """Our rule: counterfactual accuracy depends neither on the label nor on the counterfactual's own base rates."""
    name = "H3, own base rates"
    claim = "Counterfactual accuracy does not depend on base rates."
    correlations = [found.correlation if found else None for found in (cloze, counterfactual)]
    if cloze is None or counterfactual is None or not all(c and c.testable for c in correlations):
        return Hypothesis(name, claim, "cannot be tested", "Needs cloze and counterfactual scores, with controls.")
    before, after = correlations
    assert before is not None
    assert after is not None
    words = (
        f"Counterfactual: {_correlation_words(after)} {_gap_words(counterfactual)}{_doubt(counterfactual, given=True)}"
    )
    if not before.shows:
        return Hypothesis(name, claim, "cannot be tested", f"The cloze shows no effect to remove. {words}")
    if after.shows:
        return Hypothesis(name, claim, "does not hold", f"The correlation remains. {words}")
    if after.r.value <= -MODERATE and after.r.high < 0:
        return Hypothesis(name, claim, "does not hold", f"The correlation has reversed. {words}")
    gap = counterfactual.gold.gap
    if not after.r.defined:
        return Hypothesis(name, claim, "cannot be tested", words)
    if not (after.absent and after.r.low > -MODERATE):
        return Hypothesis(name, claim, "unclear", f"The interval is too wide for a verdict. {words}")
    if gap.value >= GAP and gap.low > 0:
        return Hypothesis(name, claim, "partly", f"No correlation remains, but accuracy differs by label. {words}")
    if gap.high < GAP:
        bounds = f"r is within ±{MODERATE}, and accuracy differs by less than {GAP:.2f} between labels."
        return Hypothesis(name, claim, "holds", f"{bounds} {words}")
    return Hypothesis(name, claim, "unclear", f"r is within ±{MODERATE}, but the gap may exceed {GAP:.2f}. {words}")


def _h4(cloze: Findings | None) -> Hypothesis:
    claim = "Nvr-X separates label preference from knowledge."
    if cloze is None or cloze.nvr is None or not cloze.nvr["score"].defined:
        return Hypothesis("H4", claim, "cannot be tested", "No Nvr-X responses under the cloze.")
    found = cloze.nvr
    words = (
        f"Accuracy is {number(found['plain'])} as given and {number(found['score'])} on Nvr-X (lowest of the "
        f"variants), a difference of {with_interval(found['drop'])}; guessing scores {number(found['guess'])}, always "
        f"avoiding one label {number(found['never'])}, always answering one 0."
    )
    if found.readings:
        words += " " + " ".join(
            f"Nvr-{reading.label} is {number(abs(reading.gap.value))} "
            f"{'below' if reading.gap.value < 0 else 'above'} the others: the model {reading.phrase}."
            for reading in found.readings
        )
        return Hypothesis("H4", claim, "holds", words + _doubt(cloze))
    gaps = [verdict(extreme.gap, bound=SAME) for extreme in found.extremes]
    if all(one.kind == "equal" for one in gaps):
        words += (
            f" All variants are within {SAME} of the median of the others: no label is preferred by more than that."
        )
        return Hypothesis("H4", claim, "does not hold", words + _doubt(cloze))
    widest = max(gaps, key=lambda one: abs(one.estimate.value))
    words += f" Whether a label is preferred cannot be determined {unsettled(widest)}."
    return Hypothesis("H4", claim, "unclear", words + _doubt(cloze))


def _correlation_words(found: PooledCorrelation) -> str:
    if not found.r.defined:
        return f"No correlation: {found.r.note}."
    return (
        f"r = {with_interval(found.r, 2)} between base rate and accuracy, pooled over {found.pairs} pairs of subject "
        f"and label ({count(found.n_subjects, 'subject')}); {percent(found.assignment_p)} of the ways to assign the "
        "base rates to the labels have an r as high."
    )


def _subject_words(found: Findings) -> str:
    if found.by_subject is None or not found.by_subject.median.defined:
        return ""
    median = found.by_subject.median
    return f"Within subjects the median r is {with_interval(median, 2)} over {count(median.n, 'subject')}."


def _gap_words(found: Findings) -> str:
    pairs = ", ".join(
        f"{label} {number(estimate)}" for label, estimate in zip(found.gold.labels, found.gold.by_label, strict=True)
    )
    return f"Accuracy by gold label: {pairs} (gap {with_interval(found.gold.gap)})."


def _doubt(found: Findings, given: bool = False) -> str:
    """Unreliable accuracies behind a sentence: those as given, or all."""
    cells = [cell for cell in found.cells if cell.doubt and (not given or cell.presentation == GIVEN)]
    doubts = [f"{name(cell.presentation)}: {cell.doubt}" for cell in cells]
    return f" Unreliable: {'; '.join(doubts)}." if doubts else ""


def name(presentation: str) -> str:
    """Display name of a presentation: ``as given``, ``Nvr-A``, ..."""
    return "as given" if presentation == GIVEN else presentation[:1].upper() + presentation[1:]
