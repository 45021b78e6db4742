"""A figure's table and charts hold the same rows."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import altair as alt
import pytest
from altair.utils.schemapi import SchemaValidationError

from tests.reports.results import RESULTS, page_of
from unslant.metrics import METRICS, Estimate, wilson
from unslant.reports import Column, Figure, Panel, Plot, charts
from unslant.reports.export import drawing
from unslant.reports.figure import Chart
from unslant.reports.style import MOST_ROWS, PAPER, Mark

HALF, MOST, NONE = wilson(0.5, 40), wilson(0.9, 40), Estimate.undefined("not asked")
ROWS: list[dict[str, Any]] = [
    {"model": "a", "kind": "words", "vanilla": MOST, "ours": HALF, "vanilla_chance": 0.25, "right": 36},
    {"model": "b", "kind": "words", "vanilla": HALF, "ours": NONE, "vanilla_chance": 0.5, "right": 20},
]


def figure(*plots: Plot, **options: Any) -> Figure:
    columns = ["vanilla", Column.of("ours", "changed"), Column("questions right", key="right"), Column("weights")]
    return Figure("scores", "Scores", ["model", "kind"], columns, ROWS, plots, **options)


def marks_of(plot: Plot) -> list[Mark]:
    return figure(plot).marks(plot)


def test_a_table_names_its_rows_first_and_leaves_out_what_is_not_there() -> None:
    table = figure().table
    assert [column.name for column in table.columns] == [
        "model", "kind", METRICS["vanilla"].label, "changed", "questions right", "weights",
    ]  # fmt: skip
    assert table.rows == (("a", "words", MOST, HALF, 36, None), ("b", "words", HALF, NONE, 20, None))
    assert table.names == 2
    assert table.columns[2].how is METRICS["vanilla"]


def test_cells_are_found_by_key_by_its_last_part_or_by_metric() -> None:
    row = {"accuracy": 0.5, METRICS["pbm"]: 0.1, "nvr.score": 0.2, "score": 0.3}
    assert [Column.of(key).cell(row) for key in ("alone.accuracy", "pbm", "nvr.score")] == [0.5, 0.1, 0.2]
    assert Column("nothing").cell(row) is None


def test_one_value_is_a_mark_a_row_and_several_are_series() -> None:
    (a, b) = marks_of(Plot(charts.intervals, "", ["vanilla"]))
    assert [(m.name, m.estimate, m.series) for m in (a, b)] == [("a, words", MOST, ""), ("b, words", HALF, "")]
    several = marks_of(Plot(charts.intervals, "", {"vanilla": "before", "ours": "after"}, name=["model"]))
    assert [(m.name, m.series) for m in several] == [("a", "before"), ("a", "after"), ("b", "before")]


def test_rows_become_series_across() -> None:
    marks = marks_of(Plot(charts.intervals, "", ["vanilla", "ours"], name=["model"], across=True))
    assert [(m.name, m.series) for m in marks] == [
        (METRICS["vanilla"].label, "a"), ("changed", "a"), (METRICS["vanilla"].label, "b"),
    ]  # fmt: skip


def test_what_a_plot_says_of_rows_reaches_the_marks() -> None:
    plot = Plot(
        charts.lines, "", ["vanilla"], series="kind", dash="model", at="right",
        expected=lambda row, key: row[f"{key}_chance"], out=lambda row: row["model"] == "b",
    )  # fmt: skip
    (a, b) = marks_of(plot)
    assert (a.series, a.dash, a.at, a.expected, a.stands_out) == ("words", "a", 36, 0.25, False)
    assert b.stands_out
    assert [m.name for m in marks_of(Plot(charts.intervals, "", ["vanilla"], where=lambda row: False))] == []


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "text"])
def test_what_is_no_number_is_not_drawn_as_a_reference(value: Any) -> None:
    (mark, *_) = marks_of(Plot(charts.intervals, "", ["vanilla"], expected=lambda *_: value))
    assert mark.expected is None


def test_charts_without_a_mark_and_tables_without_a_row_are_left_out() -> None:
    nothing = Plot(charts.intervals, "", ["weights"])
    assert figure(nothing).charts == ()
    empty = Figure("scores", "Scores", ["model"], ["vanilla"], [], [Plot(charts.intervals, "", ["vanilla"])])
    assert Panel("p", "", "", figures=(empty,)).empty
    assert figure(drawn_only=True).tables == ()


def test_a_chart_takes_titles_formats_and_what_a_row_is_from_its_figure() -> None:
    plots = (
        Plot(charts.intervals, "How to read it.", ["vanilla"]),
        Plot(partial(charts.intervals, axis="share"), "", ["ours"], id="other", title="Other", rows="run", of="runs"),
    )
    own, other = figure(*plots).charts
    assert (own.id, own.title, own.explanation, own.of) == ("scores", "Scores", "How to read it.", "questions")
    assert (other.id, other.title, other.of) == ("other", "Other", "runs")
    spec = own.draw(PAPER).to_dict()
    assert '"title": "model"' in str(spec).replace("'", '"')
    assert '"domain": [0.0, 1.0]' in str(spec).replace("'", '"')  # shares


def test_more_rows_than_a_chart_shows_are_told_in_its_title() -> None:
    rows = [{"subject": f"s{i}", "vanilla": HALF} for i in range(20)]
    plot = Plot(charts.dumbbells, "", ["vanilla"], most=MOST_ROWS)
    (chart,) = Figure("subjects", "By subject", ["subject"], ["vanilla"], rows, [plot]).charts
    assert chart.title == "By subject (the first 15 of 20 subjects)"


def test_rows_of_metrics_have_their_formats_and_meanings() -> None:
    plot = Plot(charts.intervals, "", ["value"], where=lambda row: row["metric.key"] == "drop")
    values = {"vanilla": MOST, "drop": Estimate(0.4, 0.2, 0.6, 40, "made"), "ours": NONE}
    made = Figure.of_metrics("scores", "Scores", {"value": values}, [plot], methods=True)
    assert [row[0] for row in made.table.rows] == [METRICS[key].name for key in ("vanilla", "drop")]
    assert made.table.by_row == (METRICS["vanilla"], METRICS["drop"])
    assert [column.name for column in made.table.columns] == ["metric", "value", "meaning", "interval by"]
    assert [mark.name for mark in made.marks(plot)] == [METRICS["drop"].label]
    text = str(made.charts[0].draw(PAPER).to_dict())
    assert "'at': 0.0" in text  # a difference is drawn with a line at 0
    assert "+0.400" in text


@pytest.mark.parametrize("name", sorted({"contamination", "debias", "probe", "unbiased", "annotation"} & set(RESULTS)))
def test_every_interval_of_a_study_is_in_a_table_too(name: str) -> None:
    """Drawn from the same rows, a chart has no number that its page's tables lack."""
    page = page_of(name)
    cells = {cell for panel in page.sections for table in panel.tables for row in table.rows for cell in row
             if isinstance(cell, Estimate)}  # fmt: skip
    shown = {round(cell.value, 9) for cell in cells if cell.defined}
    drawn = [row for panel in page.sections for chart in panel.charts for row in _data(chart.draw(PAPER).to_dict())]
    values = [row["value"] for row in drawn if row.get("interval") not in (None, "none")]
    assert values
    assert {round(value, 9) for value in values} <= shown


