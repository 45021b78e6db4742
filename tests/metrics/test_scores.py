from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unslant.errors import InputError
from unslant.metrics import compute, read_scores, vote
from unslant.presentations import ALPHABETS, present, reversed_order
from unslant.questions import Question
from unslant.responses import Response, Responses

from .synthetic import always, ask, first, guesses, make_questions

QUESTION = Question("q", "?", ("w", "x", "y", "z"), frozenset({2}))


def scored(
    question: Question, order: tuple[int, ...], logprobs: list[float], name: str = "order", **kw: object
) -> Response:
    return Response.of(question, present(question, order, kind=name, **kw), "cloze", logprobs=np.array(logprobs))  # type: ignore[arg-type]


def test_probabilities_are_over_the_shown_labels_and_by_content() -> None:
    scores = read_scores(
        [scored(QUESTION, (2, 0, 1, 3), [-5, -6, -7, -8]), scored(QUESTION, (0, 1, 2, 3), [-1, -1, -1, -1])]
    )
    (block,) = scores.blocks
    weights = np.exp([-5, -6, -7, -8])
    assert (block.n, block.k) == (4, 2)
    assert block.probs[0, 0] == pytest.approx([0.25] * 4)  # sorted: the given order comes first
    assert block.probs[0, 1] == pytest.approx(weights[[1, 2, 0, 3]] / weights.sum())
    assert block.positions[0, 1].tolist() == [1, 2, 0, 3]
    assert block.contents[0, 1].tolist() == [2, 0, 1, 3]
    assert block.by_position(block.probs)[0, 1] == pytest.approx(weights / weights.sum())
    assert scores.given.probs[0] == pytest.approx([0.25] * 4)
    assert scores.labels == ("A", "B", "C", "D")


def test_given_and_reversed_come_from_the_order_set_or_from_rows_of_their_own() -> None:
    inside = read_scores(ask([QUESTION], guesses(), orders="all", relabelled=False))
    beside = read_scores(
        [
            scored(QUESTION, (1, 0, 3, 2), [-1, -2, -3, -4]),
            scored(QUESTION, (2, 0, 3, 1), [-1, -2, -3, -4]),
            scored(QUESTION, (0, 1, 2, 3), [-4, -3, -2, -1], "given"),
            scored(QUESTION, (3, 2, 1, 0), [-4, -3, -2, -1], "reverse"),
        ]
    )
    for scores in (inside, beside):
        assert scores.given.positions[0].tolist() == [0, 1, 2, 3]
        assert scores.reversed.positions[0].tolist() == [3, 2, 1, 0]
        assert (scores.given.ok[0], scores.reversed.ok[0], scores.labels_reversed.ok[0]) == (True, True, False)
    assert beside.given.probs[0].argmax() == 3
    assert beside.reversed.probs[0].argmax() == 0
    assert beside.blocks[0].k == 2


def test_reversed_labels_are_kept_apart_from_positions() -> None:
    scores = read_scores(
        [
            scored(QUESTION, (0, 1, 2, 3), [-1, -2, -3, -4], "given"),
            scored(QUESTION, (0, 1, 2, 3), [-1, -2, -3, -4], "labels-reversed", labels="DCBA"),
            scored(QUESTION, (3, 2, 1, 0), [-1, -2, -3, -4], "both-reversed", labels="DCBA"),
        ]
    )
    assert scores.labels_reversed.positions[0].tolist() == [0, 1, 2, 3]
    assert scores.labels_reversed.labels[0].tolist() == [3, 2, 1, 0]
    assert scores.both_reversed.positions[0].tolist() == [3, 2, 1, 0]
    assert scores.both_reversed.labels[0].tolist() == [0, 1, 2, 3]


@given(st.integers(2, 7).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=n))))
def test_reversal_keeps_pinned_options(case: tuple[int, set[int]]) -> None:
    n, pinned = case
    question = Question("q", "?", tuple("abcdefg"[:n]), frozenset({0}), pinned=tuple(sorted(pinned)))
    back = reversed_order(question)
    scores = read_scores(
        [
            scored(question, tuple(range(n)), [-1.0] * n),
            *([scored(question, back, [-2.0] * n)] if n - len(pinned) > 1 else []),
        ]
    )
    assert scores.reversed.ok[0]
    assert np.argsort(scores.reversed.positions[0]).tolist() == list(back)
    assert scores.movable.tolist() == [n - len(pinned)]
    if n - len(pinned) < 2:
        assert math.isnan(compute(scores).means["fr"].value)


