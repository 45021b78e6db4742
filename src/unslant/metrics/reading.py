"""From the table of responses to :class:`OrderScores`, column by column (no Python object per row)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unslant.errors import InputError
from unslant.metrics.scores import Block, Bools, Floats, Ints, OrderScores, View
from unslant.responses.table import Responses

ROLES = ("order", "given", "reverse", "labels-reversed", "both-reversed", "labels-shifted")
ORDER, GIVEN, REVERSE, LABELS_REVERSED, BOTH_REVERSED, LABELS_SHIFTED = range(6)


def labels_at(role: int, n: int) -> Ints:
    """(n,) which label of the standard sequence stands at each position, top first, in presentations of a role."""
    if role in (LABELS_REVERSED, BOTH_REVERSED):
        return np.arange(n)[::-1]
    return (np.arange(n) + (role == LABELS_SHIFTED)) % n


@dataclass(frozen=True)
class _Rows:
    """The rows of one option count n: question, role, and per position the content, its probability and its label."""

    question: Ints
    role: Ints
    contents: Ints
    by_position: Floats
    labels: Ints
    ok: Bools


@dataclass(frozen=True)
class _Questions:
    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    n_options: Ints
    answers: Bools
    pinned: Bools
    text_ranks: Ints

    def reversed_contents(self, n: int) -> Ints:
        """(Q, n) content at each position with the movable options reversed; meaningful where n_options == n."""
        pinned = self.pinned[:, :n]
        # positions of movable options first, in order, then pinned ones: the k-th movable swaps with the k-th last
        order = np.argsort(pinned, axis=1, kind="stable")
        movable = n - pinned.sum(axis=1, keepdims=True)
        k = np.arange(n)
        partner = np.take_along_axis(order, np.where(k < movable, movable - 1 - k, k), axis=1)
        result = np.empty_like(order)
        np.put_along_axis(result, order, partner, axis=1)
        return result


def read_scores(responses: Responses, elicitation: str) -> OrderScores:
    """See :meth:`OrderScores.from_responses`."""
    table = responses.where(elicitation=elicitation, presentation=ROLES).table
    table = table.filter(pa.compute.equal(table["repeat"], 0))
    if table.num_rows == 0:
        raise InputError(_nothing_to_read(responses, elicitation))
    unique, first, codes = np.unique(
        np.asarray(table["question_id"].to_pylist(), dtype=object).astype(str), return_index=True, return_inverse=True
    )
    questions = _questions(table.take(pa.array(first)).to_pylist(), tuple(str(i) for i in unique))
    role = np.asarray([ROLES.index(name) for name in table["presentation"].to_pylist()])
    vocabulary, label_lists = _encoded_labels(table)
    groups = {
        int(n): _rows_of(table, int(n), codes, role, questions, label_lists) for n in np.unique(questions.n_options)
    }
    labels = _standard_labels(groups, questions, vocabulary)
    blocks = _blocks(groups, questions)
    complete = np.zeros(len(unique), bool)
    for block in blocks:
        complete[block.index] = True
    any_order = bool((role == ORDER).any())
    return OrderScores(
        questions.ids,
        questions.subjects,
        questions.n_options,
        questions.answers,
        questions.pinned,
        questions.text_ranks,
        tuple(vocabulary[code] for code in labels),
        blocks,
        given=_view(groups, questions, "given"),
        reversed=_view(groups, questions, "reverse"),
        labels_reversed=_view(groups, questions, "labels-reversed"),
        both_reversed=_view(groups, questions, "both-reversed"),
        labels_shifted=_view(groups, questions, "labels-shifted"),
        contexts=_contexts(responses, questions.ids),
        n_failed=sum(int((~rows.ok).sum()) for rows in groups.values()),
        n_incomplete=int((~complete).sum()) if any_order else 0,
        elicitation=elicitation,
    )


def _contexts(responses: Responses, ids: tuple[str, ...]) -> tuple[str, ...]:
    known = {question.id: question.context for question in responses.questions}
    return tuple(known.get(i, "") for i in ids) if known else ()


def _nothing_to_read(responses: Responses, elicitation: str) -> str:
    present = sorted(set(responses.table["elicitation"].to_pylist()))
    if elicitation not in present:
        return f"no responses with elicitation {elicitation!r}; the table has {', '.join(present) or 'no rows'}"
    return f"no responses to presentations {', '.join(ROLES)}: order metrics need at least the given order"


def _questions(first_rows: list[dict[str, Any]], ids: tuple[str, ...]) -> _Questions:
    n_options = np.asarray([row["n_options"] for row in first_rows], np.int64)
    width = int(n_options.max())
    answers = np.zeros((len(ids), width), bool)
    pinned = np.zeros((len(ids), width), bool)
    ranks = np.tile(np.arange(width, dtype=np.int64), (len(ids), 1))
    for q, row in enumerate(first_rows):
        answers[q, [a for a in row["answers"] if a >= 0]] = True
        pinned[q, list(row["pinned"])] = True
        if row["text_ranks"]:
            ranks[q, : row["n_options"]] = row["text_ranks"]
    return _Questions(ids, tuple(row["subject"] for row in first_rows), n_options, answers, pinned, ranks)


def _lists(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], Any]:
    """Offsets (R + 1,) and flat values of a column of lists (a null list has no values)."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # combine_chunks keeps a chunked array where it has no chunk at all
        array = pa.concat_arrays(array.chunks)
    return np.asarray(array.offsets, np.int64), array.values


