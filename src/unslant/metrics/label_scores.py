"""Scores by label: one presentation of each question, read from the table of responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints
from unslant.errors import InputError
from unslant.metrics.ties import choose, credit, is_tie
from unslant.responses.table import Responses

TIE_RULES = ("first", "split", "last")
"""Who wins a tie: the first label shown, each tied label in part, or the last."""


@dataclass(frozen=True)
class LabelScores:
    """R rows of one presentation and elicitation, without failed ones. Columns are N labels in standard sequence.

    Attributes:
        ids, subjects: of each row.
        labels: the standard sequence (A, B, ...).
        n_options: (R,)
        logprobs: (R, N) natural log, not renormalised; ``-inf`` where a question has fewer labels.
        right: (R, N) which labels are right.
        positions: (R, N) position of each label, 0 = top.
        n_failed: rows left out because they are not answers.
    """

    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    labels: tuple[str, ...]
    n_options: Ints
    logprobs: Floats
    right: Bools
    positions: Ints
    n_failed: int = 0

    @classmethod
    def read(
        cls, responses: Responses, kind: str, elicitation: str, labels: Sequence[str], item: str = ""
    ) -> LabelScores:
        """The rows of one kind of presentation (and item of it) and elicitation, without repeats.

        Raises:
            InputError: if a row does not show the first of ``labels``, in any order.
        """
        table = responses.where(elicitation=elicitation, kind=kind, item=item).table
        table = table.filter(pc.equal(table["repeat"], 0))
        kept = table.filter(pc.and_(pc.equal(table["status"], "ok"), pc.is_valid(table["logprobs"])))
        ids = tuple(kept["question_id"].to_pylist())
        size, width = len(ids), len(labels)
        n_options = np.asarray(kept["n_options"].to_pylist(), np.int64)
        logprobs = np.full((size, width), -np.inf)
        right = np.zeros((size, width), bool)
        positions = np.tile(np.arange(width, dtype=np.int64), (size, 1))
        columns = {label: i for i, label in enumerate(labels)}
        by_labels: dict[tuple[str, ...], list[int]] = {}
        for r, shown in enumerate(kept["labels"].to_pylist()):
            by_labels.setdefault(tuple(shown), []).append(r)
        values, contents, answers = (kept[name].to_pylist() for name in ("logprobs", "contents", "answers"))
        for shown, rows in by_labels.items():
            places = [columns.get(label, width) for label in shown]
            if sorted(places) != list(range(len(shown))):
                what = f"{kind} {item}".strip()
                raise InputError(
                    f"question {ids[rows[0]]!r}, presentation {what!r}: labels {','.join(shown)} where "
                    f"the first {len(shown)} of {','.join(labels)} are expected; measure each label set on its own"
                )
            cells = np.ix_(rows, places)
            logprobs[cells] = [values[r] for r in rows]
            positions[cells] = range(len(shown))
            right[cells] = [[content in answers[r] for content in contents[r]] for r in rows]
        subjects = tuple(kept["subject"].to_pylist())
        found = cls(ids, subjects, tuple(labels), n_options, logprobs, right, positions)
        found = found.take(np.isfinite(logprobs.max(axis=1)))
        return replace(found, n_failed=table.num_rows - len(found))

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[np.integer] | Bools) -> LabelScores:
        """Some of the rows, by index or mask."""
        index = np.flatnonzero(rows) if rows.dtype == bool else rows
        texts: dict[str, Any] = {name: tuple(getattr(self, name)[i] for i in index) for name in ("ids", "subjects")}
        arrays = {name: getattr(self, name)[index] for name in ("n_options", "logprobs", "right", "positions")}
        return replace(self, **texts | arrays)

    @cached_property
    def relative(self) -> Floats:
        """(R, N) probability relative to the most probable label, which does not underflow."""
        weights: Floats = np.exp(self.logprobs - self.logprobs.max(axis=1, keepdims=True))
        return weights

    @cached_property
    def tied(self) -> Bools:
        """(R,) whether several labels are most probable."""
        return is_tie(self.relative)

    @cached_property
    def gold(self) -> Ints:
        """(R,) column of the right label; -1 where none or several are right."""
        return np.where(self.right.sum(axis=1) == 1, self.right.argmax(axis=1), -1)

    @cached_property
    def chosen(self) -> Ints:
        """(R,) column of the chosen label, ties to the first shown."""
        return choose(self.relative, self.positions).astype(np.int64)

    def correct(self, ties: str = "first") -> Floats:
        """(R,) 0 or 1 (``split``: the tied right labels' part); ``nan`` where no label is right."""
        if ties == "split":
            result = (credit(self.relative) * self.right).sum(axis=1)
        else:
            chosen = self.chosen if ties == "first" else choose(self.relative, -self.positions)
            result = np.take_along_axis(self.right, chosen[:, None], axis=1)[:, 0].astype(np.float64)
        result[~self.right.any(axis=1)] = np.nan
        return np.asarray(result, np.float64)


def standard_labels(responses: Responses, kinds: Sequence[str] = ("given", "order")) -> tuple[str, ...]:
    """The label sequence of a table: that of its first row with most labels.

    Raises:
        InputError: if the table has no such row.
    """
    table = responses.where(kind=list(kinds)).table
    lists = table["labels"]
    if not len(lists):
        raise InputError(f"no responses to presentation {' or '.join(kinds)}: nothing to read the labels from")
    lengths = np.asarray(pc.list_value_length(lists))
    return tuple(lists[int(lengths.argmax())].as_py())
