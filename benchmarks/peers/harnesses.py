"""Tools that evaluate and write logs: their accuracy against the one that ``--log`` reads."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import unslant
from benchmarks.peers.cases import GGUF, MODEL, SCRIPTS, Case, logged, questions, refused, run, same_scores, write_rows
from benchmarks.prefix_cache import serving
from unslant.reference import reference_path

TASKS = Path(__file__).parents[2] / "tests" / "plugins" / "lm_eval_tasks", Path(__file__).parent / "tasks"
_OF_LM_EVAL: Mapping[str, tuple[str, str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "logiqa": (
        "logiqa/logiqa.yaml",
        "listed",
        lambda row: {"label": "abcd"[row["answer"]], "context": "So it is.", **row},
    ),
    "agieval": (
        "agieval/logiqa-en.yaml",
        "listed",
        lambda row: {
            "query": f"{row['question']} Answer Choices: {' '.join(_lettered(row))}\nA: Among A through D, it is",
            "choices": _lettered(row),
            "gold": [row["answer"]],
        },
    ),
    "musr": (
        "leaderboard/musr/_template_yaml",
        "listed",
        lambda row: {
            "narrative": "They met in the mill.",
            "question": row["question"],
            "choices": repr(row["options"]),
            "answer_choice": row["options"][row["answer"]],
        },
    ),
    "race": (
        "race/race.yaml",
        "texts",
        lambda row: {
            "article": "They met in the mill.",
            "problems": repr(
                [{"question": row["question"], "answer": "ABCD"[row["answer"]], "options": row["options"]}]
            ),
        },
    ),
    "winogrande": (
        "winogrande/default.yaml",
        "texts",
        lambda row: {
            "sentence": f"{row['question']} It is _ as they say.",
            "option1": row["options"][0],
            "option2": row["options"][1],
            "answer": str(1 + row["answer"] % 2),
        },
    ),
    "mc2": (
        "truthfulqa/truthfulqa_mc2.yaml",
        "texts",
        lambda row: {
            "question": row["question"],
            "mc1_targets": {"choices": row["options"], "labels": [1, 0, 0, 0]},
            "mc2_targets": {"choices": row["options"], "labels": [1, 1, 0, 0]},
        },
    ),
}
"""Name -> a task of lm-eval's own, what it scores, and a question in the shape of its data, which stay elsewhere."""


def _lettered(row: Mapping[str, Any]) -> list[str]:
    return [f"({label}){text}" for label, text in zip("ABCD", row["options"], strict=True)]


def _write_tasks(home: Path, folder: Path, rows: list[dict[str, Any]]) -> Path:
    """All tasks in one folder: ours, and lm-eval's own with ``rows`` as their data."""
    tasks = folder / "tasks"
    for source in TASKS:
        shutil.copytree(source, tasks, dirs_exist_ok=True)
    (theirs,) = home.glob("lib/python*/site-packages/lm_eval/tasks")
    for name, (task, _, shaped) in _OF_LM_EVAL.items():
        data = write_rows(folder / f"{name}.jsonl", map(shaped, rows))
        (tasks / f"of_lm_eval_{name}.yaml").write_text(
            f"include: {theirs / task}\ntask: own_{name}\ndataset_path: json\ndataset_name: null\n"
            f"dataset_kwargs: {{data_files: {{test: {data}}}}}\ntest_split: test\ntraining_split: null\n"
            "validation_split: null\nfewshot_split: null\nnum_fewshot: 0\n"
        )
    return tasks


