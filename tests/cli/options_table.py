"""What every option of every command must change, by command: the table of ``test_every_option.py``.

A row is the words of the option, what has to differ (see :class:`Row`), and words that both invocations have. Options
of groups that many commands share have one row for all of them; :data:`OWN` has those of single commands, which come
first.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One option.

    Attributes:
        words: the option as typed.
        shows: where the effect shows: ``prompts`` asked, model and options ``opened``, ``numbers`` of the JSON,
            ``files`` written, exit ``code``, printed ``text``, settings ``passed`` on to a part whose own test is
            named in :data:`DEDICATED`, or that the option is ``refused``.
        context: words of both invocations, instead of the command's own from ``[`` on: see ``{model}``.
    """

    words: str
    shows: str
    context: str = ""


LOAD = {
    "--fields": Row("--fields question=alt", "prompts"),
    "--answer-base": Row("--answer-base 1", "numbers", "QUESTIONS=numbered.jsonl"),
    "--answer-kind": Row("--answer-kind text", "code", "QUESTIONS=numbered.jsonl"),
    "--skip-bad": Row("--skip-bad", "code", "QUESTIONS=bad.jsonl"),
    "--limit": Row("--limit 5", "prompts"),
    "--seed": Row("--seed 3", "prompts", "--limit 4"),
    "--template": Row("--template arc", "prompts"),
    "--chat": Row("--chat", "prompts"),
    "--labels": Row("--labels 1", "prompts"),
    "--to-end": Row("--to-end", "prompts"),
    "--shots": Row("--shots 1", "prompts"),
    "--shots-from": Row("--shots-from other.jsonl", "prompts", "--shots 1"),
    "--shots-by-subject": Row("--shots-by-subject", "prompts", "--shots 1"),
}
REPLIES = {
    "--max-tokens": Row("--max-tokens 7", "opened", "{words}"),
    "--temperature": Row("--temperature 0.3", "opened", "{words}"),
    "--inspect": Row("--inspect reasoning_effort=low", "opened", "{words} MODEL=inspect:openai/x"),
}
OUTPUTS = {
    "--json": Row("--json found.json", "files"),
    "--html": Row("--html found.html", "files"),
    "--out": Row("--out folder", "files"),
    "--figures": Row("--figures folder", "files"),
    "--tables": Row("--tables folder", "files"),
    "--fail-if": Row("--fail-if {metric}<9e9", "code"),
    "--baseline": Row("--baseline base.json", "text"),
    "--details": Row("--details", "text"),
    "--quiet": Row("--quiet", "text"),
    "--responses": Row("--responses found.parquet", "files"),
}
STORE = {
    "--store": Row("--store own.sqlite3", "files", "STORE="),
    "--no-store": Row("--no-store", "files", "STORE="),
    "--offline": Row("--offline", "code", "STORE="),
}
SHARDS = {
    "--shard": Row("--shard 1/2", "text", "--responses part.parquet"),
    "--plan": Row("--plan plan.json", "files", "--responses part.parquet --shard 1/2"),
}
_SERVED = "MODEL=http://127.0.0.1:9/v1#m"
_CHATTED = "http://127.0.0.1:9/v1#m"
MODEL = {
    "--base-url": Row("--base-url http://127.0.0.1:9/v1", "opened"),
    "--adapter": Row("--adapter folder", "opened"),
    "--device": Row("--device cpu", "opened"),
    "--dtype": Row("--dtype bfloat16", "opened"),
    "--revision": Row("--revision main", "opened"),
    "--device-map": Row("--device-map auto", "opened"),
    "--tensor-parallel": Row("--tensor-parallel 2", "opened"),
    "--bits": Row("--bits 4", "opened"),
    "--trust-remote-code": Row("--trust-remote-code", "opened"),
    "--allow-missing": Row("--allow-missing", "opened"),
    "--ray": Row("--ray local", "opened"),
    "--ray-actors": Row("--ray-actors 2", "opened", "--ray local"),
    "--ray-gpus": Row("--ray-gpus 0.5", "opened", "--ray local"),
    "--server": Row("--server vllm", "opened", _SERVED),
    "--top": Row("--top 7", "opened", _SERVED),
    "--header": Row("--header X-A:b", "opened", _SERVED),
    "--extra-body": Row('--extra-body {"a":1}', "opened", _SERVED),
    "--max-completion-tokens": Row("--max-completion-tokens 4", "opened", _SERVED),
    "--connections": Row("--connections 3", "opened", _SERVED),
    "--retries": Row("--retries 2", "opened", _SERVED),
    "--timeout": Row("--timeout 9", "opened", _SERVED),
}
"""That they reach the model is shown for every command; what each does there, by :data:`DEDICATED`."""
_OF_SCORES = (
    "--server",
    "--top",
    "--max-completion-tokens",
    "--tensor-parallel",
    "--ray",
    "--ray-actors",
    "--ray-gpus",
)
IN_WORDS = {name: row for name, row in MODEL.items() if name not in _OF_SCORES}
"""Of a command that only reads replies."""

