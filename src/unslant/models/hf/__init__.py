"""Local models of transformers, scored through one prefix tree.

This file holds the tree: which tokens are computed, in which batch, and where each score is read.

Token sequences are sorted, so that sequences with a common beginning are neighbours. The tokens of a sequence beyond
what it shares with the sequence before it are exactly the tree nodes it adds; laid out one after the other they are the
tree in depth-first order, and the descendants of a node are the contiguous range behind it. What a sequence shares
with *any* earlier one it shares with its predecessor, so cutting the list into batches needs to carry over one root
path only (the *spine*), and every distinct node of the run is computed exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from unslant.arrays import Ints, grouped
from unslant.models.base import Encoded, Ids


def sort_key(ids: Ids) -> bytes:
    """Bytes that sort as the token ids do: big-endian, since bytes are compared from the first one on."""
    return ids.astype(">i4").tobytes()


def common_prefix(a: Ids, b: Ids) -> int:
    """Number of leading tokens that two sequences share."""
    m = min(len(a), len(b))
    different = a[:m] != b[:m]
    return int(different.argmax()) if different.any() else m


def distinct_sequences(item: Encoded) -> tuple[list[Ids], list[int]]:
    """The distinct token sequences to run for one prompt, and which of them each candidate is read from.

    The last token of a candidate is read, not run. So labels of one token need no sequence besides the context.
    """
    index: dict[bytes, int] = {}
    sequences: list[Ids] = []
    which = []
    for ids in item.candidates:
        which.append(index.setdefault(ids[:-1].tobytes(), len(sequences)))
        if which[-1] == len(sequences):
            sequences.append(np.concatenate([item.context, ids[:-1]]) if len(ids) > 1 else item.context)
    return sequences, which


@dataclass(slots=True)
class Batch:
    """One forward pass: the new nodes of consecutive sequences, in depth-first order.

    Attributes:
        ids, depth: id and depth in the tree (position in the text) of each of its N tokens; shape ``(N,)``.
        end: for each token of the spine and then of the batch, one past its last descendant in this batch;
            shape ``(spine + N,)``.
        spine: number of tokens of the root path taken over from the batch before.
        keep: length of the root path handed on to the next batch; ``keep_local`` are the indices in this batch of its
            tokens beyond the part taken over.
        read_row, read_token, read_candidate: for every score read here, the token index whose logits hold it, the token
            id scored, and the candidate it counts for.
        done: prompts that have all their scores once this batch has run.
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


def plan(encoded: Sequence[Encoded], token_budget: int, row_budget: int) -> tuple[list[Batch], list[int]]:
    """Lay out the prefix tree of ``encoded`` in batches.

    Args:
        token_budget: tokens per batch (exceeded only by a single sequence that is longer).
        row_budget: rows of logits after which a batch takes no further sequence.

    Returns:
        The batches; and the index of each prompt's first candidate in the flat list of candidates, one more at the end.
    """
    rows, row_reads, first_candidate = _rows(encoded)
    order = sorted(range(len(rows)), key=lambda r: sort_key(rows[r]))
    batches = _lay_out(rows, row_reads, order, token_budget, row_budget)
    prompt_of = np.repeat(np.arange(len(encoded)), np.diff(first_candidate))
    last = np.zeros(len(encoded), dtype=np.int64)
    for b, batch in enumerate(batches):
        last[prompt_of[batch.read_candidate]] = b
    for prompt, final in enumerate(last.tolist()):
        batches[final].done.append(prompt)
    return batches, first_candidate


_Read = tuple[int, int, int]  # depth of the node whose logits are read, token id scored, candidate


def _rows(encoded: Sequence[Encoded]) -> tuple[list[Ids], list[list[_Read]], list[int]]:
    """The distinct token sequences to run, what is read along each, and the numbering of candidates."""
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
        for candidate, (row, ids) in enumerate(zip(which, item.candidates, strict=True), start=first_candidate[-1]):
            # The logits that score a token are those of the node before it, so the first is read at the context's end.
            reads[at[row]] += [(k - 1 + j, int(token), candidate) for j, token in enumerate(ids)]
        first_candidate.append(first_candidate[-1] + len(item.candidates))
    return rows, reads, first_candidate


class _Layout:
    """A batch while it grows."""

    def __init__(self, spine: int) -> None:
        self.spine, self.keep, self.keep_local = spine, 0, np.empty(0, dtype=np.int64)
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
        kept, reads = (self.spine, self.keep, self.keep_local), map(list, zip(*self.reads, strict=True))
        return Batch(np.concatenate(self.ids), np.concatenate(self.depths), end, *kept, *reads)


def _lay_out(
    rows: Sequence[Ids], row_reads: Sequence[list[_Read]], order: Sequence[int], token_budget: int, row_budget: int
) -> list[Batch]:
    layouts: list[_Layout] = []
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
            # Logits need (rows, vocabulary) in float32, which outgrows the tokens themselves in large vocabularies.
            or len(current.read_nodes) >= row_budget
        ):
            if current is not None:  # hand on the root path: what it adds to the beginning of its spine
                local = path_node[:shared][path_batch[:shared] == len(layouts) - 1]
                # Sorting guarantees it: a path shared with a later sequence is shared with every sequence in between.
                if shared - len(local) > current.spine:
                    raise AssertionError("a carried root path must lie in the batch or its spine")
                current.keep, current.keep_local = shared, local
            current = _Layout(shared)
            layouts.append(current)
        start = current.add(ids[shared:], shared)
        path_batch = np.concatenate([path_batch[:shared], np.full(new, len(layouts) - 1, dtype=np.int64)])
        path_node = np.concatenate([path_node[:shared], np.arange(start, start + new, dtype=np.int64)])
        for depth, token, candidate in row_reads[r]:
            # A node of an earlier batch is read there, where its logits are; a node is never computed twice.
            owner = layouts[path_batch[depth]]
            node = int(path_node[depth])
            owner.reads.append((node, token, candidate))
            owner.read_nodes.add(node)
        previous = ids
    return [layout.finish() for layout in layouts]


def node_count(encoded: Sequence[Encoded]) -> int:
    """Distinct nodes of the prefix tree: the tokens that are computed."""
    rows = sorted(_rows(encoded)[0], key=sort_key)
    shared = sum(common_prefix(one, other) for one, other in pairwise(rows))
    return sum(map(len, rows)) - shared


def other_costs(encoded: Sequence[Encoded], groups: Sequence[str]) -> tuple[int, int]:
    """``tokens_plain`` and ``tokens_baqckv`` (see :class:`unslant.models.base.Cost`) of prompts and their groups."""
    plain = baqckv = 0
    for members in grouped(zip(groups, encoded, strict=True)).values():
        sequences = [sequence for item in members for sequence in distinct_sequences(item)[0]]
        lengths = [len(sequence) for sequence in sequences]
        shared = min(common_prefix(sequences[0], sequence) for sequence in sequences)
        plain += sum(lengths)
        baqckv += shared + sum(length - shared for length in lengths)
    return plain, baqckv