def _encoded_labels(table: pa.Table) -> tuple[list[str], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    offsets, values = _lists(table["labels"])
    encoded = values.dictionary_encode()
    return encoded.dictionary.to_pylist(), (offsets, np.asarray(encoded.indices, np.int64))


def _rows_of(
    table: pa.Table,
    n: int,
    codes: NDArray[np.intp],
    role: Ints,
    questions: _Questions,
    labels: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> _Rows:
    rows = np.flatnonzero(questions.n_options[codes] == n)
    code = codes[rows]
    content_offsets, content_values = _lists(table["contents"])
    lengths = np.diff(content_offsets)[rows]
    at = content_offsets[rows][:, None] + np.arange(n)
    flat = np.asarray(content_values, np.int64)
    right = lengths == n
    contents = np.full((len(rows), n), -1)
    contents[right] = flat[at[right]]
    right &= (np.sort(contents, axis=1) == np.arange(n)).all(axis=1)
    right &= (np.asarray(table["n_options"])[rows] == n) & (np.diff(labels[0])[rows] == n)
    if not right.all():
        row = int(np.flatnonzero(~right)[0])
        raise InputError(
            f"question {questions.ids[code[row]]!r}, presentation {ROLES[role[rows[row]]]!r}: it does not show exactly "
            f"the question's {n} options, each under one label; give presentations with added or removed options "
            "another name"
        )
    by_position, ok = _probabilities(table, rows, contents)
    return _Rows(code, role[rows], contents, by_position, labels[1][labels[0][rows][:, None] + np.arange(n)], ok)


def _probabilities(table: pa.Table, rows: NDArray[np.intp], contents: Ints) -> tuple[Floats, Bools]:
    """(R, n) softmax over the shown labels, by position, and which rows are answers."""
    n = contents.shape[1]
    ok = np.asarray(table["status"].to_pylist(), dtype=object)[rows] == "ok"
    offsets, values = _lists(table["logprobs"])
    scored = np.diff(offsets)[rows] == n
    logits = np.full(contents.shape, np.nan)
    flat = np.asarray(values, np.float64)
    logits[scored] = flat[offsets[rows[scored]][:, None] + np.arange(n)]
    chosen = table["chosen"]
    for r in np.flatnonzero(ok & ~scored):
        named = chosen[int(rows[r])].as_py() or []
        if len(named) == 1 and named[0] >= 0:
            logits[r] = np.where(contents[r] == named[0], 0.0, -np.inf)
    top = logits.max(axis=1, keepdims=True)
    ok &= np.isfinite(top[:, 0])
    with np.errstate(invalid="ignore"):
        # summed from top to bottom of the page, so the same page gives the same bits in whatever file it is listed
        weights = np.exp(logits - top)
        probs = weights / weights.sum(axis=1, keepdims=True)
    probs[~ok] = 0.0
    return probs, ok


def _standard_labels(groups: dict[int, _Rows], questions: _Questions, vocabulary: list[str]) -> Ints:
    """The label sequence of the rows in standard sequence; all must agree, shorter ones being its beginning."""
    longest = np.empty(0, np.int64)
    for n in sorted(groups, reverse=True):
        rows = groups[n]
        if not longest.size:
            longest = np.empty(n, np.int64)
            first = int(rows.role.argmin())  # one in standard sequence, if there is any
            longest[labels_at(int(rows.role[first]), n)] = rows.labels[first]
        for role in np.unique(rows.role):
            wanted = longest[:n][labels_at(int(role), n)]
            wrong = (rows.role == role) & (rows.labels != wanted).any(axis=1)
            if wrong.any():
                row = int(np.flatnonzero(wrong)[0])
                raise InputError(
                    f"question {questions.ids[rows.question[row]]!r}, presentation {ROLES[rows.role[row]]!r}: labels "
                    f"{','.join(vocabulary[c] for c in rows.labels[row])} where "
                    f"{','.join(vocabulary[c] for c in wanted)} are expected; measure each label set on its own"
                )
    return longest


def _by_content(rows: _Rows, which: NDArray[np.intp]) -> tuple[Floats, Ints]:
    """Probability and position of every content, (R, n) each, for the rows ``which``."""
    contents = rows.contents[which]
    positions = np.argsort(contents, axis=1)
    return np.take_along_axis(rows.by_position[which], positions, axis=1), positions


def _view(groups: dict[int, _Rows], questions: _Questions, which: str) -> View:
    size, width = questions.answers.shape
    ok = np.zeros(size, bool)
    probs = np.zeros((size, width))
    positions = np.tile(np.arange(width, dtype=np.int64), (size, 1))
    labels = positions.copy()
    role = ROLES.index(which)
    for n, rows in groups.items():
        expected = np.tile(np.arange(n), (len(rows.question), 1))
        if role in (REVERSE, BOTH_REVERSED):
            expected = questions.reversed_contents(n)[rows.question]
        matches = (rows.contents == expected).all(axis=1)
        own = rows.role == role
        if (own & ~matches).any():
            row = int(np.flatnonzero(own & ~matches)[0])
            raise InputError(
                f"question {questions.ids[rows.question[row]]!r}, presentation {which!r}: shows its options in order "
                f"{tuple(int(c) for c in rows.contents[row])}, not {tuple(int(c) for c in expected[row])}"
            )
        shared = (rows.role == ORDER) & matches if role in (GIVEN, REVERSE) else np.zeros_like(own)
        for source in (shared, own):
            used = np.flatnonzero(source & rows.ok)
            question = rows.question[used]
            row_probs, row_positions = _by_content(rows, used)
            ok[question] = True
            probs[question, :n] = row_probs
            positions[question, :n] = row_positions
            labels[question, :n] = labels_at(role, n)[row_positions]
    return View(ok, probs, positions, labels)


def _blocks(groups: dict[int, _Rows], questions: _Questions) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for n, rows in groups.items():
        which = np.flatnonzero(rows.role == ORDER)
        if not which.size:
            continue
        # by question, then lexicographically by content from top to bottom
        which = which[np.lexsort((*rows.contents[which].T[::-1], rows.question[which]))]
        question, contents = rows.question[which], rows.contents[which]
        again = (question[1:] == question[:-1]) & (contents[1:] == contents[:-1]).all(axis=1)
        if again.any():
            row = int(np.flatnonzero(again)[0])
            raise InputError(
                f"question {questions.ids[question[row]]!r} has order {tuple(int(c) for c in contents[row])} twice: "
                "two runs, or two questions of the same id, are mixed in one table"
            )
        asked, start, counts = np.unique(question, return_index=True, return_counts=True)
        failed = np.add.reduceat((~rows.ok[which]).astype(np.int64), start) > 0
        pinned = questions.pinned[asked, :n].sum(axis=1)
        full = np.zeros(n + 1, np.int64)
        np.maximum.at(full, pinned, counts)
        complete = ~failed & (counts == full[pinned])
        for k in np.unique(counts[complete]):
            chosen = complete & (counts == k)
            row_index = which[(start[chosen][:, None] + np.arange(k)).ravel()]
            probs, positions = _by_content(rows, row_index)
            index = asked[chosen]
            blocks.append(
                Block(
                    index,
                    tuple(questions.ids[i] for i in index),
                    probs.reshape(-1, k, n),
                    positions.reshape(-1, k, n),
                    questions.answers[index, :n],
                    questions.pinned[index, :n],
                    questions.text_ranks[index, :n],
                    tuple(questions.subjects[i] for i in index),
                )
            )
    return tuple(blocks)
