"""A real model, from the command line, on real questions: one table of its numbers with intervals.

    make real                                      # fetches the model, runs all twice, writes docs/real-model.md
    python -m benchmarks.real_model MODEL.gguf     # prints the table

Every number comes from a command that anybody can type; the second run draws other questions. Scores are stored, so
that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Floats = NDArray[np.float64]
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
QUESTIONS = {"arc": ("arc_challenge_test.jsonl", "arc_challenge"), "mmlu": ("mmlu_test.jsonl.gz", "mmlu")}
"""Name -> file beside the repository, and the recipe that is used where there is none."""
QUICK = 8
BEGIN, END = "<!-- real: begin -->", "<!-- real: end -->"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        low, high: 95 % interval; nan where there is none.
    """

    part: str
    what: str
    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0

    @classmethod
    def of(cls, part: str, what: str, estimate: Mapping[str, Any]) -> Row:
        """From an estimate in a command's JSON."""
        numbers = {key: math.nan if estimate[key] is None else float(estimate[key]) for key in ("value", "low", "high")}
        return cls(part, what, n=int(estimate["n"]), **numbers)

    @property
    def key(self) -> tuple[str, str]:
        return self.part, self.what


@dataclass
class Run:
    """One run of all parts.

    Attributes:
        limit: questions of each set; the parts that generate take a third of them.
        sets: name -> what to give as QUESTIONS.
    """

    model: str
    folder: Path
    sets: Mapping[str, str]
    limit: int
    seed: int
    store: Path
    commands: list[str] = field(default_factory=list)

    def json(self, *words: str, only: int | None = None) -> dict[str, Any]:
        """What a command writes as JSON."""
        out = self.folder / f"{len(self.commands)}.json"
        more = ["--limit", str(only or self.limit), "--seed", str(self.seed), "--json", str(out), "--quiet"]
        command = ["unslant", *words, *more]
        self.commands.append(" ".join(command[:-3]))
        print("+", self.commands[-1], flush=True)
        subprocess.run([sys.executable, "-c", "from unslant.cli import main; main()", *command[1:]], check=True)
        found: dict[str, Any] = json.loads(out.read_text("utf-8"))
        return found


MEANS = {
    "accuracy": "accuracy, as reported",
    "expected_accuracy": "accuracy, mean over orders",
    "robust_accuracy": "accuracy, right in every order",
    "vote_accuracy": "accuracy, voted",
    "pbm": "PBM",
    "fr": "FR",
    "label_mass": "label mass",
}


def audits(run: Run) -> Iterator[Row]:
    for name, questions in run.sets.items():
        for how, flags in {"": (), ", chat": ("--chat",), ", 5 shots": ("--shots", "5")}.items():
            found = run.json("audit", run.model, questions, *flags, "--store", str(run.store))
            for key, what in MEANS.items():
                yield Row.of(f"audit of {name}{how}", what, found["metrics"]["means"][key])


def debiasing(run: Run) -> Iterator[Row]:
    methods = "vote,adaptive,adaptive-fast,pride,set-based,lora-1"
    found = run.json(
        "study", "debias", run.model, run.sets["arc"], "--methods", methods, only=2 * run.limit
    )  # half of them train
    for entry in found["entries"]:
        part = "debiasing on arc"
        yield Row.of(part, f"{entry['method']}: accuracy", entry["measures"]["accuracy"])
        yield Row.of(part, f"{entry['method']}: PBM", entry["measures"]["pbm"])


def base_rates(run: Run) -> Iterator[Row]:
    found = run.json("study", "base-rate", run.model, run.sets["arc"], "--store", str(run.store))
    for name, elicited in found["elicitations"].items():
        rates = elicited["base_rates"]["4"]
        for label, share in zip(rates["labels"], rates["by_label"], strict=True):
            yield Row.of(f"base rates on arc, {name}", f"probability of {label} without content", share)
        yield Row("base rates on arc, " + name, "distance from uniform: p", rates["label_p"], n=rates["n_orders"])


def engine(run: Run) -> Iterator[Row]:
    """The prefix tree against each prompt run alone, and bfloat16 against float32."""
    from unslant import load_model, load_questions
    from unslant.presentations import orders_for, present
    from unslant.prompts import Cloze, Prompt, Writer, load_template

    def scores(prompts: Sequence[Prompt], dtype: str, engine: str) -> Floats:
        model = load_model(run.model, dtype=dtype, engine=engine)
        found = {scored.index: scored.logprobs for scored in model.score(prompts)}
        return np.concatenate([found[i] for i in range(len(prompts))])

    asked = load_questions(run.sets["arc"], limit=QUICK, seed=run.seed)
    cloze = Cloze(Writer(load_template("plain")))
    prompts = [
        prompt for question in asked for order in orders_for(question, "6")
        for prompt in cloze.prompts(present(question, order))
    ]  # fmt: skip
    exact = scores(prompts, "float32", "plain")
    for dtype, engine in (("float32", "tree"), ("bfloat16", "plain"), ("bfloat16", "tree")):
        apart = np.abs(scores(prompts, dtype, engine) - exact)
        what = f"{engine} in {dtype} against plain in float32: log-probabilities, "
        yield Row("engine", what + "mean difference", float(apart.mean()), n=len(prompts))
        yield Row("engine", what + "largest difference", float(apart.max()), n=len(prompts))


