"""Tables say the same in CSV, LaTeX and on the page."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reports.results import RESULTS, page_of
from unslant.metrics import METRICS, Estimate
from unslant.reports.export import save_tables, to_csv, to_latex
from unslant.reports.figure import Column, Table
from unslant.reports.numbers import interval, number, tex

HALF = Estimate(0.51234567, 0.4, 0.6, 120, "Wilson")
OTHER = Estimate(-0.02, -0.05, 0.01, 120, "bootstrap over questions")
FEW = Estimate(0.3, math.nan, math.nan, 1, "none")
ENDLESS = Estimate(math.inf, math.inf, math.inf, 120, "bootstrap over questions")
UNDEFINED = Estimate.undefined("no right options")


def table(*rows: tuple[object, ...]) -> Table:
    columns = (Column("subject"), Column("accuracy"), Column("change", 2), Column("right"), Column("comment"))
    return Table("by-subject", "By subject", columns, rows)  # type: ignore[arg-type]


MIXED = table(
    ("law & order", HALF, OTHER, 12, "50 % of_all"),
    ("maths", ENDLESS, UNDEFINED, None, "a,b"),
    ("x", FEW, OTHER, 3, ""),
)


def plain(text: str) -> str:
    return re.sub(" +", " ", text)


def test_csv_has_every_number_in_full_with_interval_and_n() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(MIXED))))
    assert list(rows[0]) == [
        "subject", "accuracy", "accuracy low", "accuracy high", "accuracy n",
        "change", "change low", "change high", "change n", "right", "comment",
    ]  # fmt: skip
    assert float(rows[0]["accuracy"]) == HALF.value
    assert [rows[0][f"change {part}"] for part in ("low", "high", "n")] == ["-0.05", "0.01", "120"]
    assert rows[0]["subject"] == "law & order"
    assert rows[1]["accuracy"] == "inf"
    assert [rows[1][name] for name in ("change", "change low", "change n", "right")] == ["", "", "", ""]
    assert rows[2]["accuracy low"] == ""
    assert rows[2]["accuracy n"] == "1"


def test_latex_is_a_booktabs_table_with_as_many_cells_in_every_row() -> None:
    text = plain(to_latex(MIXED))
    assert r"\begin{tabular}{lS[table-format=1.3]lS[table-format=-1.2]lS[table-format=2.0]l}" in text
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(lines) == 1 + 3
    assert all(len(re.findall(r"(?<!\\)&", line)) == 7 - 1 for line in lines)
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    assert r"subject & {accuracy} & 95 \% interval & {change} & 95 \% interval & {right} & comment" in text
    assert r"law \& order & 0.512 & 0.400 -- 0.600 & -0.02 & $-$0.05 to 0.01 & 12 &" in text
    assert r"50 \% of\_all" in text
    assert r"{$\infty$}" in text
    assert text.count("N = 1 to 120; 95") == 1
    assert "resizebox" not in text


def test_n_is_in_the_note_unless_rows_differ_in_it() -> None:
    same = plain(to_latex(table(("a", HALF, OTHER, 1, "x"), ("b", HALF, UNDEFINED, 2, "y"))))
    assert "$N$" not in same
    assert r"\footnotesize N = 120;" in same
    few = replace(HALF, n=7)
    differing = plain(to_latex(table(("a", HALF, OTHER, 1, "x"), ("b", few, UNDEFINED, 2, "y"))))
    assert "{change} & 95 \\% interval & {$N$} & {right}" in differing
    assert re.search(r"^ b & .* & \{--\} & & 7 & 2 & y \\\\$", differing, flags=re.M)


def test_percent_signs_and_thousands_are_for_readers_not_for_siunitx() -> None:
    columns = (Column("subject"), Column("mass", METRICS["label_mass"]), Column("n"))
    text = plain(to_latex(Table("t", "T", columns, (("a", Estimate.bare(0.227, 9, ""), 12345), ("b", None, 7)))))
    value = number(Estimate.bare(0.227, 9, ""), METRICS["label_mass"])
    assert (r"{mass (\%)}" in text) == ("%" in value)
    assert "& 12345 " in text
    assert "S[table-format=5.0]" in text


def test_a_table_says_what_it_takes() -> None:
    text = to_latex(table(("law", HALF, OTHER, 1, "x " * 40), ("b", HALF, UNDEFINED, 2, "y")))
    assert text.startswith("% needs \\usepackage{booktabs,siunitx}\n\\begin{table}")
    assert r"S[table-format=1.0]p{0.5\linewidth}}" in text
    assert "\n {}[2em] " in to_latex(table(("[2em]", HALF, OTHER, 1, "[2em]")))  # else swallowed by the row before
    assert "[T1]{fontenc}, or LuaLaTeX with a font that has é" in to_latex(table(("é", HALF, OTHER, 1, "")))
    assert "; LuaLaTeX with a font that has é語" in to_latex(table(("é語", HALF, OTHER, 1, "")))


@pytest.mark.thorough
def test_every_number_of_every_table_stands_in_a_column_that_is_wide_enough(subtests: pytest.Subtests) -> None:
    """What siunitx would refuse or set too wide: LaTeX may not be at hand, so the columns are read here."""
    for name in RESULTS:
        with subtests.test(name):
            for one in [t for panel in page_of(name).sections for t in panel.tables]:
                text = plain(to_latex(one))
                (written,) = re.findall(r"\\begin\{tabular\}\{(.*)\}$", text, flags=re.M)
                specs = re.findall(r"S\[table-format=-?\d+\.\d\]|p\{[\d.]+\\linewidth\}|[lr]", written)
                assert "".join(specs) == written
                lines = [line.removesuffix(r"\\") for line in text.splitlines() if line.endswith(r"\\")]
                heads, *rows = [[cell.strip() for cell in re.split(r"(?<!\\)&", line)] for line in lines]
                assert len(rows) == len(one.rows)
                assert {len(cells) for cells in (heads, *rows)} == {len(specs)}
                numeric = [head for head, spec in zip(heads, specs, strict=True) if spec[0] in "Sr" and head != "{$N$}"]
                shown = [c for c, column in enumerate(one.columns) if one.numeric[c] and column.name != "interval by"]
                assert [head.strip("{}").removesuffix(r" (\%)") for head in numeric] == [
                    tex(one.columns[c].name) for c in shown
                ]
                for spec, cells in zip(specs, zip(*rows, strict=True), strict=True):
                    if spec.startswith("S"):
                        sign, whole, decimals = re.findall(r"=(-?)(\d+)\.(\d)", spec)[0]
                        fraction = rf"(?:\.\d{{1,{decimals}}})?" if decimals != "0" else ""
                        fits = rf"{sign and '-?'}\d{{1,{whole}}}{fraction}(?:\{{.*\}})?|\{{.*\}}|"
                        assert [cell for cell in cells if not re.fullmatch(fits, cell)] == [], (one.id, spec)
                        assert any(cell[:1] not in ("", "{") for cell in cells)
                    elif spec == "r":
                        assert not [cell for cell in cells if re.match(r"-?\d", cell)], one.id


HOSTILE = (
    "[2em]",
    "*",
    r"\\[1em]",
    "50 %",
    "a_b^c",
    "~#$&{}",
    "<|im_end|>",
    "\"`'--",
    "a & b \\\\",
    "−∞ ± – \xa0",
    "@{x}",
)


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not installed (Debian: texlive-latex-recommended)"
)
def test_tables_typeset(tmp_path: Path) -> None:
    every = [
        t for make in RESULTS.values() for page in [make().page()] for panel in page.sections for t in panel.tables
    ]
    hostile = Table("h", HOSTILE[0], tuple(map(Column, HOSTILE)), tuple((name,) * len(HOSTILE) for name in HOSTILE))
    lines = [r"\documentclass{article}\usepackage{booktabs,siunitx}\begin{document}"]
    lines += [f"{to_latex(one)}\\clearpage" for one in (hostile, *every)]
    (tmp_path / "all.tex").write_text("\n".join([*lines, r"\end{document}"]), "utf-8")
    command = ["pdflatex", "-draftmode", "-halt-on-error", "-interaction=nonstopmode", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    said = (tmp_path / "all.log").read_text("latin-1")
    assert done.returncode == 0, said[-2000:]


@given(st.text(max_size=30))
def test_no_text_is_a_command_in_latex(text: str) -> None:
    escaped = tex(text)
    left = re.sub(r"\\text(backslash|asciitilde)\{\}|\\\^\{\}|\\ensuremath\{[<>]\}|\\[&%$#_{}]|\$[^$]*\$", "", escaped)
    assert not set(left) & set("\\&%$#_{}~^")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.5, 3, "0.500"),
        (0.0, 3, "0.000"),
        (0.0004, 3, "<0.001"),
        (0.0006, 3, "0.001"),
        (-0.00004, 4, ">−0.0001"),
        (3e-17, 3, "0.000"),
        (-0.5, 2, "−0.50"),
        (12345, 3, "12,345"),
        (math.nan, 3, "–"),
        (None, 3, "–"),
        (-math.inf, 3, "−∞"),
        (UNDEFINED, 3, "–"),
    ],
)
def test_numbers_as_people_read_them(value: object, digits: int, text: str) -> None:
    assert number(value, digits) == text  # type: ignore[arg-type]


def test_intervals_that_reach_below_zero_are_not_written_with_two_dashes() -> None:
    assert interval(HALF) == "0.400 – 0.600"
    assert interval(OTHER) == "−0.050 to 0.010"
    assert interval(FEW) == interval(UNDEFINED) == ""


def test_every_table_is_written_in_both_forms(tmp_path: Path) -> None:
    written = save_tables([MIXED], tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["by-subject.csv", "by-subject.tex"]
    assert written[0].read_text("utf-8") == to_csv(MIXED)


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="a row of 2 cells under 5 columns"):
        table(("a", 1))
