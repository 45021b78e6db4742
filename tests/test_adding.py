"""What adding a thing costs: one of each is added here with no more than CONTRIBUTING says, and works."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from cyclopts import App

import unslant
import unslant.studies
from tests.command_line import unslant as command_line
from tests.fakes import RuleModel
from unslant.arrays import Floats
from unslant.cli.commands import register
from unslant.debiasing import registry
from unslant.debiasing.base import Method, OrderDebiaser
from unslant.metrics import METRICS, Numbers, OrderScores, metric, paired_difference, question_metric, wilson
from unslant.metrics.accuracy import accuracy
from unslant.metrics.registry import metric_at
from unslant.models import open as models_open
from unslant.questions import RECIPES, Recipe, load_questions
from unslant.reports import Column, Table
from unslant.responses.importers import IMPORTERS, Importer, Log, Logged
from unslant.studies.readers import STUDIES, Study

QUESTIONS = [{"id": str(i), "question": f"Is {i} even?", "options": ["yes", "no"], "answer": i % 2} for i in range(6)]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    return path


def test_a_metric_is_one_function(questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Declared at the function that computes it, it is in the audit's table, JSON, ``--fail-if`` and comparisons."""
    monkeypatch.setitem(METRICS, "first_half", None)  # so that it is taken out again
    monkeypatch.delitem(METRICS, "first_half")

    @question_metric("first_half", "right in the first half", "accuracy on the first half of the questions",
                     digits=2, unit="share")  # fmt: skip
    def first_half(scores: OrderScores) -> Floats:
        return np.where(np.arange(len(scores)) < len(scores) / 2, accuracy(scores), np.nan)

    out = tmp_path / "o.json"
    ran = command_line("audit", "fair", questions, "--details", "--json", out, "--fail-if", "first_half<2")
    assert ran.code == 4, ran.err
    assert "metrics.means.first_half is" in ran.err
    assert json.loads(out.read_text())["metrics"]["means"]["first_half"]["n"] == len(QUESTIONS) / 2
    assert "right in the first half" in ran.out
    assert "accuracy on the first half" in ran.out
    result = unslant.audit("fair", QUESTIONS)
    pair = paired_difference(result.scores, result.scores, "first_half")
    assert (pair.difference.value, pair.difference.n) == (0, len(QUESTIONS) / 2)
    assert metric_at(("metrics", "means", "first_half")) is METRICS["first_half"]


