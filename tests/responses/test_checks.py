"""A table of responses that is damaged in any way is refused with row and column, or is what was written."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unslant.errors import InputError
from unslant.questions import Question
from unslant.questions.question import canonical_line, question_of
from unslant.responses import SCHEMA, Response, Responses, Run
from unslant.responses.provenance import ChatCost, Cost

QUESTION = Question("q0", "Which?", ("a", "b", "c"), frozenset({1}), pinned=(2,))
RUN = Run(model="m", cost=Cost(tokens=3, seconds=1.0), settings={"seed": 0})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = [
        Response(f"q{i}", "order", "cloze", ("A", "B", "C"), (0, 1, 2), frozenset({1}), 3,
                 logprobs=np.log([0.5, 0.3, 0.2]), pinned=(2,), text_ranks=(0, 1, 2))
        for i in range(4)
    ]  # fmt: skip
    rows.append(Response("q4", "vanilla", "words", ("A",), (0,), frozenset(), 1, chosen=frozenset(), raw="none"))
    Responses(Responses.from_rows(rows).table, RUN, (QUESTION,)).to_parquet(tmp_path / "r.parquet")
    return tmp_path / "r.parquet"


def change(path: Path, column: str, row: int, value: Any) -> None:
    table = pq.read_table(path)
    values = table[column].to_pylist()
    values[row] = value
    kind = pa.field(column, table.schema.field(column).type)
    pq.write_table(table.set_column(table.column_names.index(column), kind, pa.array(values, kind.type)), path)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("question_id", None, "is missing"),
        ("labels", None, "is missing"),
        ("labels", ["A", None, "C"], "has an empty entry"),
        ("labels", ["A", "", "C"], "holds an empty label"),
        ("labels", ["A", "A", "C"], "holds the same value twice"),
        ("labels", ["A", "B"], "does not hold one number for each label"),
        ("contents", [0, 1], "does not hold one option for each label"),
        ("contents", [0, 1, 3], "holds 3, which is not one of the question's options"),
        ("contents", [0, 1, -4], "holds -4, which is not one"),
        ("logprobs", [-1.0, -1.0], "does not hold one number for each label"),
        ("logprobs", [-1.0, 0.5, -1.0], "holds a value that is not a natural-log probability: 0.5"),
        ("logprobs", [-1.0, float("nan"), -1.0], "holds a value that is not a natural-log probability: nan"),
        ("logprobs", None, "is ok, but there is no answer"),
        ("status", "fine", "is not one of ok, unparsed, conflict, cut, refused, error, censored"),
        ("answers", [1, 1], "holds the same value twice"),
        ("answers", [7], "holds 7"),
        ("pinned", [-1], "holds -1"),
        ("text_ranks", [0, 1], "does not hold one rank for each option"),
        ("n_options", -1, "is out of range"),
        ("repeat", -1, "is below 0"),
    ],
)
def test_a_row_that_cannot_be_is_named(path: Path, column: str, value: object, message: str) -> None:
    change(path, "chosen", 2, None)
    change(path, column, 2, value)
    with pytest.raises(InputError, match=message) as caught:
        Responses.from_parquet(path)
    assert f"{path}, row 3, field" in str(caught.value)


def test_what_is_chosen_is_the_most_probable_label(path: Path) -> None:
    assert [row.chosen for row in Responses.from_parquet(path).rows()] == [frozenset({0})] * 4 + [frozenset()]
    change(path, "chosen", 2, [1])
    with pytest.raises(InputError, match=r"row 3, field \"chosen\": is not the most probable label"):
        Responses.from_parquet(path)


def test_texts_of_other_questions_are_not_taken_for_its_own(path: Path) -> None:
    table = Responses.from_parquet(path)
    other = Question("q0", "Which?", ("a", "b"), frozenset({1}))
    Responses(table.table, table.run, (other,)).to_parquet(path)
    with pytest.raises(InputError, match=r"row 1.*is 3, but question 'q0' has 2 options"):
        Responses.from_parquet(path)


def test_flipped_bits_are_noticed_or_changed_nothing(path: Path) -> None:
    written, content = Responses.from_parquet(path), path.read_bytes()
    rng, noticed = random.Random(1), 0
    for _ in range(300):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            found = Responses.from_parquet(path)
        except InputError:
            noticed += 1
        else:
            assert found.table.equals(written.table)
            assert (found.run, found.questions) == (written.run, written.questions)
    assert noticed > 150


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (b"[]", "object"), (b"{", "Expecting"), (b"\xff", "utf-8"), (b'{"a": %s}' % (b"[" * 99_999), "nested"),
        (b'{"model": 3}', "model"), (b'{"cost": {"tokens": -1}}', "cost.tokens"), (b'{"cost": {"x": null}}', "cost.x"),
        (b'{"settings": 1}', "settings"), (b'{"counts": {"drawn": {"OS": "x"}}}', "drawn"), (b'{"later": 1}', "later"),
    ],
)  # fmt: skip
def test_a_description_of_other_types_is_refused(path: Path, meta: bytes, message: str) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({b"unslant": meta}), path)
    with pytest.raises(InputError, match=message):
        Responses.from_parquet(path)


def test_a_description_that_is_not_what_was_written_is_refused(path: Path) -> None:
    table = pq.read_table(path)
    metadata = table.schema.metadata
    changed = metadata[b"unslant"].replace(b'"model": "m"', b'"model": "n"')
    pq.write_table(table.replace_schema_metadata(metadata | {b"unslant": changed}), path)
    with pytest.raises(InputError, match="is damaged"):
        Responses.from_parquet(path)


@pytest.mark.parametrize("other", [{"options": "ab"}, {"answer": "x"}, {"answer": True}, {"question": 3}, {"more": 1}])
def test_a_canonical_question_with_something_else_in_it_is_refused(other: dict[str, object]) -> None:
    record = json.loads(canonical_line(QUESTION))
    assert question_of(record) == QUESTION
    with pytest.raises(ValueError, match=r"not a question|out of range"):
        question_of(record | other)
    for name in ("question", "options", "answer"):
        with pytest.raises(ValueError, match="not a question"):
            question_of({key: value for key, value in record.items() if key != name})


def test_the_schema_is_what_a_response_has() -> None:
    assert set(SCHEMA.names) == set(Response.__dataclass_fields__)


def test_a_run_is_read_back_from_the_json_of_its_dump() -> None:
    """As a log of inspect holds it; the JSON of results says more of the cost, and is for readers."""
    whole = replace(RUN, cost=Cost(tokens=3, prompts=2, tokens_ordinary=6), requests={"m": ChatCost(requests=1)})
    assert Run.of(json.loads(whole.dump())) == whole
    assert Run.parse(whole.dump()) == whole
    assert whole.to_dict()["cost"]["ordinary_runs"] == 0.5
    with pytest.raises(ValueError, match="ordinary_runs"):
        Run.of(replace(whole, cost=replace(whole.cost, seconds=1.5)).to_dict())


@pytest.mark.parametrize(
    "settings",
    [{"seed": "3"}, {"seed": True}, {"seed": -1}, {"temperatures": 1.0}, {"temperatures": [0, "1"]}],
    ids=str,
)
def test_settings_that_results_are_computed_again_with_have_their_type(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(ValueError, match=rf"^its description \(settings\): value error, {name} "):
        Run.of({"settings": settings})


def test_many_samples_and_draws_have_room(path: Path) -> None:
    row = replace(Responses.from_parquet(path).rows()[0], repeat=100_000, run=40_000)
    Responses.from_rows([row]).to_parquet(path)
    (again,) = Responses.from_parquet(path).rows()
    assert (again.repeat, again.run) == (100_000, 40_000)
