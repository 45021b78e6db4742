"""Accuracies reported in P5 (table 3), compared with ours from the same recorded scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unslant.arrays import json_fields
from unslant.metrics import Estimate
from unslant.metrics.registry import metric
from unslant.studies.base_rate.findings import GIVEN, Findings

PRESENTATIONS = ("nvr-A", "nvr-B", "nvr-C", "nvr-D", GIVEN)
SOURCE = "MMLU"

TABLE_3: dict[str, dict[str, tuple[float, ...]]] = {
    "gpt2": {"cloze": (0.007, 0.336, 0.333, 0.324, 0.231), "counterfactual": (0.134, 0.326, 0.320, 0.227, 0.248)},
    "llama2": {"cloze": (0.314, 0.398, 0.346, 0.417, 0.348), "counterfactual": (0.238, 0.270, 0.201, 0.308, 0.260)},
    "llama3": {"cloze": (0.560, 0.586, 0.571, 0.629, 0.574), "counterfactual": (0.341, 0.402, 0.314, 0.450, 0.341)},
    "mistral": {"cloze": (0.273, 0.445, 0.468, 0.512, 0.393), "counterfactual": (0.107, 0.317, 0.304, 0.341, 0.338)},
    "solar": {"cloze": (0.503, 0.625, 0.608, 0.594, 0.564), "counterfactual": (0.113, 0.340, 0.321, 0.364, 0.366)},
}
"""Model -> elicitation -> accuracy on each of ``PRESENTATIONS``: mean over 57 subjects, ties to the first label."""


@dataclass(frozen=True)
class PublishedCell:
    """A published accuracy and ours (unweighted mean over subjects, ties to the first label)."""

    presentation: str
    elicitation: str
    published: float
    ours: Estimate

    @property
    def difference(self) -> float:
        return self.ours.value - self.published

    def to_dict(self) -> dict[str, object]:
        return json_fields(self, also=("difference",))


@metric("published", "paper", "as published", unit="share", source="P5 table 3")
@metric("published.ours", "here", "from the scores at hand", unit="share")
@metric("published.difference", "difference", "here minus the paper", digits=4, unit="difference")
def published(model: str, source: str, found: Mapping[str, Findings]) -> tuple[PublishedCell, ...]:
    """Published accuracies of ``model`` and ours; empty for other models or question sets."""
    plain = model.lower().replace("-", "").replace("_", "").replace(" ", "")
    table = next((table for name, table in TABLE_3.items() if plain.startswith(name)), None)
    if table is None or source != SOURCE:
        return ()
    cells = []
    for elicitation, values in table.items():
        for presentation, value in zip(PRESENTATIONS, values, strict=True):
            ours = found[elicitation].cell(presentation) if elicitation in found else None
            if ours is not None:
                cells.append(PublishedCell(presentation, elicitation, value, ours.by_subject["first"]))
    return tuple(cells)
