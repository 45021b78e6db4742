"""Every command's help, and that an option is the same wherever it occurs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest
from cyclopts import App

from tests.command_line import Ran
from unslant.cli import app

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
    "--repeats", "--figures", "--tables",
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


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_help_ends_with_examples_and_exit_codes(unslant: Run, path: tuple[str, ...]) -> None:
    ran = unslant(*path, "--help")
    assert ran.code == 0
    *_, examples = ran.out.split("\nExamples:\n")
    assert examples.count(f"  unslant {' '.join(path)}") in (1, 2)
    codes = " ".join(examples.strip().split("\n\n")[-1].split())
    assert codes.startswith("Exit codes: 0 done, 2 bad input")
    assert "3 more than half of the requests failed" in codes
    assert "130" in examples
    assert "<bool>" not in ran.out
    assert "BOOL" not in ran.out
    assert "[default: False]" not in ran.out
    assert "--no-no-" not in ran.out


def options_of(command: App) -> dict[str, tuple[object, str]]:
    """Flag -> default and help."""
    found = {}
    for argument in command.assemble_argument_collection(parse_docstring=True):
        for name in argument.names:
            if name.startswith("--"):
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
    model = {"--base-url", "--adapter", "--device", "--dtype", "--trust-remote-code", "--connections", "--retries"}
    numbers = {"--json", "--html", "--out", "--details", "--quiet"}
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
        (("audit", "--no-chat"), "--no-chat"),
        (("study", "base-rat"), 'Did you mean "base-rate"?'),
        (("audit", "--limit", "few"), 'convert "few" into int'),
        (("audit", "--limit", "0"), "limit 0: give 1 or more"),
        (("audit", "a", "b", "c"), "c: one argument too many"),
        (("audit", "--field", "question"), "--field 'question': write it as NAME=VALUE"),
        (("study", "unbiased", "-p", "OS=often"), "--probability 'OS=often': write it as NAME=VALUE"),
        (("train", "fair", "embedded", "--out", "d", "--epochs", "0"), "epochs is 0"),
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
