"""What adding a thing costs: one of each is added here with no more than CONTRIBUTING says, and works."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
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
from unslant.debiasing import METHODS, method_named
from unslant.debiasing.asker import ModelAsker
from unslant.debiasing.base import debias
from unslant.errors import InputError, ModelError
from unslant.metrics import METRICS, Numbers, OrderScores, metric, paired_difference, question_metric, wilson
from unslant.metrics.accuracy import accuracy
from unslant.metrics.catalogue import metric_at
from unslant.models import load_model
from unslant.models import open as models_open
from unslant.questions import RECIPES, Recipe, load_questions
from unslant.reports import Column, Figure
from unslant.responses.importers import IMPORTERS, importers
from unslant.studies import STUDIES, read_result

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
    table = Figure.of_metrics("t", "Numbers", {"value": numbers.cells()}).table
    assert numbers["first"] == numbers[METRICS["halves.first"]] == wilson(0.5, 2)
    assert numbers.to_dict() == {"first": wilson(0.5, 2).to_dict()}
    assert table.rows[0][0] == Column.of("halves.first").name == "right in the first half"
    with pytest.raises(ValueError, match=r"halves\.first"):
        metric("halves.first", "another", "number")(lambda: None)


METHOD = '''
from dataclasses import dataclass

from unslant.debiasing.base import Method, OrderDebiaser


class _Reversed(OrderDebiaser):
    def orders(self, question):
        return [tuple(reversed(range(len(question.options))))]


@dataclass(frozen=True)
class Reversed(Method):
    """Asks the reversed order only."""

    shifted: int = 0
    name = "reversed"

    def fit(self, asker, questions=()):
        return _Reversed(asker)
'''


def test_broken_packages_of_others_give_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each ended in a traceback."""
    (tmp_path / "broken_package.py").write_text(
        "from unslant.models.open import Backend\n"
        "BACKEND = Backend('a coin', 'coin:NAME', {'score': 'broken_package:load'})\n"
        "def load(name, options): return 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelError, match=r"the study wrong: broken_package:BACKEND is not an unslant\..*; report it"):
        unslant.studies.study_at("broken_package:BACKEND", "the study wrong")
    app = App()
    register(app, {"wrong": "broken_package:BACKEND", "broken": "no_such_package:Study"})
    for name in ("wrong", "broken"):
        with pytest.raises(ModelError, match="this command"):
            app.parse_args([name], exit_on_error=False, print_error=False)
    monkeypatch.setitem(models_open.BACKENDS, "coin", importlib.import_module("broken_package").BACKEND)
    with pytest.raises(ModelError, match="coin:x: the backend coin loads something else: int is not a model"):
        unslant.audit("coin:x", QUESTIONS)


def check_reversed(questions: Path, named: str = "reversed") -> None:
    """The method of :data:`METHOD` is found by its name, and asks the reversed order."""
    out = questions.parent / "answers.jsonl"
    ran = command_line("debias", "prefers-a", questions, "--method", named, "--out", out, "--no-store")
    assert ran.code == 0, ran.err
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["method"] for row in rows] == ["reversed"] * len(QUESTIONS)
    turned = [replace(question, options=question.options[::-1]) for question in load_questions(questions)]
    asked = debias(method_named("none"), ModelAsker(load_model("prefers-a")), turned)
    for row, outcome in zip(rows, asked.outcomes, strict=True):
        assert row["probabilities"] == pytest.approx(outcome.probs[::-1].tolist(), abs=1e-6)


def test_a_method_is_a_class_and_a_row(monkeypatch: pytest.MonkeyPatch, questions: Path) -> None:
    module = ModuleType("reversing")
    monkeypatch.setitem(sys.modules, "reversing", module)
    exec(METHOD, vars(module))
    monkeypatch.setitem(METHODS, "reversed", "reversing:Reversed")
    check_reversed(questions)


