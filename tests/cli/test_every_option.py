"""Every option of every command changes what is asked, computed or written, or is refused.

The options come from the command line itself, so a new one without a row in ``options_table.py`` or
``options_elsewhere.py`` fails here.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.cli import options_elsewhere as elsewhere
from tests.cli import options_table as table
from tests.cli.option_trials import OPTIONS, ROWS, without_effect
from unslant.cli import app

QUICK = ("--limit", "--orders", "--labels", "--fields", "--retries", "--seed", "--shots")
"""Options of the audit that ``make test`` tries; ``make test-thorough`` tries all of every command."""
ROOT = Path(__file__).parents[2]


def quick(command: str, option: str) -> bool:
    """Whether ``make test`` tries an option of a command."""
    return command == "audit" and option in QUICK


def test_every_option_has_a_row_or_a_test() -> None:
    tried = {*ROWS, *elsewhere.TESTED}
    lacking = [
        f"{command} {option}" for command in OPTIONS for option in OPTIONS[command] if (command, option) not in tried
    ]
    assert lacking == []


def test_no_row_is_left_of_an_option_that_is_gone() -> None:
    rows = {(command, option) for command, other in elsewhere.OTHERS.items() for option in other.rows}
    rows |= {(command, option) for command, own in table.OWN.items() for option in own}
    gone = [f"{command} {option}" for command, option in {*rows, *elsewhere.TESTED} if option not in OPTIONS[command]]
    assert gone == []


@pytest.mark.parametrize("node", elsewhere.TESTED.values())
def test_tests_of_their_own_are_there(node: str) -> None:
    file, _, name = node.partition("::")
    assert name in {one.name for one in ast.parse((ROOT / file).read_text()).body if isinstance(one, ast.FunctionDef)}


@pytest.mark.parametrize("name", table.DEDICATED)
def test_what_model_options_do_has_tests(name: str) -> None:
    word = name.removeprefix("--")
    text = (ROOT / table.DEDICATED[name]).read_text()
    assert word in text or word.replace("-", "_") in text


def test_no_switch_is_on_by_default() -> None:
    """A flag can only switch on: cyclopts gives its implicit True to a field with any converter."""
    for command in OPTIONS:
        own = app
        for name in command.split():
            own = own[name]
        for argument in own.assemble_argument_collection():
            assert not (argument.hint is bool and argument.field_info.default is True), argument.names


@pytest.mark.parametrize(
    ("command", "option"),
    [pytest.param(*row, marks=() if quick(*row) else pytest.mark.thorough) for row in ROWS],
)
def test_options_have_an_effect(command: str, option: str) -> None:
    assert without_effect(command, option) == ""
