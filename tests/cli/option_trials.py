"""Trials of options: a command on stand-ins without and with the option, and what differs.

Models are stand-ins whose scores and replies follow from the prompt alone: any change of a prompt changes the numbers.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
from cyclopts import App

from tests.cli import options_elsewhere as elsewhere
from tests.cli import options_table as table
from tests.cli.options_table import Row
from tests.command_line import Ran, unslant
from tests.fakes import FakeChat
from unslant.cli import app
from unslant.errors import ModelError
from unslant.models import open as models_open
from unslant.models.base import ModelInfo, Scored, ScoringModel
from unslant.models.chat import Reply
from unslant.models.options import GenerateOptions
from unslant.reports.numbers import numbers as numbers_of
from unslant.store import Store
from unslant.studies.unbiased.annotation import sheet, write_sheet
from unslant.studies.unbiased.probe.study import CONFIDENCE_CUE

BASES: dict[Any, Seen] = {}
"""What each command without the option did: many rows have the same."""
KEPT = tempfile.TemporaryDirectory(prefix="unslant-options-")
TASKS = Path(__file__).parents[1] / "plugins" / "lm_eval_tasks"
PLAIN = (".jsonl", ".csv", ".safetensors")
SETTINGS = ("provenance.json",)
UNSURE = "openai/unsure"
"""A model of whose replies a third hold no answer."""
RANKED = ("m", "other", "third", "openai/a", "openai/other", "openai/third")
HTTP, OTHER = "http://127.0.0.1:9/v1#m", "http://127.0.0.1:9/v1#other"
BASE = {
    "audit": "audit {MODEL} {QUESTIONS} {ORDERS} {STORE}",
    "leaderboard": "leaderboard {-m} {-q} {ORDERS} {STORE}",
    "debias": "debias {MODEL} {QUESTIONS} {OUT} {STORE}",
    "study debias": "study debias {MODEL} {QUESTIONS} {METHODS} {STORE}",
    "study base-rate": "study base-rate {MODEL} {QUESTIONS} {STORE}",
    "study unbiased": "study unbiased {MODEL} {QUESTIONS} {STORE}",
    "study contamination": "study contamination {MODEL} {QUESTIONS} {AGAINST} {STORE}",
    "study judge": "study judge {MODEL} {QUESTIONS} {STORE}",
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
    "study judge": {"QUESTIONS": "pairs.jsonl"},
    "study probe": {"MODEL": "inspect:openai/a,inspect:openai/b"},
    "study instruction-boundary": {"MODEL": "inspect:openai/a", "QUESTIONS": "embedded"},
}
NAMED = {"ORDERS": "--orders", "METHODS": "--methods", "SETTINGS": "--settings", "AGAINST": "--against", "OUT": "--out"}
IN_WORDS = {"study unbiased": "--generate MODEL=words", "study probe": "", "study instruction-boundary": ""}
LOGGED = {"leaderboard": "audit", "debias": "audit", "study contamination": "study unbiased"}
"""Command -> the one whose responses its ``--log`` reads."""
ENDS = {"responses": "parquet", "json": "json"}
LOCAL = {"study probe": "fair,prefers-a", "study instruction-boundary": "words"}


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
    if command in elsewhere.OTHERS:
        return elsewhere.OTHERS[command].rows.get(option)
    models = table.IN_WORDS if command in LOCAL else table.MODEL
    groups = (
        table.OWN.get(command, {}), table.LOAD, table.REPLIES, table.OUTPUTS, table.STORE, table.SHARDS, models,
    )  # fmt: skip
    return next((group[option] for group in groups if option in group), None)


ROWS = [(command, option) for command in OPTIONS for option in OPTIONS[command] if row_of(command, option)]


class Opened(ModelError):
    """A model would be opened now, which is all that is asked."""


@dataclass
class Seen:
    """What an invocation did."""

    opened: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    numbers: Any = None
    code: int = 0
    text: str = ""
    err: str = ""


class Scorer(ScoringModel):
    """Scores that follow from the prompt alone."""

    def __init__(self, name: str, seen: Seen, remote: bool = False) -> None:
        super().__init__(ModelInfo(name=name, identity={"model": name}, remote=remote))
        self.seen = seen

    def score(self, prompts: Sequence[Any]) -> Iterator[Scored]:
        for index, prompt in enumerate(prompts):
            self.seen.prompts.append(repr(prompt))
            self.cost.prompts += 1
            asked = f"{self.name}{prompt.text}{prompt.messages}"
            weights = np.array([1.0 + crc32(f"{asked}{text}".encode()) % 97 for text in prompt.continuations])
            yield Scored(index, np.log(weights / weights.sum() * 0.9))


class Talker(FakeChat):
    """Replies that follow from the prompt alone."""

    def __init__(self, name: str, seen: Seen, generate: Any = None) -> None:
        super().__init__(name)
        self.seen = seen

    def at(self, generate: GenerateOptions) -> Talker:
        self.seen.opened.append(repr(generate))
        return self

    def replies_to(self, prompts: Sequence[Any]) -> Iterator[Reply]:
        for index, prompt in enumerate(prompts):
            self.seen.prompts.append(repr(prompt))
            lines = re.findall(r"(?m)^([A-Z1-9])\. (.*)$", repr(prompt).replace("\\n", "\n")) or [("A", "")]
            label = max(lines, key=lambda line: crc32(line[1].encode()))[0]
            text = str(1 + crc32(repr(prompt).encode()) % 10) if CONFIDENCE_CUE in repr(prompt) else f"Answer: {label}"
            if self.name == UNSURE and crc32(repr(prompt).encode()) % 3 == 0:
                text = "Well."
            yield Reply(index, text, input_tokens=1, output_tokens=1)


@contextlib.contextmanager
def standing_in(seen: Seen, files: Path, *, until_opened: bool = False, real: bool = False) -> Iterator[Path]:
    """A copy of files, always in the same folder, in which models are stand-ins that note what they are asked."""

    def loader(self: Any, to: str, options: Any) -> Any:
        def load(name: str, *arguments: Any) -> Any:
            seen.opened.append(repr((to, name, arguments)))
            if until_opened:
                raise Opened("opened")
            if real:
                return backend_loader(self, to, options)(name, *arguments)
            return Talker(name, seen) if to == "generate" else Scorer(name, seen, bool(options.base_url))

        return load

    def passes(*arguments: Any, **named: Any) -> Any:
        seen.passed.append(repr((arguments[2:], named)))
        raise Opened("passed")

    backend_loader = models_open.Backend.loader
    folder = Path(shutil.copytree(files, Path(KEPT.name, "work")))
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, UNSLANT_HOME=str(folder / "home")),
        patch.object(models_open.Backend, "loader", loader),
        patch("unslant.studies.unbiased.contamination.study.fine_tune", passes),
        contextlib.nullcontext() if real else patch("unslant.models.hf.loading.check_loads"),
    ):
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def run(
    words: Sequence[str],
    *,
    earlier: tuple[tuple[str, ...], ...] = (),
    until_opened: bool = False,
    numbers: bool = False,
    real: bool = False,
) -> Seen:
    """Run a command on stand-ins, or real models, in a fresh folder with the files that rows name."""
    seen = Seen()
    with standing_in(seen, files_after(earlier, real), until_opened=until_opened, real=real) as folder:
        if "{RUN}" in words:
            with Store(folder / "own.sqlite3", read_only=True) as opened:
                words = [opened.runs.all()[0].id if word == "{RUN}" else word for word in words]
        there = {*folder.rglob("*")}
        ran: Ran = unslant(*words, *(("--json", "numbers.json") if numbers else ()))
        seen.code, seen.text, seen.err = ran.code, ran.out, ran.err
        made_now = sorted({*folder.rglob("*")} - there)
        seen.files = [str(path.relative_to(folder)) for path in made_now]
        seen.contents = [path.read_bytes() for path in made_now if path.suffix in PLAIN and path.name not in SETTINGS]
        if numbers and ran.code == 0:
            seen.numbers = measured(json.loads((folder / "numbers.json").read_text()))
    return seen


@cache
def files_after(earlier: tuple[tuple[str, ...], ...], real: bool) -> Path:
    """The files that rows name, and those that earlier commands left: many rows have the same ones."""
    if not earlier:
        return files()
    with standing_in(Seen(), files(), real=real) as folder:
        for words in earlier:
            ran = unslant(*words)
            assert ran.code == 0, (words, ran.err)
        return Path(shutil.copytree(folder, tempfile.mkdtemp(dir=KEPT.name), dirs_exist_ok=True))


def measured(found: Any) -> Any:
    """The numbers of a result without what only repeats the command's words."""
    if isinstance(found, dict):
        said = ("settings", "provenance", "cost", "spent", "meta", "training")
        return {key: measured(value) for key, value in found.items() if key not in said}
    return [measured(one) for one in found] if isinstance(found, list) else found


