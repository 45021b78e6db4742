"""The pictures of P5's figure 1: base rates, accuracy by gold label, and their correlation (extra ``report``)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError

if TYPE_CHECKING:
    from unslant.studies.base_rate import BaseRateResult
    from unslant.studies.base_rate_findings import Findings

FORMATS = (".svg", ".png")
_WIDTH, _HEIGHT = 300, 200
_SCALE = 2.0


def _altair() -> Any:
    try:
        importlib.import_module("vl_convert")
        return importlib.import_module("altair")
    except ImportError as error:
        raise InputError(f"charts need the package {error.name}: pip install 'unslant[report]'") from None


def check_format(path: str | Path) -> None:
    """Refuse what cannot be drawn before any work is done.

    Raises:
        InputError: if the ending is not ``.svg`` or ``.png``, or the extra ``report`` is not installed.
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError.at(path, f"charts are written as {' or '.join(FORMATS)}")
    _altair()


def save_charts(result: BaseRateResult, path: str | Path) -> None:
    """Draw :func:`charts` into an SVG or PNG file, offline.

    Raises:
        InputError: see :func:`check_format`.
    """
    check_format(path)
    suffix = Path(path).suffix.lower()
    charts(result).save(str(path), format=suffix[1:], **({"scale_factor": _SCALE} if suffix == ".png" else {}))


def charts(result: BaseRateResult) -> Any:
    """One column of pictures per elicitation, from top to bottom: base rates of the labels (bars, with intervals over
    label orders), accuracy of each subject by the label of its right options (dots; the line is all questions), and
    one against the other.

    Returns:
        An ``altair.HConcatChart``; pictures without data are left out.

    Raises:
        InputError: if the extra ``report`` is not installed.
    """
    alt = _altair()
    columns = [alt.vconcat(*_pictures(alt, found)) for found in result.found.values()]
    title = f"{result.meta.get('model', 'model')}: base rates and accuracy by gold label"
    return alt.hconcat(*columns, title=alt.TitleParams(title, anchor="middle")).configure_axis(grid=False)


def _pictures(alt: Any, found: Findings) -> list[Any]:
    pictures = [_rates(alt, found)] if found.rates is not None else []
    pictures.append(_gold(alt, found))
    if found.rates is not None and found.correlation is not None and found.correlation.r.defined:
        pictures.append(_correlation(alt, found))
    return pictures


def _rates(alt: Any, found: Findings) -> Any:
    rates = found.rates
    assert rates is not None
    rows = [
        {"label": label, "base rate": e.value, "low": e.low, "high": e.high}
        for label, e in zip(rates.labels, rates.by_label, strict=True)
    ]
    base = alt.Chart(alt.Data(values=rows), title=f"{found.elicitation}: base rates", width=_WIDTH, height=_HEIGHT)
    x = alt.X("label:N", title="label", sort=None, axis=alt.Axis(labelAngle=0), scale=alt.Scale(paddingInner=0.4))
    bars = base.mark_bar().encode(x=x, y=alt.Y("base rate:Q", title="probability"), color=_colour(alt, found))
    return bars + base.mark_rule(color="black").encode(x=x, y=alt.Y("low:Q"), y2="high:Q")


def _colour(alt: Any, found: Findings) -> Any:
    scale = alt.Scale(domain=list(found.gold.labels), scheme="tableau10")
    return alt.Color("label:N", scale=scale, legend=None)


def _gold(alt: Any, found: Findings) -> Any:
    gold = found.gold
    dots = [
        {
            "label": label,
            "accuracy": float(gold.accuracy[s, i]),
            "subject": subject,
            "questions": int(gold.counts[s, i]),
        }
        for s, subject in enumerate(gold.subjects)
        for i, label in enumerate(gold.labels)
        if gold.counts[s, i]
    ]
    lines = [{"label": label, "all": e.value} for label, e in zip(gold.labels, gold.by_label, strict=True) if e.defined]
    x = alt.X("label:N", title="label of the right option", sort=None, axis=alt.Axis(labelAngle=0))
    y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]))
    title = f"{found.elicitation}: accuracy by gold label"
    chart = alt.Chart(alt.Data(values=dots), title=title, width=_WIDTH, height=_HEIGHT)
    points = chart.mark_circle(size=30, opacity=0.45).encode(
        x=x, y=y, color=_colour(alt, found), xOffset="jitter:Q", tooltip=["subject:N", "accuracy:Q", "questions:Q"]
    )
    # spread evenly by rank instead of at random, so that the same numbers give the same picture
    points = points.transform_window(rank="row_number()", groupby=["label"]).transform_calculate(
        jitter="(datum.rank * 0.618) % 1"
    )
    ticks = (
        alt.Chart(alt.Data(values=lines))
        .mark_tick(color="black", thickness=2, width=45)
        .encode(x=x, y=alt.Y("all:Q", scale=alt.Scale(domain=[0, 1])))
    )
    return points + ticks


def _correlation(alt: Any, found: Findings) -> Any:
    gold, rates, correlation = found.gold, found.rates, found.correlation
    assert rates is not None
    assert correlation is not None
    rows = [
        {
            "label": label,
            "base rate": float(rates.values[i]),
            "accuracy": float(gold.accuracy[s, i]),
            "subject": subject,
        }
        for s, subject in enumerate(gold.subjects)
        for i, label in enumerate(gold.labels)
        if gold.counts[s, i]
    ]
    title = f"{found.elicitation}: r = {correlation.r.value:.2f} over {correlation.pairs} subjects x labels"
    chart = alt.Chart(alt.Data(values=rows), title=title, width=_WIDTH, height=_HEIGHT)
    x = alt.X("base rate:Q", title="base rate of the label", scale=alt.Scale(zero=False))
    y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]))
    scale = alt.Scale(domain=list(gold.labels), scheme="tableau10")
    points = chart.mark_circle(size=30, opacity=0.45).encode(
        x=x, y=y, color=alt.Color("label:N", scale=scale, legend=alt.Legend(orient="bottom")), tooltip=["subject:N"]
    )
    line = chart.transform_regression("base rate", "accuracy").mark_line(color="black").encode(x=x, y=y)
    return points + line
