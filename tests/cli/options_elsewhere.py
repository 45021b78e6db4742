"""What every option of the commands must change that ask no model, that train one, or that run tasks of lm-eval.

Rows as in ``options_table.py``, except that a context replaces the whole command. ``{RUN}`` is the id of the run that
was recorded before.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.cli.options_table import IN_WORDS, LOAD, MODEL, OUTPUTS, Row


class Other(NamedTuple):
    """One command.

    Attributes:
        base: what is typed without the option.
        rows: option -> row.
        earlier: commands that are run first.
        real: whether models are opened rather than stood in for.
    """

    base: str
    rows: dict[str, Row]
    earlier: tuple[str, ...] = ()
    real: bool = False


_AUDIT = "audit fair q.jsonl --orders reverse --quiet"
_OWN = "--store own.sqlite3"
_RECORDED = (f"{_AUDIT} {_OWN}",)
_TABLE = f"{_AUDIT} --no-store --responses base.parquet"
_SERVED = "http://127.0.0.1:9/v1#m"
REPORTS = {name: row for name, row in OUTPUTS.items() if name != "--responses"}
_IN_ALL_ORDERS = (
    "tests/studies/test_audit_words.py::test_a_random_part_in_all_orders_asks_less_and_represents_the_others"
)
TESTED = {
    ("audit", "--in-all-orders"): _IN_ALL_ORDERS,
    ("leaderboard", "--in-all-orders"): _IN_ALL_ORDERS,
    ("rerun", "--anyway"): "tests/cli/test_provenance.py::test_other_questions_or_another_model_are_refused",
}
"""Options that need more than a row -> the test that shows their effect."""


def _opened(base: str, server: str) -> dict[str, Row]:
    """Rows of the model options for a command that opens one; those of servers are refused or need a server."""
    return {
        name: row._replace(context=" ".join([base, server if "MODEL=" in row.context else row.context]).strip())
        for name, row in IN_WORDS.items()
    }


_JUDGED = "replies recorded.jsonl --out out.jsonl --judge"


def _local(base: str) -> dict[str, Row]:
    """Rows of the model options for a command that takes local models only."""
    return {
        name: row._replace(context=f"{base} {row.context}".strip())
        for name, row in MODEL.items()
        if "MODEL=" not in row.context and name != "--base-url"
    }


_TRAIN = "train fair q.jsonl --out adapter --epochs 1 --questions-per-epoch 2 --max-orders 3"
_LM_EVAL = "lm-eval own_letters --include-path tasks --model prefers-a --orders reverse --no-store"
_FEWSHOT = "lm-eval own_fewshot --include-path tasks --model prefers-a --orders given --no-store"
_EXPORT = "export base.parquet"
_BUILD = "questions build instruction-boundary --out built.jsonl --only mmlu --source mmlu=many.jsonl --scale 0.05"
_SHEET = "study annotation-sheet numbered.jsonl --out sheet.csv"

OTHERS = {
    "merge": Other(
        "merge whole.parquet one.parquet two.parquet",
        {**REPORTS, "--baseline": Row("--baseline base.parquet", "text")},
        (
            f"{_AUDIT} --no-store --shard 1/2 --responses one.parquet",
            f"{_AUDIT} --no-store --shard 2/2 --responses two.parquet",
            _TABLE,
        ),
    ),
    "rerun": Other(
        "rerun base.json",
        {
            **OUTPUTS,
            "--trust": Row("--trust", "code", "rerun served.json"),
        },
        (
            f"{_AUDIT} --no-store --json base.json",
            f"audit {_SERVED} q.jsonl --orders reverse -q --no-store --json served.json",
        ),
    ),
    "plan": Other(
        "plan --half-width 0.1",
        {
            **{name: row for name, row in REPORTS.items() if name != "--baseline"},
            "--log": Row("--log base.parquet", "numbers"),
            "--half-width": Row("--half-width 0.05", "numbers"),
            "--difference": Row("--difference 0.03", "numbers"),
            "--available": Row("--available 20", "numbers"),
            "--score": Row("--score 0.9", "numbers"),
            "--options": Row("--options 3", "numbers"),
            "--correlation": Row("--correlation 0.9", "numbers"),
            "--repeats": Row("--repeats 2", "numbers"),
            "--tokens": Row("--tokens 100", "numbers"),
            "--price": Row("--price 2", "numbers"),
            "--output-price": Row("--output-price 2", "numbers", "plan words.json --half-width 0.1 --price 1"),
        },
        (
            _TABLE,
            "plan --half-width 0.2 --quiet --json base.json",
            f"{_AUDIT.replace('fair', 'words')} --elicit generate --no-store --json words.json",
        ),
    ),
    "export": Other(
        f"{_EXPORT} --to flat --out flat.json",
        {
            "--to": Row("--to flat", "code", f"{_EXPORT} --out flat.json"),
            "--out": Row("--out other.json", "files"),
            "--dataset": Row(
                "--dataset org/other", "contents", f"{_EXPORT} --to model-index --out c.jsonl --dataset org/set"
            ),
            "--task": Row("--task hard", "contents", f"{_EXPORT} --to model-index --out c.jsonl --dataset org/set"),
            "--subset": Row("--subset en", "contents", f"{_EXPORT} --to model-index --out c.jsonl --dataset org/set"),
            "--split": Row("--split test", "contents", f"{_EXPORT} --to model-index --out c.jsonl --dataset org/set"),
            "--source-url": Row(
                "--source-url https://h/run", "contents", f"{_EXPORT} --to model-index --out c.jsonl --dataset org/set"
            ),
            "--organization": Row("--organization Org", "code", f"{_EXPORT} --to every-eval --out ."),
            "--relationship": Row("--relationship no", "code", f"{_EXPORT} --to every-eval --out . --organization Org"),
            "--store": Row(_OWN, "code", "export {RUN} --to flat --out flat.json"),
            "--quiet": Row("--quiet", "text"),
        },
        (_TABLE, *_RECORDED),
    ),
    "report": Other(
        "report base.parquet",
        {
            "--out": Row("--out other.html", "files"),
            "--figures": Row("--figures folder", "files"),
            "--tables": Row("--tables folder", "files"),
            "--store": Row(_OWN, "code", "report {RUN}"),
            "--quiet": Row("--quiet", "text"),
        },
        (_TABLE, *_RECORDED),
    ),
    "replies": Other(
        "replies recorded.jsonl --out out.jsonl",
        {
            **_opened(f"{_JUDGED} words", "--base-url http://127.0.0.1:9/v1"),
            "--out": Row("--out elsewhere.jsonl", "files"),
            "--judge": Row("--judge words", "opened"),
            "--json": Row("--json found.json", "files"),
            "--quiet": Row("--quiet", "text"),
            "--store": Row(_OWN, "files", f"{_JUDGED} words"),
            "--no-store": Row("--no-store", "files", f"{_JUDGED} words"),
            "--offline": Row("--offline", "code", f"{_JUDGED} {_SERVED}"),
        },
    ),
    "runs list": Other(
        "runs list", {"--store": Row(_OWN, "code"), "--json": Row("--json", "text", f"runs list {_OWN}")}, _RECORDED
    ),
    "runs show": Other("runs show {RUN}", {"--store": Row(_OWN, "code")}, _RECORDED),
    "runs export": Other(
        "runs export {RUN} --responses found.parquet",
        {
            "--store": Row(_OWN, "code"),
            "--responses": Row("--responses found.parquet", "files", "runs export {RUN} " + _OWN),
        },
        _RECORDED,
    ),
    "runs delete": Other(
        "runs delete --all",
        {
            "--store": Row(_OWN, "code"),
            "--all": Row("--all", "code", f"runs delete {_OWN}"),
            "--older-than": Row("--older-than 0h", "code", f"runs delete {_OWN}"),
        },
        _RECORDED,
    ),
    "runs repair": Other("runs repair", {"--store": Row(_OWN, "code")}, _RECORDED),
    **{
        f"runs {name}": Other(
            f"runs {name} {{RUN}} --trust",
            {"--store": Row(_OWN, "code"), "--trust": Row("--trust", "code", f"runs {name} {{RUN}} {_OWN}")},
            (f"audit {_SERVED} q.jsonl --orders reverse -q {_OWN}",),
        )
        for name in ("resume", "take-over")
    },
    "questions check": Other(
        "questions check numbered.jsonl",
        {
            **{name: row for name, row in REPORTS.items() if name not in ("--details", "--baseline")},
            "--fields": Row("--fields question=alt", "text"),
            "--answer-base": Row("--answer-base 1", "text"),
            "--answer-kind": Row("--answer-kind text", "code"),
        },
        ("questions check bad.jsonl --quiet --json base.json",),
    ),
    "questions build instruction-boundary": Other(
        _BUILD,
        {
            "--out": Row("--out elsewhere.jsonl", "files"),
            "--source": Row("--source mmlu=more.jsonl", "contents"),
            "--only": Row("--only truthfulqa", "text", _BUILD + " --source truthfulqa=many.jsonl"),
            "--fields": Row("--fields mmlu.question=alt", "contents"),
            "--layout": Row("--layout published", "contents"),
            "--scale": Row("--scale 0.02", "contents"),
            "--seed": Row("--seed 3", "contents"),
            "--quiet": Row("--quiet", "text"),
        },
    ),
    "study annotation-sheet": Other(
        _SHEET,
        {
            "--out": Row("--out other.csv", "files"),
            "--items": Row("--items 3", "contents"),
            "--maths": Row("--maths", "code", "study annotation-sheet maths.jsonl"),
            "--fields": Row("--fields question=alt", "contents"),
            "--answer-base": Row("--answer-base 1", "contents"),
            "--answer-kind": Row("--answer-kind text", "code"),
            "--skip-bad": Row("--skip-bad", "code", "study annotation-sheet bad.jsonl"),
            "--limit": Row("--limit 5", "contents"),
            "--seed": Row("--seed 3", "contents"),
            "--template": Row("--template arc", "contents"),
            "--quiet": Row("--quiet", "text"),
        },
    ),
    "study annotation-agreement": Other(
        "study annotation-agreement ann.csv bob.csv",
        REPORTS,
        ("study annotation-agreement ann.csv ann2.csv -q --json base.json",),
    ),
    "train": Other(
        _TRAIN,
        {
            **{
                name: row
                for name, row in _local(_TRAIN).items()
                if name not in ("--ray", "--ray-actors", "--ray-gpus", "--bits", "--tensor-parallel")
            },
            "--out": Row("--out other", "files"),
            **{
                name: Row(f"{name} {value}", "contents")
                for name, value in {
                    "--rank": 2,
                    "--alpha": 99,
                    "--dropout": 0.5,
                    "--learning-rate": 0.01,
                    "--weight-decay": 0.5,
                    "--entropy-weight": 0.9,
                    "--epochs": 2,
                    "--questions-per-epoch": 3,
                    "--questions-per-step": 2,
                    "--max-orders": 2,
                    "--targets": "q_proj",
                    "--seed": 3,
                    "--labels": 1,
                    "--template": "arc",
                    "--limit": 5,
                    "--held-out": "other.jsonl",
                }.items()
            },
            "--fields": Row("--fields question=alt", "contents"),
            "--answer-base": Row("--answer-base 1", "code", _TRAIN.replace("q.jsonl", "last.jsonl")),
            "--answer-kind": LOAD["--answer-kind"]._replace(context=_TRAIN.replace("q.jsonl", "numbered.jsonl")),
            "--skip-bad": LOAD["--skip-bad"]._replace(context=_TRAIN.replace("q.jsonl", "bad.jsonl")),
            "--chat": Row("--chat", "contents"),
            "--to-end": Row("--to-end", "contents"),
            "--store": Row(_OWN, "files"),
            "--no-store": Row("--no-store", "files"),
            "--quiet": Row("--quiet", "text"),
        },
        real=True,
    ),
    "lm-eval": Other(
        _LM_EVAL,
        {
            **_local(_LM_EVAL),
            **OUTPUTS,
            "--model": Row("--model fair", "text"),
            "--samples": Row("--samples found.jsonl", "files"),
            "--orders": Row("--orders given", "numbers", _LM_EVAL.replace(" --orders reverse", "")),
            "--include-path": Row("--include-path tasks", "code", _LM_EVAL.replace(" --include-path tasks", "")),
            "--num-fewshot": Row("--num-fewshot 1", "numbers", _FEWSHOT),
            "--limit": Row("--limit 3", "numbers"),
            "--apply-chat-template": Row("--apply-chat-template", "numbers"),
            "--no-fewshot-as-multiturn": Row(
                "--no-fewshot-as-multiturn", "numbers", f"{_FEWSHOT} --apply-chat-template"
            ),
            "--system-instruction": Row("--system-instruction Think!", "numbers"),
            "--fewshot-seed": Row("--fewshot-seed 7", "numbers", _FEWSHOT),
            "--seed": Row("--seed 7", "numbers", _LM_EVAL.replace("reverse", "2")),
            "--store": Row(_OWN, "files", _LM_EVAL.replace(" --no-store", "")),
            "--no-store": Row("--no-store", "files", _LM_EVAL.replace(" --no-store", "")),
        },
        ("lm-eval own_letters --include-path tasks --model fair --orders given --no-store -q --json base.json",),
        real=True,
    ),
}
