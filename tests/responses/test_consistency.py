"""Columns of a log that tell the same thing agree, or are refused with how each would be read."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.reliability.ambiguous import log_misread
from unslant import InputError
from unslant.errors import naming_flags
from unslant.questions.records import Record
from unslant.responses.importers import load_logs, registry
from unslant.responses.importers.joining import joined, same_questions
from unslant.responses.importers.logged import Log, Logged, as_count

ORDERS = ([0, 1, 2], [2, 0, 1], [1, 2, 0])
TEXTS = ["x", "y", "z"]


def pages(**changed: Any) -> list[dict[str, Any]]:
    """A question in three orders; the right option is 1."""
    return [
        {"id": "q", "answer": "ABC"[order.index(1)], "order": order, "options": [TEXTS[i] for i in order],
         "logprobs": [-1.0, -0.5, -2.0]} | changed
        for order in ORDERS
    ]  # fmt: skip


def read(tmp_path: Path, rows: list[dict[str, Any]], **fields: str) -> Any:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with naming_flags():
        (found,) = load_logs([path], fields)
    return found


def orders(found: Any) -> list[list[int]]:
    return [list(contents) for contents in found.table["contents"].to_pylist()]


def test_order_with_the_same_options_in_every_row(tmp_path: Path) -> None:
    rows = pages(options=TEXTS)
    with pytest.raises(InputError) as error:
        read(tmp_path, rows)
    told = str(error.value)
    assert "log.jsonl, line 2: order 2, 0, 1 and options contradict those of" in told
    assert "option 2 of question 'q' would be 'x' here and 'z' there" in told
    assert "By order, these rows show the same options in another order; by options, they show one order" in told
    assert "--fields order=" in told
    assert "--fields options=" in told
    assert orders(read(tmp_path, rows, options="")) == [list(order) for order in ORDERS]
    assert orders(read(tmp_path, [row | {"answer": "B"} for row in rows], order="")) == [[0, 1, 2]] * 3


def test_an_order_that_its_options_follow_is_read(tmp_path: Path) -> None:
    assert orders(read(tmp_path, pages())) == [list(order) for order in ORDERS]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"options": ["y", "x", "z"]}, "options contradict"),
        ({"order": [1, 0, 2]}, "contradict"),
        ({"answer": "A"}, "the right option of question 'q' is, by order, 0 here and 1 in"),
        ({"question": "What else?"}, "give each question an id of its own"),
        ({"gold": 0}, "--fields answer=answer or --fields answer=gold"),
        ({"chosen": "A"}, r"is A, but logprobs are highest for B.*--fields chosen="),
        ({"chosen": "B", "pred": "C"}, "--fields chosen=chosen or --fields chosen=pred"),
        ({"probs": [0.9, 0.05, 0.05]}, "contradict logprobs"),
        ({"choices": ["z", "y", "x"]}, "--fields options=options or --fields options=choices"),
        ({"correct": "C"}, "--fields answer=answer or --fields answer=correct"),
        ({"options": None, "order": None, "gold": "E"}, "--fields answer=answer or --fields answer=gold"),
        ({"permutation": [0, 2, 1]}, "--fields order=order or --fields order=permutation"),
        ({"labels": ["A", "B", "C"], "labels_shown": ["A", "C", "B"]}, "--fields labels=labels or"),
        ({"log_probs": [-1.0, -0.5, -9.0]}, "--fields logprobs=logprobs or --fields logprobs=log_probs"),
    ],
)
def test_contradictions(tmp_path: Path, changed: dict[str, Any], reason: str) -> None:
    given = pages()
    same = given[0] | {"question": "What?"}
    with pytest.raises(InputError, match=reason) as error:
        read(tmp_path, [same, same | changed])
    assert "log.jsonl, line 2" in str(error.value)


@pytest.mark.parametrize(
    "more",
    [
        *({"gold": 1}, {"chosen": "B", "pred": 1}, {"correct": 0}, {"choices": TEXTS}, {"label": "a word"}),
        *({"gold": None}, {"chosen": None, "pred": "B"}, {"choices": {"text": TEXTS, "label": ["A", "B", "C"]}}),
        *({"options": ["x", "D", "z"], "gold": "D"}, {"labels": ["K", "L", "M"], "answer": "L", "gold": 1}),
        {"options": None, "order": None, "labels": ["K", "L", "M"], "answer": "L", "gold": 1},
        {"log_probs": {"C": -2.0, "B": -0.5, "A": -1.0}, "logprobs": {"A": -1.0, "B": -0.5, "C": -2.0, "other": -3.0}},
    ],
)
def test_columns_that_agree(tmp_path: Path, more: dict[str, Any]) -> None:
    assert len(read(tmp_path, [pages()[0] | more])) == 1


def test_a_column_that_is_named_is_not_compared_with_others(tmp_path: Path) -> None:
    assert len(read(tmp_path, [pages()[0] | {"gold": 0}], answer="answer")) == 1


@pytest.mark.parametrize(("reply", "contradicts"), [("The answer is C.", 1), ("The answer is B.", 0), ("Well.", 0)])
def test_a_reply_next_to_a_choice_is_compared_with_it(tmp_path: Path, reply: str, contradicts: int) -> None:
    row = pages()[0] | {"logprobs": None, "chosen": "B", "reply": reply}
    notes = " ".join(read(tmp_path, [row]).run.logged.notes)
    assert ("than the scores or choice that are read: 1." in notes) == contradicts


def test_one_order_in_a_row_that_holds_all(tmp_path: Path) -> None:
    row = {"id": "q", "answer": "A", "probs": [[0.6, 0.4], [0.3, 0.7]], "order": [1, 0]}
    with pytest.raises(InputError, match="holds every order"):
        read(tmp_path, [row])


def test_rows_that_come_twice_and_replies_that_are_not_read_are_said(tmp_path: Path) -> None:
    first = pages()[0]
    found = read(tmp_path, [first, first, first | {"logprobs": [-0.1, -3.0, -3.0], "reply": "The answer is C."}])
    told = " ".join(found.run.logged.notes)
    assert "of an earlier one: 2, 1 of them answered otherwise" in told
    assert "Rows whose reply names another option than the scores or choice that are read: 1." in told
    assert not read(tmp_path, [first | {"repeat": i} for i in range(3)]).run.logged.notes


def test_an_early_row_is_refused_before_the_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    whole = registry.whole_records

    def counted(*given: Any) -> Iterator[Record]:
        for record in whole(*given):
            seen.append(record.place)
            yield record

    monkeypatch.setattr(registry, "whole_records", counted)
    with pytest.raises(InputError, match="line 2"):
        read(tmp_path, pages(options=TEXTS) * 500)
    assert len(seen) == 2


def test_lm_eval_documents_that_share_an_id(tmp_path: Path) -> None:
    """What looks like an id of the document is not one where two documents have it."""
    rows = [
        {"doc_id": i, "doc": {"id": "same", "question": f"Which is {i}?", "choices": ["one", "two"]}, "target": "1",
         "arguments": {f"gen_args_{k}": {"arg_0": f"Which is {i}?", "arg_1": f" {t}"} for k, t in
                       enumerate(("one", "two"))}, "resps": [[["-1.5", "False"]], [["-0.5", "True"]]], "filter": "none"}
        for i in range(3)
    ]  # fmt: skip
    path = tmp_path / "samples_t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    (found,) = load_logs([path])
    assert set(found.table["question_id"].to_pylist()) == {"0", "1", "2"}


def test_open_compass_prediction_and_perplexity(tmp_path: Path) -> None:
    row = {"origin_prompt": "Which?\nA. x\nB. y", "prediction": "A", "gold": "A",
           "label: A": {"PPL": 2.0}, "label: B": {"PPL": 1.0}}  # fmt: skip
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"0": row}))
    with pytest.raises(InputError, match="prediction is 'A', but the least perplexity is that of 'B'"):
        load_logs([path])


def test_random_contradictions() -> None:
    wrong = [found for seed in range(150) if (found := log_misread(random.Random(seed)))]
    assert wrong == []


def page(name: str, question: str = "Which?", options: tuple[str, ...] = ("x", "y"), **more: Any) -> Logged:
    """Whose right option is x."""
    right = frozenset({options.index("x") if options else 0})
    values = {"labels": ("A", "B"), "logprobs": np.array([-0.5, -1.5])} | more
    return Logged(name, answers=right, place=f"log, line {name}", question=question, options=options, **values)


def log(*pages: Logged, **more: Any) -> Log:
    return Log("m", "a harness", more.pop("scores", "labels"), pages, more.pop("task", "task"), **more)


def test_pages_of_one_id_are_compared_in_every_log() -> None:
    pages = page("q", "Which?"), page("q", "What else?")
    with pytest.raises(InputError, match=r"question 'q' asks 'What else\?' here.*give each question an id of its own"):
        joined([log(*pages)])
    assert joined([log(*pages, checked=True)]).run.logged is not None  # as it was read


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        (page("0"), page("0"), ["0"]),
        (page("0"), page("0", "What else?"), ["0", "task/0"]),  # a number is no name of a question
        (page("q"), page("q", "What else?"), ["q"]),  # worded otherwise
        (page("0"), page("0", ""), ["0"]),
        (page("q"), page("q", options=("x", "z")), ["q", "task/q"]),
        (page("q"), page("q", "", ()), ["q"]),
        (page("q"), page("p", "Which?"), ["q"]),  # the same question under another id
        (page("q", ""), page("p", ""), ["q", "p"]),  # options alone do not show that
    ],
)
def test_ids_of_a_second_log(first: Logged, second: Logged, names: list[str]) -> None:
    ids = [one.id for log_of in same_questions([log(first), log(second)]) for one in log_of.pages]
    assert list(dict.fromkeys(ids)) == names


def test_ids_that_mostly_agree_stay() -> None:
    """One question that was worded anew does not make the ids of a log meaningless."""
    first = [page(str(k), f"Which is {k}?") for k in range(3)]
    second = [page(str(k), f"Which is {k}?" if k else "Which one is 0?") for k in range(3)]
    assert [one.id for one in same_questions([log(*first), log(*second)])[1].pages] == ["0", "1", "2"]


def test_a_page_again_is_answered_otherwise_only_if_it_is() -> None:
    def said(*pages: Logged, **more: Any) -> str:
        return " ".join(joined([log(*pages, **more)]).run.logged.notes)

    words = {"logprobs": None, "chosen": frozenset({0})}
    failed = page("q", logprobs=None, status="error")
    again = "sample number of an earlier one: 1, {} of them answered otherwise"
    assert again.format(0) in said(page("q"), page("q"))
    assert again.format(1) in said(page("q"), page("q", logprobs=np.array([-1.5, -0.5])))
    assert again.format(1) in said(failed, page("q"))
    assert again.format(0) in said(page("q", **words), page("q", **words), scores="words")
    assert again.format(1) in said(page("q", **words), page("q", logprobs=None, chosen=frozenset({1})), scores="words")
    assert "earlier one" not in said(page("q"), page("q", repeat=1))
    assert "earlier one" not in said(page("q"), page("q", options=("y", "x"), order=(1, 0)))


def test_what_replies_are_right_by() -> None:
    """Words, labels at the token of the answer, and labels at the first token; only where the log has first tokens."""
    best, other = np.array([-0.5, -1.5]), np.array([-1.5, -0.5])
    rows = [
        page("1", chosen=frozenset({0}), logprobs=best, first=other, reply="A"),
        page("2", chosen=frozenset({1}), logprobs=best, first=best, reply="B"),
        page("3", logprobs=None, first=best, status="unparsed", reply="?"),
        page("4", chosen=frozenset({0}), logprobs=None, first=None, reply="A"),
    ]
    facts = joined([log(*rows, scores="words")]).run.logged
    assert (facts.right_by_replies, facts.right_by_labels, facts.right_by_first_tokens) == ((2, 4), (2, 2), (2, 3))
    facts = joined([log(rows[3], scores="words")]).run.logged
    assert (facts.right_by_replies, facts.right_by_labels, facts.right_by_first_tokens) == (None, None, None)


def test_how_answers_are_named() -> None:
    """Replies are read by their labels' scores where every answer has them; without words they are choices."""
    scored = page("1", chosen=frozenset({0}), reply="A")
    reply = page("2", chosen=frozenset({0}), logprobs=None, reply="A")
    failed = page("3", logprobs=None, status="error")
    for pages, scores, elicitation in (
        ([scored, failed], "replies", "cloze"),
        ([scored, reply], "words", "generate"),
        ([failed], "choices", "generate"),
        ([page("4", chosen=frozenset({1}), logprobs=None), failed], "choices", "generate"),
    ):
        table = joined([log(*pages, scores="words")])
        assert table.run.logged.scores == scores
        assert {row.elicitation for row in table.rows()} == {elicitation}
    assert joined([log(page("1"), failed)]).run.logged.scores == "labels"


