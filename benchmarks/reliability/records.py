"""Damaged files of records, in every format that records come in."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.reliability.damage import (
    damage_bytes,
    damage_gzip,
    damage_records,
    damage_zip,
    to_csv,
    to_json,
    to_parquet,
    to_xlsx,
)

Records = list[dict[str, Any]]


def records_file(rng: random.Random, stem: str, layouts: tuple[Records, ...], kind: str) -> tuple[str, bytes]:
    """A damaged file of records: ``jsonl``, ``json``, ``csv``, ``tsv``, ``xlsx`` or ``parquet``, sometimes packed."""
    records: list[Any] = rng.choice(layouts)
    spoil = rng.random()
    if spoil < 0.75:
        records = damage_records(rng, records)
    if kind == "jsonl":
        content = "".join(to_json(record) + "\n" for record in records).encode()
    elif kind == "json":
        whole = rng.choice((records, records, {"data": records}, {str(i): record for i, record in enumerate(records)}))
        content = to_json(whole).encode()
    elif kind == "parquet":
        content = to_parquet(rng, records)
    elif kind == "xlsx":
        content = to_xlsx(records)
        content = damage_zip(rng, content) if rng.random() < 0.3 else content
    else:
        content = to_csv(records, "\t" if kind == "tsv" else ",").encode("utf-8", "surrogatepass")
    if spoil > 0.6:
        content = damage_bytes(rng, content)
    if rng.random() < 0.15:
        return f"{stem}.{kind}.gz", damage_gzip(rng, content)
    return f"{stem}.{kind}", content
