"""Damaged tables of responses and of recorded scores, read back into the results of their studies."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.reliability.damage import damage_bytes, odd_array, text_damage, to_json, value_damage
from benchmarks.reliability.fuzz import Reader
from benchmarks.reliability.records import records_file
from unslant import Question
from unslant.files import dump_json
from unslant.models.base import ModelInfo, Scored, ScoringModel
from unslant.prompts import Prompt
from unslant.responses import Response, Responses, Run


class Guesser(ScoringModel):
    """A model whose scores are drawn from the prompt."""

    def __init__(self) -> None:
        super().__init__(ModelInfo(name="guesser", identity={"model": "guesser"}))

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for i, prompt in enumerate(prompts):
            rng = random.Random(prompt.as_text())
            weights = np.array([rng.random() + 0.01 for _ in prompt.continuations])
            yield Scored(i, np.log(weights / weights.sum() * 0.9))


def questions() -> list[Question]:
    texts = ("red", "blue", "green", "white")
    return [Question(f"q{i}", f"Which {i}?", texts[: 3 + i % 2], frozenset({i % 3}), subject="s") for i in range(6)]


@cache
def originals() -> tuple[tuple[bytes, Responses], ...]:
    """Small tables of every study, undamaged."""
    from unslant.auditing.study import audit
    from unslant.studies.base_rate.study import base_rate
    from unslant.studies.unbiased.study import unbiased

    asked = questions()
    made = [
        audit(Guesser(), asked, orders="cyclic").responses,
        base_rate(Guesser(), _set(asked)).responses,
        unbiased(Guesser(), _set(asked), runs=2, shots=0).responses,
        in_words(asked),
    ]
    found = []
    for responses in made:
        stream = io.BytesIO()
        responses.to_parquet(stream)
        found.append((stream.getvalue(), responses))
    return tuple(found)


def _set(asked: list[Question]) -> Any:
    from unslant.questions import QuestionSet

    return QuestionSet.of(asked)


def in_words(asked: list[Question]) -> Responses:
    rows = [
        Response(
            question.id, setting, "words", tuple("ABCD"[: len(question.options)]), tuple(range(len(question.options))),
            question.answers, len(question.options), chosen=frozenset({0}) if i else None,
            status="ok" if i else "refused", raw="A", subject="s", source="made",
        )
        for setting in ("vanilla", "conclusive")
        for i, question in enumerate(asked)
    ]  # fmt: skip
    return Responses.from_rows(rows, Run(study="instruction-boundary", model="guesser", settings={"seed": 0}))


def responses_case(rng: random.Random) -> tuple[str, bytes]:
    """A table of responses with damaged values, columns, description or bytes."""
    content, _ = rng.choice(originals())
    if rng.random() < 0.3:
        return "damaged-bytes.parquet", damage_bytes(rng, content)
    table = pq.read_table(io.BytesIO(content))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        table = _spoilt(rng, table)
    return "damaged.parquet", _written(rng, table)


def _spoilt(rng: random.Random, table: pa.Table) -> pa.Table:
    if not table.num_columns:
        return table
    at = rng.randrange(table.num_columns)
    name, n = table.column_names[at], table.num_rows
    kind = rng.randrange(10) if table.column_names.count(name) == 1 else 7
    if kind < 5 and n:
        try:
            rows = table[name].to_pylist()
        except (pa.ArrowException, OverflowError, ValueError):  # an odd column that Python has no values for
            return table
        for _ in range(rng.choice((1, 1, n))):
            row = rng.randrange(n)
            rows[row] = _other(rng, rows[row])
        for wanted in (table.schema.field(name).type, None):
            try:
                return table.set_column(at, name, pa.array(rows, wanted))
            except (pa.ArrowException, OverflowError, TypeError, ValueError):
                continue
        return table
    if kind == 5:
        return table.set_column(at, name, odd_array(rng, n))
    if kind == 6:
        return table.drop_columns([name]) if rng.random() < 0.5 else table.append_column(name, table[at])
    if kind == 7:
        rows = [rng.randrange(n) for _ in range(rng.choice((0, 1, n, 2 * n)))] if n else []
        return table.take(pa.array(rows, pa.int64()))
    if kind == 8:
        return table.set_column(at, rng.choice(table.column_names), table[at])
    return _described(rng, table)


WORDS = (
    *(
        "order",
        "given",
        "reverse",
        "labels-reversed",
        "nvr",
        "nvr-A",
        "nvr-",
        "control",
        "vanilla",
        "boat",
        "only",
        "OS",
    ),
    *(
        "boat:1",
        "boat:x",
        "boat:",
        "only:",
        "only:??",
        "cloze",
        "counterfactual",
        "words",
        "words/judge",
        "ok",
        "error",
    ),
    *("unparsed", "refused", "conclusive", "q0", "control/3", "A", "B", ""),
)


def _other(rng: random.Random, value: Any) -> Any:
    if isinstance(value, list) and rng.random() < 0.8:
        kind = rng.randrange(5)
        if kind == 0:
            return value[:-1]
        if kind == 1:
            return value * 2
        if kind == 2:
            return []
        place = rng.randrange(len(value)) if value else 0
        return [*value[:place], _other(rng, value[place] if value else 0), *value[place + 1 :]]
    if isinstance(value, float) and rng.random() < 0.8:
        return rng.choice((0.5, 1e-5, 300.0, float("nan"), float("inf"), float("-inf"), -1e308, 0.0, -0.0))
    if isinstance(value, int) and rng.random() < 0.8:
        return rng.choice((-1, -2, -3, -4, 0, 1, 2, 3, 4, 26, 32767, -32768))
    if isinstance(value, str) and rng.random() < 0.8:
        return rng.choice(WORDS) if rng.random() < 0.7 else text_damage(rng).encode("utf-8", "replace").decode()
    return rng.choice((None, 0, 1.5, "x", True, [1], {"a": 1}, b"\xff"))


def _described(rng: random.Random, table: pa.Table) -> pa.Table:
    """The table with other words about its run; the digest is left out, or nothing would get by it."""
    metadata = dict(table.schema.metadata or {})
    metadata.pop(b"unslant.digest", None)
    if rng.random() < 0.3 and b"unslant.questions" in metadata:
        metadata[b"unslant.questions"] = damage_bytes(rng, metadata[b"unslant.questions"])
        return table.replace_schema_metadata(metadata)
    try:
        meta = json.loads(metadata.get(b"unslant", b"{}"))
    except (ValueError, RecursionError):  # damaged before
        meta = {}
    meta = meta if isinstance(meta, dict) else {}
    key = rng.choice([*meta, "study", "cost", "seed", "model", "settings"])
    inner = meta.get(key)
    if isinstance(inner, dict) and inner and rng.random() < 0.7:
        own = rng.choice([*inner, "other"])
        deeper = inner.get(own)
        if isinstance(deeper, dict) and deeper:
            deeper[rng.choice(list(deeper))] = value_damage(rng)
        else:
            inner[own] = value_damage(rng)
    elif rng.random() < 0.3:
        meta[key] = rng.choice(("audit", "base-rate", "unbiased", "instruction-boundary", "debias", ""))
    else:
        meta[key] = value_damage(rng)
    try:
        written = to_json(value_damage(rng) if rng.random() < 0.05 else meta)
    except RecursionError:  # nested before, as deep as may be
        written = "[" * 100_000
    metadata[b"unslant"] = written.encode() if rng.random() < 0.95 else damage_bytes(rng, written.encode())
    return table.replace_schema_metadata(metadata)


def _written(rng: random.Random, table: pa.Table) -> bytes:
    stream = io.BytesIO()
    try:
        pq.write_table(table, stream, compression=rng.choice(("none", "zstd", "snappy")))
    except (pa.ArrowException, ValueError):  # a type that Parquet does not have
        return b"PAR1"
    return stream.getvalue()


def use_responses(path: Path) -> None:
    """Read a table as its study does; damage to bytes must be noticed, or have changed nothing."""
    from unslant.studies import read_result

    found = Responses.from_parquet(path)
    if path.name.startswith("damaged-bytes"):
        assert any(found.table.equals(own.table) for _, own in originals()), "damaged bytes give another table"
    result = read_result(path)
    json.loads(dump_json(result.to_dict()), parse_constant=float.fromhex)
    result.summary(details=True)


def recorded_case(kind: str) -> Callable[[random.Random], tuple[str, bytes]]:
    def case(rng: random.Random) -> tuple[str, bytes]:
        return records_file(rng, "damaged", RECORDED, kind)

    return case


RECORDED: tuple[list[dict[str, Any]], ...] = (
    [{"id": i // 3, "variant": v, "subject": "s", "model": "m", "answer": "ABC"[i % 3], "lp_A": -1.0, "lp_B": -2.5,
      "lp_C": -0.5} for i, v in enumerate(["given", "nvr-A", "control"] * 3)],
    [{"question": i // 3, "label": "ABC"[i % 3], "logprob": -1.0 - i, "answer": "A", "order": "BAC",
      "elicitation": "cf"} for i in range(9)],
)  # fmt: skip


def use_recorded(path: Path) -> None:
    from unslant.studies.base_rate.study import base_rate

    json.loads(dump_json(base_rate(log=path).to_dict()), parse_constant=float.fromhex)


TABLES = (
    Reader("responses parquet", responses_case, use_responses),
    *(Reader(f"recorded {kind}", recorded_case(kind), use_recorded, names_file=False) for kind in ("csv", "parquet")),
)