def served(run: Run) -> Iterator[Row]:
    """llama.cpp computes with the quantized weights, transformers with the same weights unpacked."""
    from unslant import Responses

    tables = []
    with llama_server(run) as address:
        for model in (run.model, f"{address}#real"):
            out = run.folder / f"served-{len(tables)}.parquet"
            run.json("audit", model, run.sets["arc"], "--orders", "reverse", "--no-store", "--responses", str(out))
            tables.append(
                {(r.question_id, r.kind, r.labels, r.contents): r for r in Responses.from_parquet(out).rows()}
            )
    local, remote = tables
    both = [
        (softmax(local[key].logprobs), softmax(remote[key].logprobs))
        for key in local
        if local[key].logprobs is not None and remote[key].status == "ok"
    ]
    same = [float(a.argmax() == b.argmax()) for a, b in both]
    apart = [float(np.abs(a - b).max()) for a, b in both]
    part = "llama.cpp against transformers on arc"
    yield Row(part, "same answer", float(np.mean(same)), n=len(both))
    yield Row(part, "mean over pages of the largest difference of a probability", float(np.mean(apart)), n=len(both))
    yield Row(part, "pages whose best label was not returned", float(len(local) - len(both)), n=len(local))


def words(run: Run) -> Iterator[Row]:
    """Replies, through a server of the same file."""
    third = max(4, run.limit // 3)
    with llama_server(run) as address:
        model = f"{address}#real"
        store = ("--store", str(run.store))
        found = run.json(
            "audit", model, run.sets["arc"], "--elicit", "generate", "--max-tokens", "60", *store, only=third
        )
        for key in ("accuracy", "expected_accuracy", "robust_accuracy", "vote_accuracy"):
            yield Row.of("audit in words of arc", MEANS[key], found["metrics"]["means"][key])
        more = ("--generate", "--runs", "2", "--max-tokens", "60", *store)
        found = run.json("study", "unbiased", model, run.sets["arc"], *more, only=third)["metrics"]
        for key in ("vanilla", "ours", "drop"):
            yield Row.of("unbiased evaluation of arc, in words", key, found[key])
        found = run.json("study", "instruction-boundary", model, "--max-tokens", "60", *store, only=8)
        yield from boundary(found)


def boundary(found: Mapping[str, Any]) -> Iterator[Row]:
    for setting in found["settings"]:
        if setting["kind"] == "choice":
            yield Row.of("instruction boundary, embedded set", f"{setting['setting']}: accuracy", setting["accuracy"])


@contextmanager
def llama_server(run: Run) -> Iterator[str]:
    """A llama.cpp server of the file, by xllamacpp."""
    from tests.serving import llama_server as serve

    with serve(Path(run.model), run.folder / "server.log") as address:
        yield address


PARTS: dict[str, Callable[[Run], Iterator[Row]]] = {
    "engine": engine,
    "audits": audits,
    "debias": debiasing,
    "base-rates": base_rates,
    "served": served,
    "words": words,
}


def table(first: Sequence[Row], second: Sequence[Row]) -> str:
    """Markdown, a line for each number of the first run, with that of the second run beside it."""
    others = {row.key: row for row in second}
    lines = ["| part | number | first run | N | other questions | |", "|---|---|---:|---:|---:|---|"]
    for row in first:
        other = others.get(row.key)
        agree = "" if other is None or math.isnan(row.low + other.low) else "yes" if overlap(row, other) else "**no**"
        lines.append(
            f"| {row.part} | {row.what} | {shown(row)} | {row.n:,} | {shown(other) if other else ''} | {agree} |"
        )
    return "\n".join(lines)


def merged(old: str, new: str) -> str:
    """The new table, with the lines of those parts of the old one that were not run again, in their places."""
    parts: dict[str, list[str]] = {}
    for rows in (old, new):
        lines: dict[str, list[str]] = {}
        for line in rows.strip().splitlines():
            lines.setdefault(line.split("|")[1].strip(), []).append(line)
        parts |= lines
    return "\n".join(line for lines in parts.values() for line in lines)


def overlap(one: Row, other: Row) -> bool:
    """Whether the intervals of two runs meet."""
    return one.low <= other.high and other.low <= one.high


def shown(row: Row) -> str:
    interval = "" if math.isnan(row.low) else f" ({row.low:.3f} to {row.high:.3f})"
    rounded_off = abs(row.value) < 1e-12
    return (f"{row.value:.1e}" if not rounded_off and abs(row.value) < 5e-4 else f"{row.value:.3f}") + interval


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_model", description=__doc__)
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("parts", nargs="*", help=f"which to run: {', '.join(PARTS)}; by default all")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of question files; else recipes of the Hub")
    parser.add_argument("--limit", type=int, default=60, help="questions of each set")
    parser.add_argument("--twice", action="store_true", help="run again with other questions")
    parser.add_argument(
        "--out", type=Path, help="Markdown file whose table, between its two marks, gets the lines of what is run"
    )
    given = parser.parse_args(arguments)
    sets = {
        name: str(given.data / file) if (given.data / file).is_file() else recipe
        for name, (file, recipe) in QUESTIONS.items()
    }
    runs = []
    store = Path(given.model).with_suffix(".store")
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1 + given.twice):
            run = Run(given.model, Path(folder), sets, given.limit, seed, store)
            rows = []
            for name in given.parts or PARTS:
                for row in PARTS[name](run):
                    print(f"{row.part}: {row.what} {shown(row)}", flush=True)
                    rows.append(row)
            runs.append(rows)
    written = table(runs[0], runs[1] if given.twice else ())
    print(written)
    if given.out:
        before, _, rest = given.out.read_text("utf-8").partition(BEGIN)
        old, _, after = rest.partition(END)
        given.out.write_text(f"{before}{BEGIN}\n{merged(old, written)}\n{END}{after}", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
