"""What MMLU whole in 24 orders takes on large models: tokens counted, memory and time computed from a cost model.

    python -m benchmarks.large_models TOKENIZER    # prints the tables of docs/large-models.md

TOKENIZER is a folder or a GGUF file. Tokens are those of the prefix tree, counted on some questions of every subject of
MMLU (a file beside the repository, or else the recipe) and scaled to all of them; no model is run. The cost model is
stated in docs/large-models.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from transformers import AutoTokenizer

from unslant.auditing import order_presentations
from unslant.models.hf import common_prefix, plan
from unslant.models.hf.tokenization import Encoder
from unslant.presentations import parse_labels
from unslant.presentations.shots import ShotChooser
from unslant.prompts import Cloze, Writer, load_template
from unslant.questions import Question, load_questions

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "mmlu_test.jsonl.gz"
SAMPLED = 12
"""Questions of each subject."""
QUESTIONS = 14_042
BUDGET = 16_384
"""Tokens of a forward pass on a GPU."""


@dataclass(frozen=True)
class Large:
    """A model and where it is run.

    Attributes:
        weights: parameters.
        layers, hidden, feed_forward, kv: numbers of its shape; ``kv`` is key-value heads times head size.
        bytes: of a weight.
        gpus: that it needs.
    """

    name: str
    weights: float
    layers: int
    hidden: int
    feed_forward: int
    kv: int
    bytes: float
    gpus: str

    @property
    def memory(self) -> float:
        """GB: weights, a pass's activations (three of the width of the feed-forward layer, four of the model's), and
        float32 logits of 2**26 elements, twice."""
        activations = BUDGET * 2 * (3 * self.feed_forward + 4 * self.hidden)
        handed_on = 4_096 * self.layers * 2 * self.kv * 2  # keys and values of one root path
        return (self.weights * self.bytes + activations + handed_on + 2 * 4 * 2**26) / 1e9

    def seconds(self, tokens: float, context: float, flops: float) -> float:
        """Two floating point operations a weight and token, and four a layer, width and token of context."""
        return tokens * (2 * self.weights + 4 * self.layers * self.hidden * context) / flops


MODELS = (
    Large("8B, bfloat16", 8.03e9, 32, 4096, 14336, 1024, 2, "1 of 24 GB"),
    Large("8B, 8 bits", 8.03e9, 32, 4096, 14336, 1024, 1.07, "1 of 16 GB"),
    Large("70B, bfloat16", 70.6e9, 80, 8192, 28672, 1024, 2, "2 of 80 GB"),
    Large("70B, 4 bits", 70.6e9, 80, 8192, 28672, 1024, 0.56, "1 of 48 GB"),
)
PEAK = 989e12
"""Dense bfloat16 operations a second of an H100 (SXM), by its maker."""
SHARES = (0.4, 0.2)
"""Of the peak that are reached: assumed."""


def counted(tokenizer: str, shots: int, orders: str) -> tuple[float, float]:
    """Tokens computed a question, and tokens of a prompt, which are those of an ordinary run a question."""
    path = Path(tokenizer)
    where = {"gguf_file": path.name} if path.suffix else {}
    encoder = Encoder(AutoTokenizer.from_pretrained(path.parent if where else path, **where))
    subjects: dict[str, list[Question]] = {}
    for question in load_questions(str(DATA) if DATA.is_file() else "mmlu"):
        subjects.setdefault(question.subject or "", []).append(question)
    computed = plain = 0.0
    for every in subjects.values():
        own = every[:SAMPLED]
        chooser, cloze = ShotChooser(every, shots, 0), Cloze(Writer(load_template("plain")))
        written = [
            cloze.prompts(shown.with_shots(chooser.of(question)))[0]
            for question in own
            for shown in order_presentations(question, orders, parse_labels("A"))
        ]
        encoded = encoder.encode(written)
        tokens = sum(len(batch.ids) for batch in plan(encoded, BUDGET, 1 << 20)[0])
        each = len(encoded) // len(own)
        firsts = [item.context for item in encoded[::each]]
        shared = median(common_prefix(one, other) for one, other in pairwise(firsts))  # with the rest of the subject
        computed += shared + (tokens - shared) / len(own) * len(every)
        plain += sum(len(item.context) for item in encoded) / len(encoded) * len(every)
    total = sum(map(len, subjects.values()))
    return computed / total, plain / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer")
    given = parser.parse_args()
    rows = {}
    print("| worked examples | orders | tokens a question | all of MMLU | ordinary runs |\n|---|---|---|---|---|")
    for shots, orders in ((0, "24"), (5, "24"), (5, "8")):
        tokens, once = rows[shots, orders] = counted(given.tokenizer, shots, orders)
        total = f"{tokens * QUESTIONS / 1e6:.1f} million"
        print(f"| {shots} | {orders} | {tokens:,.0f} | {total} | {tokens / once:.1f} |", flush=True)
    print("\n| model | GPUs | memory | 0-shot | 5-shot |\n|---|---|---|---|---|")
    for model in MODELS:
        times = []
        for shots in (0, 5):
            tokens, length = rows[shots, "24"]
            least, most = (model.seconds(tokens * QUESTIONS, length, share * PEAK) / 60 for share in SHARES)
            times.append(f"{least:,.0f} to {most:,.0f} min" if model.bytes == 2 else "not computed")
        print(f"| {model.name} | {model.gpus} | {model.memory:.0f} GB | {' | '.join(times)} |")


if __name__ == "__main__":
    main()
