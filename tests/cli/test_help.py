"""Every command's help, and that an option is the same wherever it occurs."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields

import pytest
from cyclopts import App

from tests.command_line import Ran
from unslant.cli import app
from unslant.experiment import ShardOptions, StoreOptions
from unslant.reference import reference_names
from unslant.studies import STUDIES, TOP, study_named

Run = Callable[..., Ran]
PAPERS_OWN = {
    "--shots": {None, 5},  # P4 uses five
    "--template": {None, "plain", "base-rate"},  # P5's layout; audit and debias: by what is read
    "--seed": {None, 42},  # P3's own
    "--epochs": {5, 40},  # P1's recipe, and the fine-tuning of a whole model
    "--learning-rate": {1e-4, 1e-3},
}
"""Defaults that are a paper's own, where that study has another than the rest."""
ONE_COMMAND_EACH = {
    "--out", "--train", "--orders", "--epochs", "--learning-rate", "--responses", "--limit", "--shots", "--temperature",
    "--repeats", "--figures", "--tables", "--fields",
}  # fmt: skip
"""Options whose help says more in one command than in another; their meaning is the same."""


def commands(group: App = app, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    for name in group:
        if name.startswith("-"):
            continue
        inner = group[name]
        if inner.default_command is None:
            yield from commands(inner, (*path, name))
        else:
            yield (*path, name), inner


EVERY = dict(commands())


def asks_a_model(arguments: set[str]) -> bool:
    return bool(arguments & {"--device", "--base-url", "--adapter"})


GROUPS = [(), *sorted({path[:n] for path in EVERY for n in range(1, len(path))})]


@pytest.mark.parametrize("path", [*EVERY, *GROUPS], ids=lambda path: " ".join(path) or "unslant")
def test_help_is_one_screen_in_words_that_need_no_paper(unslant: Run, path: tuple[str, ...]) -> None:
    ran = unslant(*path, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert len(ran.out.splitlines()) <= 40
    assert max(map(len, ran.out.splitlines())) <= 80 or path not in GROUPS
    assert not re.search(r"\bP[1-5]\b", ran.out + unslant(*path, "--help-all").out)
    shown = set(re.findall(r"^  (--[\w-]+)", ran.out, re.MULTILINE))
    if path in EVERY:
        options = options_of(EVERY[path])
        assert {name for name, (default, _) in options.items() if default is inspect.Parameter.empty} <= shown
        assert len(shown) <= 12
        assert "\nExample:\n  unslant " in ran.out
        assert f"unslant {' '.join(path)} --help-all" in ran.out
    if "\n  MODEL " in ran.out and path != ("train",):
        arguments = " ".join(ran.out.split())
        for kind in ("Folder", "Hub id", ".gguf", "http://HOST/v1#NAME", "inspect:PROVIDER/NAME", *reference_names()):
            assert kind in arguments, kind


def test_help_in_a_narrow_terminal() -> None:
    words = [sys.executable, "-m", "unslant", "audit", "--help"]  # a process keeps its first width
    ran = subprocess.run(words, env={**os.environ, "COLUMNS": "20"}, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "--limit N             Sample at most N\n" in ran.stdout


def test_groups_list_every_command_under_its_heading(unslant: Run) -> None:
    out = unslant("--help").out
    headings = re.findall(r"^(\w+):$", out, re.MULTILINE)
    assert headings == ["Measure", "Correct", "Studies", "Files", "Lists"]
    assert re.findall(r"^  ([a-z-]+) ", out, re.MULTILINE)[:2] == ["audit", "leaderboard"]
    for group in GROUPS:
        listed = re.findall(r"^  ([a-z-]+) ", unslant(*group, "--help").out, re.MULTILINE)
        assert set(listed) == {path[len(group)] for path in EVERY if path[: len(group)] == group}


def test_a_letter_means_one_option() -> None:
    meanings = defaultdict(set)
    for command in EVERY.values():
        for argument in command.assemble_argument_collection():
            for name in argument.names:
                if name.startswith("-") and not name.startswith("--"):
                    meanings[name].add(argument.names[0])
    assert meanings["-q"] == {"--quiet"}
    assert all(len(found) == 1 for found in meanings.values())


@pytest.mark.parametrize("name", STUDIES)
def test_an_option_is_an_argument_of_the_same_name(name: str) -> None:
    """What only a command can mean is left: where to write, what to store, which part of the work this machine does."""
    function = study_named(name).function
    arguments = set(inspect.signature(function).parameters)
    only = {f.name for kind in (study_named(name).outputs, StoreOptions, ShardOptions) for f in fields(kind)}
    path = (name,) if name in TOP else ("study", name)
    named = {one.names[0] for one in EVERY[path].assemble_argument_collection() if one.names[0].startswith("--")}
    assert {option.removeprefix("--").replace("-", "_") for option in named} - only - arguments == set()


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_all_help_ends_with_examples_and_exit_codes(unslant: Run, path: tuple[str, ...]) -> None:
    ran = unslant(*path, "--help-all")
    assert ran.code == 0
    *_, examples = ran.out.split("\nExamples:\n")
    assert examples.count(f"  unslant {' '.join(path)}") in (1, 2)
    codes = " ".join(examples.strip().split("\n\n")[-1].split())
    assert codes.startswith("Exit codes: 0 done, 2 bad input")
    assert "3 most requests failed or no reply had an answer" in codes
    assert "130" in examples
    assert "<bool>" not in ran.out
    assert "BOOL" not in ran.out
    assert "[default: False]" not in ran.out
    assert "--no-no-" not in ran.out


def options_of(command: App) -> dict[str, tuple[object, str]]:
    """Flag -> default and help."""
    found = {}
    for argument in command.assemble_argument_collection(parse_docstring=True):
        if (name := argument.names[0]).startswith("--"):
            found[name] = (argument.field_info.default, argument.parameter.help or "")
    return found


def test_an_option_has_one_default_and_one_help_everywhere() -> None:
    defaults, helps = defaultdict(set), defaultdict(set)
    for command in EVERY.values():
        for name, (default, text) in options_of(command).items():
            required = not isinstance(default, str | int | float | tuple | None)
            if not required:
                defaults[name].add(default or None)
            helps[name].add(text)
            assert text, f"{name} has no help"
            assert "\n" not in text
    assert {name: found for name, found in defaults.items() if len(found) > 1 and name != "--out"} == PAPERS_OWN
    assert {name for name, found in helps.items() if len(found) > 1} <= ONE_COMMAND_EACH | {
        "--template",
        "--seed",
        "--json",
    }


def test_commands_of_a_kind_take_the_same_options() -> None:
    model = {"--adapter", "--device", "--dtype", "--trust-remote-code"}
    numbers = {"--json", "--html", "--out", "--quiet"}
    for path, command in EVERY.items():
        flags = set(options_of(command))
        if flags & model:
            assert flags >= model, path
        if "--html" in flags:
            assert flags >= numbers, path
        if path[0] != "questions" and path[-1] in (
            "leaderboard",
            "base-rate",
            "unbiased",
            "contamination",
            "probe",
            "instruction-boundary",
        ):
            assert flags >= numbers | model | {"--responses", "--log"}, path
        if "--temperature" in flags:
            assert "--max-tokens" in flags, path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("audit", "--label", "1"), "Did you mean --labels?"),
        (("audit", "fair", "--report", "x.html"), "Unknown option: --report. Did you mean --html?"),
        (("audit", "--report=x.html"), "Unknown option: --report. Did you mean --html?"),
        (("audit", "--num_fewshot", "5"), "Unknown option: --num_fewshot. Did you mean --shots?"),
        (("audit", "--apply-chat-template"), "Did you mean --chat?"),
        (("audit", "--no-chat"), "--no-chat"),
        (("audit", "--chat-template=x"), "Unknown option: --chat-template. Did you mean --chat?"),
        (("study", "base-rate", "--dry-run"), "--dry-run. unslant study base-rate --help-all lists all options"),
        (("study", "base-rat"), 'Did you mean "base-rate"?'),
        (("audit", "--limit", "few"), "--limit 'few': give a whole number"),
        (("audit", "--limit", "2.7"), "--limit '2.7': give a whole number"),
        (("audit", "--limit", ".x"), "--limit '.x': give a whole number"),
        (("audit", "--shots", "0.9"), "--shots '0.9': give a whole number"),
        (("plan", "--options", "3.5"), "--options '3.5': give a whole number"),
        (("audit", "--limit", "0"), "--limit 0: give 1 or more"),
        (("audit", "a", "b", "c"), "c: one argument too many"),
        (("audit", "--fields", "question"), "--fields 'question': write it as NAME=VALUE"),
        (("study", "unbiased", "--probabilities", "OS=often"), "--probabilities 'OS=often': write it as NAME=VALUE"),
        (("train", "fair", "embedded", "--out", "d", "--epochs", "0"), "--epochs 0: give 1 or more"),
        (("report",), "nothing to report"),
        (
            ("study", "base-rate", "inspect:openai/x", "nosuch.jsonl"),
            "this needs log-probabilities of labels: give NAME_OR",
        ),
        (("train", "http://127.0.0.1:9/v1#m", "nosuch.jsonl", "--out", "d"), "weights that can be trained"),
        (("audit", "fair", "--retries", "1"), "leave out --retries"),
        (("debias", "http://h/v1#m", "q.jsonl", "--method", "set-based", "--out", "a"), "the model's attention"),
        (("study", "debias", "http://h/v1#m", "--methods", "bnp,set-based"), "the model's attention"),
    ],
)
def test_what_is_mistyped_is_one_line(unslant: Run, arguments: tuple[str, ...], words: str) -> None:
    ran = unslant(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1
    assert words in ran.err
