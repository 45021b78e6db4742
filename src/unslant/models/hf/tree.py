"""The prefix tree: which tokens are computed, in which batch, and where each score is read.

Token sequences are sorted, so that sequences with a common beginning are neighbours. The tokens of a sequence beyond
what it shares with the sequence before it are exactly the tree nodes it adds; laid out one after the other they are the
tree in depth-first order, and the descendants of a node are the contiguous range behind it. What a sequence shares
with *any* earlier one it shares with its predecessor, so cutting the list into batches needs to carry over one root
path only (the *spine*), and every distinct node of the run is computed exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from unslant.arrays import Ints
from unslant.models.base import Encoded, Ids
from unslant.models.hf.tokenization import common_prefix, distinct_sequences


@dataclass(slots=True)
class Batch:
    """One forward pass: the new nodes of consecutive sequences, in depth-first order.

    Attributes:
        ids, depth: id and depth in the tree (position in the text) of each of its N tokens; shape ``(N,)``.
        end: one past the last descendant in this batch, of each token of the spine and then of the batch;
            shape ``(spine + N,)``.
        spine: how many tokens of root path it takes over from the batch before.
        keep: length of the root path handed on to the next batch; ``keep_local`` are the indices in this batch of its
            tokens beyond the part taken over.
        reads: for every score read here: token index (row), token id scored, and the candidate it counts for.
    """

    ids: Ids
    depth: Ints
    end: Ints
    spine: int
    keep: int = 0
    keep_local: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    read_row: list[int] = field(default_factory=list)
    read_token: list[int] = field(default_factory=list)
    read_candidate: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(slots=True)
class TreeLayout:
    """All batches of a call.

    Attributes:
        first_candidate: index of each prompt's first candidate in the flat list of candidates; one more at the end.
    """

    batches: list[Batch]
    first_candidate: list[int]


def plan(encoded: Sequence[Encoded], token_budget: int, row_budget: int) -> TreeLayout:
    """Lay out the prefix tree of ``encoded`` in batches.

    Args:
        token_budget: tokens per batch (exceeded only by a single sequence that is longer).
        row_budget: rows of logits per batch.
    """
    rows, row_reads, first_candidate = _rows(encoded)
    order = sorted(range(len(rows)), key=lambda r: rows[r].astype(">i4").tobytes())
    batches = _lay_out(rows, row_reads, order, token_budget, row_budget)
    _finish(batches, first_candidate)
    return TreeLayout(batches, first_candidate)


_Read = tuple[int, int, int]  # depth of the node whose logits are read, token id scored, candidate


def _rows(encoded: Sequence[Encoded]) -> tuple[list[Ids], list[list[_Read]], list[int]]:
    """The distinct token sequences to be run, what is read along each, and the numbering of candidates."""
    index: dict[bytes, int] = {}
    rows: list[Ids] = []
    reads: list[list[_Read]] = []
    first_candidate = [0]
    for item in encoded:
        sequences, which = distinct_sequences(item)
        at = [index.setdefault(sequence.tobytes(), len(index)) for sequence in sequences]
        for row, sequence in zip(at, sequences, strict=True):
            if row == len(rows):
                rows.append(sequence)
                reads.append([])
        k = len(item.context)
        for candidate, (own, ids) in enumerate(zip(which, item.candidates, strict=True), start=first_candidate[-1]):
            reads[at[own]] += [(k - 1 + j, int(token), candidate) for j, token in enumerate(ids)]
        first_candidate.append(first_candidate[-1] + len(item.candidates))
    return rows, reads, first_candidate


class _Layout:
    """A batch while it grows."""

    def __init__(self, spine: int) -> None:
        self.spine = spine
        self.ids: list[Ids] = []
        self.depths: list[Ints] = []
        self.size = 0
        self.read_nodes: set[int] = set()
        self.reads: list[tuple[int, int, int]] = []
        # The current root path as indices into [spine | batch], and for ended nodes one past their last descendant.
        self._path = np.arange(spine, dtype=np.int64)
        self._ended: list[tuple[Ints, int]] = []

    def add(self, ids: Ids, depth: int) -> int:
        """Append new nodes below ``depth``; returns the index of the first."""
        start = self.size
        self._ended.append((self._path[depth:], start))
        new = np.arange(self.spine + start, self.spine + start + len(ids), dtype=np.int64)
        self._path = np.concatenate([self._path[:depth], new])
        self.ids.append(ids)
        self.depths.append(np.arange(depth, depth + len(ids), dtype=np.int64))
        self.size += len(ids)
        return start

    def finish(self) -> Batch:
        end = np.full(self.spine + self.size, self.size, dtype=np.int64)
        for nodes, last in self._ended:
            end[nodes] = last
        batch = Batch(np.concatenate(self.ids), np.concatenate(self.depths), end, self.spine)
        for row, token, candidate in self.reads:
            batch.read_row.append(row)
            batch.read_token.append(token)
            batch.read_candidate.append(candidate)
        return batch


def _lay_out(
    rows: Sequence[Ids],
    row_reads: Sequence[list[_Read]],
    order: Sequence[int],
    token_budget: int,
    row_budget: int,
) -> list[Batch]:
    layouts: list[_Layout] = []
    carried: list[tuple[int, Ints]] = []  # per batch but the last: keep, keep_local
    path_batch = np.empty(0, dtype=np.int64)  # which batch holds the node of the current root path at each depth ...
    path_node = np.empty(0, dtype=np.int64)  # ... and where
    previous: Ids = np.empty(0, dtype=np.int32)
    for r in order:
        ids = rows[r]
        shared = common_prefix(previous, ids)
        new = len(ids) - shared
        current = layouts[-1] if layouts else None
        if (
            current is None
            or (current.size and current.size + new > token_budget)
            or len(current.read_nodes) >= row_budget
        ):
            if current is not None:
                carried.append(_carry(path_batch[:shared], path_node[:shared], len(layouts) - 1, current.spine))
            current = _Layout(shared)
            layouts.append(current)
        start = current.add(ids[shared:], shared)
        path_batch = np.concatenate([path_batch[:shared], np.full(new, len(layouts) - 1, dtype=np.int64)])
        path_node = np.concatenate([path_node[:shared], np.arange(start, start + new, dtype=np.int64)])
        for depth, token, candidate in row_reads[r]:
            owner = layouts[path_batch[depth]]
            node = int(path_node[depth])
            owner.reads.append((node, token, candidate))
            owner.read_nodes.add(node)
        previous = ids
    batches = [layout.finish() for layout in layouts]
    for batch, (keep, local) in zip(batches, carried, strict=False):
        batch.keep, batch.keep_local = keep, local
    return batches


def _carry(path_batch: Ints, path_node: Ints, batch: int, spine: int) -> tuple[int, Ints]:
    """The part of the root path that lies in ``batch`` itself; the rest is the beginning of its own spine."""
    own = path_node[path_batch == batch]
    if len(path_batch) - len(own) > spine:
        raise AssertionError("a carried root path must lie in the batch or its spine")
    return len(path_batch), own


def _finish(batches: Sequence[Batch], first_candidate: Sequence[int]) -> None:
    """Mark in each batch which prompts have all their scores once it has run."""
    prompt_of = np.repeat(np.arange(len(first_candidate) - 1), np.diff(first_candidate))
    last = np.zeros(len(first_candidate) - 1, dtype=np.int64)
    for b, batch in enumerate(batches):
        last[prompt_of[batch.read_candidate]] = b
    for prompt, final in enumerate(last.tolist()):
        batches[final].done.append(prompt)


def node_count(encoded: Sequence[Encoded]) -> int:
    """Distinct nodes of the prefix tree: the tokens that are computed."""
    rows = sorted(_rows(encoded)[0], key=lambda ids: ids.astype(">i4").tobytes())
    shared = sum(common_prefix(one, other) for one, other in pairwise(rows))
    return sum(map(len, rows)) - shared


def other_costs(encoded: Sequence[Encoded], groups: Sequence[str]) -> tuple[int, int]:
    """``tokens_plain`` and ``tokens_baqckv`` (see :class:`unslant.models.base.Cost`) of prompts and their groups."""
    plain = baqckv = 0
    for members in _by_group(encoded, groups):
        sequences = [sequence for item in members for sequence in distinct_sequences(item)[0]]
        lengths = [len(sequence) for sequence in sequences]
        shared = min(common_prefix(sequences[0], sequence) for sequence in sequences)
        plain += sum(lengths)
        baqckv += shared + sum(length - shared for length in lengths)
    return plain, baqckv


def _by_group(encoded: Sequence[Encoded], groups: Sequence[str]) -> Iterator[list[Encoded]]:
    found: dict[str, list[Encoded]] = {}
    for item, group in zip(encoded, groups, strict=True):
        found.setdefault(group, []).append(item)
    yield from found.values()
