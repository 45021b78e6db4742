"""Agreement of annotators on the expected answers of composed questions (P4, sec. 6.7)."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unslant.experiment.result import StudyResult
from unslant.metrics import Bootstrap, Estimate
from unslant.metrics.registry import metric

Verdicts = Mapping[str, Mapping[str, bool]]
"""Annotator -> item -> whether the expected answer is right."""


@dataclass(frozen=True)
class AnnotationAgreement(StudyResult):
    """How often people confirm the expected answers, and how far they agree with each other.

    Attributes:
        confirmed, by_annotator, by_intervention: share of verdicts that say "right", over items; by combination
            (``DH+AR``).
        agreement: share of pairs of annotators that agree, over items with two or more.
        kappa: Fleiss' kappa generalised to any number of annotators an item (Krippendorff's alpha for two
            categories); nan where all verdicts are the same.
        disputed: items that at least one annotator calls wrong, sorted.
    """

    study = "annotation"

    confirmed: Estimate
    by_annotator: Mapping[str, Estimate]
    by_intervention: Mapping[str, Estimate]
    agreement: Estimate
    kappa: float
    disputed: tuple[str, ...]


@metric(
    "confirmed",
    "expected answers confirmed",
    "verdicts that call the expected answer right",
    unit="share",
    source="P4 sec. 6.7",
)
@metric("by_annotator", "confirmed by one person", "the same for one annotator", unit="share")
@metric(
    "by_intervention", "confirmed under one combination", "the same for one combination of interventions", unit="share"
)
@metric("agreement", "pairs of people that agree", "over items with two verdicts or more", unit="share")
@metric("kappa", "agreement beyond chance", "Krippendorff's alpha: 1 is perfect, 0 chance")
def annotation_agreement(verdicts: Verdicts, interventions: Mapping[str, str] | None = None) -> AnnotationAgreement:
    """Agreement figures of filled-in sheets.

    Args:
        interventions: item -> combination.

    Raises:
        ValueError: if there is no verdict at all.
    """
    items = sorted({item for given in verdicts.values() for item in given})
    if not items:
        raise ValueError("no verdicts: nobody has filled in the sheet")
    by_item = {item: [given[item] for given in verdicts.values() if item in given] for item in items}
    groups: defaultdict[str, list[list[bool]]] = defaultdict(list)
    for item in items:
        if interventions and item in interventions:
            groups[interventions[item]].append(by_item[item])
    return AnnotationAgreement(
        confirmed=_mean_of(by_item.values()),
        by_annotator={name: _mean_of([v] for v in given.values()) for name, given in verdicts.items() if given},
        by_intervention={name: _mean_of(groups[name]) for name in sorted(groups)},
        agreement=_mean_of([a == b for a, b in itertools.combinations(said, 2)] for said in by_item.values()),
        kappa=_alpha(by_item.values()),
        disputed=tuple(item for item, said in by_item.items() if not all(said)),
    )


def _mean_of(items: Iterable[Sequence[bool]]) -> Estimate:
    """Mean over items of the share that is True; items without any do not count."""
    values = np.array([np.mean(given) for given in items if given], dtype=np.float64)
    return Bootstrap(len(values)).mean(values, note="no item has two verdicts")


def _alpha(units: Iterable[Sequence[bool]]) -> float:
    """Krippendorff's alpha for nominal data: 1 - observed / expected disagreement (Krippendorff 2011)."""
    rated = [unit for unit in units if len(unit) > 1]
    n = sum(map(len, rated))
    yes = sum(map(sum, rated))
    if yes in (0, n):
        return float("nan")
    observed = sum(2 * sum(unit) * (len(unit) - sum(unit)) / (len(unit) - 1) for unit in rated) / n
    expected = 2 * yes * (n - yes) / (n * (n - 1))
    return 1 - observed / expected
