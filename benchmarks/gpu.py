"""What a GPU makes of the prefix tree, in one command and one file: ``make bench-gpu``.

    python -m benchmarks.gpu [--device cuda] [--shapes 135M 1B 8B] [--minutes 9] [--out .bench/gpu.json]

Tokens a second of the tree in bfloat16 and float16, at batches of 1k to 32k tokens, and its memory beyond the weights,
next to a dense pass over as many tokens of the same model (random weights). With two GPUs or more, also a
model spread over them (``--device-map``) and the scores of two ranks over NCCL. Every step stands alone: one that
cannot run is skipped with its reason, and what was measured is written after each.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.measure import machine
from benchmarks.random_models import VOCABULARY, tokenizer
from benchmarks.workloads import WORKLOADS
from unslant.models import Cost
from unslant.models.base import Encoded
from unslant.models.hf.engine import TreeEngine
from unslant.models.hf.model import TransformersModel
from unslant.writing import write_atomically

SHAPES: Mapping[str, tuple[int, int, int, int, int]] = {
    "tiny": (64, 2, 2, 2, 128),
    "135M": (576, 30, 9, 3, 1536),
    "1B": (2048, 16, 32, 8, 8192),
    "8B": (4096, 32, 32, 8, 14336),
}
"""Hidden size, layers, heads, key-value heads and feed-forward size: those of SmolLM2-135M and of Llama 3."""
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
BUDGETS = (1_024, 2_048, 4_096, 8_192, 16_384, 32_768)
QUESTIONS = 64
WORKED = (WORKLOADS[0], WORKLOADS[4])
"""Without worked examples and with five."""
LEAST = 2.0
"""Seconds that a speed is measured over, at least, once everything is compiled."""


class Skipped(Exception):
    """Why a step was not run."""


@dataclass
class Bench:
    """Steps with a deadline, written after each."""

    device: torch.device
    deadline: float
    out: Path
    found: dict[str, Any] = field(default_factory=dict)

    def step(self, name: str, run: Callable[[], Any]) -> None:
        """Run a step, or write down why not: a benchmark of many parts has to survive each of them."""
        begun = time.perf_counter()
        try:
            if begun > self.deadline:
                raise Skipped("no time is left (--minutes)")
            result = run()
        except Skipped as why:
            result = {"skipped": str(why)}
        except (
            RuntimeError,
            ValueError,
            ImportError,
            OSError,
            subprocess.SubprocessError,
        ) as error:
            result = {"skipped": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        self.found[name] = result
        print(f"{name}: {json.dumps(result)} ({time.perf_counter() - begun:.0f} s)", flush=True)
        write_atomically(self.out, json.dumps(self.found, indent=1) + "\n")
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def speed(self, run: Callable[[], int]) -> float:
        """Tokens a second of a function that returns how many it computed, after one call that is not counted."""
        run()
        self.wait()
        begun, tokens = time.perf_counter(), 0
        while not tokens or time.perf_counter() - begun < LEAST:
            tokens += run()
            self.wait()
        return round(tokens / (time.perf_counter() - begun))

    @contextmanager
    def memory(self, row: dict[str, Any], name: str) -> Iterator[None]:
        """Write the largest memory of the block, beyond what was held before, into ``row[name]``, in GiB."""
        if self.device.type == "cuda":
            held = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
        yield
        if self.device.type == "cuda":
            row[name] = round((torch.cuda.max_memory_allocated() - held) / 2**30, 2)

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


@contextmanager
def random_model(shape: str, dtype: torch.dtype, device: torch.device) -> Iterator[TransformersModel]:
    """A Llama of that shape with random weights, made where it runs."""
    hidden, layers, heads, kv_heads, feed_forward = SHAPES[shape]
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=hidden, intermediate_size=feed_forward, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, max_position_embeddings=65_536,
        tie_word_embeddings=True, bos_token_id=0, eos_token_id=0, pad_token_id=0, attn_implementation="sdpa",
    )  # fmt: skip
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            torch.manual_seed(0)
            model = LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)
    yield TransformersModel(model, tokenizer(), f"random {shape}", engine="tree")


def speeds(bench: Bench, shape: str, dtype: str, budgets: Sequence[int]) -> dict[str, Any]:
    """Tokens a second of a dense pass and of the tree, and the memory of the latter, by batch."""
    needed = _bytes(shape, dtype)
    if bench.device.type == "cuda" and needed > 0.8 * torch.cuda.get_device_properties(bench.device).total_memory:
        raise Skipped(f"{needed / 2**30:.0f} GiB of weights do not fit")
    with random_model(shape, DTYPES[dtype], bench.device) as loaded, torch.inference_mode():
        encoded = {workload.name: loaded.encode(workload.make(QUESTIONS)) for workload in WORKED}
        found: dict[str, Any] = {}
        for budget in budgets:
            row: dict[str, Any] = {}
            if time.perf_counter() > bench.deadline:
                found[f"{budget} tokens a batch"] = "skipped: no time is left (--minutes)"
                continue
            ids = torch.randint(VOCABULARY, (max(1, budget // 512), 512), device=bench.device)

            def dense(ids: torch.Tensor = ids) -> int:
                loaded.model(input_ids=ids, use_cache=False, logits_to_keep=1)
                return ids.numel()

            row["dense"] = bench.speed(dense)
            for name, prompts in encoded.items():
                engine, cost = TreeEngine(loaded.model, budget), Cost()

                def tree(engine: TreeEngine = engine, cost: Cost = cost, prompts: Sequence[Encoded] = prompts) -> int:
                    before = cost.tokens
                    for _ in engine.score(prompts, cost):
                        pass
                    return cost.tokens - before

                with bench.memory(row, f"{name}, GiB"):
                    row[name] = bench.speed(tree)
            found[f"{budget} tokens a batch"] = row
        return found


def _bytes(shape: str, dtype: str) -> int:
    """Of the weights."""
    hidden, layers, heads, kv_heads, feed_forward = SHAPES[shape]
    each = hidden * (2 * hidden + 2 * hidden * kv_heads // heads + 3 * feed_forward)
    return (layers * each + VOCABULARY * hidden) * DTYPES[dtype].itemsize


def spread(bench: Bench, shape: str, option: Sequence[str]) -> dict[str, Any]:
    """An audit of the same model on one GPU and with an option that takes several: seconds, and how far scores are."""
    if bench.device.type != "cuda" or torch.cuda.device_count() < 2:
        raise Skipped(f"needs two GPUs, there are {torch.cuda.device_count()}")
    with tempfile.TemporaryDirectory() as folder:
        with random_model(shape, torch.bfloat16, bench.device) as loaded:
            loaded.model.save_pretrained(folder)
            loaded.tokenizer.save_pretrained(folder)
        runs = {}
        for name, more in (("one GPU", ["--device", "cuda"]), (" ".join(option), option)):
            written = Path(folder) / "found.json"
            words = [sys.executable, "-m", "unslant", "audit", folder, "embedded", "--limit", "100", "--no-store", "-q"]
            subprocess.run([*words, *more, "--json", str(written)], check=True, timeout=180)
            found = json.loads(written.read_text("utf-8"))
            runs[name] = {"seconds": found["cost"]["seconds"], "pbm": found["metrics"]["means"]["pbm"]["value"]}
    return runs


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["135M", "1B", "8B"])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=["bfloat16", "float16"])
    parser.add_argument("--budgets", nargs="+", type=int, default=BUDGETS, help="tokens of a batch")
    parser.add_argument("--minutes", type=float, default=9.0, help="after which no further step is begun")
    parser.add_argument("--out", type=Path, default=Path(".bench/gpu.json"))
    given = parser.parse_args(arguments)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    device = torch.device(given.device)
    bench = Bench(device, time.perf_counter() + 60 * given.minutes, given.out)
    bench.found["machine"] = machine()
    if device.type == "cuda" and not torch.cuda.is_available():
        bench.step("all", lambda: _refuse("torch finds no GPU here; --device cpu tries the steps"))
        return
    if device.type == "cuda":
        bench.found["machine"]["gpu"] = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    for shape in given.shapes:
        for dtype in given.dtypes:
            bench.step(f"{shape}, {dtype}", partial(speeds, bench, shape, dtype, given.budgets))
    shape = given.shapes[0]
    bench.step("spread over GPUs", partial(spread, bench, shape, ["--device-map", "balanced"]))
    bench.step("two ranks, NCCL", partial(spread, bench, shape, ["--tensor-parallel", "2"]))


def _refuse(why: str) -> None:
    raise Skipped(why)


if __name__ == "__main__":
    main()
