"""What bfloat16 does to every metric of an audit: the same questions, by the same model, in both number types.

    python -m benchmarks.half_precision MODEL QUESTIONS [--limit 40] [--shots 0] [--chat] [--threads 1]

Prints a Markdown table. Time is processor time of scoring, so that others on the machine hardly change it.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import torch

from unslant import load_model
from unslant.auditing.panels_scores import whole_set
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.metrics import METRICS
from unslant.models.hf import model
from unslant.reports.figure import defined
from unslant.reports.numbers import number, with_interval


def audited(name: str, questions: str, dtype: str, arguments: argparse.Namespace) -> tuple[AuditResult, float]:
    """The audit in one number type, and the processor seconds of its scoring."""
    loaded = load_model(name, dtype=dtype)
    result = audit(
        loaded, questions, limit=arguments.limit, shots=arguments.shots, orders=arguments.orders, chat=arguments.chat
    )
    return result, result.cost.seconds


def other_answers(one: AuditResult, other: AuditResult) -> float:
    """Share of questions and orders answered otherwise."""
    pairs = zip(one.scores.blocks, other.scores.blocks, strict=True)
    return float(np.mean(np.concatenate([(a.chosen != b.chosen).ravel() for a, b in pairs])))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("questions")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--shots", type=int, default=0)
    parser.add_argument("--orders", default="auto")
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    model.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[attr-defined]  # what its cost counts
    (wide, slow), (half, fast) = (audited(given.model, given.questions, t, given) for t in ("float32", "bfloat16"))
    print("| | float32 | bfloat16 | difference |\n|---|---|---|---|")
    before, after = whole_set(wide.metrics), whole_set(half.metrics)
    for key, value in before.items():
        if defined(value) and defined(after[key]):
            how = METRICS[key]
            change = getattr(after[key], "value", after[key]) - getattr(value, "value", value)
            told = f"{change:+.{how.digits}f}" if math.isfinite(change) else ""
            print(f"| {how.name} | {with_interval(value, how)} | {number(after[key], how)} | {told} |")
    agreed = half.run.half_precision
    print(f"| answers that differ, of all questions and orders | | {other_answers(wide, half):.1%} | |")
    print(f"| log-probabilities apart: mean, largest | | {agreed.mean:.3f}, {agreed.largest:.2f} | |")
    print(f"| processor time | {slow:.0f} s | {fast:.0f} s | {slow / fast:.1f} times as fast |")


if __name__ == "__main__":
    main()
