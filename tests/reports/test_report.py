"""What the report holds, checked without a browser."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command_line import unslant
from tests.fakes import RuleModel
from tests.reports.synthetic import synthetic_audit, synthetic_questions
from tests.studies.label_guessers import QUESTIONS, when_unsure
from unslant import InputError, Question
from unslant.auditing.browser import browser
from unslant.auditing.comparison import AuditComparison, side_by_side
from unslant.auditing.panels_labels import _base_rates
from unslant.auditing.panels_scores import order_accuracies, order_name
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.debiasing.lora1 import Epoch
from unslant.metrics import Estimate, Numbers, paired_difference, read_scores
from unslant.questions import write_questions
from unslant.reports.figure import Chart, Column, Panel, Table
from unslant.reports.page import LEVELS, Page
from unslant.reports.report import Report, fragment, render
from unslant.reports.style import PAPER, specification
from unslant.responses import Run
from unslant.store import Store
from unslant.studies.debias.training import TrainingLog


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return synthetic_audit(synthetic_questions(40))


@pytest.fixture(scope="module")
def other() -> AuditResult:
    return synthetic_audit(synthetic_questions(40)[10:], lean=0.0, seed=1, model="even")


@pytest.fixture(scope="module")
def mixed() -> AuditResult:
    """Questions of two to six options."""
    return audit(when_unsure({"A": 6.0}), QUESTIONS)


class Elements(HTMLParser):
    """Tags, and the texts of script elements."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside != "style":
            self.text.append(data)


def page_of(*results: AuditResult, folder: Path) -> str:
    Report.of(side_by_side(results)).to_html(folder / "report.html")
    return (folder / "report.html").read_text("utf-8")


def parsed(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    return elements


def island(page: str, name: str) -> Any:
    (text,) = re.findall(rf'<script type="application/json" id="{name}">(.*?)</script>', page, flags=re.S)
    return json.loads(text)


def unpacked(text: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(text)))


