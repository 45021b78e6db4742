"""What the run store costs: ``python -m benchmarks.store [--prompts N]``.

Two questions, measured apart:

1. How long do a million scores take to write and to look up (time of this process's own code, beside any model)?
2. By how much does the store slow the scoring of a real model? Interleaved runs with and without it on one thread, by
   processor time, which other work on the machine disturbs less than the clock.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from unslant.models.base import Encoded, Journal, ModelInfo, ResumableModel, Scored
from unslant.models.hf.model import TransformersModel
from unslant.models.stored import StoredModel
from unslant.prompts import Prompt
from unslant.store import Store

TOKENS = 150
BATCH = 100


class Instant(ResumableModel):
    """A model that takes no time: whatever a run takes is the store's."""

    def __init__(self) -> None:
        super().__init__(ModelInfo(name="instant", identity={"model": "instant"}))

    def encode(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        rng = np.random.default_rng(0)
        ids = rng.integers(0, 32_000, (len(prompts), TOKENS), dtype=np.int32)
        labels = tuple(np.array([i], dtype=np.int32) for i in range(4))
        return [Encoded(row, labels) for row in ids]

    def score(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded] | None = None) -> Iterator[Scored]:
        return self.score_encoded(prompts, encoded or self.encode(prompts))

    def score_encoded(
        self, prompts: Sequence[Prompt], encoded: Sequence[Encoded], journal: Journal | None = None
    ) -> Iterator[Scored]:
        scores = np.log(np.full(4, 0.25))
        for step, start in enumerate(range(0, len(prompts), BATCH), start=1):
            results = [Scored(i, scores) for i in range(start, min(start + BATCH, len(prompts)))]
            if journal is not None:
                journal.note("instant", step, results, lambda: bytes(4096))
            yield from results


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, and of this process's processor time."""

    clock: float
    processor: float

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.clock - other.clock, self.processor - other.processor)


def timed(work: Callable[[], object]) -> Spent:
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - clock, time.process_time() - processor)


def own_time(n: int, folder: Path) -> None:
    """Question 1."""
    prompts = [Prompt("", ("A", "B", "C", "D"))] * n
    model = Instant()

    def bare(count: int) -> Spent:
        return timed(lambda: sum(1 for _ in model.score(prompts[:count])))

    path = folder / "million.sqlite3"

    def run(some: Sequence[Prompt]) -> StoredModel:
        with Store(path) as store:
            stored = StoredModel(model, store)
            assert sum(1 for _ in stored.score(some)) == len(some)
            return stored

    for what, count, recalled in (
        ("write", n, 0),
        ("look up: the same call again", n, n),
        ("look up: another call, all prompts known", n - 1, n - 1),
    ):
        found: list[StoredModel] = []
        spent = timed(lambda count=count, found=found: found.append(run(prompts[:count]))) - bare(count)
        assert found[0].recalled == recalled
        each = f"{spent.processor / count * 1e6:.1f} us"
        print(f"| {what} | {spent.clock:.1f} s | {spent.processor:.1f} s | {each} |", flush=True)
        if what == "write":
            print(f"| size of the file | {path.stat().st_size / 1e6:.0f} MB | | |", flush=True)


def slowdown(model: TransformersModel, prompts: Sequence[Prompt], folder: Path, repeats: int) -> None:
    """Question 2."""
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    for repeat in range(repeats + 1):  # the first is a warm-up
        bare = timed(lambda: sum(1 for _ in model.score(prompts))).processor
        with Store(folder / f"{repeat}.sqlite3") as store:
            stored = StoredModel(model, store)
            kept = timed(lambda stored=stored: sum(1 for _ in stored.score(prompts))).processor
        if repeat:
            seconds["without"].append(bare)
            seconds["with"].append(kept)
    slower = [100 * (kept / bare - 1) for kept, bare in zip(seconds["with"], seconds["without"], strict=True)]
    parameters = sum(p.numel() for p in model.model.parameters())
    rate = len(prompts) / statistics.median(seconds["without"])
    print(
        f"| {parameters / 1e6:.1f}M | {len(prompts):,} | {rate:,.0f}/s | {statistics.median(slower):+.1f} % "
        f"| {min(slower):+.1f} to {max(slower):+.1f} % |",
        flush=True,
    )


def random_model(layers: int, width: int, vocabulary: int = 8_000) -> TransformersModel:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = {word: i for i, word in enumerate(["<unk>", *"ABCD:.?", *(f"w{i}" for i in range(vocabulary - 8))])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 64,
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")
    return TransformersModel(LlamaForCausalLM(config), fast, f"random-{layers}x{width}", engine="tree")


def workload(questions: int) -> list[Prompt]:
    """Four options in 24 orders, about 50 tokens a prompt."""
    from itertools import permutations

    rng = np.random.default_rng(0)
    prompts = []
    for q in range(questions):
        stem = " ".join(f"w{i}" for i in rng.integers(0, 7000, 20))
        options = [" ".join(f"w{i}" for i in rng.integers(0, 7000, 4)) for _ in range(4)]
        for order in permutations(range(4)):
            shown = "\n".join(f"{label} : {options[i]}" for label, i in zip("ABCD", order, strict=True))
            prompts.append(Prompt(f"{stem} ?\n{shown}\n:", (" A", " B", " C", " D"), group=str(q)))
    return prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"| {arguments.prompts:,} prompts | clock | processor | processor, a prompt |\n|---|---|---|---|")
        own_time(arguments.prompts, folder)
        print("\nBy processor time:\n")
        print("| parameters | prompts | rate without | slower with the store | spread |\n|---|---|---|---|---|")
        slowdown(random_model(3, 128), workload(400), folder, arguments.repeats)
        slowdown(random_model(6, 256), workload(120), folder, arguments.repeats)


if __name__ == "__main__":
    main()
