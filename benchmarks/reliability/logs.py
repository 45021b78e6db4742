"""Damaged logs of other harnesses, read as ``unslant audit --log`` reads them."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.reliability.damage import damage_bytes, damage_records, parquet_bytes, to_json, to_parquet, value_damage
from benchmarks.reliability.fuzz import Reader
from benchmarks.reliability.records import Records, records_file
from unslant.files import dump_json

TEXTS = ("one", "two", "three")
PAGE = "Which is it?\nA. one\nB. two\nC. three\nAnswer:"
LM_EVAL: tuple[Records, ...] = (
    [{"doc_id": i, "doc": {"id": f"q{i}", "question": f"Which is {i}?", "choices": ["one", "two", "three"]},
      "target": "1",
      "arguments": {f"gen_args_{k}": {"arg_0": PAGE, "arg_1": f" {label}"} for k, label in enumerate("ABC")},
      "resps": [[["-1.5", "False"]], [["-0.5", "True"]], [["-2.5", "False"]]], "filter": "none"} for i in range(4)],
    [{"doc_id": i, "doc": {"question": "Q?", "choices": {"text": ["red", "blue"]}}, "target": "['A', 'B']",
      "arguments": {f"gen_args_{k}": {"arg_0": c, "arg_1": t} for k, (c, t) in enumerate(
          (("Q?", " red"), ("Q?", " blue"), ("", " red"), ("", " blue")))}, "resps": [[["-1.5", "False"]]] * 4}
     for i in range(3)],
    [{"doc_id": i, "doc": {"question": "Q?"}, "target": "B", "resps": [["I choose B."]],
      "arguments": {"gen_args_0": {"arg_0": PAGE, "arg_1": {"until": ["\n"]}}}} for i in range(3)],
)  # fmt: skip
LIGHTEVAL: tuple[Records, ...] = (
    [{"doc": {"id": str(i), "query": PAGE, "choices": [" A", " B", " C"], "gold_index": [1], "task_name": "t|0"},
      "model_response": {"logprobs": [-1.0, -0.5, -3.0], "text": []}} for i in range(4)],
    [{"__doc__": {"id": str(i), "query": "Q?", "choices": ["red", "blue"], "gold_index": 0, "task_name": "t"},
      "__model_response__": {"logprobs": None, "text": ["Answer: A"]}} for i in range(3)],
)  # fmt: skip
GENERIC: tuple[Records, ...] = (
    [{"id": f"q{i}", "answer": "B", "logprobs": [-1.0, -0.5, -2.0], "order": [2, 0, 1], "options": ["x", "y", "z"],
      "model": "m", "subject": "s", "question": "Q?"} for i in range(4)],
    [{"id": i, "gold": 1, "labels": ["a", "b"], "chosen": "a"} for i in range(4)],
    [{"id": i, "answer": "A", "options": ["red", "blue"], "reply": "It is red."} for i in range(4)],
    [{"qid": "q", "target": 0, "probs": [[0.6, 0.4], [0.3, 0.7]]}],
    [{"idx": i, "data": {"id": i, "answer": "A", "probs": [0.5, 0.5]}} for i in range(3)],
)  # fmt: skip
HELM: Records = [
    {"instance": {"id": f"id{i}", "input": {"text": "Q?"},
                  "references": [{"output": {"text": "red"}, "tags": ["correct"]},
                                 {"output": {"text": "blue"}, "tags": []}]},
     "output_mapping": {"A": "red", "B": "blue"}, "result": {"success": True, "completions": [{"text": " A"}]},
     "request": {"prompt": "Q?"}} for i in range(4)
]  # fmt: skip
CIRCULAR: Records = [
    {"origin_prompt": [{"role": "HUMAN", "prompt": "Which?\n" + "\n".join(
        f"{label}. {TEXTS[pattern.index(label)]}" for label in "ABC")}],
     "prediction": "B", "gold": f"{i}--{pattern[1]}--{pattern}"}
    for i in range(2) for pattern in ("ABC", "BCA", "CAB")
]  # fmt: skip


def use(path: Path) -> None:
    """Read a log, and measure it as the command does."""
    from unslant.auditing.comparison import audit_logs

    found = audit_logs(path)
    dump_json(found.to_dict())


def _lines(layouts: tuple[Records, ...], name: str, *kinds: str) -> Callable[[random.Random], tuple[str, bytes]]:
    return lambda rng: records_file(rng, name, layouts, rng.choice(kinds))


def _spoilt(rng: random.Random, name: str, whole: Callable[[Any], Any], records: Records) -> tuple[str, bytes]:
    spoil = rng.random()
    made = whole(damage_records(rng, records) if spoil < 0.7 else records)
    if rng.random() < 0.2:
        made[rng.choice(list(made))] = value_damage(rng)
    content = to_json(made).encode()
    return name, damage_bytes(rng, content) if spoil > 0.5 else content


def helm(rng: random.Random) -> tuple[str, bytes]:
    return _spoilt(rng, "damaged.json", lambda r: {"adapter_spec": {"model": "m"}, "request_states": r}, HELM)


def opencompass(rng: random.Random) -> tuple[str, bytes]:
    return _spoilt(rng, "damaged.json", lambda r: {str(i): one for i, one in enumerate(r)}, CIRCULAR)


@cache
def _inspect_log() -> bytes:
    """A log that inspect itself wrote."""
    import tempfile

    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import choice
    from inspect_ai.solver import multiple_choice

    samples = [Sample(id=i, input=f"Which is {i}?", choices=["one", "two", "three"], target="B") for i in range(3)]
    task = Task(dataset=MemoryDataset(samples), solver=multiple_choice(), scorer=choice())
    with tempfile.TemporaryDirectory() as folder:
        eval(task, model="mockllm/model", log_dir=folder, log_format="eval", display="none")
        (path,) = Path(folder).glob("*.eval")
        return path.read_bytes()


def inspect_eval(rng: random.Random) -> tuple[str, bytes]:
    """A zip whose members are damaged, or which is damaged itself; sometimes one that unpacks to gigabytes."""
    content = _inspect_log()
    if rng.random() < 0.7:
        stream = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
            names = old.namelist()
            chosen = rng.choice(names)
            for name in names:
                data = old.read(name)
                if name == chosen:
                    data = _member(rng, data)
                new.writestr(name, data)
        content = stream.getvalue()
    if rng.random() < 0.4:
        content = damage_bytes(rng, content)
    return "damaged.eval", content


def inspect_json(rng: random.Random) -> tuple[str, bytes]:
    """The same log in inspect's other format."""
    with zipfile.ZipFile(io.BytesIO(_inspect_log())) as archive:
        whole = json.loads(archive.read("header.json"))
        whole["samples"] = [json.loads(archive.read(n)) for n in archive.namelist() if n.startswith("samples/")]
    content = json.dumps(whole).encode()
    return "damaged.json", _member(rng, content)


