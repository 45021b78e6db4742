"""What shards cost beside the scoring: ``python -m benchmarks.shards [--questions N ...] [--shards N]``.

Questions of four options in 24 orders, audited (27 presentations each). Every step runs in a process of its own, whose
processor time and largest memory are told; of the memory, what Python and the libraries take before any question is
there comes first. Tables to be merged hold made-up scores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unslant.auditing import audit_presentations
from unslant.auditing.study import audit
from unslant.experiment import ShardOptions
from unslant.models.base import ModelInfo, Scored, ScoringModel
from unslant.prompts import Prompt
from unslant.questions import Question, QuestionSet
from unslant.responses import Responses
from unslant.responses.run import Run
from unslant.scale.merge import merge
from unslant.scale.plan import Plan, Shard, ShardShare, planned

LABELS = tuple("ABCD")
EACH = 27
"""Presentations of a question: 24 orders, and three with rearranged labels."""


def questions(n: int) -> QuestionSet[Question]:
    """Questions of about 350 characters, in 57 subjects, as MMLU has them."""
    rng = np.random.default_rng(0)
    words = [f"{stem}{end}" for stem in ("ar", "bel", "cor", "dim", "ess") for end in ("ance", "ing", "o", "um", "yl")]
    lines = rng.integers(0, len(words), (n, 60))

    def text(line: Any) -> str:
        return " ".join(words[i] for i in line)

    return QuestionSet.of(
        Question(
            f"set/test/{i}",
            f"{text(line[:36])}?",
            tuple(text(line[36 + 6 * k : 42 + 6 * k]) for k in range(4)),
            frozenset({i % 4}),
            subject=f"subject {i * 57 // n}",
        )
        for i, line in enumerate(lines)
    )


class Instant(ScoringModel):
    """A model that takes no time."""

    def __init__(self) -> None:
        super().__init__(ModelInfo(name="instant", identity={"model": "instant"}))

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        scores = np.log([0.4, 0.3, 0.2, 0.1])
        for i in range(len(prompts)):
            yield Scored(i, scores)


def load(folder: Path, n: int, of: int) -> None:
    """The questions alone."""
    questions(n)


def plan_and_cut(folder: Path, n: int, of: int) -> None:
    """The plan of all, and the presentations of one shard."""
    found = questions(n)

    def asked() -> Iterator[Any]:
        return ((question, one) for question in found for one in audit_presentations(question, "auto", LABELS))

    share = ShardShare.of(Shard(of // 2, of), found, *planned("audit", found, {}, ["cloze"], asked()))
    assert sum(1 for _ in share.cut(asked())) == share.presentations


def score_one(folder: Path, n: int, of: int) -> None:
    """One shard from plan to table, by a model that takes no time."""
    found = audit.study.responses(Instant(), questions(n), shards=ShardOptions(shard=f"{of // 2}/{of}"))
    found.to_parquet(folder / "one.parquet")


def write_all(folder: Path, n: int, of: int) -> None:
    """The tables of all shards, with made-up scores (not a step of a run)."""
    found = questions(n)
    pattern = audit.study.responses(Instant(), QuestionSet.of(found[:1])).where(question_id=found[0].id).table
    contents = np.array(pattern["contents"].to_pylist())
    rng, bounds = np.random.default_rng(1), [n * k // of for k in range(of + 1)]
    plan = Plan(
        unslant="", study="audit", questions=found.digest, n_questions=n, settings={}, prompts="", ways=1,
        presentations="", n_presentations=EACH * n, worked_examples="",
    )  # fmt: skip
    for k in range(of):
        own = range(bounds[k], bounds[k + 1])
        rows = EACH * len(own)
        table = pattern.take(np.tile(np.arange(EACH), len(own)))
        logprobs = np.log(rng.dirichlet([1.0] * 4, rows))
        chosen = np.tile(contents, (len(own), 1))[np.arange(rows), logprobs.argmax(1)]
        lists = {
            "logprobs": pa.ListArray.from_arrays(np.arange(0, 4 * rows + 1, 4, np.int32), logprobs.ravel()),
            "chosen": pa.ListArray.from_arrays(np.arange(rows + 1, dtype=np.int32), chosen.astype(np.int16)),
            "question_id": pa.array(np.repeat([found[i].id for i in own], EACH)),
        }
        for name, column in lists.items():
            field = table.schema.field(name)
            table = table.set_column(table.schema.get_field_index(name), field, column.cast(field.type))
        runs = [[EACH * own.start, rows]]
        about = {"index": k + 1, "of": of, "questions": len(own), "runs": runs, "plan": plan.model_dump()}
        run = Run.of({"study": "audit", "model": "instant", "shard": about | {"digest": plan.digest}})
        Responses(table, run, found[own.start : own.stop]).to_parquet(folder / f"s{Shard(k + 1, of).index}.parquet")


def merge_all(folder: Path, n: int, of: int) -> None:
    """All tables merged."""
    assert merge(folder / "merged.parquet", sorted(folder.glob("s*.parquet"))) == EACH * n


STEPS: dict[str, Callable[[Path, int, int], None]] = {
    "questions in memory": load,
    "plan and cut": plan_and_cut,
    "one shard, from plan to table": score_one,
    "": write_all,
    "merge": merge_all,
}


def _measured(step: str, folder: Path, n: int, of: int, tell: Any) -> None:
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    STEPS[step](folder, n, of)
    spent = time.process_time() - started
    tell.send((spent, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--shards", type=int, default=16)
    arguments = parser.parse_args()
    kib = 1024 if sys.platform != "darwin" else 1
    processes = multiprocessing.get_context("spawn")
    print("| questions | rows | step | processor time | per million rows | memory before | at most |")
    print("|---|---|---|---|---|---|---|")
    for n in arguments.questions:
        with tempfile.TemporaryDirectory() as name:
            for step in STEPS:
                ours, theirs = processes.Pipe()
                process = processes.Process(target=_measured, args=(step, Path(name), n, arguments.shards, theirs))
                process.start()
                theirs.close()
                seconds, before, most = ours.recv()
                process.join()
                each = f"{seconds / (EACH * n / 1e6):.1f} s" if step not in ("", "questions in memory") else ""
                cells = (f"{n:,}", f"{EACH * n:,}", step, f"{seconds:.1f} s", each)
                memory = (f"{before * kib / 1e6:,.0f} MB", f"{most * kib / 1e6:,.0f} MB")
                if step:
                    print("|", " | ".join((*cells, *memory)), "|", flush=True)


if __name__ == "__main__":
    main()
