"""Every code block of these pages is run, in order, in a folder of the page's own.

| block | what is done with it |
|---|---|
| ``python`` | run; names are kept for the blocks that follow |
| ``output`` | must be what the Python block before it printed |
| ``bash`` | commands, that must succeed |
| ``console`` | commands after ``$``, and what they print |
| ``toml``, ``yaml``, ``json``, ``jsonl``, ``csv`` | parsed; written to NAME after ``<!-- file: NAME -->`` |
| ``text`` | no code |

A comment in the line before a block changes that: ``<!-- skip: REASON -->``, ``<!-- slow -->``, ``<!-- real -->`` (the
real model and ARC-Challenge are there) and ``<!-- code: N -->`` (the last command's exit code). ``<!-- slow page -->``
and ``<!-- real page -->`` go for all blocks of a page. In what is printed, ``...`` matches anything, and times are
not compared. ``UNSLANT_DOCS=write pytest docs`` writes into the pages what is printed now.
"""

from __future__ import annotations

import ast
import csv
import doctest
import functools
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
import yaml
from sybil import Document, Example, Region, Sybil

from tests.command_line import unslant
from tests.conftest import REAL_MODEL, SHARED_DATA
from unslant.metrics import METRICS

BLOCK = re.compile(r"(?P<notes>(?:^<!-- [^\n]* -->\n)*)^```(?P<language>\w*)\n(?P<source>.*?)^```$", re.M | re.S)
NOTE = re.compile(r"<!-- (\w+)(?:: (.*?))? -->")
ARC = ("allenai/ai2_arc", "ARC-Challenge")
MARKS = ("slow", "real")
WRITE = os.environ.get("UNSLANT_DOCS") == "write"
TIMES = re.compile(r"\b(?:\d+ min )?\d[\d,.]* (?:s|ms|min)\b")


def printed_alike(shown: str, printed: str) -> bool:
    """Whether what is shown is what was printed, apart from times, blanks at line ends, and ``...``."""
    alike = [
        "\n".join(line.rstrip() for line in TIMES.sub("N s", text).strip().splitlines()) for text in (shown, printed)
    ]
    return doctest.OutputChecker().check_output(alike[0] + "\n", alike[1] + "\n", doctest.ELLIPSIS)


class Page:
    """A page's working folder, and what its last Python block printed."""

    def __init__(self) -> None:
        self.printed = ""
        self.before = Path.cwd()
        self.folder = tempfile.TemporaryDirectory(prefix="docs-")
        self.environment = pytest.MonkeyPatch()
        self.environment.chdir(self.folder.name)
        self.environment.setenv("UNSLANT_HOME", str(Path(self.folder.name) / ".unslant"))
        self.environment.setenv("COLUMNS", "100")
        _sample_files()

    @functools.cached_property
    def real(self) -> None:
        """The real model, and ARC-Challenge as the Hub has it.

        Raises:
            SkipTest: where one of them is missing.
        """
        if not REAL_MODEL.is_file():
            raise SkipTest(f"no real model at {REAL_MODEL}: make test-real fetches it")
        if not SHARED_DATA.is_dir():
            raise SkipTest(f"no questions at {SHARED_DATA} to stand for the Hub's")
        import datasets

        Path(REAL_MODEL.name).symlink_to(REAL_MODEL)
        lines = (SHARED_DATA / "arc_challenge_test.jsonl").read_text("utf-8").splitlines()
        arc = datasets.Dataset.from_list([_as_on_the_hub(json.loads(line)) for line in lines])
        self.environment.setattr(datasets, "load_dataset", lambda *name, split: {ARC: arc}[name])

    def close(self) -> None:
        for key in [key for key, metric in METRICS.items() if metric.home == "__main__"]:
            del METRICS[key]  # declared by the page alone
        self.environment.undo()
        self.folder.cleanup()


def _sample_files() -> None:
    """What the pages take for granted: two question files."""
    from unslant.questions import load_questions, write_questions

    small = [question for question in load_questions("embedded") if len(question.options) <= 4]
    write_questions(small[::40], "questions.jsonl")
    write_questions(small[1::40], "other.jsonl")


def _as_on_the_hub(record: dict[str, Any]) -> dict[str, Any]:
    labels = record["labels"]
    return {
        "id": record["id"].rpartition("/")[2],
        "question": record["question"],
        "choices": {"text": record["options"], "label": labels},
        "answerKey": labels[record["answer"]],
    }