def test_pages_that_cannot_be_of_one_question_are_named() -> None:
    three = {"labels": ("A", "B", "C"), "logprobs": np.array([-0.5, -1.5, -2.5])}
    numbered = {"labels": ("1", "2")}
    upside_down = {"labels": ("B", "A")}
    turned = {"labels": ("C", "A", "B"), "logprobs": np.array([-0.5, -1.5, -2.5])}
    several = [page(str(k), f"Which is {k}?") for k in range(3)]
    other = [*several[:2], page("2", "Which is 2?", ("x", "z"))]
    for logs, reason in (
        ([log(page("q", options=("x", "y", "z"), **three), page("q"))], "question 'q' has 2 options here, 3 elsewhere"),
        ([log(*several), log(*other)], "line 2: question '2' shows 'z' here, which it does not elsewhere"),
        ([log(page("q"), page("q", **numbered))], "labels 1, 2 here, A, B elsewhere; give a file for each label set"),
        (
            [log(page("p", **upside_down), page("q", options=("x", "y", "z"), **turned))],
            "line q: has the labels C, A, B from the top, where other questions have B, A: a label then has different",
        ),
    ):
        with pytest.raises(InputError, match=reason):
            joined(logs)


def test_the_order_of_a_page() -> None:
    def contents(*logs: Log) -> list[tuple[int, ...]]:
        return [row.contents for row in joined(logs).rows()]

    given, turned = page("q", order=(0, 1)), page("q", options=("y", "x"), order=(1, 0))
    assert contents(log(given, turned)) == [(0, 1), (1, 0)]
    assert contents(log(turned, given)) == [(1, 0), (0, 1)]
    # of another file, which was shuffled again: its places are not those of the first
    assert contents(log(given), log(page("q", options=("y", "x"), order=(0, 1)))) == [(0, 1), (1, 0)]
    assert contents(log(given, page("q", options=("y", "x")))) == [(0, 1), (1, 0)]
    without = {"options": (), "order": (1, 0)}
    assert contents(log(given, replace(page("q", **without), answers=frozenset({1})))) == [(0, 1), (1, 0)]
    assert contents(log(given, page("q", options=()))) == [(0, 1), (0, 1)]  # nothing says otherwise
    reversed_labels = page("q", labels=("B", "A"))
    assert joined([log(given, turned, reversed_labels)]).run.logged.orders == {"2": 1}
    assert [row.kind for row in joined([log(page("q", placed=False), page("p"))]).rows()] == ["unplaced", "order"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"id": ""}, "an id that is not a text of at least one character"),
        ({"id": 7}, "an id that is not a text"),
        ({"labels": ()}, "0 options; from 1 to 1,000 can be read"),
        ({"labels": tuple(map(str, range(1001))), "options": (), "logprobs": None}, "1001 options; from 1 to 1,000"),
        ({"labels": ("A", "")}, "labels that are empty, or the same twice"),
        ({"labels": ("A", "A")}, "labels that are empty, or the same twice"),
        ({"options": ("x",)}, "1 option texts for 2 labels"),
        ({"authors": ("x",)}, "1 authors for 2 labels"),
        ({"answers": frozenset({2})}, "an answer that is not one of its 2 options"),
        ({"chosen": frozenset({-1})}, "an answer that is not one of its 2 options"),
        ({"order": (0, 0)}, "an order that does not name each of its 2 options once"),
        ({"logprobs": np.zeros(3)}, "scores that are not one for each of its 2 options"),
        ({"logprobs": np.array([0.5, -1.0])}, "log-probabilities above 0"),
        ({"question": "a\ud800b"}, "not usable: "),
    ],
)
def test_what_cannot_be_a_page_is_named(values: dict[str, Any], reason: str) -> None:
    page("q", chosen=frozenset(), order=(1, 0), authors=("one", "two"))  # which can
    with pytest.raises(InputError, match=f"log, line q: (has )?{reason}"):
        replace(page("q"), **values)