def test_failures_are_counted_and_never_answers() -> None:
    questions = make_questions(4, (3,))
    rows = ask(questions, always(first), orders="all").rows()
    damaged = []
    for row in rows:
        values = dict(row.__dict__)
        if row.question_id == "q0001" and row.kind == "order" and row.contents == (1, 0, 2):
            values |= {"status": "error", "logprobs": None}
        if row.question_id == "q0002" and row.kind == "labels-reversed":
            values |= {"logprobs": np.full(3, np.nan)}
        damaged.append(Response(**values))
    scores = read_scores(damaged)
    assert (scores.n_failed, scores.n_incomplete) == (2, 1)
    assert [[scores.ids[q] for q in block.index] for block in scores.blocks] == [["q0000", "q0002", "q0003"]]
    metrics = compute(scores)
    assert (metrics.means["accuracy"].n, metrics.means["pbm"].n, metrics.means["fr_labels"].n) == (4, 3, 3)
    assert (metrics.counts.failed_rows, metrics.counts.incomplete) == (2, 1)


def test_a_missing_order_makes_a_question_incomplete() -> None:
    rows = ask(make_questions(3, (3,)), always(first), orders="all", relabelled=False).rows()
    del rows[-2]
    scores = read_scores(rows)
    assert scores.n_incomplete == 1
    assert [scores.ids[q] for q in scores.blocks[0].index] == ["q0000", "q0001"]


def test_pinned_questions_form_blocks_of_their_own() -> None:
    questions = make_questions(6, (4,), pinned=lambda q, n: (3,) if q % 2 else ())
    scores = read_scores(ask(questions, guesses()))
    assert [(block.n, block.k, len(block.index)) for block in scores.blocks] == [(4, 6, 3), (4, 24, 3)]
    assert scores.n_incomplete == 0
    counts = compute(scores).counts
    assert (counts.with_pinned, counts.sampled_orders, counts.immovable) == (3, 0, 0)


def test_questions_with_nothing_to_move_keep_their_accuracy_only() -> None:
    questions = make_questions(6, (2,), pinned=lambda q, n: (0, 1) if q < 2 else ())
    metrics = compute(read_scores(ask(questions, guesses())))
    assert metrics.counts.immovable == 2
    assert (metrics.means["pbm"].n, metrics.means["consistency"].n, metrics.means["fr"].n) == (4, 4, 4)
    assert (metrics.means["accuracy"].n, metrics.means["vote_accuracy"].n, metrics.means["expected_accuracy"].n) == (
        6,
        6,
        6,
    )


def test_one_order_gives_accuracy_and_nothing_about_orders() -> None:
    metrics = compute(read_scores(ask(make_questions(5), guesses(), orders="given")))
    assert metrics.means["accuracy"].n == 5
    for name in ("pbm", "vote_accuracy", "expected_accuracy", "robust_accuracy", "consistency"):
        estimate = metrics.means[name]
        assert not estimate.defined
        assert "two or more orders" in estimate.note
    assert not metrics.over_orders["acc_std"].defined


def test_row_order_of_the_table_changes_nothing() -> None:
    rows = ask(make_questions(12, (2, 3, 4), subjects=2), guesses()).rows()
    shuffled = [rows[i] for i in np.random.default_rng(1).permutation(len(rows))]
    one, other = (compute(read_scores(r)).to_dict() for r in (rows, shuffled))
    assert one == other


