"""Runs other evaluation tools, each in an environment of its own, and compares what unslant makes of their output.

    make test-peers                                    # installs them into .peers/ and writes docs/compatibility.md
    python -m benchmarks.peers --only lm-eval inspect  # some of them, where .peers/NAME is there

Everything is a real run of the tool named: its own command, its own writers or its own server. The model is a
reference model of unslant, or for llama.cpp and what stands in front of it a GGUF file. A case is green where the
numbers are equal within what is printed, or where unslant refuses with the line that is shown.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

import unslant
from benchmarks.prefix_cache import free_port, serving
from unslant.reference import reference_path

HOME = Path(".peers")
GGUF = Path(".real/SmolLM2-135M-Instruct.Q4_1.gguf")
TASKS = Path(__file__).parents[1] / "tests" / "plugins" / "lm_eval_tasks"
MODEL = "prefers-a"
SAME = 1e-3
"""Log-probabilities may differ by so much between two pieces of software in float32."""


@dataclass(frozen=True)
class Case:
    """What came out of one case; ``difference`` is the largest one, where numbers were compared."""

    name: str
    result: str
    difference: float | None = None
    green: bool = True


@dataclass(frozen=True)
class Peer:
    """A tool: what pip installs, the distribution whose version is shown, and its cases."""

    requires: tuple[str, ...]
    distribution: str
    cases: Callable[[Path, Path], Iterator[Case]]
    env: dict[str, str] = field(default_factory=dict)


def questions(n: int = 12) -> list[dict[str, object]]:
    """Embedded questions with four options, as plain records."""
    four = (one for one in unslant.load_questions("embedded") if len(one.options) == 4)
    rows = [
        {"id": one.id, "question": one.stem, "options": list(one.options), "answer": min(one.answers)} for one in four
    ]
    return rows[:n]


def _run(command: list[object], folder: Path, **env: str) -> str:
    offline = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=os.environ | offline | env, capture_output=True, text=True, timeout=900
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {(done.stdout + done.stderr)[-1500:]}")
    return done.stdout


def refused(name: str, ask: Callable[[], object], words: str) -> Case:
    """A case that unslant must refuse, with these words in one line."""
    try:
        ask()
    except unslant.UnslantError as error:
        line = re.sub(rf"{re.escape(tempfile.gettempdir())}\S*/", "", str(error))
        return Case(name, f"refused: “{line[:160]}{'…' * (len(line) > 160)}”", None, words in line and "\n" not in line)
    return Case(name, "accepted", None, False)


def _logged(name: str, path: Path, accuracy: float) -> Case:
    """A log: the tool's accuracy must be the one read as logged, or counted here; what differs must be said."""
    result = unslant.audit(log=[path])
    ours, facts = result.metrics.means["accuracy"], result.run.logged
    (reported,) = facts.reported or (None,)
    difference = abs((reported.value if reported else ours.value) - accuracy)
    told = f"accuracy {accuracy:.3f} there and here, {ours.n} questions"
    said = True
    if reported and reported.parted:
        told = (
            f"accuracy {accuracy:.3f} read as logged; {reported.parted} of {ours.n} replies are read otherwise here: "
        )
        told += f"{ours.value:.3f}, which the first screen says"
        said = f"The log reports {accuracy:.3f}" in " ".join(result.summary().split())
    return Case(name, told, difference, difference < 1e-9 and said)


