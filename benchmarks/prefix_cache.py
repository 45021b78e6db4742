"""Share of prompt tokens that llama.cpp's server takes from its cache, by the order of requests.

    python -m benchmarks.prefix_cache .real/SmolLM2-135M-Instruct.Q4_1.gguf arc.jsonl --questions 6 --slots 1 4

A fresh server for every row. *Prefix tree* is what a walk through the tree of all prompts would not compute again: the
tokens that each prompt shares with the one before it, in sorted order; no order of requests to one slot can save more.
*File order* is question by question and order by order, as a loop over a file sends them, one at a time or as many at a
time as unslant would send.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import httpx

from unslant.models.served import ServedModel
from unslant.presentations import present
from unslant.prompts import Cloze, Prompt, Writer, load_template
from unslant.questions import load_questions

_SERVE = """
import sys, time, xllamacpp as x
p = x.CommonParams()
p.model.path, p.hostnames, p.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
p.n_parallel = int(sys.argv[3]); p.n_ctx = 2048 * p.n_parallel; p.warmup = False; p.model_alias = {"model"}
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = int(sys.argv[4]); p.cache_ram_mib = int(sys.argv[5])
s = x.Server(p)
while True: time.sleep(1)
"""


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving(gguf: Path, slots: int, threads: int, memory: int) -> Iterator[str]:
    """The base URL of a llama.cpp server that is stopped at the end."""
    port = free_port()
    settings = [str(gguf), *map(str, (port, slots, threads, memory))]
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, *settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(10)


def prompts_of(path: str, questions: int) -> list[Prompt]:
    """Every prompt of an audit in all orders, as a loop over the file has them."""
    elicitation = Cloze(Writer(load_template("plain")))
    asked = [question for question in load_questions(path) if len(question.options) <= 4][:questions]
    return [
        prompt
        for question in asked
        for order in itertools.permutations(range(len(question.options)))
        for prompt in elicitation.prompts(present(question, order))
    ]


def tree_share(url: str, prompts: Sequence[Prompt]) -> tuple[int, float]:
    """All tokens of the prompts, and the share that a prefix tree saves, by the server's own tokens."""
    with httpx.Client() as client:
        tokens = [
            client.post(f"{url.removesuffix('/v1')}/tokenize", json={"content": one.text, "add_special": True}).json()
            for one in prompts
        ]
    ids = sorted(one["tokens"] for one in tokens)
    pairs = ((before, after) for before, after in itertools.pairwise(ids))
    shared = sum(
        next((i for i, (a, b) in enumerate(zip(*pair, strict=False)) if a != b), min(map(len, pair))) for pair in pairs
    )
    total = sum(map(len, ids))
    return total, shared / total


def measured(url: str, prompts: Sequence[Prompt], way: str) -> tuple[float, float]:
    """Share of tokens from the cache, and seconds."""
    ways = {
        "file, one at a time": lambda asked, _: [[*range(len(asked))]],
        "file, at once": lambda asked, _: [[i] for i in range(len(asked))],
    }
    model = ServedModel("model", url, retries=0)
    order = patch.object(ServedModel, "runs", staticmethod(ways[way])) if way in ways else contextlib.nullcontext()
    started = time.perf_counter()
    with order:
        scored = [*model.score(prompts)]
    failed = [one.error for one in scored if one.logprobs is None]
    if failed:
        raise SystemExit(failed[0])
    return 1 - model.cost.tokens / model.cost.tokens_plain, time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("questions_file")
    parser.add_argument("--questions", type=int, default=6)
    parser.add_argument("--slots", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", type=int, nargs="*", default=[0, 8192], help="MiB for prompts of earlier requests")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    prompts = prompts_of(given.questions_file, given.questions)
    rows = []
    for slots, memory in itertools.product(given.slots, given.memory):
        for way in ("unslant", "file, one at a time", "file, at once"):
            with serving(given.model, slots, given.threads, memory) as url:
                tokens, tree = tree_share(url, prompts)
                cached, seconds = measured(url, prompts, way)
            shares = {"tokens": tokens, "tree": round(tree, 4), "cached": round(cached, 4)}
            row = {"slots": slots, "cache_ram_mib": memory, "order": way, "prompts": len(prompts), **shares}
            rows.append({**row, "seconds": round(seconds, 1)})
            print(json.dumps(rows[-1]), flush=True)
    if given.out:
        given.out.write_text(table(rows), "utf-8")


def table(rows: Sequence[dict[str, object]]) -> str:
    """The rows as a table of Markdown."""
    lines = ["| slots | prompt cache, MiB | order | tokens | prefix tree saves | from cache | of the tree | seconds |"]
    lines.append("|---:|---:|---|---:|---:|---:|---:|---:|")
    for row in rows:
        of_tree = float(str(row["cached"])) / float(str(row["tree"]))
        lines.append(
            f"| {row['slots']} | {row['cache_ram_mib']} | {row['order']} | {row['tokens']} | {row['tree']:.3f} | "
            f"{row['cached']:.3f} | {of_tree:.2f} | {row['seconds']} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
