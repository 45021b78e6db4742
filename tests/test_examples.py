"""The examples in the docstrings of public names: everything that a user calls has one, and it prints what it shows."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import unslant
from unslant.experiment.result import StudyResult

STUDIES = [f"study.{name}" for name in unslant.study.__all__]


def named(name: str) -> Any:
    return getattr(unslant.study, name.removeprefix("study.")) if name in STUDIES else getattr(unslant, name)


def has_example(name: str) -> bool:
    """Whether the name must have one: not errors, nor results, which the examples of their functions make."""
    value = named(name)
    if inspect.isclass(value):
        return not issubclass(value, Exception | StudyResult) and name not in RESULTS
    return callable(value)


RESULTS = ("AnnotationAgreement", "QuestionCheck", "Report", "TrainingLog")
NAMES = [name for name in unslant.__all__ if has_example(name)]


SECONDS = {"audit", "compare", "leaderboard", "train", *STUDIES}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.thorough if name in SECONDS else ()) for name in (*NAMES, *STUDIES)],
)
def test_examples_print_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    about = inspect.getdoc(named(name)) or ""
    example = doctest.DocTestParser().get_doctest(about, {"unslant": unslant}, name, None, None)
    assert example.examples, f"unslant.{name} has no example"
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert runner.run(example, out=printed.append).failed == 0, "".join(printed)


@pytest.mark.parametrize("name", ["audit", "leaderboard", *STUDIES])
def test_docstrings_name_arguments_rather_than_flags(name: str) -> None:
    about = (inspect.getdoc(named(name)) or "").replace("``--help-all``", "")
    assert "--" not in about
    assert "unslant study" not in about.partition("Example")[2]


def test_docstrings_name_arguments_also_if_a_command_imported_the_study() -> None:
    code = (
        "import unslant\n"
        "from unslant.errors import naming_flags\n"
        "with naming_flags():\n"
        "    unslant.study.probe\n"
        "print(unslant.study.probe.__doc__)\n"
    )
    about = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "log reads a table of confidences" in about
    assert "--" not in about.replace("``--help-all``", "")