def test_a_method_comes_from_a_package_of_others_by_the_same_row(
    monkeypatch: pytest.MonkeyPatch, questions: Path, tmp_path: Path
) -> None:
    """An installed package: its modules and its ``dist-info`` in a folder of ``sys.path``."""
    installed = tmp_path / "site-packages"
    (installed / "their_package").mkdir(parents=True)
    (installed / "their_package" / "__init__.py").touch()
    (installed / "their_package" / "reversing.py").write_text(METHOD)
    about = installed / "their_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[unslant.methods]\n"
        "reversed = their_package.reversing:Reversed\n"
        "vote = their_package.reversing:Reversed\n"
        "renamed = their_package.reversing:NoSuchClass\n"
        "broken = their_package.no_such_module:Reversed\n"
    )
    monkeypatch.syspath_prepend(installed)
    try:
        check_reversed(questions)
        check_reversed(questions, "reversed:shifted=1")
        assert method_named("vote").name == "vote"  # a name of ours stays ours
        with pytest.raises(InputError, match=r"unknown method 'reverse': did you mean 'reversed'\?"):
            method_named("reverse")
        with pytest.raises(InputError, match="has no setting 'moved': use one of shifted"):
            method_named("reversed:moved=1")
        with pytest.raises(ModelError, match="there is no NoSuchClass in their_package"):
            method_named("renamed")
        with pytest.raises(ModelError, match="the method broken needs their_package"):
            method_named("broken")
    finally:
        for name in [name for name in sys.modules if name.startswith("their_package")]:
            del sys.modules[name]


def audited(model: str, questions: Path) -> None:
    """Audits the model with the command, and checks that it cannot be trained and takes no options of others."""
    out = questions.parent / "o.json"
    ran = command_line("audit", model, questions, "--no-store", "--quiet", "--json", out)
    assert ran.code == 0, ran.err
    assert json.loads(out.read_text())["metrics"]["means"]["accuracy"]["n"] == len(QUESTIONS)
    refused = command_line("train", model, questions, "--out", questions.parent / "adapter")
    assert (refused.code, "can score only" in refused.err) == (2, True), refused.err
    useless = command_line("audit", model, questions, "--device", "cpu", "--no-store")
    assert (useless.code, "leave out --device" in useless.err) == (2, True), useless.err


def test_a_backend_is_a_function_and_a_row(monkeypatch: pytest.MonkeyPatch, questions: Path) -> None:
    module = ModuleType("echo_backend")
    module.load_echo = lambda name, options: RuleModel(lambda stem, labels, texts: [2.0] + [1.0] * (len(labels) - 1))
    monkeypatch.setitem(sys.modules, "echo_backend", module)
    backend = models_open.Backend("an echo", "echo:NAME", {"score": "echo_backend:load_echo"})
    monkeypatch.setitem(models_open.BACKENDS, "echo", backend)
    audited("echo:anything", questions)


BACKEND = """
import numpy as np

from unslant.models import ModelInfo, Scored, ScoringModel
from unslant.models.open import Backend


class Coin(ScoringModel):
    def score(self, prompts):
        for index, prompt in enumerate(prompts):
            self.cost.prompts += 1
            yield Scored(index, -np.log(np.full(len(prompt.continuations), len(prompt.continuations))))


def load(name, options):
    return Coin(ModelInfo(name=name, identity={"model": name, "top": str(options.top)}))


BACKEND = Backend("a coin", "coin:NAME", {"score": "coins:load"}, frozenset({"top"}))
"""


@pytest.fixture
def coins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package outside the tree, as pip installs it: a module, and its entry points."""
    about = tmp_path / "site" / "coins-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: coins\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[unslant.backends]\ncoin = coins:BACKEND\n")
    (about.parent / "coins.py").write_text(BACKEND)
    monkeypatch.syspath_prepend(str(about.parent))
    monkeypatch.delitem(sys.modules, "coins", raising=False)
    return about


def test_a_backend_of_another_package_is_an_entry_point(
    coins: Path, questions: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    audited("coin:fair", questions)
    asked = models_open.open_model("coin:fair", top=7).info
    assert (asked.name, asked.identity) == ("fair", {"model": "fair", "top": "7"})
    assert "coin:NAME" in command_line("models").out
    for place, why in (
        ("coins:load", "coins:load is not an unslant.models.open.Backend"),
        ("coins:NONE", "there is no NONE in coins"),
        ("missing_coins:BACKEND", "the backend coin needs missing_coins"),
    ):
        newer = tmp_path / place.replace(":", "-") / coins.name  # a path of its own: entry points are looked up once
        shutil.copytree(coins, newer)
        (newer / "entry_points.txt").write_text(f"[unslant.backends]\ncoin = {place}\n")
        monkeypatch.syspath_prepend(newer.parent)
        ran = command_line("audit", "coin:fair", questions)
        assert (ran.code, why in ran.err) == (2, True), ran.err


IMPORTER = """
from unslant.responses.importers import Importer, Log, Logged