def lm_eval(home: Path, folder: Path) -> Iterator[Case]:
    """Real runs of ``lm_eval run``: logs read, and the same tasks run by unslant."""
    rows = questions(8)
    write_rows(folder / "four.jsonl", rows)
    entities = [{"passage": f"{row['question']} ...", "entities": row["options"]} for row in rows]
    both = [[row["options"][row["answer"]], row["options"][0]] for row in rows]
    write_rows(folder / "several.jsonl", [row | {"answers": texts} for row, texts in zip(entities, both, strict=True)])
    tasks = _write_tasks(home, folder, rows)
    names = {"letters": "labels", "cloze": "texts", "hybrid": "listed", "reversed": "labels", "several": "texts"}
    names |= {name: scores for name, (_, scores, _) in _OF_LM_EVAL.items()}
    run(
        [home / "bin" / "lm_eval", "run", "--model", "hf", "--model_args",
         f"pretrained={reference_path(MODEL)},dtype=float32", "--tasks", ",".join(f"own_{name}" for name in names),
         "own_open", "--device", "cpu", "--include_path", tasks, "--log_samples", "--output_path", folder / "out",
         "--batch_size", "8"],
        folder,
    )  # fmt: skip
    (results,) = folder.glob("out/**/results_*.json")
    numbers = json.loads(results.read_text())["results"]

    def samples(name: str) -> Path:
        (found,) = folder.glob(f"out/**/samples_own_{name}_*.jsonl")
        return found

    for name, scores in names.items():
        shown = f"`{name}`" if name in _OF_LM_EVAL else name
        metric = next(key for key in ("acc,none", "em,none", "acc_norm,none") if key in numbers[f"own_{name}"])
        yield logged(f"`--log` of {shown}", samples(name), numbers[f"own_{name}"][metric], scores)
        ours = folder / f"{name}.ours.jsonl"
        command = [sys.executable, "-m", "unslant", "lm-eval", f"own_{name}", "--include-path", tasks, "--model", MODEL]
        run([*command, "--no-store", "--samples", ours, "--quiet"], folder, PYTHONPATH=os.pathsep.join(sys.path))
        pages = [
            [[float(one[0][0]) for one in row["resps"]] for row in sorted(rows, key=lambda row: row["doc_id"])]
            for rows in ([json.loads(line) for line in path.read_text().splitlines()] for path in (ours, samples(name)))
        ]
        yield same_scores(f"`unslant lm-eval` of {shown}, published order", pages[0], pages[1], "{n} documents")
    yield refused(
        "`--log` of open questions", lambda: unslant.audit(log=[samples("open")]), "has options in its prompt"
    )
    yield refused("`--log results_*.json`", lambda: unslant.audit(log=[results]), "samples_")
    alone = folder / "alone"
    alone.mkdir()
    shutil.copy(samples("letters"), alone)
    yield logged("`--log FOLDER`", alone, numbers["own_letters"]["acc,none"])


def opencompass(home: Path, folder: Path) -> Iterator[Case]:
    """Files written by OpenCompass's own handlers, scored by its own evaluator."""
    (folder / "rows.json").write_text(json.dumps(questions()))
    printed = run([home / "bin" / "python", SCRIPTS / "opencompass_files.py"], folder)
    accuracy = float(printed.rpartition("accuracy ")[2])
    for name, what in {
        "letters.json": "generated answers",
        "numbers.json": "generated answers, right options as numbers",
        "tmp_letters.jsonl": "the temporary file of a run that stopped",
        "ppl.json": "perplexities (PPL)",
        "ll.json": "log-likelihoods (LL)",
    }.items():
        yield logged(f"`--log` of {what}", folder / name, accuracy)


_IN_ORDERS = """
import json, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.solver import multiple_choice
from unslant.inspect import choice_in_orders, in_orders
rows = json.load(open("rows.json"))[:6]
data = [Sample(input=r["question"], choices=r["options"], target="ABCD"[r["answer"]], id=r["id"]) for r in rows]
task = Task(dataset=in_orders(MemoryDataset(data, name="own"), orders=6), solver=multiple_choice(),
            scorer=choice_in_orders())
eval(task, model="openai-api/local/model", log_dir="orders", max_tokens=40, temperature=0, display="none")
"""