DEDICATED = {
    "--base-url": "tests/models/test_server_group.py",
    "--adapter": "tests/debiasing/test_lora1.py",
    "--device": "tests/models/test_loading.py",
    "--dtype": "tests/models/test_precision.py",
    "--revision": "tests/models/test_large.py",
    "--device-map": "tests/models/test_large.py",
    "--tensor-parallel": "tests/scale/test_tensor_parallel.py",
    "--bits": "tests/models/test_large.py",
    "--trust-remote-code": "tests/models/test_identity.py",
    "--allow-missing": "tests/models/test_incomplete.py",
    "--ray": "tests/scale/test_ray_pool.py",
    "--ray-actors": "tests/scale/test_ray_pool.py",
    "--ray-gpus": "tests/scale/test_ray_pool.py",
    "--server": "tests/models/test_server_kinds.py",
    "--top": "tests/models/test_served.py",
    "--header": "tests/models/test_server_kinds.py",
    "--extra-body": "tests/models/test_chat.py",
    "--max-completion-tokens": "tests/models/test_server_kinds.py",
    "--connections": "tests/models/test_concurrent.py",
    "--retries": "tests/models/test_concurrent.py",
    "--timeout": "tests/models/test_served.py",
}
"""Option of models -> the file of tests that shows what it does there, which has to name it."""

