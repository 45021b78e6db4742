"""An error names options in the words of the door that was used: flags on the command line, arguments in Python."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import unslant
from tests.command_line import unslant as command
from unslant.errors import InputError, naming_flags
from unslant.reports import Later, Page

ROW = {"question": "Is it so?", "options": ["yes", "no"], "answer": 0}


@pytest.mark.parametrize(
    ("written", "flags", "arguments"),
    [
        ("skip them with --skip-bad=True", "skip them with --skip-bad", "skip them with skip_bad=True"),
        ("--ray-gpus needs --ray", "--ray-gpus needs --ray", "ray_gpus needs ray"),
        ("add --elicit=generate", "add --elicit generate", 'add elicit="generate"'),
        ("use --orders=24, or all", "use --orders 24, or all", "use orders=24, or all"),
        ("--fields subject=COLUMN", "--fields subject=COLUMN", 'fields={"subject": "COLUMN"}'),
        ("--fields 'answer=The key'", "--fields 'answer=The key'", 'fields={"answer": "The key"}'),
        ("try --extra-body '{\"k\":1}' (or", "try --extra-body '{\"k\":1}' (or", "try extra_body='{\"k\":1}' (or"),
        ("or --method=vote:orders=3.", "or --method vote:orders=3.", 'or method="vote:orders=3".'),
        (
            "see: unslant runs resume 3f9c --store x.sqlite3; or leave out --store",
            "see: unslant runs resume 3f9c --store x.sqlite3; or leave out --store",
            "see: unslant runs resume 3f9c --store x.sqlite3; or leave out store",
        ),
        ("a -- b, a----b, x--y", "a -- b, a----b, x--y", "a -- b, a----b, x--y"),
        ("/runs/--old and '--old'", "/runs/--old and '--old'", "/runs/--old and '--old'"),
    ],
)
def test_options_are_flags_or_arguments(written: str, flags: str, arguments: str) -> None:
    assert str(InputError(written)) == arguments
    with naming_flags():
        assert str(InputError(written)) == flags
    assert str(InputError(written)) == arguments


PYTHON: dict[str, Callable[[], Any]] = {
    "skip_bad=True": lambda: unslant.load_questions([ROW, {**ROW, "answer": 7}]),
    "adaptive": lambda: unslant.audit("fair", [ROW], until=0.1, elicit="generate"),
    'elicit="generate"': lambda: unslant.audit("fair", [ROW], repeats=3),
    "calibrate=0.5": lambda: unslant.audit("fair", [ROW], calibrate=0.5),
    "shots=5": lambda: unslant.audit("fair", [ROW], shots_by_subject=True),
    "device": lambda: unslant.audit("http://127.0.0.1:9/v1#m", [ROW], device="cpu"),
    "ray": lambda: unslant.audit("fair", [ROW], ray_actors=2),
    'fields={"answer": "k"}': lambda: unslant.load_questions([{"question": "Q?", "options": ["a", "b"], "k": 1}]),
}


@pytest.mark.parametrize("words", PYTHON)
def test_python_users_read_arguments(words: str) -> None:
    with pytest.raises(unslant.UnslantError) as refused:
        PYTHON[words]()
    assert words in str(refused.value)
    assert "--" not in str(refused.value)


def test_results_name_arguments_too() -> None:
    """Caveats, the line on the cost, notes and tables named flags of the command line."""
    result = unslant.audit("fair", [{**ROW, "subject": str(i % 3), "question": f"{i}?"} for i in range(6)], orders=1)
    shown = result.summary(details=True) + result._repr_html_() + repr(result) + json.dumps(result.to_dict())
    assert "add across_subjects=True" in shown
    assert "without chat=True" in shown
    assert not re.findall(r" --[a-z]+", shown)
    page = Page("a", "Ask --shots=5.", ("See --skip-bad=True.",), notes=Later(lambda: ["Raise --max-tokens."]))
    assert (page.headline, *page.lines, *page.sentences) == ("Ask shots=5.", "See skip_bad=True.", "Raise max_tokens.")
    with naming_flags():
        page = replace(page, headline="Ask --shots=5.")
        assert (page.headline, *page.sentences) == ("Ask --shots 5.", "Raise --max-tokens.")


def test_people_at_a_terminal_read_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("question,A,B,answer\nWho?,x,y,A\nWhat?,x,y,Q\n")
    ran = command("audit", "fair", "bad.csv", "--no-store")
    assert ran.code == 2
    assert "--skip-bad" in ran.err
    assert "skip_bad" not in ran.err
    assert "=True" not in ran.err


def test_an_error_with_a_word_of_a_million_letters_takes_no_minutes() -> None:
    """Each letter was tried as the beginning of an address, to the end of the word."""
    word = "a" * 1_000_000
    assert len(str(InputError(f"{word} http://user:secret@host/{word}"))) < 11_000
    assert "secret" not in str(InputError("http://user:secret@host/ is no model"))
