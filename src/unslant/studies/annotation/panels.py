"""Agreement of annotators as text and as plain values."""

from __future__ import annotations

from typing import Any

from unslant.metrics.estimate import json_number
from unslant.reports.panel_text import text
from unslant.reports.panels import Cell, Column, Panel, Table
from unslant.studies.annotation.metrics import AnnotationAgreement


def summary(found: AnnotationAgreement) -> str:
    """The figures as text for a terminal."""
    rows: list[tuple[Cell, ...]] = [("all", found.confirmed)]
    rows += [(f"by {name}", estimate) for name, estimate in found.by_annotator.items()]
    rows += [(f"under {name}", estimate) for name, estimate in found.by_intervention.items()]
    if found.agreement.defined:
        rows.append(("pairs of people that agree", found.agreement))
    table = Table("annotation", "Expected answers confirmed", (Column(""), Column("share")), tuple(rows))
    notes = []
    if found.kappa == found.kappa:
        notes.append(f"Agreement beyond chance (Krippendorff's alpha): {found.kappa:.3f}.")
    if found.disputed:
        notes.append(f"Called wrong by someone ({len(found.disputed)}): {', '.join(found.disputed[:10])}")
    headline = f"Expected answers confirmed: {100 * found.confirmed.value:.1f} % of {found.confirmed.n:,} items"
    return text(headline, [Panel("annotation", "", "", tables=(table,), notes=tuple(notes))])


def to_dict(found: AnnotationAgreement) -> dict[str, Any]:
    """Plain values for JSON."""
    return {
        "confirmed": found.confirmed.to_dict(),
        "by_annotator": {name: estimate.to_dict() for name, estimate in found.by_annotator.items()},
        "by_intervention": {name: estimate.to_dict() for name, estimate in found.by_intervention.items()},
        "agreement": found.agreement.to_dict(),
        "kappa": json_number(found.kappa),
        "disputed": list(found.disputed),
    }