def _data(spec: Any) -> list[dict[str, Any]]:
    if isinstance(spec, dict):
        own = spec["values"] if isinstance(spec.get("values"), list) else []
        rows = [row for row in own if isinstance(row, dict)]
        return rows + [row for key, part in spec.items() if key != "values" for row in _data(part)]
    return [row for part in spec for row in _data(part)] if isinstance(spec, list) else []


@pytest.mark.parametrize("highest", [1, 2, 4, 6, 7, 30])
def test_an_axis_of_counts_names_no_count_twice(highest: int) -> None:
    import vl_convert

    marks = [Mark(name, Estimate.bare(value, 1, "a count")) for name, value in (("few", 0.0), ("many", float(highest)))]
    chart = charts.counts(marks, PAPER, rows="share of orders")
    svg = vl_convert.vegalite_to_svg(chart.to_dict())
    labels = re.findall(r">(\d+)</text>", svg)
    assert "0" in labels
    assert len(labels) == len(set(labels))


def test_a_part_that_vega_lite_does_not_know_is_refused() -> None:
    """Parts are not validated one by one, so the whole chart has to be."""

    def draw(_: Any) -> Any:
        return alt.Chart(alt.Data(values=[])).mark_point().encode(x=alt.X("v:Q", axis=alt.Axis(orient="sideways")))

    with pytest.raises(SchemaValidationError):
        drawing(Chart("c", "C", "", draw), PAPER)


@pytest.mark.parametrize(
    ("of", "words"),
    [("questions", "1 question"), ("label orders", "1 label order"), ("questions a set", "1 question a set")],
)
def test_what_is_one_of_a_kind_is_not_in_the_plural(of: str, words: str) -> None:
    marks = [Mark("a", Estimate.bare(0.5, 1, ""))]
    chart = Chart("id", "Title", "How to read it.", partial(charts.intervals, marks), of)
    assert drawing(chart, PAPER).rests_on == f"N = {words}"