def test_answers_in_words() -> None:
    def said(order: tuple[int, ...], chosen: set[int] | None) -> Response:
        return Response(
            "q",
            "order",
            "generate",
            ("A", "B"),
            order,
            frozenset({1}),
            2,
            chosen=None if chosen is None else frozenset(chosen),
        )

    scores = read_scores([said((0, 1), {1}), said((1, 0), {1})], elicitation="generate")
    assert scores.blocks[0].probs[0].tolist() == [[0, 1], [0, 1]]
    for nothing in (set(), {0, 1}, {-1}, None):
        scores = read_scores([said((0, 1), {1}), said((1, 0), nothing)])
        assert (scores.n_failed, scores.n_unanswered, scores.n_incomplete) == (0, 1, 0)
        assert scores.blocks[0].probs[0].tolist() == [[0, 1], [0, 0]]
        means = compute(scores).means
        assert (means["accuracy"].value, means["answered_accuracy"].value, means["answered"].value) == (1, 1, 0.5)
        assert (means["expected_accuracy"].value, means["robust_accuracy"].value, means["consistency"].value) == (
            0.5,
            0,
            0,
        )
        assert (means["vote_accuracy"].value, means["fr"].n) == (1, 0)


def test_requests_without_a_reply_are_left_out_and_counted() -> None:
    def row(order: tuple[int, ...], **more: object) -> Response:
        return Response("q", "order", "generate", ("A", "B"), order, frozenset({1}), 2, **more)  # type: ignore[arg-type]

    replied = row((0, 1), chosen=frozenset({1}))
    for status, counts in (("error", (1, 0, 1)), ("unparsed", (0, 1, 0)), ("refused", (0, 1, 0))):
        scores = read_scores([replied, row((1, 0), status=status)])
        assert (scores.n_failed, scores.n_unanswered, scores.n_incomplete) == counts
    scores = read_scores([row(order, status="refused") for order in ((0, 1), (1, 0))])
    metrics = compute(scores)
    assert (metrics.means["accuracy"].value, metrics.means["vote_accuracy"].value) == (0, 0)
    assert (metrics.means["answered_accuracy"].n, metrics.means["answered"].value) == (0, 0)
    assert vote(scores).content.tolist() == [-1]
    assert metrics.given_labels[0]["predicted"].value == 0


def test_other_presentations_elicitations_and_repeats_are_not_looked_at(tmp_path: Path) -> None:
    rows = ask([QUESTION], always(first), relabelled=False).rows()
    extra = [
        Response("q", "nvr-A", "cloze", ("A",), (0,), frozenset(), 4, np.zeros(1)),
        Response("q", "order", "counterfactual", ("A", "B", "C", "D"), (0, 1, 2, 3), frozenset({2}), 4, np.zeros(4)),
        Response("q", "order", "cloze", ("A", "B", "C", "D"), (0, 1, 2, 3), frozenset({2}), 4, np.zeros(4), repeat=1),
    ]
    path = tmp_path / "responses.parquet"
    Responses.from_rows(rows + extra).to_parquet(path)
    read = read_scores(Responses.from_parquet(path))
    assert compute(read).to_dict() == compute(read_scores(rows)).to_dict()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        pytest.param([], "the table has no rows", id="empty"),
        pytest.param(
            [Response("q", "order", "counterfactual", ("A",), (0,), frozenset(), 2)],
            "the table has counterfactual",
            id="elicitation",
        ),
        pytest.param(
            [Response("q", "nvr-A", "cloze", ("A",), (0,), frozenset(), 2)], "need at least the given order", id="roles"
        ),
        pytest.param(
            [scored(QUESTION, (0, 1, 2, 3), [-1] * 4), scored(QUESTION, (0, 1, 2, 3), [-1] * 4)], "twice", id="twice"
        ),
        pytest.param(
            [Response("q", "order", "cloze", tuple("ABCDE"), (0, 1, 2, 3, -1), frozenset({2}), 4, np.zeros(5))],
            "does not show exactly the question's 4 options",
            id="added option",
        ),
        pytest.param(
            [
                scored(QUESTION, (0, 1, 2, 3), [-1] * 4),
                scored(QUESTION, (1, 0, 2, 3), [-1] * 4, alphabet=ALPHABETS["1"]),
            ],
            "labels 1,2,3,4 where A,B,C,D are expected",
            id="two label sets",
        ),
        pytest.param(
            [scored(QUESTION, (3, 2, 0, 1), [-1] * 4, "reverse")],
            r"in order \(3, 2, 0, 1\), not \(3, 2, 1, 0\)",
            id="reverse",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(rows: list[Response], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_scores(rows)
