"""From the table of responses to :class:`OrderScores`, column by column (no Python object per row)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints, release_memory
from unslant.errors import InputError
from unslant.metrics.order_rows import ROLES, OrderRows, labels_at, order_scores
from unslant.metrics.scores import OrderScores, Places, QuestionArrays
from unslant.responses.checks import NO_ANSWER
from unslant.responses.table import AGAIN, DECISION, GENERATE, Response, Responses


def read_scores(responses: Responses | Iterable[Response], elicitation: str = "") -> OrderScores:
    """Read the presentations of kind ``order``, ``given``, ``reverse``, and those with the labels in other places.

    ``order`` rows are the order set, see :func:`~unslant.metrics.order_rows.order_scores`. Rows of other presentations
    and repeats beyond the first are ignored. A reply (no log-probabilities) counts as
    probability 1 for the one option it names; one that is unparsed, refused, or names none or several has no answer.

    Args:
        elicitation: which rows to read; by default replies or decisions, if the table has nothing else, or the cloze.

    Raises:
        InputError: if no row is left, a question has the same order twice, an order row does not show exactly the
            question's options, or questions use different label sequences.
    """
    if not isinstance(responses, Responses):
        responses = Responses.from_rows(responses)
    if not elicitation:
        present = pc.unique(responses.table["elicitation"]).to_pylist()
        present = [name for name in present if name != AGAIN]
        elicitation = present[0] if present in ([GENERATE], [DECISION]) else "cloze"
    columns: dict[str, _OfQuestion] = {}
    same: dict[Any, Any] = {}  # few different values: one object each
    for piece in _pieces(responses.table, elicitation):
        first: dict[str, int] = {}
        for i, name in enumerate(piece["question_id"].to_pylist()):
            if name not in columns:
                first.setdefault(name, i)
        rows = piece.select(_OF_QUESTION).take(pa.array(first.values(), pa.int64())).to_pydict().values()
        for name, *values in zip(first, *rows, strict=True):
            hashable = (tuple(value) if isinstance(value, list) else value for value in values)
            columns[name] = tuple(same.setdefault(value, value) for value in hashable)
    if not columns:
        raise InputError(_nothing_to_read(responses, elicitation))
    ids = tuple(sorted(columns))
    passages = {question.id: question.context for question in responses.questions}
    questions = _questions([columns.pop(name) for name in ids], ids, passages)
    place = {name: q for q, name in enumerate(ids)}
    vocabulary: dict[str, int] = {}
    parts: dict[int, list[tuple[dict[str, Any], Places]]] = {int(n): [] for n in np.unique(questions.n_options)}
    n_censored = n_bounds = 0
    for piece in _pieces(responses.table, elicitation):
        codes = _encoded(piece["question_id"], place)
        role = _encoded(piece["kind"], {name: role for role, name in enumerate(ROLES)})
        offsets, labels = _lists(piece["labels"])
        labels = _encoded(labels, vocabulary)
        for n, part in parts.items():
            rows = np.flatnonzero(questions.n_options[codes] == n)
            fields = vars(_rows_of(piece, n, rows, codes[rows], role[rows], questions, offsets))
            part.append((dict(fields), labels[offsets[rows][:, None] + np.arange(n)].astype(np.int16)))
        n_censored += piece["status"].to_pylist().count("censored")
        n_bounds += len(_lists(piece["bounds"])[1])
    release_memory()
    label_rows = {n: np.concatenate([labels for _, labels in part]) for n, part in parts.items()}
    groups = {n: _joined([fields for fields, _ in part]) for n, part in parts.items()}
    standard = _standard_labels(groups, label_rows, questions, list(vocabulary))
    del parts, label_rows
    labels_of_table = tuple(list(vocabulary)[code] for code in standard)
    adaptive, phases = responses.run.adaptive, responses.run.two_phase
    scores = order_scores(
        questions,
        groups,
        labels_of_table,
        elicitation,
        stopped=_among(ids, adaptive.stopped if adaptive else None),
        full=_among(ids, phases.full if phases else None),
        every_in_orders=responses.run.until is None,
    )
    return replace(
        scores,
        label_mass=None if elicitation == DECISION else scores.label_mass,  # probabilities of the options, normalised
        checked=_among(ids, adaptive.checked if adaptive else None),
        n_censored=n_censored,
        n_bounds=n_bounds,
    )


def _among(ids: Sequence[str], names: Sequence[str] | None) -> Bools | None:
    """(Q,) the questions that a run lists; None if it has no list."""
    return None if names is None else np.isin(np.asarray(ids), np.asarray(names, str))


_ROWS_AT_ONCE = 1 << 17
_OF_QUESTION = ["n_options", "answers", "pinned", "text_ranks", "subject"]
_OfQuestion = tuple[Any, ...]
"""The values of these columns."""


def _pieces(table: pa.Table, elicitation: str) -> Iterator[pa.Table]:
    """The rows to read, some at a time: no copy of a long table is made."""
    for start in range(0, table.num_rows, _ROWS_AT_ONCE):
        piece = table.slice(start, _ROWS_AT_ONCE)
        mask = pc.and_(pc.equal(piece["elicitation"], elicitation), pc.is_in(piece["kind"], pa.array(ROLES)))
        if (piece := piece.filter(pc.and_(mask, pc.equal(piece["repeat"], 0)))).num_rows:
            yield piece


def _joined(parts: list[dict[str, Any]]) -> OrderRows:
    """One OrderRows of the fields of several, each freed as it is joined."""
    names = ("question", "role", "contents", "by_position", "ok", "mass")
    return OrderRows(**{name: np.concatenate([part.pop(name) for part in parts]) for name in names})


def _encoded(column: Any, codes: dict[str, int]) -> Ints:
    """The code of every text; those that have none yet get the next."""
    encoded = (_array(column) if isinstance(column, pa.ChunkedArray) else column).dictionary_encode()
    of_text = [codes.setdefault(text, len(codes)) for text in encoded.dictionary.to_pylist()]
    encoding: Ints = np.asarray(of_text, np.int64)[np.asarray(encoded.indices)]
    return encoding


def _nothing_to_read(responses: Responses, elicitation: str) -> str:
    present = sorted(set(responses.table["elicitation"].to_pylist()))
    if elicitation not in present:
        return f"no responses with elicitation {elicitation!r}; the table has {', '.join(present) or 'no rows'}"
    return f"no responses to presentations {', '.join(ROLES)}: order metrics need at least the given order"


def _questions(columns: list[_OfQuestion], ids: tuple[str, ...], passages: Mapping[str, str]) -> QuestionArrays:
    n_options = np.asarray([n for n, *_ in columns], np.int64)
    width = int(n_options.max())
    answers = np.zeros((len(ids), width), bool)
    pinned = np.zeros((len(ids), width), bool)
    ranks = np.tile(np.arange(width, dtype=np.int64), (len(ids), 1))
    for q, (n, right, fixed, text_ranks, _) in enumerate(columns):
        answers[q, [a for a in right if a >= 0]] = True
        pinned[q, list(fixed)] = True
        if text_ranks:
            ranks[q, :n] = text_ranks
    subjects, contexts = tuple(subject for *_, subject in columns), tuple(passages.get(i, "") for i in ids)
    return QuestionArrays(ids, subjects, n_options, answers, pinned, ranks, contexts)


def _array(column: pa.ChunkedArray) -> Any:
    array = column.combine_chunks()
    # combine_chunks keeps a chunked array where it has no chunk at all
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _lists(column: pa.ChunkedArray) -> tuple[Ints, Any]:
    """Offsets (R + 1,) and flat values of a column of lists (a null list has no values)."""
    array = _array(column)
    return np.asarray(array.offsets, np.int64), array.values


def _rows_of(
    table: pa.Table,
    n: int,
    rows: NDArray[np.intp],
    question: Ints,
    role: Ints,
    questions: QuestionArrays,
    label_offsets: Ints,
) -> OrderRows:
    content_offsets, content_values = _lists(table["contents"])
    lengths = np.diff(content_offsets)[rows]
    at = content_offsets[rows][:, None] + np.arange(n)
    flat = np.asarray(content_values, np.int16)
    right = lengths == n
    contents = np.full((len(rows), n), -1, np.int16)
    contents[right] = flat[at[right]]
    right &= (np.sort(contents, axis=1) == np.arange(n)).all(axis=1)
    right &= (np.asarray(table["n_options"])[rows] == n) & (np.diff(label_offsets)[rows] == n)
    if not right.all():
        row = int(np.flatnonzero(~right)[0])
        raise InputError(
            f"question {questions.ids[question[row]]!r}, presentation {ROLES[role[row]]!r}: it does not show exactly "
            f"the question's {n} options, each under one label; give presentations with added or removed options "
            "another name"
        )
    by_position, ok, mass = _probabilities(table, rows, contents)
    return OrderRows(question.astype(np.int32), role.astype(np.int8), contents, by_position, ok, mass=mass)


def _probabilities(table: pa.Table, rows: NDArray[np.intp], contents: Places) -> tuple[Floats, Bools, Floats]:
    """(R, n) softmax over the labels of the page, by position, which rows are replies, and (R,) all labels' mass.

    Labels with only an upper bound may have no probability at all, so the last counts the others alone.
    """
    n = contents.shape[1]
    status = np.asarray(table["status"].to_pylist(), dtype=object)[rows]
    ok = status == "ok"
    offsets, values = _lists(table["logprobs"])
    scored = np.diff(offsets)[rows] == n
    logits = np.full(contents.shape, np.nan)
    flat = np.asarray(values, np.float64)
    logits[scored] = flat[offsets[rows[scored]][:, None] + np.arange(n)]
    choices = table["chosen"]
    no_answer = ~scored & np.isin(status, NO_ANSWER)
    for r in np.flatnonzero(ok & ~scored):
        answer = choices[int(rows[r])].as_py() or []
        if len(answer) == 1 and answer[0] >= 0:
            logits[r] = np.where(contents[r] == answer[0], 0.0, -np.inf)
        else:
            no_answer[r] = True
    top = logits.max(axis=1, keepdims=True)
    ok &= np.isfinite(top[:, 0])
    with np.errstate(invalid="ignore"):
        # summed from top to bottom of the page, so the same page gives the same bits in any file that lists it
        weights = np.exp(logits - top)
        totals = weights.sum(axis=1, keepdims=True)
        probs = weights / totals
        sure = np.where(_bounds(table, rows, n), 0.0, np.exp(logits)).sum(axis=1)
        mass = np.where(scored & np.isfinite(top[:, 0]), np.minimum(sure, 1.0), np.nan)
    probs[~ok] = 0.0
    return probs, ok | no_answer, mass


def _bounds(table: pa.Table, rows: NDArray[np.intp], n: int) -> Bools:
    """(R, n) which log-probabilities are upper bounds."""
    offsets, values = _lists(table["bounds"])
    marked = np.zeros((table.num_rows, n), bool)
    of = np.repeat(np.arange(table.num_rows), np.diff(offsets))
    places = np.asarray(values, np.int64)
    marked[of[places < n], places[places < n]] = True
    return marked[rows]


def _standard_labels(
    groups: Mapping[int, OrderRows], label_rows: Mapping[int, Places], questions: QuestionArrays, vocabulary: list[str]
) -> Ints:
    """The label sequence of the rows in standard sequence; all must agree, shorter ones being its beginning."""
    longest = np.empty(0, np.int64)
    for n in sorted(groups, reverse=True):
        rows, labels = groups[n], label_rows[n]
        if not longest.size:
            longest = np.empty(n, np.int64)
            first = int(rows.role.argmin())  # one in standard sequence, if there is any
            longest[labels_at(int(rows.role[first]), n)] = labels[first]
        for role in np.unique(rows.role):
            expected = longest[:n][labels_at(int(role), n)]
            wrong = (rows.role == role) & (labels != expected).any(axis=1)
            if wrong.any():
                row = int(np.flatnonzero(wrong)[0])
                raise InputError(
                    f"question {questions.ids[rows.question[row]]!r}, presentation {ROLES[rows.role[row]]!r}: labels "
                    f"{','.join(vocabulary[c] for c in labels[row])} where "
                    f"{','.join(vocabulary[c] for c in expected)} are expected; measure each label set on its own"
                )
    return longest
