"""The fixture for other people's test suites, in a test suite of its own."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
PLUGIN = "unslant.plugins.pytest_plugin"
SUITE = """
import pytest

def test_robust(assert_order_robust):
    found = assert_order_robust("fair", "embedded", at_least=0.3, limit=8, orders="reverse")
    assert found.metrics.means["consistency"].low >= 0.3

def test_not_robust(assert_order_robust):
    assert_order_robust("prefers-a", "embedded", at_least=0.95, limit=16, orders="reverse")

def test_unclear(assert_order_robust):
    with pytest.warns(UserWarning, match="too few questions to decide"):
        assert_order_robust("fair", "embedded", at_least=0.9, limit=4, orders="reverse")

def test_refused(assert_order_robust):
    with pytest.raises(Exception, match="give a share from 0 to 1"):
        assert_order_robust("fair", "embedded", at_least=90)
    with pytest.raises(Exception, match="at_least '0.5': give a number"):
        assert_order_robust("fair", "embedded", at_least="0.5")

def test_undefined(assert_order_robust):
    with pytest.raises(AssertionError, match="no share of questions with the same answer in every order: "):
        assert_order_robust("fair", "embedded", limit=2, orders="given")
"""


@pytest.mark.thorough
def test_suites_of_others_find_a_model_that_answers_by_position(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    # by its module, so that this checkout is tried whether the entry point is installed or not
    found = pytester.runpytest_inprocess("-p", "no:unslant", "-p", PLUGIN, "-p", "no:cacheprovider", "-q")
    found.assert_outcomes(passed=4, failed=1)
    found.stdout.re_match_lines(
        [r"E .*AssertionError: 0\.\d+ \(0\.\d+ to 0\.\d+\) of 16 questions have the same answer in every order"]
    )


def test_it_is_installed_as_an_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"unslant": PLUGIN}
    assert import_module(PLUGIN).assert_order_robust
