"""The page of the annotation study."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from unslant.metrics import METRICS
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, interval, number, percent

if TYPE_CHECKING:
    from unslant.studies.unbiased.annotation.metrics import AnnotationAgreement


def page(found: AnnotationAgreement) -> Page:
    """How often people confirm the expected answers, and which they do not."""
    items = count(found.confirmed.n, "item")
    shares = {"all": found.confirmed}
    shares |= {f"by {name}": share for name, share in found.by_annotator.items()}
    shares |= {f"under {name}": share for name, share in found.by_intervention.items()}
    shares |= {METRICS["agreement"].name: found.agreement} if found.agreement.defined else {}
    confirmed = Figure(
        "annotation",
        "Expected answers confirmed",
        ["verdicts"],
        [Column("share", METRICS["confirmed"])],
        [{"verdicts": name, "share": share} for name, share in shares.items()],
        [Plot(partial(charts.intervals, axis="share of verdicts"), "With 95 % intervals.", ["share"], of="items")],
    )
    disputed = Figure("annotation-disputed", "Called wrong by someone", ["item"], [],
                      [{"item": item} for item in found.disputed])  # fmt: skip
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
                figures=(confirmed, disputed),
                short="Verdicts",
                notes=() if math.isnan(found.kappa) else (kappa,),
            ),
        ),
        name="annotation",
    )
