"""Every option of every command changes what is asked, computed or written, or is refused.

The options come from the command line itself, so a new one without a row in ``options_table.py`` fails here. Models are
stand-ins whose scores and replies follow from the prompt alone: any change of a prompt changes the numbers.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from cyclopts import App

from tests.cli import options_table as table
from tests.cli.options_table import Row
from tests.command_line import Ran, unslant
from tests.fakes import FakeChat
from unslant.cli import app
from unslant.errors import ModelError
from unslant.models import Cost
from unslant.models import open as models_open
from unslant.models.base import Scored
from unslant.models.chat import Reply
from unslant.models.options import GenerateOptions

SECONDS = ("--figures", "--html", "--out", "--tables", "--charts", "--log", "--train", "--no-transfer")
"""Options that take seconds; ``make test`` tries the others of the audit, and of each other command its own and two of
models."""
BASES: dict[Any, Seen] = {}
"""What each base did; many rows have the same."""
HTTP, OTHER = "http://127.0.0.1:9/v1#m", "http://127.0.0.1:9/v1#other"
BASE = {
    "audit": "audit {MODEL} {QUESTIONS} {ORDERS} {STORE}",
    "leaderboard": "leaderboard {-m} {-q} {ORDERS} {STORE}",
    "debias": "debias {MODEL} {QUESTIONS} {OUT} {STORE}",
    "train": "train {MODEL} {QUESTIONS} --out adapter {STORE}",
    "lm-eval": "lm-eval task --model {MODEL} {STORE}",
    "study debias": "study debias {MODEL} {QUESTIONS} {METHODS} {STORE}",
    "study base-rate": "study base-rate {MODEL} {QUESTIONS} {STORE}",
    "study unbiased": "study unbiased {MODEL} {QUESTIONS} {STORE}",
    "study contamination": "study contamination {MODEL} {QUESTIONS} {AGAINST} {STORE}",
    "study probe": "study probe {MODEL} {QUESTIONS} {STORE}",
    "study instruction-boundary": "study instruction-boundary {MODEL} {QUESTIONS} {SETTINGS} {STORE}",
}
SLOTS = {
    "MODEL": HTTP,
    "QUESTIONS": "q.jsonl",
    "ORDERS": "reverse",
    "METHODS": "vote",
    "SETTINGS": "vanilla",
    "AGAINST": OTHER,
    "OUT": "out.jsonl",
    "STORE": "--no-store",
}
OWN_SLOTS = {
    "train": {"MODEL": "fair"},
    "lm-eval": {"MODEL": "fair"},
    "study probe": {"MODEL": "inspect:openai/a,inspect:openai/b"},
    "study instruction-boundary": {"MODEL": "inspect:openai/a", "QUESTIONS": "embedded"},
}
NAMED = {"ORDERS": "--orders", "METHODS": "--methods", "SETTINGS": "--settings", "AGAINST": "--against", "OUT": "--out"}
IN_WORDS = {"study unbiased": "--generate MODEL=words", "study probe": "", "study instruction-boundary": ""}
LOGGED = {"leaderboard": "audit", "debias": "audit", "study contamination": "study unbiased"}
"""Command -> the one whose responses its ``--log`` reads."""
ENDS = {"responses": "parquet", "json": "json"}
LOCAL = {"study probe": "fair,prefers-a", "study instruction-boundary": "words"}
TRAINS = ("train", "study contamination")
ELSEWHERE = {
    "merge": "merge", "rerun": "rerun", "report": "report", "replies": "replies", "runs": "runs",
    "questions": "questions", "study annotation-sheet": "annotation", "study annotation-agreement": "annotation",
    "models": "", "templates": "", "study unbiased-compare": "unbiased-compare",
}  # fmt: skip
"""Commands that ask no model; their options are tried in the files that :data:`table.DEDICATED` names."""


def commands(found: App = app, above: str = "") -> Iterator[tuple[str, list[str]]]:
    """Every command, and the long names of its options."""
    for name in found:
        if name.startswith("-"):
            continue
        own, path = found[name], f"{above} {name}".strip()
        if own.default_command is None:
            yield from commands(own, path)
            continue
        arguments = [argument.names for argument in own.assemble_argument_collection()]
        yield path, [next(one for one in names if one.startswith("--")) for names in arguments if "--" in str(names)]


OPTIONS = dict(commands())


def row_of(command: str, option: str) -> Row | None:
    """What an option must show, by the tables; None if it has no row."""
    models = table.IN_WORDS if command in LOCAL else table.MODEL
    groups = (
        table.OWN.get(command, {}), table.LOAD, table.REPLIES, table.OUTPUTS, table.STORE, table.SHARDS, models,
    )  # fmt: skip
    return next((group[option] for group in groups if option in group), None)


ROWS = [(command, option) for command in BASE for option in OPTIONS[command]]
PASSED = ("train", "lm-eval")
"""Commands whose settings are looked at where they reach what has tests of its own."""


def test_every_option_has_a_row() -> None:
    assert OPTIONS.keys() == {*BASE, *(c for c in OPTIONS if any(c.startswith(one) for one in ELSEWHERE))}
    lacking = [f"{c} {o}" for c, o in ROWS if c not in PASSED and row_of(c, o) is None]
    assert lacking == []


def test_no_switch_is_on_by_default() -> None:
    """A flag can only switch on: cyclopts gives its implicit True to a field whatever converter that has."""
    for command in BASE:
        own = app
        for name in command.split():
            own = own[name]
        for argument in own.assemble_argument_collection():
            assert not (argument.hint is bool and argument.field_info.default is True), argument.names


@pytest.mark.parametrize("name", table.DEDICATED)
def test_tests_of_their_own_are_there(name: str) -> None:
    text = (Path(__file__).parents[2] / table.DEDICATED[name]).read_text()
    word = name.removeprefix("--")
    assert word in text or word.replace("-", "_") in text


class Opened(ModelError):
    """A model would be opened now, which is all that is asked."""


@dataclass
class Seen:
    """What an invocation did."""

    opened: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    numbers: Any = None
    earlier: bool = False
    code: int = 0
    text: str = ""
    err: str = ""


class Scorer:
    """Scores that follow from the prompt alone."""

    def __init__(self, name: str, seen: Seen) -> None:
        self.name, self.seen, self.cost = name, seen, Cost()

    @property
    def identity(self) -> Mapping[str, str]:
        return {"model": self.name}

    def score(self, prompts: Sequence[Any]) -> Iterator[Scored]:
        for index, prompt in enumerate(prompts):
            self.seen.prompts.append(repr(prompt))
            self.cost.prompts += 1
            asked = f"{self.name}{prompt.text}{prompt.messages}"
            weights = np.array([1.0 + crc32(f"{asked}{text}".encode()) % 97 for text in prompt.continuations])
            yield Scored(index, np.log(weights / weights.sum() * 0.9))


class Remote(Scorer):
    """The same behind an address."""

    address = "http://127.0.0.1:9/v1"

    def ask_identity(self) -> None: ...


class Talker(FakeChat):
    """Replies that follow from the prompt alone."""

    def __init__(self, name: str, seen: Seen, generate: Any = None) -> None:
        super().__init__(name)
        self.seen = seen

    def at(self, generate: GenerateOptions) -> Talker:
        self.seen.opened.append(repr(generate))
        return self

    def _replies(self, prompts: Sequence[Any]) -> Iterator[Reply]:
        for index, prompt in enumerate(prompts):
            self.seen.prompts.append(repr(prompt))
            lines = re.findall(r"(?m)^([A-Z1-9])\. (.*)$", repr(prompt).replace("\\n", "\n")) or [("A", "")]
            label = max(lines, key=lambda line: crc32(line[1].encode()))[0]
            yield Reply(index, f"Answer: {label}", input_tokens=1, output_tokens=1)


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Seen]:
    """Runs a command on stand-ins in a fresh folder with the files that rows name."""

    def invoke(
        words: Sequence[str], *, earlier: Sequence[str] = (), until_opened: bool = False, numbers: bool = False
    ) -> Seen:
        seen = Seen()
        folder = tmp_path_factory.mktemp("run")
        monkeypatch.chdir(folder)
        monkeypatch.setenv("UNSLANT_HOME", str(folder / "home"))
        for file in files().iterdir():
            shutil.copy(file, folder)
        there = {*folder.rglob("*")}

        def opens(self: Any, to: str, address: Any, *arguments: Any) -> Any:
            seen.opened.append(repr((to, address, arguments)))
            if until_opened and not seen.earlier:
                raise Opened("opened")
            kind = Talker if to == "generate" else Remote if address.options.base_url else Scorer
            return kind(address.model, seen)

        def passes(*arguments: Any, **named: Any) -> Any:
            seen.passed.append(repr((arguments[2:], named)))
            raise Opened("passed")

        monkeypatch.setattr(models_open.Backend, "open", opens)
        for place in ("unslant.studies.contamination.study.fine_tune",):
            monkeypatch.setattr(place, passes)
        if earlier:
            seen.earlier = True
            made = unslant(*earlier)
            assert made.code == 0, made.err
            there = {*folder.rglob("*")}
            seen.__init__()  # type: ignore[misc]
        ran: Ran = unslant(*words, *(("--json", "numbers.json") if numbers else ()))
        seen.code, seen.text, seen.err = ran.code, ran.out, ran.err
        seen.files = sorted(str(p.relative_to(folder)) for p in {*folder.rglob("*")} - there)
        if numbers and ran.code == 0:
            seen.numbers = measured(json.loads((folder / "numbers.json").read_text()))
        return seen

    return invoke


def measured(found: Any) -> Any:
    """The numbers of a result without what only repeats the command's words."""
    if isinstance(found, dict):
        said = ("settings", "provenance", "cost", "spent", "meta", "training")
        return {key: measured(value) for key, value in found.items() if key not in said}
    return [measured(one) for one in found] if isinstance(found, list) else found