def test_the_page_is_one_file_that_loads_nothing(result: AuditResult, tmp_path: Path) -> None:
    page = page_of(result, folder=tmp_path)
    elements = parsed(page)
    assert not [attrs for _, attrs in elements.tags if "src" in attrs]
    assert not [attrs for tag, attrs in elements.tags if tag == "link"]
    assert all(str(attrs["href"]).startswith("#") for _, attrs in elements.tags if "href" in attrs)
    assert not [name for _, attrs in elements.tags for name in attrs if name.startswith("on")]
    policy = next(attrs["content"] for tag, attrs in elements.tags if attrs.get("http-equiv"))
    assert str(policy).startswith("default-src 'none'")
    assert "unsafe" not in str(policy)
    ids = [attrs["id"] for _, attrs in elements.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert page_of(result, folder=tmp_path) == page


def test_every_number_of_the_audit_is_on_the_page_with_its_interval_and_n(result: AuditResult, tmp_path: Path) -> None:
    text = " ".join(" ".join(parsed(page_of(result, folder=tmp_path)).text).split())
    means = result.metrics.means
    for estimate in (
        means["accuracy"],
        means["robust_accuracy"],
        means["vote_accuracy"],
        means["consistency"],
        means["fr"],
    ):
        assert f"{estimate.value:.3f} {estimate.low:.3f} – {estimate.high:.3f}" in text
    assert "N 40" in text
    assert result.metrics.preference.phrase[1:] in text


def test_a_heading_is_text_whatever_the_names_say(tmp_path: Path) -> None:
    bad = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    questions = [replace(q, id=f"{bad}{i}", subject=f"{bad}{i % 3}") for i, q in enumerate(synthetic_questions(12))]
    page = page_of(synthetic_audit(questions, model=bad), folder=tmp_path)
    elements = parsed(page)
    assert not [tag for tag, _ in elements.tags if tag == "img"]
    assert len(elements.scripts) == 6
    assert not [code for code in elements.scripts if "alert(" in code and "\\u003c" not in code]
    assert html.escape(bad) in page
    subjects = str(island(page, "chart-data")["subjects"])
    assert bad in subjects


def test_probabilities_reach_the_browser_as_they_were(result: AuditResult, mixed: AuditResult) -> None:
    for found in (result, mixed):
        data = unpacked(browser({"run": found}).packed()[0])
        (given,) = data["runs"]
        assert [data["questions"][at]["id"] for at in given["at"]] == list(found.scores.ids)
        for raw, block in zip(given["blocks"], found.scores.blocks, strict=True):
            probs = np.frombuffer(base64.b64decode(raw["probs"]), "<u2").reshape(block.probs.shape) / LEVELS
            assert np.abs(probs - block.probs).max() <= 0.5 / LEVELS + 1e-12
            contents = np.frombuffer(base64.b64decode(raw["contents"]), np.uint8)
            shown = contents.reshape(-1, block.k, block.n)
            assert raw["shared"] == block.same_orders
            assert (np.broadcast_to(shown, block.contents.shape) == block.contents).all()
        for view in given["views"]:
            ok = np.frombuffer(base64.b64decode(view["ok"]), np.uint8)
            assert ok.size == len(found.scores)
            contents = np.frombuffer(base64.b64decode(view["contents"]), np.uint8).reshape(ok.size, -1)
            assert (np.sort(contents, axis=1) == np.arange(contents.shape[1])).all()


def test_many_questions_are_sampled_into_the_page_and_it_says_so(result: AuditResult) -> None:
    other = synthetic_audit(synthetic_questions(30, seed=1), model="other", seed=1)
    whole = browser({"one": result, "two": other}, {"one": "a", "two": "b"})  # the same ids in two sets
    assert whole.size == 70
    packed, shown = whole.packed()
    assert shown == 70
    assert whole.explanation_of(shown) == whole.explanation
    few = replace(whole, most_bytes=len(packed) // 2)
    packed, shown = few.packed()
    assert len(packed) <= few.most_bytes
    assert 20 < shown < 70
    assert f"holds {shown} of the 70 questions" in few.explanation_of(shown)
    data = unpacked(packed)
    assert sum(len(run["at"]) for run in data["runs"]) == len(data["questions"]) == shown
    full = unpacked(whole.packed()[0])
    for run, everything, own in zip(data["runs"], full["runs"], (result, other), strict=True):
        ids = [data["questions"][at]["id"] for at in run["at"]]
        at = [own.scores.ids.index(name) for name in ids]
        assert run["measures"]["pbm"] == [everything["measures"]["pbm"][row] for row in at]
        (raw,) = run["blocks"]
        assert raw["index"] == list(range(len(ids)))
        probs = np.frombuffer(base64.b64decode(raw["probs"]), "<u2").reshape(len(ids), raw["k"], raw["n"])
        assert np.abs(probs / LEVELS - own.scores.blocks[0].probs[at]).max() < 1 / LEVELS


def test_a_file_without_texts_still_makes_a_report(result: AuditResult, tmp_path: Path) -> None:
    bare = AuditResult.of(replace(result.responses, questions=()))
    data = unpacked(browser({"run": bare}).packed()[0])
    assert [len(q["o"]) for q in data["questions"]] == [4] * 40
    assert {q["s"] for q in data["questions"]} == {""}
    assert [q["a"] for q in data["questions"]] == [[int(row.argmax())] for row in bare.scores.answers]
    assert "0.0" in page_of(bare, folder=tmp_path)


def test_accuracy_under_each_order_is_that_of_the_responses(result: AuditResult) -> None:
    (block,) = result.scores.blocks
    found = dict(order_accuracies(block, result.bootstrap))
    right = block.right
    rows = [row for row in result.responses.rows() if row.kind == "order" and row.contents == (2, 0, 1, 3)]
    hits = [row.contents[int(np.argmax(row.logprobs))] in row.answers for row in rows]  # type: ignore[arg-type]
    assert found[(2, 0, 1, 3)].value == pytest.approx(np.mean(hits))
    assert len(found) == 24
    assert np.mean([e.value for e in found.values()]) == pytest.approx(right.mean())
    assert order_name((2, 0, 1, 3)) == "C A B D"
    (panel,) = [panel for panel in Report.of([result]).panels if panel.id == "orders"]
    assert [column.name for column in panel.tables[0].columns] == ["options", "order", "accuracy"]


def test_questions_that_share_no_order_are_not_drawn_as_if_they_did(mixed: AuditResult) -> None:
    (panel,) = [panel for panel in Report.of([mixed]).panels if panel.id == "orders"]
    assert "orders" in [chart.id for chart in panel.charts]
    six = [q for q in QUESTIONS if len(q.options) == 6]
    sampled = audit(when_unsure({"A": 6.0}), six, orders="24")
    (panel,) = [panel for panel in Report.of([sampled]).panels if panel.id == "orders"]
    assert [chart.id for chart in panel.charts] == ["share-right"]
    assert panel.notes


def test_base_rates_corrections_and_the_prompt_are_shown(mixed: AuditResult, tmp_path: Path) -> None:
    panels = {panel.id: panel for panel in Report.of([mixed]).panels}
    (table,) = panels["corrections"].tables
    assert [row[:3] for row in table.rows[:-1]] == [(c.method, c.accuracy, c.change) for c in mixed.corrections]
    assert repr(table.rows[-1][1]) == repr(mixed.nvr["score"])  # nan is not equal to itself
    base_rates, nvr = panels["priors"].charts
    assert base_rates.title == "Without content, A is most likely"
    drawn = json.dumps(specification(nvr.draw(PAPER), PAPER))
    assert f'"value": {mixed.nvr.accuracy[1].value}' in drawn
    text = "".join(parsed(page_of(mixed, folder=tmp_path)).text)
    assert mixed.run.example_prompt.startswith("Question: Which is number 0?")
    assert mixed.run.example_prompt in text


@pytest.mark.parametrize(
    ("p", "distance", "likely"),
    [(0.01, 0.2, "A is most likely"), (0.4, 0.2, "no label is shown to be likelier"),
     (0.4, 0.02, "labels are about equally likely")],
)  # fmt: skip
def test_uneven_base_rates_of_few_orders_are_not_called_even(
    mixed: AuditResult, p: float, distance: float, likely: str
) -> None:
    rates = max(mixed.base_rates.values(), key=lambda one: one.n_options)
    changed = {"base_rates.label_p": p, "base_rates.distance": distance}
    numbers = {m.key: Estimate.bare(changed.get(m.key, one.value), one.n, "") for m, one in rates.numbers.items()}
    (chart,) = _base_rates(replace(rates, numbers=Numbers(numbers)))
    assert chart.title == f"Without content, {likely}"


def test_the_log_of_a_training_is_drawn(tmp_path: Path) -> None:
    folder = tmp_path / "adapter"
    folder.mkdir()
    with pytest.raises(InputError, match=r"without log\.jsonl"):
        TrainingLog.read(folder)
    epochs = [
        Epoch(i, 80, 0.04 / (i + 1), 0.6, 0.5 + 0.05 * i, 80, 0.02, 0.46 + 0.05 * i, 0.54 + 0.05 * i, 3.0 - i)
        for i in range(4)
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(epoch.to_dict()) + "\n" for epoch in epochs))
    log = TrainingLog.read(folder)
    assert [e.pbm for e in log.epochs] == [e.pbm for e in epochs]
    assert "PBM from 0.0400 to 0.0100" in log.page().headline
    done = unslant("report", folder, "--out", tmp_path / "r.html")
    assert done.code == 0, done.err
    specs = island((tmp_path / "r.html").read_text("utf-8"), "chart-data")
    assert set(specs) == {"training-accuracy", "training-pbm", "training-loss"}
    assert "0.460 – 0.540" in json.dumps(specs["training-accuracy"], ensure_ascii=False)
    (folder / "log.jsonl").write_text('{"epoch": 0}\n')
    with pytest.raises(InputError, match="line 1"):
        TrainingLog.read(folder)


def test_little_data_makes_a_small_report(tmp_path: Path) -> None:
    def rule(stem: str, labels: list[str], texts: list[str]) -> list[float]:
        return [1.0 + 0.1 * i for i in range(len(texts))]

    lone = [Question("only", "Which?", ("x", "y"), frozenset())]
    for orders in ("auto", "given"):
        page = page_of(audit(RuleModel(rule), lone, orders=orders), folder=tmp_path)
        assert "All numbers" in page


def test_runs_are_compared_on_the_questions_they_share(result: AuditResult, other: AuditResult) -> None:
    report = Report.of(side_by_side([result, other]))
    (panel,) = [panel for panel in report.panels if panel.id == "differences"]
    (table,) = panel.tables
    expected = paired_difference(read_scores(other.responses), read_scores(result.responses), "robust_accuracy")
    (row,) = [row for row in table.rows if row[0] == "accuracy, right in every order"]
    cells = dict(zip([column.name for column in table.columns], row, strict=True))
    assert cells["difference"] == expected.difference
    assert (cells[f"only {other.name}"], cells["only leans-to-a"]) == (expected.only_a, expected.only_b)
    assert cells["left out"] == 10


def test_runs_without_a_common_question_are_shown_and_not_compared(result: AuditResult, mixed: AuditResult) -> None:
    report = Report.of(side_by_side([result, mixed]))
    (panel,) = [panel for panel in report.panels if panel.id == "differences"]
    assert panel.notes == ("No question in common with leans-to-a: rule.",)
    assert not panel.charts + panel.tables
    assert [panel for panel in report.panels if panel.id == "score"]


def test_three_runs_of_one_model_are_told_apart(result: AuditResult, other: AuditResult, tmp_path: Path) -> None:
    runs = AuditComparison.of([result, result, other], ["a", "b", "c"]).runs
    assert list(runs) == ["leans-to-a (a)", "leans-to-a (b)", "even"]
    assert len(AuditComparison.of([result, result, result]).runs) == 3
    page = page_of(result, result, other, folder=tmp_path)
    assert "leans-to-a (1): " in page


def test_any_study_can_add_panels(result: AuditResult, tmp_path: Path) -> None:
    spec = {"data": {"values": [{"x": 1}]}, "mark": "point", "encoding": {"x": {"field": "x", "type": "quantitative"}}}

    class Study:
        def page(self) -> Page:
            chart = Chart("score", "A chart <b>", "How to read it.", lambda style: spec)
            table = Table("numbers", "A table", (Column("name"), Column("value")), (("x", 0.25),))
            panel = Panel("score", "Another study", "What it is.", (chart,), (table,))
            return Page("a study", "Five of five hold", panels=(panel, Panel("none", "Empty", "")))

    report = Report.of([Study(), result])
    ids = [panel.id for panel in report.panels]
    assert ids[:2] == ["score", "score-2"]
    assert "none" not in ids
    report.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Another study" in page
    text = "".join(parsed(page).text)
    assert "Five of five hold" in text
    assert result.headline in text
    assert "score-2" in island(page, "chart-data")
    Report.of([Study()]).to_html(tmp_path / "alone.html")
    alone = (tmp_path / "alone.html").read_text("utf-8")
    assert "Five of five hold" in alone
    assert "browser-data" not in alone


@pytest.mark.thorough
def test_figures_and_tables_are_written_for_papers(result: AuditResult, tmp_path: Path) -> None:
    report = Report.of([result])
    charts = [chart for panel in report.panels for chart in panel.charts]
    assert len(charts) >= 6
    for chart in charts:
        assert "var(" not in json.dumps(specification(chart.draw(PAPER), PAPER))
    first = replace(report.pages[0], panels=report.panels[:1])
    written = Report((first,)).save_figures(tmp_path / "figures")
    assert [path.name for path in written] == ["score.pdf", "score.svg", "score.png", "score.tex"]
    pdf = written[0].read_bytes()
    assert b"/MediaBox [0 0 240 " in pdf
    assert len(re.findall(rb"/BaseFont", pdf)) > 0
    assert b"/FontFile2" in pdf  # a font that travels with the file
    svg = written[1].read_text("utf-8")
    assert "right in every order" in svg
    assert svg.count('aria-roledescription="point"') == 6
    assert written[2].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    caption = written[3].read_text("utf-8")
    assert r"\includegraphics[width=\columnwidth]{score.pdf}" in caption
    assert f"N = {len(result.scores)} questions; 95 \\% intervals: " in caption


def test_the_command_reads_files_and_compares_them(result: AuditResult, other: AuditResult, tmp_path: Path) -> None:
    result.to_parquet(tmp_path / "a.parquet")
    other.to_parquet(tmp_path / "b.parquet")
    files = (tmp_path / "a.parquet", tmp_path / "b.parquet")
    done = unslant("report", *files, "--out", tmp_path / "r.html", "--tables", tmp_path / "tables")
    assert done.code == 0, done.err
    assert {path.name for path in (tmp_path / "tables").iterdir()} >= {"differences.csv", "differences.tex"}
    data = unpacked(island((tmp_path / "r.html").read_text("utf-8"), "browser-data"))
    assert [run["name"] for run in data["runs"]] == ["leans-to-a", "even"]
    assert data["questions"][3]["s"] == result.responses.questions[3].stem


@pytest.mark.thorough
def test_an_audit_writes_the_report_itself_and_a_recorded_run_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = when_unsure({"A": 6.0})
    monkeypatch.setattr("unslant.models.hf.loading.load_model", lambda *_, **__: model)
    write_questions(QUESTIONS[:12], tmp_path / "q.jsonl")
    store = tmp_path / "store.sqlite3"
    audited, reported = tmp_path / "a.html", tmp_path / "b.html"
    arguments = ["rule", str(tmp_path / "q.jsonl"), "--html", str(audited), "--store", str(store)]
    done = unslant("audit", *arguments, "-q")
    assert done.code == 0, done.err
    with Store(store, read_only=True) as opened:
        (run,) = opened.runs.all()
    done = unslant("report", run.id[:4], "--store", store, "--out", reported)
    assert done.code == 0, done.err
    assert audited.read_text("utf-8") == reported.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch.parquet"], "no such file"),
        (["nosuch", "--store", "none.sqlite3"], "nosuch: no such file, and"),
        (["nosuch.parquet", "--out", "nowhere/r.html"], "no folder"),
    ],
)
def test_what_cannot_be_read_or_written_is_said_in_one_line(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = unslant("report", *arguments)
    assert done.code == 2
    assert words in done.err
    assert len(done.err.splitlines()) == 1


def test_responses_of_a_study_without_a_reader_are_refused(result: AuditResult, tmp_path: Path) -> None:
    foreign = replace(result.responses, run=Run(study="tea leaves"))
    foreign.to_parquet(tmp_path / "x.parquet")
    done = unslant("report", tmp_path / "x.parquet", "--out", tmp_path / "r.html")
    assert done.code == 2
    assert "'tea leaves'" in done.err


def test_a_report_of_one_order_quotes_no_mean_over_orders(result: AuditResult, tmp_path: Path) -> None:
    one = audit(when_unsure({"A": 6.0}), QUESTIONS, orders="given")
    several = html.unescape(re.sub(r"\s+", " ", render([result.page()])))
    text = html.unescape(re.sub(r"\s+", " ", render([one.page()])))
    assert "Quote the mean over orders" in several
    assert "Quote the mean over orders" not in text
    assert "The score as published, in one order of the options." in text
    assert "<code>unslant audit MODEL FILE</code>" in text  # a command, as the terminal has it between backticks


def test_text_between_backticks_is_escaped_too() -> None:
    page = Page("a model", "Use `<script>` & `unslant plan`", notes=("see `a<b`",))
    for text in (render([page]), fragment(page)):
        assert "<code>&lt;script&gt;</code> &amp; <code>unslant plan</code>" in text