def commands_of(source: str, prompt: bool) -> Iterator[tuple[str, str]]:
    """Each command of a block, and what is shown below it."""
    joined = source.replace("\\\n", " ")
    if not prompt:
        yield from ((line, "") for line in joined.splitlines() if line.strip() and not line.startswith("#"))
        return
    for part in re.split(r"^\$ ", joined, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def run_command(command: str) -> tuple[int, str]:
    """Exit code and output of a command (without progress, unless it failed); ``unslant`` runs in this process."""
    words = shlex.split(command, comments=True)
    if words[0] == "unslant" and not {"|", ">", "&&"} & set(words):
        ran = unslant(*words[1:])
        return ran.code, ran.out + (ran.err if ran.code else "")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", command], capture_output=True, text=True, env={**os.environ, "PATH": path}, check=False
    )
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def shell(example: Example) -> None:
    """``bash`` and ``console`` blocks."""
    block = example.parsed
    prompt, expected = block["language"] == "console", int(block["notes"].get("code") or 0)
    commands = list(commands_of(block["source"], prompt))
    assert commands, "no command"
    now, write = [], WRITE and prompt and "..." not in block["source"]
    for command, shown in commands:
        code, printed = run_command(command)
        assert code == (expected if command == commands[-1][0] else 0), f"{command}\nexit code {code}\n{printed}"
        now.append(f"$ {command}\n{printed.strip()}".rstrip() + "\n")
        if prompt and not write:
            assert printed_alike(shown, printed), f"{command}\nprinted:\n{printed}\nshown:\n{shown}"
    if write:
        _rewrite(example, "\n".join(now))


def python(example: Example) -> None:
    """``python`` blocks."""
    out = io.StringIO()
    code = compile(example.parsed["source"], f"{Path(example.path).name}:{example.line}", "exec")
    with redirect_stdout(out):
        exec(code, example.namespace)
    example.namespace["_page"].printed = out.getvalue()


def output(example: Example) -> None:
    """``output`` blocks."""
    printed, shown = example.namespace["_page"].printed, example.parsed["source"]
    if WRITE and "..." not in shown:
        _rewrite(example, printed.rstrip() + "\n")
    else:
        assert printed_alike(shown, printed), f"printed:\n{printed}\nshown:\n{shown}"


def _rewrite(example: Example, source: str) -> None:
    """Put ``source`` in place of the block's."""
    path, block = Path(example.path), example.document.text[example.start : example.end]
    opening, _, _ = block.partition("```")
    written = f"{opening}```{example.parsed['language']}\n{source}```"
    path.write_text(path.read_text("utf-8").replace(block, written, 1), "utf-8")


READERS: dict[str, Callable[[str], object]] = {
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
    "json": json.loads,
    "jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
    "csv": lambda text: list(csv.DictReader(io.StringIO(text), strict=True)),
}


def data(example: Example) -> None:
    """Blocks of data: they can be read, and are written where the page says so."""
    block = example.parsed
    READERS[block["language"]](block["source"])
    if name := block["notes"].get("file"):
        Path(name).write_text(block["source"], "utf-8")


EVALUATORS = {"python": python, "output": output, "bash": shell, "console": shell, **dict.fromkeys(READERS, data)}


def evaluate(example: Example) -> None:
    notes = example.parsed["notes"]
    if "skip" in notes:
        assert notes["skip"], "a skipped block says why"
        if example.parsed["language"] == "python":
            ast.parse(example.parsed["source"])
        raise SkipTest(notes["skip"])
    if "real" in notes:
        _ = example.namespace["_page"].real
    language = example.parsed["language"]
    assert language in EVALUATORS, f"a block in {language or 'no language'}: one of {[*EVALUATORS, 'text']}"
    EVALUATORS[language](example)


def blocks(document: Document) -> Iterator[Region]:
    """A region for every block but those of text."""
    whole = {mark: "" for mark in MARKS if f"<!-- {mark} page -->" in document.text}
    for match in BLOCK.finditer(document.text):
        if match["language"] != "text":
            notes: dict[str, Any] = whole | dict(NOTE.findall(match["notes"]))
            parsed = {"language": match["language"], "source": match["source"], "notes": notes}
            yield Region(match.start(), match.end(), parsed, evaluate)


pytest_collect_file = Sybil(
    parsers=[blocks],
    patterns=["*.md"],
    excludes=["intervention-examples.md"],  # prompts, no code
    setup=lambda names: names.update(_page=Page(), __name__="__main__"),
    teardown=lambda names: names["_page"].close(),
).pytest()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if example := getattr(item, "example", None):
            for mark in MARKS:
                if mark in example.parsed["notes"]:
                    item.add_marker(mark)
                    item.add_marker(pytest.mark.timeout(3600))
