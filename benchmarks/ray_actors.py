"""Copies of a model on Ray: wall time with one and two actors, and what a simulation says of up to 64.

    python -m benchmarks.ray_actors            # measures, writes benchmarks/RAY.md
    python -m benchmarks.ray_actors --quick    # a look, nothing written

One process and actors score the same prompts in turns, in one run; loading and starting are not counted. The simulation
takes the measured processor seconds of single questions, shares them out as the pool does (the same function), and lets
all workers wait for the last one at the end of each portion.
"""

from __future__ import annotations

import argparse
import heapq
import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line has it; read when torch is imported

import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil

from benchmarks.random_models import random_model, tokenizer
from benchmarks.scaling import prompts_of
from unslant.asking import AT_ONCE, at_once
from unslant.models import Model, ModelInfo
from unslant.models.open import open_model
from unslant.prompts import Prompt, by_question
from unslant.scale.ray import cut

OUT = Path(__file__).parent / "RAY.md"
WORKERS = (1, 2, 4, 8, 16, 32, 64)
MMLU = 14_042
"""Questions of MMLU's test set."""
ORDERS = 24
HANDOVER = 0.05
"""Seconds from a unit's end to the next one's beginning; assumed."""


def seconds(model: Any, prompts: Sequence[Prompt]) -> float:
    """Wall-clock seconds of one call."""
    begun = time.perf_counter()
    assert sum(1 for _ in model.score(prompts)) == len(prompts)
    return time.perf_counter() - begun


def processor_seconds() -> float:
    """Of this process and of all replicas so far."""
    own = psutil.Process()
    every = [own, *(one for one in own.children(recursive=True) if one.name().startswith("ray::"))]
    return sum(sum(one.cpu_times()[:2]) for one in every)


def side_by_side(folder: str, prompts: Sequence[Prompt], repeats: int) -> dict[str, list[tuple[float, float]]]:
    """Wall-clock and processor seconds of each contender in each repeat; contenders take turns."""
    import torch

    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(cores)
    models = {f"one process, {cores} threads": open_model(folder)}
    for actors in (1, 2):
        os.environ["OMP_NUM_THREADS"] = str(cores // actors)  # of each replica
        models[f"{actors} actor{'s' * (actors > 1)}, {cores // actors} threads each"] = open_model(
            folder, ray="local", ray_actors=actors
        )
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in models}
    for model in models.values():  # start, load, warm up
        while sum(1 for _ in model.score(prompts[:ORDERS])) < ORDERS or not _all_there(model):
            time.sleep(0.5)
    for repeat in range(repeats):
        for name in sorted(models, reverse=bool(repeat % 2)):
            before = processor_seconds()
            wall = seconds(models[name], prompts)
            found[name].append((wall, processor_seconds() - before))
    return found


def _all_there(model: Any) -> bool:
    """Whether every actor is ready."""
    pool = getattr(model, "_pool", None)
    return pool is None or not pool._starting


def question_seconds(folder: str, prompts: Sequence[Prompt]) -> list[float]:
    """Processor seconds of each question alone, on one thread."""
    import torch

    torch.set_num_threads(1)
    model = open_model(folder)
    questions = [[prompts[i] for i in own] for own in by_question(prompts, range(len(prompts)))]
    seconds(model, questions[0])
    found = []
    for own in questions:
        begun = time.process_time()
        seconds(model, own)
        found.append(time.process_time() - begun)
    return found


def simulated(times: Sequence[float], workers: int, portion: int, least: float) -> float:
    """Seconds until all questions are scored.

    Args:
        times: of each question.
        portion: questions after which all wait for the last one.
        least: seconds of the smallest unit.
    """
    total = 0.0
    scale = 1_000_000  # the function counts in whole numbers
    for start in range(0, len(times), portion):
        own = np.asarray(times[start : start + portion])
        whole = np.rint(own * scale).astype(int).tolist()
        units = cut([[i] for i in range(len(own))], partial(_sum_of, whole), workers, round(least * scale))
        free = [0.0] * workers
        for unit in units:
            heapq.heappush(free, heapq.heappop(free) + HANDOVER + float(own[unit.members].sum()))
        total += max(free)
    return total