def _member(rng: random.Random, data: bytes) -> bytes:
    if rng.random() < 0.002:
        return b" " * (3 << 29)
    value = json.loads(data)
    if rng.random() < 0.3 or not value:
        return damage_bytes(rng, data)
    inside = value
    while rng.random() < 0.7:  # some way down
        nested = [key for key, item in _items(inside) if isinstance(item, dict | list) and item]
        if not nested:
            break
        inside = inside[rng.choice(nested)]
    key = rng.choice([key for key, _ in _items(inside)])
    inside[key] = value_damage(rng)
    return to_json(value).encode()


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))


def label_scores(rng: random.Random) -> tuple[str, bytes]:
    """Columns of label scores under the usual names, as ``--log`` finds them."""
    wide = [{"id": i, "answer": "A", "lp_A": -0.5, "lp_B": -1.5} for i in range(4)]
    if rng.random() < 0.5:
        return records_file(rng, "damaged", (wide,), rng.choice(("csv", "tsv", "parquet")))
    return "damaged.parquet", damage_bytes(rng, parquet_bytes(rng, pa.Table.from_pylist(wide)))


LOGS = (
    Reader("logs lm-eval", _lines(LM_EVAL, "damaged", "jsonl", "json"), use),
    Reader("logs lighteval", lambda rng: ("damaged.parquet", _parquet(rng)), use),
    Reader("logs inspect eval", inspect_eval, use),
    Reader("logs inspect json", inspect_json, use),
    Reader("logs opencompass", opencompass, use),
    Reader("logs helm", helm, use),
    Reader("logs label scores", label_scores, use),
    Reader("logs of one's own", _lines(GENERIC, "damaged", "jsonl", "json", "csv", "tsv", "parquet"), use),
)


def _parquet(rng: random.Random) -> bytes:
    records = rng.choice(LIGHTEVAL)
    content = to_parquet(rng, damage_records(rng, records) if rng.random() < 0.75 else records)
    return damage_bytes(rng, content) if rng.random() < 0.4 else content
