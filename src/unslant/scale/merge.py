"""Merge the tables of all shards into one, as if one machine had asked everything."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from unslant.errors import InputError, without_options
from unslant.responses import SCHEMA, write_batches
from unslant.responses.checks import TableFile, joined
from unslant.responses.provenance import FINGERPRINT, same_identity
from unslant.responses.run import Run, ShardHeader
from unslant.scale.plan import Plan

ROWS_AT_ONCE = 1 << 16
"""Rows of a row group, and about as many as memory holds."""
_NAMES = frozenset({"model", "adapter", "base_url"})
"""Entries of an identity that locate a model. They may differ between machines, since weights are compared."""


@dataclass
class _File:
    """The table of one shard."""

    table: TableFile
    shard: ShardHeader

    @classmethod
    def of(cls, path: Path) -> _File:
        table = TableFile(path)
        shard = table.run.shard
        if shard is None:
            raise InputError.at(path, "is not a shard: it was not made with --shard")
        if shard.index > shard.of or sum(length for _, length in shard.runs) != table.rows:
            raise InputError.at(path, "is incomplete: rows are missing; rerun this shard")
        return cls(table, shard)

    @cached_property
    def plan(self) -> Plan:
        return Plan.read(self.shard.plan, self.shard.digest, self.table.path)

    @cached_property
    def rows(self) -> Generator[pa.Table, None, None]:
        return self.table.batches()


def merge(merged: str | Path, shards: Sequence[str | Path]) -> int:
    """Write the table of a whole run from those of all its shards, in any order.

    Rows are copied in portions, so memory does not grow with them. Costs are summed. Facts that each machine measured
    (agreement in half precision, platform, day) are all listed.

    Returns:
        Rows written.

    Raises:
        InputError: if a file is not a complete shard; if two differ in plan or model, or are the same shard; or if
            shards are missing, with the command that scores them.
        OutputError: if the table cannot be written.
    """
    merged = Path(merged)
    if shard_in(merged):
        raise InputError.at(merged, "is a shard and would be overwritten; give the output file first")
    files = [_File.of(Path(path)) for path in shards]
    if not files:
        raise InputError("no shards: name the table to be written first, then the tables of all shards")
    first = next((file for file in files if file.table.rows), files[0])
    for other in files:
        _check_same(first, other)
    files.sort(key=lambda file: file.shard.index)
    _check_complete(files)
    total = files[0].plan.rows
    try:
        packed = joined(file.table.packed for file in files)
    except ValueError as error:
        raise InputError(f"one of the shards is damaged: {error}") from None
    run = Run.merge([file.table.run for file in files], first.table.run)
    write_batches(_in_groups(_in_order(files)), total, run, packed, SCHEMA, merged)
    return total


def shard_in(path: Path) -> ShardHeader | None:
    """The header of the shard whose table a file holds; None if there is no shard."""
    try:
        return TableFile(path).run.shard if os.path.isfile(path) else None
    except InputError:  # anything else may be overwritten, as by every other command
        return None


def _check_same(one: _File, other: _File) -> None:
    both = f"{one.table.path} and {other.table.path}"
    if one.shard.of != other.shard.of:
        raise InputError(
            f"{both} are shard {one.shard.index}/{one.shard.of} and shard {other.shard.index}/{other.shard.of}: give "
            "shards of the same number"
        )
    if unlike := one.plan.differs_from(other.plan):
        raise InputError(f"{both} do not belong together: their {unlike} differ")
    if other.table.rows and (unlike := _models_differ(one.table.run, other.table.run)):  # an empty shard asked none
        raise InputError(f"{both} do not belong together: they come from different models ({unlike})")


def _models_differ(one: Run, other: Run) -> str:
    """What differs in two models' identities; empty if only names and places do."""
    first, second = (run.identity or {"model": run.model} for run in (one, other))
    if first.get("weights") and second.get("weights"):
        first, second = ({key: one[key] for key in one if key not in _NAMES} for one in (first, second))
    digests = [[model.digest for model in run.provenance.models] for run in (one, other)]
    if same_identity(first, second) and digests[0] == digests[1]:
        return ""
    unlike = sorted(key for key in {*first, *second} if first.get(key) != second.get(key))
    values = [f"{key} {_short(first.get(key))} and {_short(second.get(key))}" for key in unlike if key != FINGERPRINT]
    return ", ".join(values) or "their scores of fixed prompts"


def _short(value: object) -> str:
    text = str(value or "none")
    return text if "://" in text else text[:12]  # of a digest; addresses of two servers begin alike


def _check_complete(files: Sequence[_File]) -> None:
    """InputError unless all shards are there once, and their rows are all rows of the plan."""
    for one, other in pairwise(files):
        if one.shard.index == other.shard.index:
            both = f"{one.table.path} and {other.table.path}"
            raise InputError(f"{both} are both shard {one.shard.index}/{one.shard.of}: give one")
    of, indices = files[0].shard.of, {file.shard.index for file in files}
    if missing := [k for k in range(1, of + 1) if k not in indices]:
        first = ", ".join(map(str, missing[:20])) + ", ..." * (len(missing) > 20)
        raise InputError(
            f"{len(missing):,} of {of:,} shards missing: {first}; score each like this: "
            f"{_command(files[0], missing[0])}"
        )
    expected = 0
    for start, length, file in _runs(files):
        if start != expected:
            raise InputError.at(
                file.table.path, f"does not fit the others: its rows begin at {start:,}, not {expected:,}"
            )
        expected += length
    if expected != files[0].plan.rows:
        raise InputError(f"the shards have {expected:,} rows, but the plan has {files[0].plan.rows:,}; rerun them")


def _command(file: _File, index: int) -> str:
    """The command for another shard of the run."""
    shard = f"{index}/{file.shard.of}"
    words, path = file.table.run.provenance.command, file.table.path
    if not words:
        return f"the same call with shard={shard!r}"
    stem, times = re.subn(rf"(?<!\d){file.shard.index}(?!\d)", str(index), path.stem)
    name = path.with_stem(stem if times == 1 else f"shard-{index}")
    words = [*without_options(words, {"--shard"}), "--shard", shard, "--responses", str(name)]
    return f"unslant {shlex.join(words)}"


def _runs(files: Iterable[_File]) -> list[tuple[int, int, _File]]:
    """Stretches of rows in the order of the whole table: first row, number, and file."""
    return sorted(((start, n, file) for file in files for start, n in file.shard.runs), key=lambda run: run[0])


def _in_order(files: Sequence[_File]) -> Iterator[pa.Table]:
    """All rows. Memory holds at most one batch of each file: the part that belongs to a later stretch."""
    rests: dict[int, pa.Table] = {}
    left = {file.shard.index: file.table.rows for file in files}
    for _, length, file in _runs(files):
        k = file.shard.index
        left[k] -= length
        while length:
            rows = rests.pop(k, None) or next(file.rows)
            taken = min(length, rows.num_rows)
            yield rows.slice(0, taken)
            if taken < rows.num_rows:
                rests[k] = rows.slice(taken)
            length -= taken
        if not left[k]:
            file.rows.close()  # thousands of shards would reach the system's limit on open files


def _in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables of about :data:`ROWS_AT_ONCE` rows."""
    group: list[pa.Table] = []
    for table in tables:
        group.append(table)
        if sum(one.num_rows for one in group) >= ROWS_AT_ONCE:
            yield pa.concat_tables(group)
            group = []
    if group:
        yield pa.concat_tables(group)