_WORDS = "--elicit generate MODEL=words"
AUDIT = {
    "--model": Row("--model http://127.0.0.1:9/v1#other", "opened"),
    "--dry-run": Row("--dry-run", "text"),
    "--price": Row("--price 2", "text", "--dry-run"),
    "--output-price": Row("--output-price 3", "text", f"{_WORDS} --dry-run --price 2"),
    "--log": Row("--log base.parquet", "opened"),
    "--elicit": Row("--elicit generate", "opened", "MODEL=words"),
    "--reasoning": Row("--reasoning", "prompts", _WORDS),
    "--orders": Row("--orders cyclic", "prompts", "ORDERS="),
    "--until": Row("--until 0.3", "prompts", "ORDERS="),
    "--repeats": Row("--repeats 2", "prompts", _WORDS),
    "--repeat-sample": Row("--repeat-sample 2", "prompts", f"{_WORDS} --repeats 2"),
    "--ask-again": Row("--ask-again", "prompts", "MODEL=inspect:openai/unsure"),
    "--across-subjects": Row("--across-subjects", "numbers"),
    "--adaptive": Row("--adaptive", "prompts", f"{_WORDS} ORDERS=cyclic"),
    "--calibrate": Row("--calibrate 1", "prompts", f"{_WORDS} ORDERS=cyclic --adaptive QUESTIONS=many.jsonl"),
}
COMPOSE = {
    "--shots": Row("--shots 1", "prompts"),
    "--runs": Row("--runs 2", "prompts"),
    "--probabilities": Row("--probabilities OS=0", "prompts"),
    "--no-instructions": Row("--no-instructions", "prompts"),
}
TRAINING = {
    name: Row(f"{name} {value}", "passed")
    for name, value in {
        "--epochs": 2, "--learning-rate": 0.01, "--batch": 3, "--stop-at": 0.5, "--last-layers": 1,
    }.items()
}  # fmt: skip
_THREE = "--model {at}other --model {at}third"
OWN: dict[str, dict[str, Row]] = {
    "audit": AUDIT,
    "leaderboard": {
        **{
            name: row
            for name, row in AUDIT.items()
            if name not in ("--dry-run", "--price", "--output-price", "--model")
        },
        "--model": Row("--model http://127.0.0.1:9/v1#other", "opened"),
        "--sets": Row("--sets other.jsonl", "prompts"),
        "--rank-by": Row("--rank-by vote", "numbers", "--model http://127.0.0.1:9/v1#other"),
        "--log": Row("--log base.parquet", "code"),
    },
    "debias": {
        "--log": Row("--log base.parquet", "code"),
        "--out": Row("--out out.jsonl", "files", "OUT="),
        "--elicit": AUDIT["--elicit"],
        "--reasoning": AUDIT["--reasoning"],
        "--method": Row("--method none", "prompts"),
        "--train": Row("--train other.jsonl", "prompts", "--method pride"),
        "--answer-base": Row("--answer-base 1", "text", "QUESTIONS=numbered.jsonl"),
    },
    "study debias": {
        "--model": Row("--model http://127.0.0.1:9/v1#other", "opened"),
        "--methods": Row("--methods gray-box", "prompts"),
        "--train": Row("--train other.jsonl", "numbers", "METHODS=vote,pride,bnp"),
        "--no-transfer": Row("--no-transfer", "numbers", "METHODS=pride QUESTIONS=q.jsonl,other.jsonl"),
        "--orders": Row("--orders 5", "numbers"),
        "--to-end": Row("--to-end", "prompts"),
    },
    "study judge": {
        "--model": Row("--model http://127.0.0.1:9/v1#other", "opened"),
        "--log": Row("--log base.parquet", "opened"),
        "--elicit": AUDIT["--elicit"],
        "--reasoning": AUDIT["--reasoning"],
        "--repeats": Row("--repeats 2", "prompts", _WORDS),
        "--error": Row("--error 0.4", "numbers"),
        "--fields": Row("--fields question=alt", "prompts"),
        "--answer-base": Row("--answer-base 1", "refused"),
        "--answer-kind": Row("--answer-kind text", "refused"),
        "--skip-bad": Row("--skip-bad", "code", "QUESTIONS=bad_pairs.jsonl"),
    },
    "study base-rate": {
        "--log": Row("--log base.parquet", "opened"),
        "--charts": Row("--charts found.svg", "files"),
        "--canary": Row("--canary good", "prompts"),
        "--no-nvr": Row("--no-nvr", "prompts"),
        "--seed": Row("--seed 3", "prompts"),
    },
    "study unbiased": {
        **COMPOSE,
        "--model": Row("--model http://127.0.0.1:9/v1#other", "opened"),
        "--log": Row("--log base.parquet", "opened"),
        "--ranking": Row("--ranking ranking.csv", "text", f"{_THREE.format(at='http://127.0.0.1:9/v1#')} --details"),
        "--maths": Row("--maths", "code", "QUESTIONS=maths.jsonl"),
        "--generate": Row("--generate", "opened", "MODEL=words"),
        "--no-alone": Row("--no-alone", "prompts"),
        "--fields": Row("--fields question=alt", "prompts", "QUESTIONS=many.jsonl"),  # eight are few for the examples
        "--seed": Row("--seed 3", "prompts"),
    },
    "study contamination": {
        **COMPOSE,
        **TRAINING,
        "--log": Row("--log base.parquet base.parquet", "code"),
        "--against": Row("--against prefers-a", "passed"),
        "--save-model": Row("--save-model folder", "passed"),
        "--seed": Row("--seed 3", "prompts"),
    },
    "study probe": {
        "--model": Row("--model inspect:openai/other", "opened"),
        "--log": Row("--log confidences.csv", "code"),
        "--accuracy": Row("--accuracy accuracy.csv", "numbers", "MODEL= QUESTIONS= --log confidences.csv"),
        "--strengths": Row("--strengths 0.5", "numbers"),
    },
    "study instruction-boundary": {
        "--model": Row("--model inspect:openai/other", "opened"),
        "--log": Row("--log base.parquet", "opened"),
        "--ranking": Row("--ranking ranking.csv", "text", f"{_THREE.format(at='inspect:openai/')} --details"),
        "--settings": Row("--settings vagueness", "prompts"),
        "--limit": Row("--limit 8", "prompts"),
        "--seed": Row("--seed 3", "prompts", "--limit 8"),
        "--repeats": Row("--repeats 2", "prompts"),
        "--temperature": Row("--temperature 0,1", "opened"),
        "--judge": Row("--judge inspect:openai/judge", "opened"),
        "--polisher": Row("--polisher inspect:openai/polisher", "opened", "SETTINGS=prompt-polishing"),
        "--left-out": Row("--left-out single", "prompts", "SETTINGS=missing-choices"),
        "--fields": Row("--fields question=alt", "prompts", "QUESTIONS=mixed.jsonl"),
        "--answer-base": Row("--answer-base 1", "code", "QUESTIONS=mixed.jsonl"),
        "--answer-kind": Row("--answer-kind index", "code", "QUESTIONS=lettered.jsonl"),
    },
}
