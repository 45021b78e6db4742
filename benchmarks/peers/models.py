"""What a model may be: servers, proxies, objects in memory, copies on Ray. Label scores are compared."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import unslant
from benchmarks.peers.cases import GGUF, MODEL, Case, questions, refused, run, same_scores, write_rows
from benchmarks.prefix_cache import free_port, serving
from unslant.reference import reference_path


def _scores(result: Any) -> list[Any]:
    return [row.logprobs for row in result.responses.rows() if row.logprobs is not None]


@contextlib.contextmanager
def _listening(command: list[object], route: str, log: Path, **env: str) -> Iterator[str]:
    """The address of a server that is stopped at the end; ``{port}`` in the command is a free one."""
    port = free_port()
    words = [str(word).format(port=port) for word in command]
    with log.open("w") as output:
        process = subprocess.Popen(words, env=os.environ | env, stdout=output, stderr=output)
        try:
            for _ in range(240):
                with contextlib.suppress(httpx.TransportError):
                    if httpx.get(f"http://127.0.0.1:{port}{route}").status_code == 200:
                        break
                time.sleep(0.5)
            else:
                raise RuntimeError(log.read_text()[-1500:])
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(20)


def litellm(home: Path, folder: Path) -> Iterator[Case]:
    """The same chat questions through the proxy and at the server itself."""
    asked = questions(3)
    bins = home.resolve() / "bin"
    path = f"{bins}{os.pathsep}{os.environ['PATH']}"
    with serving(GGUF.resolve(), 1, 1, 0) as url:
        backend = {"model": "openai/model", "api_base": url, "api_key": "none"}
        config = folder / "proxy.yaml"
        config.write_text(json.dumps({"model_list": [{"model_name": "model", "litellm_params": backend}]}))
        command = [bins / "litellm", "--config", config, "--port", "{port}"]
        weak = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
        with _listening(command, "/health/liveliness", folder / "log", PATH=path, **weak) as proxy:
            found, seconds = [], []
            for at in (url, proxy):
                started = time.monotonic()
                result = unslant.audit("model", asked, base_url=at, chat=True, orders="given")
                seconds.append(time.monotonic() - started)
                found.append(_scores(result))
            outcome = f"label scores, {{n}} prompts; {seconds[1]:.0f} s, and {seconds[0]:.0f} s at the server itself"
            yield same_scores("`--chat --base-url PROXY`", found[0], found[1], outcome, 0.1)


def llama_cpp(home: Path, folder: Path) -> Iterator[Case]:
    """The server itself; it is installed with unslant's own tests."""
    asked = questions(3)
    with serving(GGUF.resolve(), 1, 1, 0) as url:
        local = unslant.audit(str(GGUF), asked, orders="given", device="cpu")
        served = unslant.audit("model", asked, orders="given", base_url=url)
        pairs = zip(local.responses.rows(), served.responses.rows(), strict=True)
        exact = [(a.logprobs, b.logprobs) for a, b in pairs if b.logprobs is not None and not b.bounds]
        ours, theirs = zip(*np.exp(exact), strict=True)
        outcome = "probabilities of labels, {n} prompts, against its unpacked weights in transformers"
        yield same_scores("`--base-url URL`", ours, theirs, outcome, 0.1)
        name = "a wrong model name"
        yield refused(name, lambda: unslant.audit("other", asked, base_url=url), "no such model")
        root = url.removesuffix("/v1")
        yield refused("an address without `/v1`", lambda: unslant.audit("model", asked, base_url=root), "/v1)")


def transformers(home: Path, folder: Path) -> Iterator[Case]:
    """Objects of transformers and datasets in this process, and ``transformers serve``."""
    from datasets import Dataset, DatasetDict
    from transformers import AutoModelForCausalLM, pipeline

    rows = questions(6)
    arc = [
        {"id": row["id"], "question": row["question"], "choices": {"text": row["options"], "label": [*"ABCD"]},
         "answerKey": "ABCD"[row["answer"]]}
        for row in rows
    ]  # fmt: skip
    named = unslant.audit(MODEL, rows, orders="reverse", device="cpu")
    generator = pipeline("text-generation", model=str(reference_path(MODEL)), dtype="float32", device="cpu")
    opened = unslant.open_model(generator)
    arc_set = Dataset.from_list(arc)
    for name, model, asked in (
        ("a pipeline as the model", generator, rows),
        ("`open_model(pipeline)`", opened, rows),
        ("a Dataset with ARC's columns", MODEL, arc_set),
        ("a DatasetDict of one split", MODEL, DatasetDict({"test": arc_set})),
        ("a list with ARC's columns", MODEL, arc),
    ):
        result = unslant.audit(model, asked, orders="reverse", **({"device": "cpu"} if model is MODEL else {}))
        yield same_scores(name, _scores(named), _scores(result), "against a name and a list, {n} prompts")
    bare = AutoModelForCausalLM.from_pretrained(reference_path(MODEL))
    yield refused("a model with `.generate`, without its tokenizer", lambda: unslant.audit(bare, rows), "tokenizer")
    command = [sys.executable, "-c", "from transformers.cli.transformers import main; main()", "serve",
               reference_path(MODEL), "--port", "{port}", "--host", "127.0.0.1"]  # fmt: skip
    with _listening(command, "/health", folder / "log", HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1") as url:
        line = unslant.audit(f"{url}/systemone#org/other", rows).headline
        known = "requested 'org/other'" in line and "too few answers are left for a verdict" in line
        line = line.replace(str(reference_path(MODEL).parent), "…")
        yield Case("a wrong name at `transformers serve`, `/v1/systemone`", f"“{line}”", None, known)


def ray(home: Path, folder: Path) -> Iterator[Case]:
    """``unslant audit --ray`` in an environment with Ray, against the same without."""
    asked = write_rows(folder / "four.jsonl", questions(6))
    tables = []
    for name, more in (("ray", ["--ray", "local", "--ray-actors", "2"]), ("alone", [])):
        table = folder / f"{name}.parquet"
        command = [home.resolve() / "bin" / "unslant", "audit", MODEL, asked, "--orders", "reverse", "--device", "cpu"]
        run([*command, *more, "--responses", table, "--no-store", "--quiet"], folder)
        tables.append([row.logprobs for row in unslant.Responses.from_parquet(table).rows()])
    yield same_scores(
        "`unslant audit --ray local`", tables[0], tables[1], "two actors against one process, {n} prompts"
    )
    nowhere = [home.resolve() / "bin" / "unslant", "audit", MODEL, asked, "--ray", f"127.0.0.1:{free_port()}"]
    done = subprocess.run([*map(str, nowhere)], cwd=folder, capture_output=True, text=True, timeout=300)
    said = done.stderr.strip().splitlines()[-1:]
    shown = "".join(said).partition("error: ")[2]
    yield Case("no cluster at the address", f"refused: “{shown[:160]}”", None, "no Ray cluster there" in shown)