def test_scores_of_a_page_are_numbers_and_as_good_as_0_is_0() -> None:
    about = {"id": "q", "labels": ("A", "B"), "answers": frozenset({0}), "place": "log, line 1"}
    assert Logged.of_scores(["-0.5", 1e-9], **about).logprobs.tolist() == [-0.5, 0.0]
    for scores in ([-1.0, None], [-np.inf, -np.inf], [np.nan, -1.0]):
        assert Logged.of_scores(scores, **about).status == "error"
    assert Logged.of_scores([-np.inf, -1.0], **about).status == "ok"
    with pytest.raises(InputError, match="log-probabilities above 0"):
        Logged.of_scores([0.5, -1.0], **about)
    with pytest.raises(ValueError, match="False is not a number"):
        Logged.of_scores([False, -1.0], **about)
    for count in (-1, 1.5, True, "x", None):
        with pytest.raises(ValueError, match=r"index is .*, not a whole number from 0"):
            as_count("index", count)
    assert (as_count("index", 2), as_count("index", 0)) == (2, 0)


def test_what_a_page_is_right_by() -> None:
    both = page("q", chosen=frozenset({1}))  # the scores are highest for the right one
    assert (both.is_right(), both.is_right(scored=False), both.named) == (True, False, 1)
    words = replace(both, logprobs=None)
    assert (words.is_right(), replace(words, chosen=frozenset({0})).is_right()) == (False, True)
    for nothing in ({"chosen": frozenset({0, 1})}, {"chosen": frozenset()}, {"chosen": None}, {"status": "cut"}):
        assert (replace(words, **nothing).named, replace(words, **nothing).is_right()) == (None, False)