def _sum_of(whole: Sequence[int], members: Sequence[int]) -> int:
    return sum(whole[i] for i in members)


def table(times: Sequence[float], least_questions: float) -> list[tuple[int, float, float, float]]:
    """Per number of workers: hours for MMLU in 24 orders, and the share of the time that they work, in portions of
    one process and of as many copies."""
    drawn = np.random.default_rng(0).choice(np.asarray(times), MMLU)
    rows = []
    for workers in WORKERS:
        shares = []
        for prompts in (AT_ONCE, at_once(Model(ModelInfo(name="copies", copies=workers)))):
            taken = simulated(drawn, workers, prompts // ORDERS, least_questions * float(drawn.mean()))
            shares.append(float(drawn.sum()) / workers / taken)
        rows.append((workers, taken / 3600, *shares))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--size", default="20M")
    given = parser.parse_args()
    questions, repeats = (8, 1) if given.quick else (40, 5)
    prompts = prompts_of(questions=questions, orders=ORDERS, options=4, context=0)
    with tempfile.TemporaryDirectory() as folder:
        random_model(given.size).save_pretrained(folder)
        tokenizer().save_pretrained(folder)
        measured = side_by_side(folder, prompts, repeats)
        times = question_seconds(folder, prompts)
    text = _report(given.size, questions, measured, times)
    print(text)
    if not given.quick:
        OUT.write_text(text)


def _report(size: str, questions: int, measured: dict[str, list[tuple[float, float]]], times: Sequence[float]) -> str:
    load = os.getloadavg()[0]
    first = next(iter(measured.values()))
    lines = [
        "# Copies of a model on Ray",
        "",
        "`python -m benchmarks.ray_actors` writes this page, and says how it measures.",
        "",
        f"## Measured: {questions} questions in {ORDERS} orders",
        "",
        f"A Llama of {size} parameters with random weights, float32.",
        "",
        f"{len(first)} repeats in turns on {len(os.sched_getaffinity(0))} cores; load average at the end {load:.1f}"
        f"{' (other work was running)' * (load > 3)}.",
        "",
        "| | wall-clock seconds: median, least to most | processor seconds: median | one process's wall-clock seconds, "
        "as a multiple |",
        "|---|---|---|---|",
    ]
    for name, found in measured.items():
        wall, processor = zip(*found, strict=True)
        ratio = median(other[0] / own[0] for other, own in zip(first, found, strict=True))
        spread = f"{median(wall):.1f}, {min(wall):.1f} to {max(wall):.1f}"
        lines.append(f"| {name} | {spread} | {median(processor):.1f} | {ratio:.2f} |")
    lines += [
        "",
        "The last column is the median over repeats of (one process's seconds / seconds) in the same repeat. Where "
        "other work takes turns on the same cores, processor seconds tell more.",
        "",
        f"## Simulated: MMLU's {MMLU:,} questions in {ORDERS} orders",
        "",
        f"From {len(times)} questions measured alone on one thread (median {median(times):.2f} processor seconds, "
        f"{min(times):.2f} to {max(times):.2f}), drawn with replacement, and {1000 * HANDOVER:.0f} ms between two "
        "units, which is assumed. Shown is the share of the time in which workers compute. A unit is at least one "
        "forward pass: about one question on a CPU, seven on a GPU (16,384 tokens). As it is run, a portion is up to "
        "eight times larger with as many copies.",
        "",
        f"| workers | portions of {AT_ONCE:,} prompts | as it is run | as it is run, 7 questions a unit | speed-up |",
        "|---|---|---|---|---|",
    ]
    for one, seven in zip(table(times, 1), table(times, 7), strict=True):
        workers, _, small, large = one
        lines.append(f"| {workers} | {small:.1%} | {large:.1%} | {seven[3]:.1%} | {workers * large:.1f} |")
    lines += ["", "Only the first table was measured with actors; no more than two have been run.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