def inspect(home: Path, folder: Path) -> Iterator[Case]:
    """Real evaluations by inspect, of a model behind llama.cpp."""
    (folder / "rows.json").write_text(json.dumps(questions()))
    with serving(GGUF.resolve(), 1, 1, 0) as url:
        local = {"LOCAL_BASE_URL": url, "LOCAL_API_KEY": "none"}
        run([home / "bin" / "python", SCRIPTS / "inspect_logs.py"], folder, **local)
        run([sys.executable, "-c", _IN_ORDERS], folder, PYTHONPATH=os.pathsep.join(sys.path), **local)
    for name, what in {
        "given": "multiple_choice, options given",
        "shuffled": "multiple_choice, options shuffled",
        "epochs": "two epochs",
        "own_scorer": "a scorer of one's own",
    }.items():
        (log,) = (folder / name).glob("*.eval")
        yield logged(f"`--log` of {what}", log, json.loads((folder / f"{name}.json").read_text()))
    (log,) = (folder / "several").glob("*.eval")
    yield refused(
        "`--log` of multiple_choice(multiple_correct=True)", lambda: unslant.audit(log=[log]), "multiple_correct"
    )
    (log,) = (folder / "orders").glob("*.eval")
    published = unslant.audit(log=[log]).metrics.means["accuracy"].n
    yield Case("`in_orders(dataset, orders=6)`", f"as published on {published} of 6 questions", None, published == 6)


def helm(home: Path, folder: Path) -> Iterator[Case]:
    """Real runs of ``helm-run`` with a local model of transformers, in two splits."""
    (folder / "rows.json").write_text(json.dumps(questions()))
    methods = {
        "multiple_choice_joint": "words",
        "multiple_choice_separate_original": "texts",
        "multiple_choice_separate_calibrated": "texts",
    }
    entries = [f"own:method={method},model=huggingface/{MODEL}" for method in methods]
    run(
        [home / "bin" / "helm-run", "--plugins", "own_helm", "--run-entries", *entries, "--suite", "own", "-m", "99",
         "-n", "1", "--enable-local-huggingface-models", reference_path(MODEL), "--disable-cache", "--exit-on-error"],
        folder, PYTHONPATH=str(SCRIPTS),
    )  # fmt: skip
    for method, scores in methods.items():
        (own,) = folder.glob(f"benchmark_output/runs/own/own:method={method},*")
        stats = json.loads((own / "stats.json").read_text())
        (accuracy,) = (
            one["mean"] for one in stats if one["name"] == {"name": "exact_match", "split": "test"} and one["count"]
        )
        yield logged(f"`--log FOLDER` of {method}, split `test`", own, accuracy, scores)
    yield refused("`--log stats.json`", lambda: unslant.audit(log=[own / "stats.json"]), "scenario_state.json")


def lighteval(home: Path, folder: Path) -> Iterator[Case]:
    """A real run of ``lighteval accelerate``: the details of two tasks."""
    (folder / "own").mkdir()
    write_rows(folder / "own" / "test.jsonl", questions())
    names = {"own_labels": "labels", "own_texts": "texts"}
    (theirs,) = home.glob("lib/python*/site-packages/lighteval/tasks/tasks")
    (theirs / "tinyBenchmarks.pkl").touch()  # or every start of lighteval downloads it, for a task that is not run
    model = shutil.copytree(reference_path(MODEL), folder / MODEL)  # its cache is written into the model's folder
    run(
        [home / "bin" / "lighteval", "accelerate", f"model_name={model},dtype=float32",
         ",".join(names), "--custom-tasks", SCRIPTS / "own_lighteval.py", "--output-dir", "out", "--save-details"],
        folder,
    )  # fmt: skip
    (results,) = folder.glob("out/results/**/results_*.json")
    numbers = json.loads(results.read_text())["results"]
    for name, scores in names.items():
        (details,) = folder.glob(f"out/details/**/details_{name}*.parquet")
        (accuracy,) = (own["acc"] for task, own in numbers.items() if task.startswith(name))
        yield logged(f"`--log details_*.parquet` of {name}", details, accuracy, scores)
    yield refused("`--log results_*.json`", lambda: unslant.audit(log=[results]), "give its details_")
