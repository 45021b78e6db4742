"""Numbers of the unbiased evaluator against small tables worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unslant.errors import InputError
from unslant.presentations import NONE
from unslant.responses.earlier import fields_of
from unslant.responses.table import Response, Responses
from unslant.studies.unbiased.metrics import boat_metrics, correct


def row(question_id, presentation, right, *, none=None, n=4, interventions=(), subject="", status="ok"):
    """One scored row; ``none``: "right" (none is right), "wrong" (offered), or None (not offered)."""
    contents = [*range(n)] + ([NONE] if none else [])
    answers = frozenset({NONE if none == "right" else 0})
    target = contents.index(min(answers)) if right else 1
    logprobs = np.full(len(contents), -5.0)
    logprobs[target] = -0.1
    kind, run, item = fields_of(presentation)
    return Response(
        question_id,
        kind,
        "cloze",
        tuple("ABCDEFGH"[: len(contents)]),
        tuple(contents),
        answers,
        n,
        logprobs=logprobs if status == "ok" else np.full(len(contents), np.nan),
        status=status,
        interventions=interventions,
        subject=subject,
        text_ranks=tuple(range(n)),
        run=run,
        item=item,
    )


def table(*rows) -> Responses:
    return Responses.from_rows(rows)


def test_vanilla_ours_and_drop():
    rows = []
    for q in range(10):
        rows.append(row(f"q{q}", "vanilla", q < 8))
        rows.append(row(f"q{q}", "boat:0", q < 6))
        rows.append(row(f"q{q}", "boat:1", q < 4))
    found = boat_metrics(table(*rows))
    assert found.vanilla.value == pytest.approx(0.8)
    assert found.ours.value == pytest.approx(0.5)
    assert found.drop.value == pytest.approx(0.3)
    assert (found.vanilla.n, found.ours.n, found.drop.n) == (10, 10, 10)
    assert found.drop.low < 0.3 < found.drop.high
    assert found.spread.runs == (0.6, 0.4)
    assert found.spread.std == pytest.approx(math.sqrt(0.02))
    assert found.vanilla_chance.value == found.ours_chance.value == 0.25
    confusion = found.confusion
    assert (confusion.both.value, confusion.lost.value) == (pytest.approx(0.5), pytest.approx(0.3))
    assert (confusion.gained.value, confusion.neither.value) == (pytest.approx(0.0), pytest.approx(0.2))


def test_true_false_items_are_right_only_together():
    rows = [row("a", "vanilla", True), row("b", "vanilla", True)]
    rows += [row("a", f"boat:0:{i}", True, n=2, interventions=("BT",)) for i in range(4)]
    rows += [row("b", f"boat:0:{i}", i > 0, n=2, interventions=("BT",)) for i in range(4)]
    found = boat_metrics(table(*rows))
    assert found.ours.value == 0.5
    assert found.items.value == pytest.approx(7 / 8)
    assert found.ours_chance.value == pytest.approx(1 / 16)


def test_none_found_and_invented():
    rows = [row(f"q{i}", "boat:0", i < 3, none="right", interventions=("DH", "AR")) for i in range(4)]
    rows += [row(f"p{i}", "boat:0", True, none="wrong", interventions=("DH",)) for i in range(3)]
    invented = row("p3", "boat:0", True, none="wrong", interventions=("DH",))
    invented.logprobs[invented.contents.index(NONE)] = 0.0
    found = boat_metrics(table(*rows, invented))
    assert (found.none_found.value, found.none_found.n) == (0.75, 4)
    assert (found.none_invented.value, found.none_invented.n) == (0.25, 4)
    assert found.ours_chance.value == pytest.approx(0.2)


def test_single_interventions_are_paired_with_the_same_questions():
    rows = [row(f"q{i}", "vanilla", i < 5) for i in range(10)]
    rows += [row(f"q{i}", "only:OS", i == 0, interventions=("OS",)) for i in range(4)]
    alone = boat_metrics(table(*rows)).alone["OS"]
    assert (alone.accuracy.value, alone.vanilla.value, alone.change.value) == (0.25, 1.0, -0.75)
    assert alone.accuracy.n == alone.change.n == 4


def test_failures_are_left_out_and_counted():
    rows = [row("a", "vanilla", True), row("b", "vanilla", True), row("a", "boat:0", True)]
    rows += [row("b", "boat:0", False, status="error"), row("b", "boat:1", True), row("a", "boat:1", False)]
    found = boat_metrics(table(*rows))
    assert found.failed == 1
    assert found.ours.value == pytest.approx(0.75)
    assert found.spread.runs == (1.0, 0.5)


def test_by_subject():
    rows = [
        row(f"{s}{i}", p, i < k, subject=s)
        for s, k in (("law", 2), ("art", 4))
        for p in ("vanilla", "boat:0")
        for i in range(4)
    ]
    found = boat_metrics(table(*rows))
    assert {name: (v.value, o.value) for name, (v, o) in found.by_subject.items()} == {"art": (1, 1), "law": (0.5, 0.5)}


def test_the_first_of_equal_labels_counts():
    tied = row("a", "vanilla", True)
    tied.logprobs[:] = -1.0
    assert correct(tied) == 1.0
    tied = row("a", "vanilla", True, none="right")
    tied.logprobs[:] = -1.0
    assert correct(tied) == 0.0


@pytest.mark.parametrize(
    ("chosen", "right"),
    [({0}, 1.0), ({2}, 1.0), ({0, 2}, 1.0), ({0, 1}, 0.0), ({1}, 0.0), ({NONE}, 0.0), (set(), 0.0), (None, math.nan)],
)
def test_answers_in_words_must_be_the_right_set_of_texts(chosen, right):
    answer = Response(
        "q", "vanilla", "generate", ("A", "B", "C"), (0, 1, 2), frozenset({0, 2}), 3,
        chosen=None if chosen is None else frozenset(chosen), text_ranks=(1, 0, 1),
    )  # fmt: skip
    assert correct(answer) == pytest.approx(right, nan_ok=True)


def test_other_responses_are_refused():
    with pytest.raises(InputError, match="no presentation of the unbiased evaluator"):
        boat_metrics(table(row("a", "given", True)))


def test_the_result_is_plain_json():
    import json

    found = boat_metrics(table(row("a", "vanilla", True), row("a", "boat:0", False), row("a", "only:LR", True)))
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["drop"]["value"] == 1.0
