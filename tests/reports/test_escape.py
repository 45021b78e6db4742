"""Whatever text comes from outside, no target runs it, and every target shows it."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import altair as alt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from unslant.errors import one_line
from unslant.metrics import Estimate
from unslant.reports import Chart, Column, Page, Panel, Style, Table
from unslant.reports.export import save_figures, save_tables, to_latex
from unslant.reports.numbers import csv_cell, csv_text, drawable, file_name, island, tex
from unslant.reports.report import Report

HOSTILE = (
    '=HYPERLINK("http://x.example","y")', "+cmd|' /C calc'!A0", "-1+1", "@SUM(1)", "\t=1+1", "\r=1+1", "\n=1", " =1+1",
    "＝1+1", "\ufeff=1", "\u200b=1", "\0=1", r"\input{secret}", r"\write18{id}", "$x^2_{y}%~#&",
    "</script><b>x</b>", "<img src=x onerror=x()>", "a\0b", "a\u2028b\u2029c", "\u202eevil",
    "\x1b[31mred\x1b]0;title\x07", "\ue000\ue001\ue002",
    "\ud800", "-->", "{{ 7*7 }}", '"quoted", and\nbroken', "نمی‌شود",
)  # fmt: skip
texts = st.one_of(
    st.text(st.characters(), max_size=30), st.sampled_from(HOSTILE), st.text(alphabet="=+-@|\\{}%\t\r\n\0 ", max_size=8)
)


def table(text: str) -> Table:
    rows = ((text, Estimate(0.5, 0.4, 0.6, 10, "Wilson")), ("x", Estimate(-0.5, -0.6, -0.4, 10, "Wilson")))
    return Table("by-subject", f"By {text}", (Column(text), Column("accuracy")), rows, f"Of {text}.")


@given(texts)
@example("=1")
@example("'\x08")
def test_no_cell_is_a_formula_and_none_is_lost(text: str) -> None:
    ((written,),) = csv.reader(io.StringIO(csv_text((text,), ())), strict=True)
    visible = re.sub(r"^[\s\u200b-\u200f\ufeff]+", "", written)
    assert visible[:1] not in tuple("=+-@＝＋－＠|%")
    assert written[:1] not in ("\t", "\r", "\n")
    shown, kept = ["".join(filter(str.isprintable, one)) for one in (text, written)]
    assert kept in (shown, f"'{shown}")


def test_numbers_stay_numbers() -> None:
    assert [csv_cell(value) for value in (-0.5, 3, None, "-0.5", "a-b", "")] == [-0.5, 3, None, "'-0.5", "a-b", ""]


@given(texts)
def test_latex_holds_no_command_but_its_own(text: str) -> None:
    drawn = to_latex(table(text))
    own = (
        r"\\(?:begin|end)\{(?:table|tabular)\}(?:\{l\S+\})?|\\(?:centering|caption|label|toprule|midrule|bottomrule|"
        r"par|smallskip|footnotesize|ensuremath|pm|infty|text(?:backslash|asciitilde|less|greater))(?![a-z])|\\[&%$#_{},^\\]|\^\{\}"
    )
    for line in (
        r"\usepackage{booktabs,siunitx}",
        r"\usepackage[T1]{fontenc}",
    ):
        drawn = drawn.replace(line, "")
    assert "\\" not in re.sub(own, "", drawn)
    assert len(drawn.splitlines()) == len(to_latex(table("x")).splitlines())
    unescaped = re.sub(r"\\\\|\\[{}]", "", drawn)
    assert unescaped.count("{") == unescaped.count("}")
    assert re.findall(r"(?<!\\)%", drawn) == ["%"]  # the comment of the first line
    assert "\n" not in tex(text)


@given(texts)
def test_a_line_is_one_line_and_shows_what_can_be_seen(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert not {unicodedata.category(c) for c in line if c not in "\u200c\u200d"} & {"Cc", "Cf", "Cs", "Co"}
    assert [c for c in text if c.isprintable() and c != " "] == [c for c in line if c.isprintable() and c != " "]
    line.encode()


@given(st.recursive(texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)))
def test_json_in_a_page_ends_no_element_and_reads_the_same(data: object) -> None:
    written = island(data)
    assert not set(written) & set("<>\u2028\u2029\0")
    assert json.loads(written) == data


@given(texts)
def test_names_of_files_stay_in_their_folder(text: str) -> None:
    name = file_name(text)
    assert Path("folder", name).resolve().parent == Path("folder").resolve()
    assert 1 <= len(name.encode()) <= 255
    assert not name.startswith(".")


def test_charts_are_drawn_whatever_their_texts(tmp_path: Path) -> None:
    def draw(style: Style) -> object:
        data = alt.Data(values=[{"name": text, "value": 1} for text in HOSTILE])
        return alt.Chart(data, title=list(HOSTILE)).mark_bar().encode(x="value:Q", y="name:N")

    for path in save_figures([Chart("all", "All", "", draw)], tmp_path):
        assert path.stat().st_size > (100 if path.suffix == ".tex" else 10_000)
    assert drawable({"a\0": ["b\u2028c", 1, None]}) == {"a": ["b c", 1, None]}


@pytest.mark.parametrize("text", HOSTILE)
def test_pages_and_tables_of_hostile_texts(tmp_path: Path, text: str) -> None:
    page = Page(
        about=text, headline=text, lines=(text,), panels=(Panel("p", text, text, tables=(table(text),)),), name=text
    )

    class Result:
        def page(self) -> Page:
            return page

    report = Report.of([Result()])
    report.to_html(tmp_path / "page.html")
    found = Elements()
    written = (tmp_path / "page.html").read_text("utf-8")
    found.feed(written)
    assert not {unicodedata.category(c) for c in written if c not in "\n\t\u200c\u200d"} & {"Cc", "Cf", "Cs", "Co"}
    assert found.handlers == []
    assert not {"img", "b"} & set(found.tags)
    for path in save_tables([table(text)], tmp_path):
        path.read_text("utf-8").encode()


class Elements(HTMLParser):
    """Names of all elements, and their attributes that hold code."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