@cache
def files() -> Path:
    """Question files, tables of earlier runs, and everything else that rows name."""
    folder = Path(tempfile.mkdtemp(dir=KEPT.name))
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
    pairs = [
        {"id": row["id"], "question": row["question"], "alt": row["alt"], "response_A": row["options"][0],
         "response_B": row["options"][1], "label": "AB"[i % 2]}
        for i, row in enumerate(rows(8, "tree"))
    ]  # fmt: skip
    write("pairs.jsonl", pairs)
    write("bad_pairs.jsonl", [*pairs, {"question": "no answers?"}])
    write("other.jsonl", rows(8, "bush"))
    write("more.jsonl", rows(24, "bush"))
    write("numbered.jsonl", [{**row, "answer": str(1 + i % 3)} for i, row in enumerate(rows(8, "tree"))])
    write("last.jsonl", [{**row, "answer": str(1 + i % 4)} for i, row in enumerate(rows(8, "tree"))])
    write("bad.jsonl", [*rows(8, "tree"), {"question": "no options?"}])
    write("maths.jsonl", [{"question": f"What is {i} + {i}?", "answer": str(2 * i)} for i in range(2, 10)])
    answers = [[0], [], [1, 2], [3], [0], [], [1, 2], [2]]
    write("mixed.jsonl", [{**row, "answer": own} for row, own in zip(rows(8, "tree"), answers, strict=True)])
    letters = [["ABCD"[i] for i in own] for own in answers]
    write("lettered.jsonl", [{**row, "answer": own} for row, own in zip(rows(8, "tree"), letters, strict=True)])
    (folder / "confidences.csv").write_text(confidences())
    (folder / "accuracy.csv").write_text("model,subject,accuracy\na,s0,0.5\nb,s0,0.6\na,s1,0.7\nb,s1,0.4\n")
    (folder / "ranking.csv").write_text("model,rank\n" + "".join(f"{name},{i}\n" for i, name in enumerate(RANKED, 1)))
    recorded = {"options": things[:4], "reply": "Answer: B"}
    write(
        "recorded.jsonl", [{"id": str(i), **recorded} for i in range(2)] + [{"id": "x", **recorded, "reply": "Well."}]
    )
    asked = sheet(folder / "q.jsonl", 6)
    for name, said in (("ann", "yes"), ("ann2", "no"), ("bob", "yes")):
        marked = [{**row, "right": said if i % 3 else "yes"} for i, row in enumerate(asked)]
        write_sheet(marked, folder / f"{name}.csv")
    shutil.copytree(TASKS, folder / "tasks", ignore=shutil.ignore_patterns("__pycache__"))
    four = [{**row, "answer": row["options"].index(row["answer"])} for row in rows(6, "bush")]
    write("four.jsonl", four)
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
    if command in elsewhere.OTHERS:
        return (row.context or elsewhere.OTHERS[command].base).split(), row.words.split()
    context = row.context.replace("{words}", IN_WORDS.get(command, "--elicit generate MODEL=words"))
    slots = SLOTS | OWN_SLOTS.get(command, {})
    if command == "study contamination" and row.shows == "passed":
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
            words += ["--sets", slots["QUESTIONS"]] * bool(slots["QUESTIONS"])
        elif value := slots[word[1:-1]]:
            if command == "study probe" and word == "{MODEL}" and "," not in value:
                value += f",{value}2"
            words += [NAMED[word[1:-1]], value] if word[1:-1] in NAMED else [value]
    return [*words, *extra], row.words.split()


