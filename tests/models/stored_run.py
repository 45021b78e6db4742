"""A stored run in a process of its own, to be killed; also the module that the fork server loads beforehand."""

from __future__ import annotations

import multiprocessing
import multiprocessing.process
import random
import resource
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

import pandas  # noqa: F401  (pyarrow imports it when it first makes a table, which would take most of the run)
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.models.samples import QUESTIONS, SHOTS
from unslant.asking import ask
from unslant.auditing import audit_presentations
from unslant.errors import UnslantError
from unslant.models import stored
from unslant.models.hf.model import TransformersModel
from unslant.models.stored import StoredModel
from unslant.presentations import present
from unslant.prompts import Cloze, Counterfactual, Writer, load_template
from unslant.responses import Responses, Run
from unslant.store import Store

LABELS = tuple("ABCDEFGHIJ")


def load(folder: Path, engine: str = "tree", token_budget: int = 80) -> TransformersModel:
    """One thread: how a sum is shared out between threads decides its last bits."""
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return TransformersModel(
        model, AutoTokenizer.from_pretrained(folder), "zoo", engine=engine, token_budget=token_budget
    )


def study(model: StoredModel | TransformersModel, questions: int = len(QUESTIONS)) -> Responses:
    """Up to 900 prompts, those of one half behind two worked examples."""
    writer = Writer(load_template("plain"))
    shots = [present(shot, kind="shot") for shot in SHOTS]
    asked = [
        (question, presentation.with_shots(shots if i % 2 else []))
        for i, question in enumerate(QUESTIONS[:questions])
        for presentation in audit_presentations(question, "auto", LABELS)
    ]
    responses = ask(model, asked, [Cloze(writer), Counterfactual(writer)])
    return Responses(responses.table, Run(cost=replace(model.cost, seconds=0.0)))


def run(
    folder: Path, store: Path, out: Path, pause: float, engine: str, largest_file: int | None, ready: Connection
) -> None:
    """The run that is killed; says when its model is loaded, and when it is done, or why not."""
    stored._SECONDS_BETWEEN_WRITES = stored._MOST_SECONDS_BETWEEN_WRITES = pause
    model = load(folder, engine)
    ready.send("loaded")
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
    try:
        with Store(store) as opened:
            study(StoredModel(model, opened), questions=4).to_parquet(out)
    except UnslantError as error:
        ready.send(str(error))
    else:
        ready.send("done")


@dataclass
class Started:
    """A run under way."""

    process: multiprocessing.process.BaseProcess
    ready: Connection

    def finish(self) -> float:
        """Wait for the end; returns the seconds it took once the model was loaded."""
        assert self.ready.recv() == "loaded"
        begun = time.perf_counter()
        assert self.ready.recv() == "done"
        taken = time.perf_counter() - begun
        self.process.join()
        assert self.process.exitcode == 0
        return taken

    def failure(self) -> str:
        """Wait for the end; returns what was said about it."""
        assert self.ready.recv() == "loaded"
        message = self.ready.recv()
        self.process.join()
        return str(message)

    def kill_after(self, seconds: float) -> bool:
        """Kill it so long after its model is loaded; whether it was still there."""
        assert self.ready.recv() == "loaded"
        time.sleep(seconds)
        assert self.process.pid is not None
        self.process.kill()
        self.process.join()
        return self.process.exitcode == -9


def start(
    folder: Path,
    store: Path,
    out: Path,
    pause: float = 0.0,
    engine: str = "tree",
    largest_file: int | None = None,
) -> Started:
    """A run in a process of its own; the modules are loaded once, and then forked.

    Args:
        pause: seconds between writes to the store.
        largest_file: bytes that the process may write to any one file, like a quota.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.models.stored_run"])
    ours, theirs = context.Pipe()
    process = context.Process(target=run, args=(folder, store, out, pause, engine, largest_file, theirs))
    process.start()
    return Started(process, ours)


def progress(store: Path) -> tuple[int, int]:
    """Scores that are kept, and scores in all."""
    with closing(sqlite3.connect(store)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            return 0, 0  # killed before there were any tables
        kept = connection.execute("SELECT count(*) FROM scores").fetchone()[0]
        return kept, connection.execute("SELECT coalesce(sum(total), 0) FROM passes").fetchone()[0]


def kill_and_resume(folder: Path, work: Path, kills: int, seed: int, engine: str = "tree") -> list[float]:
    """Kill so many runs at random moments, and go on with each; every one must end as the unbroken one.

    Returns:
        The share of scores that was kept at each kill.
    """
    folder = Path(shutil.copytree(folder, work / "model"))
    start(folder, work / "first.sqlite3", work / "first.parquet", engine=engine).finish()
    taken = start(folder, work / "whole.sqlite3", work / "whole.parquet", engine=engine).finish()
    whole = (work / "whole.parquet").read_bytes()
    assert (work / "first.parquet").read_bytes() == whole
    rng = random.Random(seed)
    shares: list[float] = []
    for attempt in range(4 * kills):
        if len(shares) == kills:
            break
        store, out = work / f"{attempt}.sqlite3", work / f"{attempt}.parquet"
        pause = rng.choice([0.0, 0.02, 0.1])
        if not start(folder, store, out, pause, engine).kill_after(rng.uniform(0, taken)):
            continue
        kept, total = progress(store)
        shares.append(kept / total if total else 0.0)
        start(folder, store, out, pause, engine).finish()
        assert out.read_bytes() == whole, f"attempt {attempt}, killed with {kept} of {total} kept"
        store.unlink()
    assert len(shares) == kills
    return shares
