"""From the table of responses to :class:`OrderScores`, column by column (no Python object per row).

Its rows first become :class:`OrderRows`; then it is found which are a question's order set, and which single views.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unslant.arrays import Bools, Floats, Ints, release_memory
from unslant.errors import InputError
from unslant.metrics.scores import (
    BOTH_REVERSED,
    GIVEN,
    ORDER,
    REVERSE,
    ROLES,
    ROWS_AT_ONCE,
    Block,
    OrderRows,
    OrderScores,
    Places,
    QuestionArrays,
    View,
    labels_at,
)
from unslant.responses import AGAIN, DECISION, GENERATE, NO_ANSWER, Response, Responses


def read_scores(responses: Responses | Iterable[Response], elicitation: str = "") -> OrderScores:
    """Read the presentations of kind ``order``, ``given``, ``reverse``, and those with the labels in other places.

    ``order`` rows are the order set, see :func:`order_scores`. Rows of other presentations
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
        present = [name for name in pc.unique(responses.table["elicitation"]).to_pylist() if name != AGAIN]
        elicitation = present[0] if present in ([GENERATE], [DECISION]) else "cloze"
    columns: dict[str, Any] = {}
    same: dict[Any, Any] = {}  # few different values: one object each
    for piece in _pieces(responses.table, elicitation):
        first: dict[str, int] = {}
        for i, name in enumerate(piece["question_id"].to_pylist()):
            if name not in columns:
                first.setdefault(name, i)
        of_question = piece.select(["subject", "n_options", "answers", "pinned", "text_ranks"])
        rows = of_question.take(pa.array(first.values(), pa.int64())).to_pydict().values()
        for name, *values in zip(first, *rows, strict=True):
            hashable = (tuple(value) if isinstance(value, list) else value for value in values)
            columns[name] = tuple(same.setdefault(value, value) for value in hashable)
    if not columns:
        present = sorted(set(responses.table["elicitation"].to_pylist()))
        reason = f"no responses to presentations {', '.join(ROLES)}: order metrics need at least the given order"
        if elicitation not in present:
            reason = f"no responses with elicitation {elicitation!r}; the table has {', '.join(present) or 'no rows'}"
        raise InputError(reason)
    ids = sorted(columns)
    passages = zip(ids, responses.passages_of(ids), strict=True)
    questions = QuestionArrays.of((name, *columns.pop(name), passage) for name, passage in passages)
    vocabulary: dict[str, int] = {}
    parts: dict[int, list[dict[str, Any]]] = {int(n): [] for n in np.unique(questions.n_options)}
    n_censored = n_bounds = 0
    for piece in _pieces(responses.table, elicitation):
        codes = _encoded(piece["question_id"].combine_chunks(), questions.place)
        role = _encoded(piece["kind"].combine_chunks(), {name: role for role, name in enumerate(ROLES)})
        offsets, labels = _lists(piece["labels"])
        labels = _encoded(labels, vocabulary)
        for n, part in parts.items():
            rows = np.flatnonzero(questions.n_options[codes] == n)
            arrays = _rows_of(piece, n, rows, codes[rows], role[rows], questions, offsets)
            part.append(arrays | {"labels": labels[offsets[rows][:, None] + np.arange(n)].astype(np.int16)})
        n_censored += piece["status"].to_pylist().count("censored")
        n_bounds += len(_lists(piece["bounds"])[1])
    release_memory()
    groups, label_rows = dict[int, OrderRows](), dict[int, Places]()
    for n, part in parts.items():  # each array is freed as it is joined: there are millions of rows
        joined = {name: np.concatenate([one.pop(name) for one in part]) for name in [*part[0]]}
        label_rows[n] = joined.pop("labels")
        groups[n] = OrderRows(**joined)
    standard = _standard_labels(groups, label_rows, questions, list(vocabulary))
    del label_rows
    adaptive, phases = responses.run.adaptive, responses.run.two_phase
    scores = order_scores(
        questions,
        groups,
        standard,
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


def _pieces(table: pa.Table, elicitation: str) -> Iterator[pa.Table]:
    """The rows to read, some at a time: no copy of a long table is made."""
    for start in range(0, table.num_rows, ROWS_AT_ONCE):
        piece = table.slice(start, ROWS_AT_ONCE)
        mask = pc.and_(pc.equal(piece["elicitation"], elicitation), pc.is_in(piece["kind"], pa.array(ROLES)))
        if (piece := piece.filter(pc.and_(mask, pc.equal(piece["repeat"], 0)))).num_rows:
            yield piece


def _encoded(column: Any, codes: dict[str, int]) -> Ints:
    """The code of every text; those that have none yet get the next."""
    encoded = column.dictionary_encode()
    of_text = [codes.setdefault(text, len(codes)) for text in encoded.dictionary.to_pylist()]
    return np.asarray(np.asarray(of_text, np.int64)[np.asarray(encoded.indices)])


def _lists(column: pa.ChunkedArray) -> tuple[Ints, Any]:
    """Offsets (R + 1,) and flat values of a column of lists (a null list has no values)."""
    array = column.combine_chunks()
    return np.asarray(array.offsets, np.int64), array.values


def _lists_of(column: pa.ChunkedArray, rows: NDArray[np.intp], other: NDArray[Any]) -> tuple[NDArray[Any], Bools]:
    """(R, n) lists of some rows, in place of lists of other lengths ``other`` (n,), and (R,) which have that length."""
    offsets, values = _lists(column)
    whole = np.diff(offsets)[rows] == len(other)
    lists = np.tile(other, (len(rows), 1))
    lists[whole] = np.asarray(values, other.dtype)[offsets[rows[whole]][:, None] + np.arange(len(other))]
    return lists, whole


def _rows_of(
    table: pa.Table,
    n: int,
    rows: NDArray[np.intp],
    question: Ints,
    role: Ints,
    questions: QuestionArrays,
    label_offsets: Ints,
) -> dict[str, Any]:
    """The fields of :class:`OrderRows`."""
    contents, right = _lists_of(table["contents"], rows, np.full(n, -1, np.int16))
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
    places: dict[str, Any] = {"question": question.astype(np.int32), "role": role.astype(np.int8), "contents": contents}
    return places | {"by_position": by_position, "ok": ok, "mass": mass}


def _probabilities(table: pa.Table, rows: NDArray[np.intp], contents: Places) -> tuple[Floats, Bools, Floats]:
    """(R, n) softmax over the labels of the page, by position, which rows are replies, and (R,) all labels' mass.

    Labels with only an upper bound may have no probability at all, so the last counts the others alone.
    """
    n = contents.shape[1]
    status = np.asarray(table["status"].to_pylist(), dtype=object)[rows]
    ok = status == "ok"
    logits, scored = _lists_of(table["logprobs"], rows, np.full(n, np.nan))
    choices = table["chosen"]
    no_answer = ~scored & np.isin(status, NO_ANSWER)
    for r in np.flatnonzero(ok & ~scored):
        answer = choices[int(rows[r])].as_py() or []
        if len(answer) == 1 and answer[0] >= 0:
            logits[r] = np.where(contents[r] == answer[0], 0.0, -np.inf)
        else:
            no_answer[r] = True
    offsets, places = _lists(table["bounds"])
    of, at = np.repeat(np.arange(table.num_rows), np.diff(offsets)), np.asarray(places, np.int64)
    bounded = np.zeros((table.num_rows, n), bool)  # upper bounds of log-probabilities
    bounded[of[at < n], at[at < n]] = True
    top = logits.max(axis=1, keepdims=True)
    ok &= np.isfinite(top[:, 0])
    with np.errstate(invalid="ignore"):
        # summed from top to bottom of the page, so the same page gives the same bits in any file that lists it
        weights = np.exp(logits - top)
        probs = weights / weights.sum(axis=1, keepdims=True)
        sure = np.where(bounded[rows], 0.0, np.exp(logits)).sum(axis=1)
        mass = np.where(scored & np.isfinite(top[:, 0]), np.minimum(sure, 1.0), np.nan)
    probs[~ok] = 0.0
    return probs, ok | no_answer, mass


def _standard_labels(
    groups: Mapping[int, OrderRows], label_rows: Mapping[int, Places], questions: QuestionArrays, vocabulary: list[str]
) -> list[str]:
    """The label sequence of the rows in standard sequence; all must agree, shorter ones being its beginning."""
    width = max(groups)
    first = int(groups[width].role.argmin())  # one in standard sequence, if there is any
    longest = np.empty(width, np.int64)
    longest[labels_at(int(groups[width].role[first]), width)] = label_rows[width][first]
    for n in sorted(groups, reverse=True):
        rows, labels = groups[n], label_rows[n]
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
    return [vocabulary[code] for code in longest]


def order_scores(
    questions: QuestionArrays,
    groups: Mapping[int, OrderRows],
    labels: Sequence[str],
    elicitation: str = "cloze",
    stopped: Bools | None = None,
    full: Bools | None = None,
    every_in_orders: bool = True,
) -> OrderScores:
    """Sort rows into order sets and views.

    The given order is the ``order`` row that shows it, or the ``given`` row; likewise the reversed one. Within one
    option count and number of pinned options, a question with fewer orders than the others is incomplete; questions
    in ``full`` are compared with one another, and so are the others.

    Args:
        groups: option count -> rows of its questions.
        labels: the standard label sequence.
        stopped, full: see :class:`OrderScores`.
        every_in_orders: whether a question without any ``order`` row is one whose orders are missing.

    Raises:
        InputError: if a question has the same order twice, or a row does not show the order that its role says.
    """
    none = np.zeros(len(questions), bool)
    blocks = _blocks(groups, questions, none if stopped is None else stopped, none if full is None else full)
    complete, in_orders = none.copy() if stopped is None else stopped.copy(), none.copy()
    for block in blocks:
        complete[block.index] = True
    names = ("given", "reversed", "labels_reversed", "both_reversed", "labels_shifted")
    views: dict[str, Any] = {name: _view(groups, questions, role) for role, name in enumerate(names, GIVEN)}
    if full is not None:  # the square of another question may hold it by chance, more often the fewer its options
        turned = views["reversed"]
        views["reversed"] = replace(turned, ok=turned.ok & full, probs=np.where(full[:, None], turned.probs, 0.0))
    for rows in groups.values():
        in_orders[rows.question[rows.role == ORDER]] = True
    missing = ~complete & (in_orders | (every_in_orders & in_orders.any()))
    return OrderScores(
        **{f.name: getattr(questions, f.name) for f in fields(QuestionArrays)},
        labels=tuple(labels),
        blocks=blocks,
        **views,
        n_rows=sum(len(rows.ok) for rows in groups.values()),
        n_failed=sum(int((~rows.ok).sum()) for rows in groups.values()),
        n_unanswered=sum(int((rows.ok & ~rows.by_position.any(axis=1)).sum()) for rows in groups.values()),
        n_incomplete=int(missing.sum()),
        elicitation=elicitation,
        stopped=stopped,
        full=full,
        label_mass=_mean_mass(groups, len(questions), ROLES[:1] if full is not None else ROLES),
    )


_ALL = 1 - 1e-6
"""Where every row has at least this mass, it is not a model's: the scores are normalised over the labels."""


def _mean_mass(groups: Mapping[int, OrderRows], size: int, roles: Sequence[str]) -> Floats | None:
    """(Q,) mean over a question's rows; nan where no row has it. None where scores are normalised over labels.

    Args:
        roles: of the rows; those that every question has.
    """
    total, rows = np.zeros(size), np.zeros(size)
    for group in groups.values():
        if group.mass is not None:
            counted = np.isfinite(group.mass) & (group.role < len(roles))
            np.add.at(total, group.question[counted], group.mass[counted])
            np.add.at(rows, group.question[counted], 1)
    mean: Floats = np.divide(total, rows, out=np.full(size, np.nan), where=rows > 0)
    return None if rows.any() and np.nanmin(mean) > _ALL else mean


def _reversed_contents(questions: QuestionArrays, n: int) -> Places:
    """(Q, n) content at each position with the movable options reversed; meaningful where n_options == n."""
    pinned = questions.pinned[:, :n]
    # positions of movable options first, in order, then pinned ones: the k-th movable swaps with the k-th last
    order = np.argsort(pinned, axis=1, kind="stable")
    movable = n - pinned.sum(axis=1, keepdims=True)
    k = np.arange(n)
    partner = np.take_along_axis(order, np.where(k < movable, movable - 1 - k, k), axis=1)
    result = np.empty_like(order, np.int16)
    np.put_along_axis(result, order, partner, axis=1)
    return result


def _view(groups: Mapping[int, OrderRows], questions: QuestionArrays, role: int) -> View:
    size, width = questions.answers.shape
    ok = np.zeros(size, bool)
    probs = np.zeros((size, width))
    positions = np.tile(np.arange(width, dtype=np.int64), (size, 1))
    labels = positions.copy()
    decided = np.zeros(size, np.int64) if any(rows.decided is not None for rows in groups.values()) else None
    for n, rows in groups.items():
        of_role = rows.role == role
        candidates = np.flatnonzero(of_role | (rows.role == ORDER) if role in (GIVEN, REVERSE) else of_role)
        expected: Places = np.arange(n)
        if role in (REVERSE, BOTH_REVERSED):
            expected = _reversed_contents(questions, n)[rows.question[candidates]]
        matches = np.zeros_like(of_role)
        matches[candidates] = (rows.contents[candidates] == expected).all(axis=1)
        if (of_role & ~matches).any():
            row = int(np.flatnonzero(of_role & ~matches)[0])
            order = np.broadcast_to(expected, (len(candidates), n))[np.searchsorted(candidates, row)]
            raise InputError(
                f"question {questions.ids[rows.question[row]]!r}, presentation {ROLES[role]!r}: shows its options in "
                f"order {tuple(int(c) for c in rows.contents[row])}, not {tuple(int(c) for c in order)}"
            )
        for source in (matches & ~of_role, of_role):
            which = np.flatnonzero(source & rows.ok)
            question = rows.question[which]
            ok[question] = True
            probs[question, :n], at = rows.by_content(which)
            positions[question, :n], labels[question, :n] = at, labels_at(role, n)[at]
            if decided is not None and rows.decided is not None:
                decided[question] = rows.decided[which]
    return View(ok, probs, positions, labels, decided)


def _blocks(
    groups: Mapping[int, OrderRows], questions: QuestionArrays, stopped: Bools, full: Bools
) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for n, rows in groups.items():
        which = np.flatnonzero(rows.role == ORDER)
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
        at, start, counts = np.unique(question, return_index=True, return_counts=True)
        failed = np.add.reduceat((~rows.ok[which]).astype(np.int64), start) > 0
        pinned = questions.pinned[at, :n].sum(axis=1)
        most = np.zeros((2, n + 1), np.int64)
        in_orders, phase = ~stopped[at], full[at].astype(np.int64)
        np.maximum.at(most, (phase[in_orders], pinned[in_orders]), counts[in_orders])
        complete = ~failed & (counts == most[phase, pinned]) & in_orders
        for part, k in np.unique(np.stack([phase, counts])[:, complete], axis=1).T:
            alike = complete & (counts == k) & (phase == part)
            row_index = which[(start[alike][:, None] + np.arange(k)).ravel()]
            probs, positions = rows.by_content(row_index)
            index = at[alike]
            blocks.append(
                Block(
                    index,
                    probs.reshape(-1, k, n),
                    positions.reshape(-1, k, n),
                    questions.answers[index, :n],
                    questions.pinned[index, :n],
                    questions.text_ranks[index, :n],
                    None if rows.decided is None else rows.decided[row_index].reshape(-1, k),
                )
            )
    return tuple(blocks)
