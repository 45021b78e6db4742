"""What the evaluator probe found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unslant.metrics import Association
from unslant.studies.probe.metrics import ConsensusRates, consensus_rates, data_bias
from unslant.studies.probe.score_table import ScoreTable
from unslant.studies.result import StudyResult


@dataclass(frozen=True)
class ModelBias:
    """One model: its rates at every strength, and how its accuracy goes with its consensus-error rate.

    Attributes:
        rates: strength -> CER, OCR, UCR on questions that this model rephrased.
        boat_rates: the same on questions under interventions (where nobody rephrased); empty where not asked.
        data_bias, boat_data_bias: accuracy by subject against CER by subject at the highest strength (P4, table 1).
    """

    rates: Mapping[float, ConsensusRates]
    boat_rates: Mapping[float, ConsensusRates]
    data_bias: Association
    boat_data_bias: Association | None


@dataclass(frozen=True)
class ProbeResult(StudyResult):
    """What the probe found, and the table it rests on."""

    study = "probe"
    unwritten = ("table", "meta")

    table: ScoreTable
    accuracy: Mapping[str, Mapping[str, float]]
    models: Mapping[str, ModelBias]
    meta: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Every number, JSON-able."""
        counted = {"questions_judged": len(self.table.ids), "confidences_missing": self.table.missing}
        return super().to_dict() | counted

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of confidences; :func:`~unslant.studies.probe.score_table.load_scores` reads it back."""
        self.table.to_parquet(path)


def result_of(
    table: ScoreTable,
    accuracy: Mapping[str, Mapping[str, float]],
    strengths: Sequence[float],
    seed: int,
    meta: Mapping[str, Any],
) -> ProbeResult:
    """All rates and correlations of a table."""
    models = {}
    for i, name in enumerate(table.models):
        rates = {p: consensus_rates(table.at(p, i, seed), i, table.subjects, seed=seed) for p in strengths}
        boat = {}
        if table.has_boat:
            boat = {p: consensus_rates(table.boat_at(p, seed), i, table.subjects, seed=seed) for p in strengths}
        own, last = accuracy.get(name, {}), max(strengths)
        models[name] = ModelBias(
            rates,
            boat,
            data_bias(own, rates[last].by_subject),
            data_bias(own, boat[last].by_subject) if boat else None,
        )
    return ProbeResult(table, accuracy, models, meta)
