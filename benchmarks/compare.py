"""Compare ways to score all orders of multiple-choice questions, in one run, on the same prompts and weights.

    python -m benchmarks.compare                 20M and 100M parameters, about half an hour on two quiet cores
    python -m benchmarks.compare --sizes 500M    larger
    python -m benchmarks.compare --sizes 20M real --model .real/SmolLM2-135M-Instruct.Q4_1.gguf

Repeats of the contenders are interleaved, so that a busy moment of the machine falls on all of them. Writes
``results.json``, ``RESULTS.md`` and ``speedup.svg`` into ``--out``; what has come so far stands in
``results.partial.json``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.contenders import BaQCKV, Contender, Library, LmEval, cost_of
from benchmarks.measure import load, machine, measured
from benchmarks.random_models import SHAPES, random_model, tokenizer, write_gguf
from benchmarks.results import write_report
from benchmarks.scaling import overhead, scaling
from benchmarks.whole_audit import whole_audit
from benchmarks.workloads import WORKLOADS, Workload
from unslant import load_model

OURS = "unslant"
SLOW = ("plain", "lm-eval")
"""Contenders that run in the first repeats only: they take most of the time, and are not close."""
CLOCKS = {"wall": "seconds", "cpu": "cpu_seconds"}
REAL = "real"
"""A model of real weights, by its file."""
QUESTIONS = {"20M": 6, "100M": 2, "500M": 1, REAL: 2}
BUDGETS = (512, 2048, 8192)
BATCHES = (8, 32)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=[*SHAPES, REAL], default=["20M", "100M"])
    parser.add_argument("--model", help=f"folder or file of the model of size {REAL!r}; run in float32")
    parser.add_argument("--questions", type=int, help="questions per workload (default 6, 2, 1 and 2 by size)")
    parser.add_argument("--repeats", type=int, default=5, help="of the fast contenders (default 5)")
    parser.add_argument("--slow-repeats", type=int, default=2, help=f"of {' and '.join(SLOW)} (default 2)")
    parser.add_argument("--without", nargs="+", default=[], help="contenders to leave out, for example llama.cpp")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu on a machine that others are using, with --threads 1"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args(arguments)
    if REAL in options.sizes and not (options.model and Path(options.model).exists()):
        parser.error(f"--sizes {REAL} needs --model, a folder or GGUF file")
    options.out.mkdir(parents=True, exist_ok=True)  # now, and not when all has been run
    partial = options.out / "results.partial.json"
    partial.touch()
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)

    facts: dict[str, Any] = {"machine": machine(), "repeats": options.repeats, "slow_repeats": options.slow_repeats}
    facts |= {"clock": CLOCKS[options.clock], "cells": []}
    for size in options.sizes:
        for cell in _compare(size, options):
            facts["cells"].append(cell)
            _write(facts, partial)
    print("scaling, overhead and a whole audit ...", flush=True)
    model, words = random_model("20M"), tokenizer()
    facts |= {"scaling": scaling(model, words), "overhead": overhead(model, words)}
    _write(facts, partial)
    facts["whole_audit"] = whole_audit(model, words)
    facts["machine"]["load"] += f" to {load()}"
    _write(facts, partial)
    print(write_report(facts, options.out))
    partial.replace(options.out / "results.json")


def _write(facts: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def _loaded(size: str, options: argparse.Namespace) -> tuple[Any, Any]:
    """Model and tokenizer."""
    if size != REAL:
        return random_model(size), tokenizer()
    loaded = load_model(options.model, dtype="float32")
    return loaded.model, loaded.tokenizer


def _compare(size: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    model, words = _loaded(size, options)
    with tempfile.TemporaryDirectory() as folder:
        contenders = [c for c in _contenders(model, words, Path(folder), options) if c.name not in options.without]
        count = options.questions or QUESTIONS[size]
        for workload in WORKLOADS:
            yield _cell(size, workload, count, model, contenders, options)


def _contenders(model: Any, words: Any, folder: Path, options: argparse.Namespace) -> list[Contender]:
    prompts = WORKLOADS[0].make(1)
    plain = fastest([Library("plain", model, words, "plain", budget) for budget in BUDGETS], model, prompts)
    contenders: list[Contender] = [Library(OURS, model, words, "tree"), BaQCKV(model, words), plain]
    if "lm-eval" not in options.without:
        contenders.append(fastest([LmEval(model, words, batch) for batch in BATCHES], model, prompts))
    if "llama.cpp" not in options.without:
        from benchmarks.llamacpp import LlamaCpp

        write_gguf(model, words, folder / "model.gguf")
        contenders.append(LlamaCpp(folder / "model.gguf", words, options.threads))  # type: ignore[arg-type]
    for contender in contenders:  # the first run of anything is slower
        contender.prepare()
        contender.score(prompts)
    return contenders


def fastest(variants: Sequence[Contender], model: Any, prompts: Any) -> Contender:
    """The variant with the best of two runs."""

    def seconds(variant: Contender) -> float:
        times = []
        for _ in range(2):
            variant.prepare()
            with measured(model, cost_of(variant)) as run:
                variant.score(prompts)
            times.append(run.seconds)
        return min(times)

    return min(variants, key=seconds)


def _cell(
    size: str, workload: Workload, count: int, model: Any, contenders: Sequence[Contender], options: argparse.Namespace
) -> dict[str, Any]:
    """All contenders on one workload and one size."""
    prompts = workload.make(count)
    runs: dict[str, list[dict[str, Any]]] = {contender.name: [] for contender in contenders}
    scores: dict[str, Any] = {}
    for repeat in range(options.repeats):
        for contender in contenders if repeat % 2 else contenders[::-1]:
            if repeat >= options.slow_repeats and contender.name in SLOW:
                continue
            contender.prepare()
            with measured(model, cost_of(contender)) as run:
                found = contender.score(prompts)
            run.tokens = run.tokens or getattr(contender, "tokens", 0)
            runs[contender.name].append(asdict(run))
            if found is not None:
                scores[contender.name] = np.concatenate(found)
    apart = {
        name: float(np.abs(values - scores["plain"]).max()) for name, values in scores.items() if "plain" in scores
    }
    cell = {"size": size, "workload": workload.name, "questions": count, "prompts": len(prompts)}
    clock = CLOCKS[options.clock]
    medians = {name: float(np.median([run[clock] for run in done])) for name, done in runs.items()}
    print(f"{size:5} {workload.name:28} " + "  ".join(f"{n} {s:.2f} s" for n, s in medians.items()), flush=True)
    return cell | {"runs": runs, "apart": apart}


if __name__ == "__main__":
    main()