@cache
def files() -> Path:
    """Question files, tables of earlier runs, and whatever else rows name."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="unslant-options-"))
    rng = random.Random(1)
    things = "oak ash elm fir yew bay box fig gum ivy nut tea".split()

    def rows(n: int, name: str) -> list[dict[str, Any]]:
        return [
            {
                "id": f"{name}{i}", "question": f"Which {name} is number {i}?", "alt": f"What is {name} {i}?",
                "options": (own := rng.sample(things, 4)), "answer": own[rng.randrange(4)],
                "subject": f"s{i % 2}",
            }
            for i in range(n)
        ]  # fmt: skip

    def write(name: str, found: Sequence[Any]) -> None:
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in found))

    write("q.jsonl", rows(8, "tree"))
    write("many.jsonl", rows(24, "tree"))
    write("other.jsonl", rows(8, "bush"))
    write("numbered.jsonl", [{**row, "answer": str(1 + i % 3)} for i, row in enumerate(rows(8, "tree"))])
    write("bad.jsonl", [*rows(8, "tree"), {"question": "no options?"}])
    write("maths.jsonl", [{"question": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(2, 10)])
    answers = [[0], [], [1, 2], [3], [0], [], [1, 2], [2]]
    write("mixed.jsonl", [{**row, "answer": own} for row, own in zip(rows(8, "tree"), answers, strict=True)])
    letters = [["ABCD"[i] for i in own] for own in answers]
    write("lettered.jsonl", [{**row, "answer": own} for row, own in zip(rows(8, "tree"), letters, strict=True)])
    (folder / "confidences.csv").write_text(confidences())
    (folder / "accuracy.csv").write_text("model,subject,accuracy\na,s0,0.5\nb,s0,0.6\na,s1,0.7\nb,s1,0.4\n")
    (folder / "ranking.csv").write_text("model,score\nm,1\nother,2\nopenai/a,1\nopenai/other,2\n")
    return folder


def confidences() -> str:
    """Confidence of two judges in questions rephrased by each, and by nobody."""
    rows = ["question_id,subject,rephraser,judge,score"]
    for i in range(12):
        rows += [f"q{i},s{i % 2},{of},{judge},{1 + crc32(f'{i}{of}{judge}'.encode()) % 10}"
                 for of in ("", "a", "b") for judge in ("a", "b")]  # fmt: skip
    return "\n".join(rows) + "\n"


def typed(command: str, row: Row) -> tuple[list[str], list[str]]:
    """The words of the base, and of the option."""
    context = row.context.replace("{words}", IN_WORDS.get(command, "--elicit generate MODEL=words"))
    slots = SLOTS | OWN_SLOTS.get(command, {})
    if command in TRAINS and row.shows == "passed":
        slots |= {"MODEL": "fair", "AGAINST": ""}
    local = (
        row.words.partition(" ")[0] in table.MODEL
        and not row.context.startswith("MODEL=")
        and "--base" not in row.words
    )
    if local:
        slots |= {"MODEL": LOCAL.get(command, "fair"), "AGAINST": "prefers-a"}
    if row.words.startswith("--log"):
        slots |= dict.fromkeys(("MODEL", "QUESTIONS", "ORDERS", "SETTINGS", "METHODS", "AGAINST"), "")
    extra = []
    for word in context.split():
        name, sign, value = word.partition("=")
        if sign and name in slots:
            slots[name] = value
        else:
            extra.append(word)
    words = []
    for word in BASE[command].split():
        if not word.startswith("{"):
            words.append(word)
        elif word == "{-m}":
            words += ["-m", slots["MODEL"]] * bool(slots["MODEL"])
        elif word == "{-q}":
            words += ["-q", slots["QUESTIONS"]] * bool(slots["QUESTIONS"])
        elif value := slots[word[1:-1]]:
            if command == "study probe" and word == "{MODEL}" and "," not in value:
                value += f",{value}2"
            words += [NAMED[word[1:-1]], value] if word[1:-1] in NAMED else [value]
    return [*words, *extra], row.words.split()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        pytest.param(command, option, marks=() if quick and option not in SECONDS else pytest.mark.thorough)
        for command, option in ROWS
        if command not in PASSED
        for quick in [command == "audit" or option in {"--dtype", "--retries", *table.OWN.get(command, {})}]
    ],
)  # fmt: skip
def test_options_have_an_effect(command: str, option: str, run: Callable[..., Seen]) -> None:
    row = row_of(command, option)
    assert row
    words, own = typed(command, row)
    how = {"until_opened": option in table.MODEL or option == "--log", "numbers": row.shows == "numbers"}
    if row.shows == "refused":
        ran = run([*words, *own], **how)
        assert (ran.code, ran.opened) == (2, []), ran
        assert option in ran.err
        return
    if "base." in row.words:
        first, _ = typed(LOGGED.get(command, command) if option == "--log" else command, Row("", ""))
        kinds = ["responses"] * ("base.parquet" in row.words) + ["json"] * ("base.json" in row.words)
        how["earlier"] = [*first, *(word for kind in kinds for word in (f"--{kind}", f"base.{ENDS[kind]}"))]
    key = repr((words, how))
    base = BASES[key] = BASES.get(key) or run(words, **how)
    ran = run([*words, *own], **how)
    assert "would have no effect" not in ran.err, ran.err
    if row.shows not in ("code", "opened", "passed") and option not in ("--skip-bad", "--out"):
        assert (base.code, ran.code) == (0, 0), (base.err, ran.err)
    if row.shows == "numbers":
        assert base.numbers is not None
    assert getattr(base, row.shows) != getattr(ran, row.shows), (words, own, ran)
