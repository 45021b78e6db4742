"""The result of the evaluator probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from unslant.arrays import Floats
from unslant.experiment.result import StudyResult
from unslant.metrics import Estimate, Numbers
from unslant.responses import Run
from unslant.studies.unbiased.probe.metrics import ConsensusRates, consensus_rates, data_bias, overconfidence
from unslant.studies.unbiased.probe.score_table import ScoreTable


@dataclass(frozen=True)
class ModelBias:
    """One model.

    Attributes:
        rates: strength -> rates on questions that this model rephrased.
        boat_rates: the same on questions under interventions, which nobody rephrased; empty if they were not judged.
        overconfidence: rise of OCR from the lowest strength to the highest; undefined for one strength.
        data_bias, boat_data_bias: accuracy by subject against CER by subject at the highest strength (P4, table 1).
    """

    rates: Mapping[float, ConsensusRates]
    boat_rates: Mapping[float, ConsensusRates]
    overconfidence: Estimate
    data_bias: Numbers
    boat_data_bias: Numbers | None


@dataclass(frozen=True)
class ProbeResult(StudyResult):
    """The bias of every model, and what it rests on.

    Attributes:
        table: every model's confidence in every question.
        accuracy: model -> subject -> accuracy.
        models: model -> its bias.
    """

    study = "probe"
    unwritten = ("table", "run")

    table: ScoreTable
    accuracy: Mapping[str, Mapping[str, float]]
    models: Mapping[str, ModelBias]
    run: Run = field()

    @property
    def failure(self) -> str:
        """See :class:`StudyResult`."""
        counts = zip(self.table.models, *self.table.missing_by_judge(), strict=True)
        return super().failure or "; ".join(
            f"no reply of {name} holds a confidence"
            if missing == asked
            else f"{missing:,} of {asked:,} replies of {name} hold no confidence"
            for name, missing, asked in counts
            if 2 * missing > asked or missing == asked
        )

    def to_dict(self) -> dict[str, Any]:
        """Every number, JSON-able."""
        counted = {"questions_judged": len(self.table.ids), "confidences_missing": self.table.missing}
        return super().to_dict() | counted

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of confidences; :mod:`~unslant.studies.unbiased.probe.score_table` reads it."""
        self.table.to_parquet(path, replace(self.run, provenance=self.provenance))


def result_of(
    table: ScoreTable,
    accuracy: Mapping[str, Mapping[str, float]],
    strengths: Sequence[float],
    seed: int,
    run: Run,
) -> ProbeResult:
    """All rates and correlations of a table."""
    models, last = {}, max(strengths)
    for i, name in enumerate(table.models):

        def mixed(changed: Floats) -> dict[float, Floats]:
            return {p: np.where(table.changed(p, seed), changed, table.original) for p in strengths}

        def rates_of(changed: Floats, i: int = i) -> dict[float, ConsensusRates]:
            return {p: consensus_rates(scores, i, table.subjects, seed=seed) for p, scores in mixed(changed).items()}

        rates = rates_of(table.rephrased[i])
        boat = rates_of(table.boat) if table.has_boat else {}
        scores = mixed(table.rephrased[i])
        rise = overconfidence(scores[min(scores)], scores[last], i, table.subjects, seed=seed)
        if len(scores) < 2:
            rise = Estimate.undefined("one strength: nothing to compare")
        own = accuracy.get(name, {})
        boat_bias = data_bias(own, boat[last].by_subject) if boat else None
        models[name] = ModelBias(rates, boat, rise, data_bias(own, rates[last].by_subject), boat_bias)
    return ProbeResult(table, accuracy, models, run)