def lm_eval(home: Path, folder: Path) -> Iterator[Case]:
    """Real runs of ``lm_eval run``: logs read, and the same tasks run by unslant."""
    rows = questions(8)
    (folder / "four.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = ["own_letters", "own_cloze"]
    _run(
        [home / "bin" / "lm_eval", "run", "--model", "hf", "--model_args",
         f"pretrained={reference_path(MODEL)},dtype=float32", "--tasks", ",".join(names), "--device", "cpu",
         "--include_path", TASKS, "--log_samples", "--output_path", folder / "out", "--batch_size", "8"],
        folder,
    )  # fmt: skip
    (results,) = folder.glob("out/**/results_*.json")
    for name in names:
        accuracy = json.loads(results.read_text())["results"][name]["acc,none"]
        (samples,) = folder.glob(f"out/**/samples_{name}_*.jsonl")
        yield _logged(f"`--log` of {name}", samples, accuracy)
        ours = folder / f"{name}.jsonl"
        command = [sys.executable, "-m", "unslant", "lm-eval", name, "--include-path", TASKS, "--model", MODEL]
        _run([*command, "--no-store", "--samples", ours, "--quiet"], folder, PYTHONPATH=os.pathsep.join(sys.path))
        mine, theirs = (
            {
                row["doc_id"]: [float(one[0][0]) for one in row["resps"]]
                for row in map(json.loads, path.read_text().splitlines())
            }
            for path in (ours, samples)
        )
        apart = max(np.abs(np.subtract(mine[i], theirs[i])).max() for i in theirs)
        yield Case(f"`unslant lm-eval {name}` in the published order", f"{len(theirs)} documents", apart, apart < SAME)
    yield refused("`--log results_*.json`", lambda: unslant.audit(log=[results]), "samples_")
    one = folder / "out_one"
    one.mkdir()
    (samples,) = folder.glob("out/**/samples_own_letters_*.jsonl")
    (one / samples.name).write_bytes(samples.read_bytes())
    yield _logged("`--log FOLDER`", one, json.loads(results.read_text())["results"]["own_letters"]["acc,none"])


_OPENCOMPASS = """
import json, sys
from opencompass.openicl.icl_inferencer import icl_base_inferencer
from opencompass.openicl.icl_inferencer.icl_base_inferencer import GenInferencerOutputHandler
from opencompass.openicl.icl_inferencer.icl_ll_inferencer import LLInferencerOutputHandler
from opencompass.openicl.icl_evaluator import AccEvaluator
rows, found = json.load(open("rows.json")), {}
answers = ["ABCD"[(row["answer"] + (i % 3 == 0)) % 4] for i, row in enumerate(rows)]
def page(row, order):
    return "Question: " + row["question"] + "\\n" + "".join(
        f"{label}. {row['options'][k]}\\n" for label, k in zip("ABCD", order)) + "Answer:"
letters, numbers, stopped, ppl, ll = (GenInferencerOutputHandler(), GenInferencerOutputHandler(),
    GenInferencerOutputHandler(), icl_base_inferencer.PPLInferencerOutputHandler(), LLInferencerOutputHandler())
for i, (row, said) in enumerate(zip(rows, answers)):
    text, gold = page(row, range(4)), "ABCD"[row["answer"]]
    letters.save_results(text, said, i, gold=gold)
    numbers.save_results(text, said, i, gold=row["answer"])
    stopped.save_results(text, said, i, gold=gold)
    for k, label in enumerate("ABCD"):
        ppl.save_prompt_and_ppl(label, text + " " + label, text + " " + label, 1.0 - 0.3 * (label == said), i)
        whole = row["question"] + " " + row["options"][k]
        ll.save_prompt_and_loglikelihood(k, whole, whole, -5.0 + (label == said), i)
ppl.save_predictions(answers); ppl.save_golds(["ABCD"[row["answer"]] for row in rows])
ll.save_predictions(["ABCD".index(said) for said in answers]); ll.save_golds([row["answer"] for row in rows])
letters.write_to_json(".", "letters.json"); numbers.write_to_json(".", "numbers.json")
stopped.write_to_jsonl(".", "tmp_letters.jsonl")
ppl.write_to_json(".", "ppl.json"); ll.write_to_json(".", "ll.json")
accuracy = AccEvaluator().score(answers, ["ABCD"[row["answer"]] for row in rows])["accuracy"]
names = "letters.json", "numbers.json", "tmp_letters.jsonl", "ppl.json", "ll.json"
json.dump(dict.fromkeys(names, accuracy / 100), open("accuracies.json", "w"))
"""


def opencompass(home: Path, folder: Path) -> Iterator[Case]:
    """Files written by OpenCompass's own handlers, scored by its own evaluator."""
    (folder / "rows.json").write_text(json.dumps(questions()))
    _run([home / "bin" / "python", "-c", _OPENCOMPASS], folder)
    what = {
        "letters.json": "generated answers",
        "numbers.json": "generated answers, right options as numbers",
        "tmp_letters.jsonl": "the temporary file of a run that stopped",
        "ppl.json": "perplexities (PPL)",
        "ll.json": "log-likelihoods (LL)",
    }
    for name, accuracy in json.loads((folder / "accuracies.json").read_text()).items():
        yield _logged(f"`--log` of {what[name]}", folder / name, accuracy)


_INSPECT = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice
import json
rows = json.load(open("rows.json"))
samples = [Sample(input=r["question"], choices=r["options"], target="ABCD"[r["answer"]], id=r["id"]) for r in rows]
for name, seed in (("given", None), ("shuffled", 7)):
    data = MemoryDataset(list(samples), name="own")
    if seed is not None: data.shuffle_choices(seed=seed)
    (log,) = eval(Task(dataset=data, solver=multiple_choice(), scorer=choice()), model=f"openai-api/local/model",
                  log_dir=name, max_tokens=40, temperature=0, display="none")
    score = log.results.scores[0].metrics["accuracy"].value
    json.dump(score, open(f"{name}.json", "w"))
several = [Sample(input="Which are even?", choices=["1", "2", "4"], target=["B", "C"], id="e")]
task = Task(dataset=several, solver=multiple_choice(multiple_correct=True), scorer=choice())
eval(task, model="openai-api/local/model", log_dir="several", max_tokens=40, display="none")
"""


def inspect(home: Path, folder: Path) -> Iterator[Case]:
    """Real evaluations by inspect, of a model behind llama.cpp."""
    (folder / "rows.json").write_text(json.dumps(questions()))
    with serving(GGUF.resolve(), 1, 1, 0) as url:
        _run([home / "bin" / "python", "-c", _INSPECT], folder, LOCAL_BASE_URL=url, LOCAL_API_KEY="none")
    for name in ("given", "shuffled"):
        (log,) = (folder / name).glob("*.eval")
        yield _logged(
            f"`--log` of multiple_choice, options {name}", log, json.loads((folder / f"{name}.json").read_text())
        )
    (log,) = (folder / "several").glob("*.eval")
    yield refused(
        "`--log` of multiple_choice(multiple_correct=True)", lambda: unslant.audit(log=[log]), "multiple_correct"
    )


@contextlib.contextmanager
def _proxy(home: Path, folder: Path, url: str) -> Iterator[str]:
    """LiteLLM's proxy in front of a server."""
    port = free_port()
    backend = {"model": "openai/model", "api_base": url, "api_key": "none"}
    (folder / "proxy.yaml").write_text(json.dumps({"model_list": [{"model_name": "model", "litellm_params": backend}]}))
    path = f"{home.resolve() / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
    with (folder / "proxy.log").open("w") as log:
        command = [home.resolve() / "bin" / "litellm", "--config", folder / "proxy.yaml", "--port", str(port)]
        process = subprocess.Popen([*map(str, command)], env=env, stdout=log, stderr=log)
        try:
            for _ in range(240):
                with contextlib.suppress(httpx.TransportError):
                    if httpx.get(f"http://127.0.0.1:{port}/health/liveliness").status_code == 200:
                        break
                time.sleep(0.5)
            else:
                raise RuntimeError((folder / "proxy.log").read_text()[-1500:])
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(20)


def litellm(home: Path, folder: Path) -> Iterator[Case]:
    """The same chat questions through the proxy and at the server itself."""
    asked = questions(3)
    with serving(GGUF.resolve(), 1, 1, 0) as url, _proxy(home, folder, url) as proxy:
        tables, seconds = [], []
        for at in (url, proxy):
            started = time.monotonic()
            result = unslant.audit("model", asked, base_url=at, chat=True, orders="given")
            seconds.append(time.monotonic() - started)
            tables.append(np.concatenate([row.logprobs for row in result.responses.rows() if row.logprobs is not None]))
        apart = float(np.abs(tables[0] - tables[1]).max())
        told = f"{len(tables[0])} label scores, {seconds[1]:.0f} s through the proxy, {seconds[0]:.0f} s at the server"
        yield Case("`--chat --base-url PROXY`", told, apart, apart < 0.1)


def llama_cpp(home: Path, folder: Path) -> Iterator[Case]:
    """The server itself; it is installed with unslant's own tests."""
    asked = questions(3)
    with serving(GGUF.resolve(), 1, 1, 0) as url:
        local = unslant.audit(str(GGUF), asked, orders="given", device="cpu")
        served = unslant.audit("model", asked, orders="given", base_url=url)
        pairs = zip(local.responses.rows(), served.responses.rows(), strict=True)
        probs = [
            np.abs(np.exp(a.logprobs) - np.exp(b.logprobs)).max()
            for a, b in pairs
            if a.logprobs is not None and b.logprobs is not None and not b.bounds
        ]
        apart = float(max(probs))
        told = f"probabilities of labels, {len(probs)} prompts, against its unpacked weights in transformers"
        yield Case("`--base-url URL`", told, apart, apart < 0.1)
        name = "a wrong model name"
        yield refused(name, lambda: unslant.audit("other", asked, base_url=url), "no such model")
        root = url.removesuffix("/v1")
        yield refused("an address without `/v1`", lambda: unslant.audit("model", asked, base_url=root), "/v1)")


def transformers(home: Path, folder: Path) -> Iterator[Case]:
    """Objects of transformers and datasets in this process."""
    from datasets import Dataset, DatasetDict
    from transformers import pipeline

    rows = questions(6)
    arc = [
        {"id": row["id"], "question": row["question"], "choices": {"text": row["options"], "label": [*"ABCD"]},
         "answerKey": "ABCD"[int(str(row["answer"]))]}
        for row in rows
    ]  # fmt: skip
    named = unslant.audit(MODEL, rows, orders="reverse", device="cpu")
    generator = pipeline("text-generation", model=str(reference_path(MODEL)), dtype="float32", device="cpu")
    for name, result in (
        ("a pipeline as the model", unslant.audit(generator, rows, orders="reverse")),
        ("a Dataset with ARC's columns", unslant.audit(MODEL, Dataset.from_list(arc), orders="reverse")),
        (
            "a DatasetDict of one split",
            unslant.audit(MODEL, DatasetDict({"test": Dataset.from_list(arc)}), orders="reverse"),
        ),
    ):
        pairs = zip(named.responses.rows(), result.responses.rows(), strict=True)
        apart = max(float(np.abs(a.logprobs - b.logprobs).max()) for a, b in pairs)
        yield Case(name, "against a name and a list", apart, apart < SAME)


PEERS = {
    "lm-eval": Peer(("torch==2.13.0", "lm_eval[hf]"), "lm_eval", lm_eval),
    "inspect": Peer(("inspect-ai", "openai"), "inspect_ai", inspect),
    "opencompass": Peer(("torch==2.13.0", "opencompass", "pyarrow<21"), "opencompass", opencompass),
    "litellm": Peer(("litellm[proxy]",), "litellm", litellm),
    "llama.cpp": Peer((), "xllamacpp", llama_cpp),
    "transformers": Peer((), "transformers", transformers),
}
NOT_RUN = {
    "vLLM, SGLang": "need a GPU; checked against simulations written from their documentation ([servers](servers.md))",
    "HELM, lighteval": "read from logs made with HELM 0.5.16 and lighteval 0.13.0, not run again here",
    "Ray": "`make test-ray`",
}


def install(name: str) -> None:
    """Install a tool into an environment of its own, if it is not there."""
    home = HOME / name
    if PEERS[name].requires and not home.exists():
        venv.create(home, with_pip=True)
        _run([home.resolve() / "bin" / "pip", "install", "--quiet", *PEERS[name].requires], Path.cwd())


def version(name: str) -> str:
    """The version of a tool, in its environment."""
    peer = PEERS[name]
    python = HOME.resolve() / name / "bin" / "python" if peer.requires else sys.executable
    code = f"from importlib.metadata import version; print(version({peer.distribution!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines, red = [], 0
    for name in given.only:
        install(name)
        number = version(name)
        with tempfile.TemporaryDirectory() as folder:
            for case in PEERS[name].cases((HOME / name).resolve(), Path(folder)):
                apart = "" if case.difference is None else f"{case.difference:.1e}" if case.difference else "0"
                red += not case.green
                mark = "✓" if case.green else "✗"
                lines.append(f"| {name} | {number} | {case.name} | {mark} {case.result} | {apart} |")
                print(lines[-1], flush=True)
    if given.out:
        given.out.write_text(page(lines), "utf-8")
    if red:
        sys.exit(f"{red} cases are not green")


def page(lines: list[str]) -> str:
    """The page of the documentation."""
    head = __doc__.partition("\n\n")[2].split("\n\n")[1].replace("\n", " ")
    rows = "\n".join(lines)
    left = "\n".join(f"| {name} | {why} |" for name, why in NOT_RUN.items())
    return (
        "# Compatibility\n\nWritten by `make test-peers` from real runs, with unslant "
        f"{unslant.__version__}, on {time.strftime('%Y-%m-%d')}. {head}\n\n"
        "| tool | version | case | result | largest difference |\n|---|---|---|---|---:|\n"
        f"{rows}\n\n## Not run by it\n\n| tool | how it is checked |\n|---|---|\n{left}\n"
    )


if __name__ == "__main__":
    main()