def metric_of(seen: Seen) -> str:
    """The path of some number of a result, for ``--fail-if``."""
    return next(
        ".".join(path)
        for path, parts in numbers_of(seen.numbers, ("loading", "identity", "by_subject", "n_options"))
        if parts.get("value") is not None
    )


def without_effect(command: str, option: str) -> str:
    """What is wrong with an option; empty if it changes what its row says."""
    row = row_of(command, option)
    assert row
    words, own = typed(command, row)
    other = elsewhere.OTHERS.get(command)
    how: dict[str, Any] = {
        "until_opened": option in table.MODEL or option == "--log",
        "numbers": row.shows == "numbers" or option == "--fail-if",
        "earlier": tuple(tuple(one.split()) for one in other.earlier) if other else (),
        "real": bool(other and other.real),
    }
    if "base." in row.words and not other:
        first, _ = typed(LOGGED.get(command, command) if option == "--log" else command, Row("", ""))
        kinds = ["responses"] * ("base.parquet" in row.words) + ["json"] * ("base.json" in row.words)
        how["earlier"] = ((*first, *(word for kind in kinds for word in (f"--{kind}", f"base.{ENDS[kind]}"))),)
    key = repr((words, how))
    base = BASES[key] = BASES.get(key) or run(words, **how)
    if option in words:  # its other value, which counts
        at = words.index(option)
        words = [*words[:at], *words[at + 2 :]]
    if option == "--fail-if":
        own = [word.replace("{metric}", metric_of(base)) for word in own]
    ran = run([*words, *own], **how)
    if row.shows == "refused":
        refused = (base.code, ran.code) == (0, 2) and f"{option} " in ran.err and "no effect here" in ran.err
        return "" if refused else f"{words} {own} is not refused: {ran}"
    if "no effect here" in ran.err:
        return ran.err
    if option == "--fail-if":
        return "" if (base.code, ran.code) == (0, 4) else f"{own}: {ran}"
    if row.shows == "code":
        done = how["until_opened"] or 0 in (base.code, ran.code)
        return "" if done and base.code != ran.code else f"{base}: {ran}"
    if row.shows not in ("opened", "passed") and option != "--out" and "--responses" not in own and base.code != 0:
        return f"{words}: {base}"
    if row.shows not in ("opened", "passed") and ran.code != 0:
        return f"{words} {own}: {ran}"
    if option in table.MODEL and not ran.opened:
        return f"{words} {own} opens no model: {ran}"
    return "" if getattr(base, row.shows) != getattr(ran, row.shows) else f"{words} {own} changes nothing: {ran}"
