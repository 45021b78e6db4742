"""The page of the annotation study."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from unslant.metrics import METRICS
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, number, with_interval

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
    return Page(
        about=f"{items}, {count(len(found.by_annotator), 'annotator')}",
        headline=f"People confirm {with_interval(found.confirmed, 2)} of the expected answers to {items}",
        lines=(_agreement(found),),
        tiles=Tile.row(("confirmed", found.confirmed), ("agreement", found.agreement)),
        panels=(
            Panel(
                "annotation",
                "Do people confirm the expected answers?",
                "Share of verdicts that call the expected answer right, over items.",
                figures=(confirmed, disputed),
                short="Verdicts",
            ),
        ),
        name="annotation",
    )


def _agreement(found: AnnotationAgreement) -> str:
    """How far people agree, and how many items are disputed."""
    disputed = f"{count(len(found.disputed), 'item')} called wrong by someone."
    if not found.agreement.defined:
        return disputed
    said = f"Two people agree on {with_interval(found.agreement, 2)} of the items"
    alpha = "" if math.isnan(found.kappa) else f" (Krippendorff's alpha {number(found.kappa, METRICS['kappa'])})"
    return f"{said}{alpha}; {disputed}"
