"""A table that unslant wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from unslant.responses.importers.registry import Head
from unslant.responses.table import Responses


def recognises(head: Head) -> bool:
    return {"question_id", "contents", "elicitation", "status"} <= head.names


def read(path: Path, fields: Mapping[str, str]) -> Responses:
    return Responses.from_parquet(path)
