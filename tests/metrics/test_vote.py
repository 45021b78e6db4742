from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unslant.metrics import OrderScores, measure, read_scores, vote, vote_over_orders
from unslant.questions import Question
from unslant.responses import Response, Responses

from .synthetic import ask


def page_model(coarse: bool):
    """Scores that depend on nothing but the page: texts from top to bottom; coarse ones tie often."""

    def answer(question: Question, contents: tuple[int, ...], labels: tuple[str, ...], rng: object) -> list[float]:
        texts = [question.options[c] for c in contents]
        seed = sum((i + 1) * ord(ch) * 31 ** (j % 5) for i, t in enumerate(texts) for j, ch in enumerate(t))
        noise = np.random.default_rng(seed).integers(0, 2 if coarse else 1000, len(texts))
        return list(-noise / (1.0 if coarse else 100.0))

    return answer


@given(
    st.integers(2, 6).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.booleans(), st.integers(0, 10**6))),
    st.sampled_from(["all", "cyclic", "7", "balanced:24"]),
    st.sampled_from(["soft", "hard"]),
)
def test_voted_text_does_not_depend_on_file_order(case: tuple[list[int], bool, int], orders: str, rule: str) -> None:
    file_order, coarse, number = case
    n = len(file_order)
    if orders == "cyclic":  # rotations of the file's order: the same set only if the file is rotated
        file_order = [(i + file_order[0]) % n for i in range(n)]
    texts = tuple(f"text{number}-{i % 5}" for i in range(n))  # with six options, two are identical
    listed = Question("q", "?", texts, frozenset({0}))
    shuffled = Question("q", "?", tuple(texts[i] for i in file_order), frozenset({file_order.index(0)}))
    answers = []
    for question in (listed, shuffled):
        scores = read_scores(ask([question], page_model(coarse), orders=orders))
        answers.append(question.options[vote(scores, rule).content[0]])  # type: ignore[arg-type]
    assert answers[0] == answers[1]


def one_question(rows: list[tuple[tuple[int, ...], list[float]]], ranks: tuple[int, ...], gold: int = 0) -> OrderScores:
    """Probabilities by position."""
    n = len(ranks)
    return read_scores(
        Responses.from_rows(
            Response(
                "q", "order", "cloze", tuple("ABCDEF"[:n]), order, frozenset({gold}), n, np.log(p), text_ranks=ranks
            )
            for order, p in rows
        )
    )


def test_soft_and_hard_votes_can_differ() -> None:
    rows = [((0, 1, 2), [0.5, 0.45, 0.05]), ((1, 0, 2), [0.45, 0.5, 0.05]), ((2, 1, 0), [0.05, 0.9, 0.05])]
    scores = one_question(rows, (0, 1, 2))
    assert vote(scores, "soft").content.tolist() == [1]
    assert vote(scores, "hard").content.tolist() == [0]
    shares = vote_over_orders(scores.blocks[0].probs, scores.blocks[0].text_ranks, "hard")[1]
    assert shares[0] == pytest.approx([2 / 3, 1 / 3, 0])
    values = measure(scores)
    assert (values["vote_accuracy"][0], values["hard_vote_accuracy"][0]) == (0, 1)


def test_equal_hard_votes_go_to_the_higher_mean() -> None:
    scores = one_question([((0, 1), [0.6, 0.4]), ((1, 0), [0.9, 0.1])], (0, 1))
    voted = vote(scores, "hard")
    assert voted.content.tolist() == [1]
    assert voted.tied.tolist() == [True]


def test_a_tied_vote_goes_to_the_text_that_sorts_first_and_is_counted() -> None:
    rows = [((0, 1), [0.8, 0.2]), ((1, 0), [0.8, 0.2])]
    for ranks, winner in (((0, 1), 0), ((1, 0), 1)):
        voted = vote(one_question(rows, ranks))
        assert (voted.content.tolist(), voted.tied.tolist()) == ([winner], [True])


def test_a_mean_that_rounds_differently_is_still_a_tie() -> None:
    # 0.1 + 0.2 and 0.3 differ in the last bit
    rows = [((0, 1, 2), [0.1, 0.3, 0.6]), ((2, 1, 0), [0.8, 0.0 + 1e-300, 0.2]), ((1, 0, 2), [0.0 + 1e-300, 1.0, 0.0])]
    scores = one_question([(o, [max(x, 1e-300) for x in p]) for o, p in rows], (1, 0, 2))
    block = scores.blocks[0]
    tied_means = np.array([0.1 + 0.2, 0.3, 0.0])
    assert tied_means[0] != tied_means[1]
    probs = np.broadcast_to(tied_means / tied_means.sum(), block.probs.shape)
    voted = vote(replace(scores, blocks=(replace(block, probs=probs),)))
    assert (voted.content.tolist(), voted.tied.tolist()) == ([1], [True])


def test_no_vote_without_all_orders() -> None:
    rows = [
        Response("q", "order", "cloze", ("A", "B"), (0, 1), frozenset({0}), 2, np.log([0.5, 0.5])),
        Response("q", "order", "cloze", ("A", "B"), (1, 0), frozenset({0}), 2, status="error"),
    ]
    scores = read_scores(rows)
    assert vote(scores).content.tolist() == [-1]
    assert np.isnan(measure(scores)["vote_accuracy"]).all()