def read(head):
    page = Logged("q", ("A", "B"), frozenset({0}), str(head.path), chosen=frozenset({0}))
    return [Log("dotty", "dots", "words", (page,))]


IMPORTER = Importer("a log of dots", lambda head: "dots" in head.names, read)
"""


def check_dotted_log(folder: Path) -> None:
    """A log of the format of :data:`IMPORTER` is read by it, though a table of pages has such keys too."""
    (folder / "a.json").write_text('{"dots": 3, "id": "q", "answer": "A", "chosen": "B", "options": ["x", "y"]}')
    ran = command_line("audit", "--log", folder / "a.json", "--json", folder / "o.json")
    assert ran.code == 0, ran.err
    assert json.loads((folder / "o.json").read_text())["metrics"]["means"]["accuracy"]["value"] == 1


def test_a_log_format_is_a_file_and_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = ModuleType("dotted_log")
    exec(IMPORTER, vars(module))
    monkeypatch.setitem(sys.modules, "dotted_log", module)
    monkeypatch.setitem(IMPORTERS, "dots", "dotted_log:IMPORTER")
    check_dotted_log(tmp_path)


def test_a_log_format_comes_from_a_package_of_others_by_the_same_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An installed package: its modules and its ``dist-info`` in a folder of ``sys.path``."""
    installed = tmp_path / "site-packages"
    about = installed / "their_logs-1.0.dist-info"
    about.mkdir(parents=True)
    (installed / "their_logs.py").write_text(IMPORTER)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-logs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[unslant.importers]\n"
        "dots = their_logs:IMPORTER\n"
        "helm = their_logs:IMPORTER\n"
        "broken = no_such_package:IMPORTER\n"
    )
    monkeypatch.syspath_prepend(installed)
    monkeypatch.delitem(sys.modules, "their_logs", raising=False)
    check_dotted_log(tmp_path)  # before any table, for which its keys id and answer would be enough
    whats = [importer.what for importer in islice(importers(), len(IMPORTERS))]
    assert whats.count("a log of dots") == 1  # a name of ours stays ours
    (tmp_path / "other.json").write_text('{"a": 1}')
    ran = command_line("audit", "--log", tmp_path / "other.json")
    assert "the log format broken needs no_such_package" in ran.err


def test_a_recipe_is_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setitem(RECIPES, "parity", Recipe("parity", "org/parity", fields={"answer": "answer"}))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.Dataset.from_list(QUESTIONS))
    assert [q.id for q in load_questions("parity")] == [q["id"] for q in QUESTIONS]


