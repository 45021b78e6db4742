"""Options that change nothing, ``--offline`` that asks, and commands whose server refuses almost everything."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.reliability import Options, Row
from tests.cli.option_trials import OPTIONS, ROWS, measured, without_effect
from tests.cli.options_elsewhere import TESTED
from tests.cli.test_offline import COMMANDS, answer
from tests.command_line import unslant
from tests.serving import Fault, FaultServer, completion

CONNECTED: list[object] = []
sys.addaudithook(lambda event, values: CONNECTED.append(values) if event == "socket.connect" else None)
SAID = ("headline", "offline", "requests", "notes", "caveats", "panels", "run", "recalled", "models")
"""Parts of a result that say where its numbers are from."""


def rows(options: Options) -> Iterator[Row]:
    """One row a class; the options are all of the command line's, or with fewer cases a sample of them."""
    if options.wants("switches", "every option has an effect"):
        yield every_option(options)
    for name, most, run in CLASSES:
        if options.wants("switches", name):
            row = Row("switches", name)
            for attempt in range(max(1, round(most * options.cases / 10_000))):
                row.attempts += 1
                with elsewhere():
                    if wrong := run(random.Random(f"{options.seed}/{name}/{attempt}")):
                        row.fail(f"attempt {attempt}: {wrong}")
            yield row


def every_option(options: Options) -> Row:
    """Every option of the command tree; one without a trial is a failure."""
    row = Row("switches", "every option has an effect", note=f"{len(TESTED)} more by a test of its own")
    found = [(command, option) for command, own in OPTIONS.items() for option in own if (command, option) not in TESTED]
    wanted = min(len(found), max(1, round(len(found) * options.cases / 10_000)))
    for command, option in random.Random(options.seed).sample(found, wanted):
        row.attempts += 1
        try:
            wrong = without_effect(command, option) if (command, option) in ROWS else "no trial"
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            row.fail(f"{command} {option}: {wrong[:300]}")
    return row


@contextlib.contextmanager
def elsewhere() -> Iterator[None]:
    """A fresh folder, with a store of its own and one recorded reply."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        patch.dict(os.environ, UNSLANT_HOME=folder),
    ):
        recorded = {"id": "1", "options": ["Rome", "Oslo"], "reply": "Lamps are lovely."}
        Path("recorded.jsonl").write_text(json.dumps(recorded) + "\n")
        yield


def typed(rng: random.Random, url: str) -> tuple[str, list[str]]:
    """A command on a server, with a random number and choice of questions; and the option that names its output."""
    name = rng.choice(list(COMMANDS))
    words = [word.replace("URL", url) for word in COMMANDS[name]]
    if "--limit" in words:
        words[words.index("--limit") + 1] = str(rng.randrange(4, 9))
        words += ["--seed", str(rng.randrange(99))] if name != "judge" else []
    if "--orders" in words:
        words[words.index("--orders") + 1] = rng.choice(("reverse", "cyclic", "3"))
    return ("--out" if name in ("debias", "judge") else "--json"), [*words, "--quiet"]


def offline(rng: random.Random) -> str:
    """Everything in the store: no connection, and the same numbers, with a server or without one."""
    with FaultServer(answer).running() as server:
        option, words = typed(rng, server.url)
        asked = unslant(*words, option, "asked.json")
        CONNECTED.clear()
        if there := rng.random() < 0.5:
            recalled = unslant(*words, "--offline", option, "recalled.json")
    if not there:
        recalled = unslant(*words, "--offline", option, "recalled.json")
    if asked.code or recalled.code or CONNECTED:
        return f"{words}: {asked.code}, {recalled.code}, {len(CONNECTED)} connections: {asked.err}{recalled.err}"
    same = numbers("asked.json") == numbers("recalled.json")
    return "" if same else f"{words}: other numbers"


def numbers(name: str) -> Any:
    """What a file holds, without what says where it is from."""

    def bare(found: Any) -> Any:
        if isinstance(found, dict):
            return {key: bare(value) for key, value in found.items() if key not in SAID}
        return [bare(one) for one in found] if isinstance(found, list) else found

    text = Path(name).read_text("utf-8")
    return bare(measured([json.loads(line) for line in text.splitlines()] if text[:2] != "{\n" else json.loads(text)))


def refused(rng: random.Random) -> str:
    """More than half of the replies are refused or empty after the first: exit code 3 and no verdict, or an error at
    once; a judge that is not used because it read its trial wrong has failed nothing."""
    share = rng.choice((1.0, 1.0, 0.95, 0.85))
    none: Sequence[Callable[[dict[str, Any]], Fault]] = (
        lambda _: Fault(500, "on fire"),
        lambda _: Fault(400, "no"),
        lambda _: Fault(body="<html>"),
        lambda _: Fault(body={"choices": []}),
        lambda _: Fault(body={}),
        lambda _: Fault(body=completion("")),
    )
    how = rng.choice(none)
    count, bad = iter(range(10**6)), []

    def some(request: dict[str, Any]) -> Fault:
        bad.append(next(count) > 1 and rng.random() < share)
        return how(request) if bad[-1] else answer(request)

    with FaultServer(some).running() as server:
        option, words = typed(rng, server.url)
        ran = unslant(*words, "--retries", "0", option, "found.json")
    if 2 * sum(bad) <= len(bad):
        return "" if ran.code in (0, 2, 3) else f"{words}: exit {ran.code}: {ran.err}"
    if ran.code == 2 and not Path("found.json").exists():
        return ""
    if ran.code == 0 and "is not used: it read" in ran.err:
        return ""
    if ran.code != 3:
        return f"{words}: {sum(bad)} of {len(bad)} refused, exit {ran.code}: {ran.err}"
    headline = json.loads(Path("found.json").read_text()).get("headline", "") if option == "--json" else ""
    return f"{words}: headline: {headline}" if "chance" in headline else ""


CLASSES = (("--offline asks nothing", 60, offline), ("every or most replies refused, or empty", 100, refused))
