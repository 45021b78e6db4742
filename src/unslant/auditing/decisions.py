"""What a reader must know of an audit through a decision endpoint."""

from __future__ import annotations

import numpy as np

from unslant.arrays import Floats
from unslant.metrics.ties import is_tie
from unslant.reports.numbers import count
from unslant.responses import Responses
from unslant.responses.table import DECISION

_FEWEST = 10
"""Responses from which rounding is told: fewer may be round by chance."""
_MOST_PLACES = 4


def decision_lines(responses: Responses) -> list[str]:
    """That labels are the server's, and whether it rounds, a sentence each; none of other audits."""
    rows = responses.where(elicitation=DECISION)
    if not len(rows):
        return []
    lines = [
        "The server words the prompt and labels the options: A, B, ... stand for places from the top here, and whether "
        "a habit is about labels or places cannot be known."
    ]
    found: list[Floats] = [np.exp(row) for row in rows.table["logprobs"].to_pylist() if row is not None]
    if len(found) < _FEWEST:
        return lines
    values = np.concatenate(found)
    for places in range(1, _MOST_PLACES + 1):
        scaled = values[values > 0.3 * 0.1**places] * 10**places  # less is a 0 (see models.decisions)
        if (np.abs(scaled - scaled.round()) < 1e-4).all():
            equal = sum(bool(is_tie(own.round(places))) for own in found)
            lines.append(
                f"The server rounds probabilities to {count(places, 'decimal')}: in {count(equal, 'response')} of "
                f"{len(found):,} the best options are equal, and the one that the server chose counts. PBM and other "
                "numbers from probabilities are as coarse."
            )
            break
    return lines
