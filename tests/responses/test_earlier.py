"""Tables written before presentations had fields, made here by the schema of then, mean what they meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unslant.errors import InputError
from unslant.presentations import NONE
from unslant.responses import SCHEMA, Response, Responses

NEW = ("kind", "run", "item", "suggested")
EARLIER = pa.schema(
    [SCHEMA.field("question_id"), pa.field("presentation", pa.string(), nullable=False)]
    + [field for field in SCHEMA if field.name not in (*NEW, "question_id")]
)


def row(kind: str, run: int = 0, item: str = "", suggested: frozenset[int] | None = None, **fields: object) -> Response:
    known: dict[str, object] = {"logprobs": np.log([0.2, 0.5, 0.3]), "text_ranks": (2, 0, 1)}
    return Response(
        "q", kind, "cloze", ("A", "B", "C"), (2, 0, 1), frozenset({1}), 3, run=run, item=item, suggested=suggested,
        **known | fields,
    )  # fmt: skip


def written_earlier(rows: dict[str, Response], path: Path, meta: bytes = b'{"study": "audit"}') -> Responses:
    """The rows under their names of then, through a file of then."""
    records = Responses.from_rows(rows.values()).table.drop_columns(list(NEW)).to_pylist()
    records = [record | {"presentation": name} for record, name in zip(records, rows, strict=True)]
    for record, (_, made) in zip(records, rows.items(), strict=True):
        if made.suggested is not None:
            labels = [
                label for label, content in zip(made.labels, made.contents, strict=True) if content in made.suggested
            ]
            record["interventions"] = [f"suggested: {', '.join(labels) or 'none'}"]
    table = pa.Table.from_pylist(records, schema=EARLIER).replace_schema_metadata({b"unslant": meta})
    pq.write_table(table, path)
    return Responses.from_parquet(path)


def test_names_become_fields(tmp_path: Path) -> None:
    rows = {
        "order": row("order"),
        "labels-reversed": row("labels-reversed"),
        "control": row("control"),
        "nvr-B": row("nvr", item="B"),
        "vanilla": row("vanilla"),
        "boat:0": row("boat", run=0, interventions=("DH", "AR")),
        "boat:3:2": row("boat", run=3, item="2", interventions=("BT",)),
        "only:DH+AR": row("only", interventions=("DH", "AR")),
        "only:BT:1": row("only", item="1", interventions=("BT",)),
    }
    found = written_earlier(rows, tmp_path / "earlier.parquet")
    assert found.table.equals(Responses.from_rows(rows.values()).table)
    assert found.meta == {"study": "audit"}


def test_instruction_settings_are_items_and_suggestions_are_contents(tmp_path: Path) -> None:
    rows = {
        "vanilla": row("setting", item="vanilla"),
        "disturbing-3": row("setting", item="disturbing-3"),
        "conformity-dense": row("setting", item="conformity-dense", suggested=frozenset({0})),
        "conformity-sparse": row("setting", item="conformity-sparse", suggested=frozenset({1, 2})),
    }
    found = written_earlier(rows, tmp_path / "earlier.parquet", b'{"study": "instruction-boundary"}')
    assert found.table.equals(Responses.from_rows(rows.values()).table)
    none = {"conformity-sparse": row("setting", item="conformity-sparse", suggested=frozenset({NONE}))}
    found = written_earlier(none, tmp_path / "none.parquet", b'{"study": "instruction-boundary"}')
    assert found.rows()[0].suggested == {NONE}


def test_other_tables_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"presentation": ["given"], "interventions": [[]]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="not a table of responses: column 'question_id' is missing"):
        Responses.from_parquet(tmp_path / "x.parquet")