STUDY = '''
from dataclasses import dataclass

from unslant.experiment import PromptOptions
from unslant.experiment.result import RecordedResult
from unslant.experiment.study import Keywords, Study, function
from unslant.presentations import present
from unslant.prompts import Cloze
from unslant.responses import Responses


@dataclass(frozen=True)
class CountingResult(RecordedResult):
    study = "counting"
    responses: Responses
    counted: int

    @classmethod
    def of(cls, responses):
        return cls(responses, len(responses))


class Counting(Study[PromptOptions]):
    """Count questions.

    Examples:
      unslant study counting fair questions.jsonl
    """

    name = "counting"
    settings = PromptOptions
    result = CountingResult
    in_shards = True

    def ask(self, asking):
        asked = [(question, present(question)) for question in asking.questions]
        return asking.ask(asked, [Cloze(asking.settings.writer())])


@dataclass(frozen=True, kw_only=True)
class CountingKeywords(Keywords, PromptOptions):
    pass


counting = function(Counting(), CountingKeywords, CountingResult)
'''
PANELS = """
from unslant.reports import Page


def page(result):
    return Page("questions", f"{result.counted} questions")
"""


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
    folder = tmp_path / "studies" / "counting"
    folder.mkdir(parents=True)
    for name, source in (("__init__", ""), ("study", STUDY), ("panels", PANELS)):
        (folder / f"{name}.py").write_text(source)
    monkeypatch.setattr(unslant.studies, "__path__", [*unslant.studies.__path__, str(tmp_path / "studies")])
    monkeypatch.setitem(STUDIES, "counting", "unslant.studies.counting.study:Counting")
    yield {"counting": STUDIES["counting"]}
    for name in [name for name in sys.modules if name.startswith("unslant.studies.counting")]:
        del sys.modules[name]


def test_a_study_is_a_folder_and_a_row(counting: Mapping[str, str], questions: Path, tmp_path: Path, capsys) -> None:
    """The row alone makes the command, the Python function and the reader of its files."""
    app = App(name="study", result_action="return_value")
    register(app, counting)
    files = {name: tmp_path / f"out.{end}" for name, end in (("json",) * 2, ("html",) * 2, ("responses", "parquet"))}
    app(["counting", "fair", str(questions), "--no-store", *(f"--{name}={path}" for name, path in files.items())])
    assert "6 questions" in capsys.readouterr().out
    assert json.loads(files["json"].read_text())["headline"] == "6 questions"
    assert "6 questions" in files["html"].read_text("utf-8")
    assert read_result(files["responses"]).counted == 6
    app(["counting", "--log", str(files["responses"])])
    assert "6 questions" in capsys.readouterr().out
    assert unslant.study.counting("fair", questions, limit=4).counted == 4
    assert "limit" in inspect.signature(unslant.study.counting).parameters
    app(["counting", "fair", str(questions), "--no-store", "--shard=1/2", f"--responses={tmp_path / 'half.parquet'}"])
    assert read_result(tmp_path / "half.parquet").counted == 3
    app(["counting", "fair", str(questions), "--no-store", "--fail-if", "prompts<1"])


ALL_OF_THEM = """
import json, sys
from tests.command_line import unslant
ran = [unslant(*words) for words in json.loads(sys.argv[1])]
print(json.dumps([one.out for one in ran]))
sys.exit("".join(one.err for one in ran if one.code) or None)
"""


@pytest.mark.thorough
def test_a_study_comes_from_a_package_of_others_by_the_same_row(
    monkeypatch: pytest.MonkeyPatch, questions: Path, tmp_path: Path
) -> None:
    """The command, the Python function and the report of its files, in a process of its own as a user has it."""
    installed = tmp_path / "site-packages"
    about = installed / "their_studies-1.0.dist-info"
    about.mkdir(parents=True)
    (installed / "their_counting").mkdir()
    for name, source in (("__init__", ""), ("study", STUDY), ("panels", PANELS)):
        (installed / "their_counting" / f"{name}.py").write_text(source)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-studies\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[unslant.studies]\ncounting = their_counting.study:Counting\n")
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "UNSLANT_HOME": str(tmp_path / "home")}

    table, page = str(tmp_path / "counted.parquet"), str(tmp_path / "report.html")
    commands = [
        ["study", "--help"],
        ["study", "counting", "--help"],
        ["study", "counting", "fair", str(questions), "--responses", table],
        ["report", table, "--out", page],
    ]
    ran = subprocess.run(
        [sys.executable, "-c", ALL_OF_THEM, json.dumps(commands)],
        cwd=Path(__file__).parents[1], env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    studies, help_text, counted, _ = json.loads(ran.stdout)
    assert "counting" in studies
    assert "Count questions." in help_text
    assert "6 questions" in counted
    assert "6 questions" in (tmp_path / "report.html").read_text("utf-8")
    monkeypatch.syspath_prepend(installed)
    assert unslant.study.counting("fair", questions, limit=4).counted == 4
