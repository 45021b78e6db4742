"""The page of the annotation study."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from unslant.metrics import METRICS, Estimate
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, interval, number, percent

if TYPE_CHECKING:
    from unslant.studies.unbiased.annotation.metrics import AnnotationAgreement


def page(found: AnnotationAgreement) -> Page:
    """How often people confirm the expected answers, and which they do not."""
    items = count(found.confirmed.n, "item")
    rows: list[tuple[Cell, ...]] = [("all", found.confirmed)]
    rows += [(f"by {name}", estimate) for name, estimate in found.by_annotator.items()]
    rows += [(f"under {name}", estimate) for name, estimate in found.by_intervention.items()]
    rows += [(METRICS["agreement"].name, found.agreement)] if found.agreement.defined else []
    marks = [Mark(str(name), share) for name, share in rows if isinstance(share, Estimate)]
    columns = (Column("verdicts"), Column("share", METRICS["confirmed"]))
    tables = [Table("annotation", "Expected answers confirmed", columns, tuple(rows))]
    if found.disputed:
        wrong = tuple((item,) for item in found.disputed)
        tables.append(Table("annotation-disputed", "Called wrong by someone", (Column("item"),), wrong))
    kappa = f"Agreement beyond chance (Krippendorff's alpha): {number(found.kappa, METRICS['kappa'])}."
    return Page(
        about=f"{items}, {count(len(found.by_annotator), 'annotator')}",
        headline=f"Expected answers confirmed: {percent(found.confirmed.value, 1)} of {items}"
        f" ({interval(found.confirmed)})",
        tiles=Tile.row(("confirmed", found.confirmed), ("agreement", found.agreement)),
        panels=(
            Panel(
                "annotation",
                "Do people confirm the expected answers?",
                "Share of verdicts that call the expected answer right, over items.",
                charts=(
                    Chart(
                        "annotation",
                        "Expected answers confirmed",
                        "With 95 % intervals.",
                        lambda style: charts.intervals(marks, style, rows="verdicts", axis="share of verdicts"),
                        of="items",
                    ),
                ),
                tables=tuple(tables),
                short="Verdicts",
                notes=() if math.isnan(found.kappa) else (kappa,),
                first_screen=True,
            ),
        ),
        name="annotation",
    )