def test_a_number_of_the_whole_set_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "halves.first", None)
    monkeypatch.delitem(METRICS, "halves.first")

    @metric("halves.first", "right in the first half", "accuracy on the first half of the questions", unit="share")
    def first_half(right: Sequence[bool]) -> Numbers:
        half = right[: len(right) // 2]
        return Numbers({"halves.first": wilson(float(np.mean(half)), len(half))})

    numbers = first_half([True, False, True, True])
    table = Table.of_metrics("t", "Numbers", {"value": numbers.cells()})
    assert numbers["first"] == numbers[METRICS["halves.first"]] == wilson(0.5, 2)
    assert numbers.to_dict() == {"first": wilson(0.5, 2).to_dict()}
    assert table.rows[0][0] == Column.of("halves.first").name == "right in the first half"
    with pytest.raises(ValueError, match=r"halves\.first"):
        metric("halves.first", "another", "number")(lambda: None)


def test_a_method_is_a_class_and_a_row(monkeypatch: pytest.MonkeyPatch, questions: Path, tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Reversed(Method):
        """Asks the reversed order only."""

        name = "reversed"

        def fit(self, asker, questions=()):
            class Debiaser(OrderDebiaser):
                def orders(self, question):
                    return [tuple(reversed(range(len(question.options))))]

            return Debiaser(asker)

    monkeypatch.setitem(registry.METHODS, "reversed", Reversed)
    out = tmp_path / "answers.jsonl"
    ran = command_line("debias", "fair", questions, "--method", "reversed", "--out", out)
    assert ran.code == 0, ran.err
    assert [json.loads(line)["method"] for line in out.read_text().splitlines()] == ["reversed"] * len(QUESTIONS)


def test_a_backend_is_a_function_and_a_row(monkeypatch: pytest.MonkeyPatch, questions: Path) -> None:
    module = ModuleType("echo_backend")
    module.open_echo = lambda address: RuleModel(lambda stem, labels, texts: [2.0] + [1.0] * (len(labels) - 1))
    monkeypatch.setitem(sys.modules, "echo_backend", module)
    backend = models_open.Backend("an echo", "echo:NAME", {"score": "echo_backend:open_echo"}, frozenset())
    monkeypatch.setitem(models_open.BACKENDS, "echo", backend)
    ran = command_line(
        "audit", "echo:anything", questions, "--no-store", "--quiet", "--json", questions.parent / "o.json"
    )
    assert ran.code == 0, ran.err
    assert json.loads((questions.parent / "o.json").read_text())["metrics"]["means"]["accuracy"]["n"] == len(QUESTIONS)
    refused = command_line("train", "echo:anything", questions, "--out", questions.parent / "adapter")
    assert (refused.code, "can score only" in refused.err) == (2, True), refused.err


def test_a_log_format_is_a_file_and_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = ModuleType("dotted_log")
    module.recognises = lambda head: "dots" in head.names
    module.read = lambda path, fields: [
        Log("dotty", "dots", "labels", (Logged("q", ("A", "B"), frozenset({0}), str(path), chosen=frozenset({0})),))
    ]
    monkeypatch.setitem(sys.modules, "dotted_log", module)
    monkeypatch.setitem(IMPORTERS, "dots", Importer("a log of dots", "dotted_log"))
    (tmp_path / "a.json").write_text('{"dots": 3}')
    ran = command_line("audit", "--log", tmp_path / "a.json", "--json", tmp_path / "o.json")
    assert ran.code == 0, ran.err
    assert json.loads((tmp_path / "o.json").read_text())["metrics"]["means"]["accuracy"]["value"] == 1


def test_a_recipe_is_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setitem(RECIPES, "parity", Recipe("parity", "org/parity", fields={"answer": "answer"}))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.Dataset.from_list(QUESTIONS))
    assert [q.id for q in load_questions("parity")] == [q["id"] for q in QUESTIONS]


COMMAND = '''
"""``unslant study counting``."""
from unslant.experiment import options as o


def counting(
    questions: o.Questions, /, *, settings: o.LoadOptions = o.LoadOptions(), outputs: o.Reports = o.ReportOptions()
) -> None:
    """Count questions.

    Examples:
      unslant study counting questions.jsonl
    """
    from unslant.experiment.outputs import write_outputs
    from unslant.studies.counting.result import CountingResult

    write_outputs(CountingResult(len(settings.load(questions))), outputs)
'''
RESULT = """
from dataclasses import dataclass

from unslant.experiment.result import StudyResult


@dataclass(frozen=True)
class CountingResult(StudyResult):
    study = "counting"
    counted: int
"""
PANELS = """
from unslant.reports import Page


def page(result):
    return Page("questions", f"{result.counted} questions")
"""


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
    folder = tmp_path / "studies" / "counting"
    folder.mkdir(parents=True)
    for name, source in (("__init__", ""), ("command", COMMAND), ("result", RESULT), ("panels", PANELS)):
        (folder / f"{name}.py").write_text(source)
    monkeypatch.setattr(unslant.studies, "__path__", [*unslant.studies.__path__, str(tmp_path / "studies")])
    monkeypatch.setitem(STUDIES, "counting", Study("unslant.studies.counting", ("counting",)))
    yield STUDIES["counting"].homes()
    for name in [name for name in sys.modules if name.startswith("unslant.studies.counting")]:
        del sys.modules[name]


def test_a_study_is_a_folder_and_a_row(counting: Mapping[str, str], questions: Path, tmp_path: Path, capsys) -> None:
    app = App(name="study", result_action="return_value")
    register(app, counting)
    app(["counting", str(questions), "--json", str(tmp_path / "out.json"), "--html", str(tmp_path / "out.html")])
    assert "6 questions" in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text())["headline"] == "6 questions"
    assert "6 questions" in (tmp_path / "out.html").read_text("utf-8")
