"""Agreement of people: against hand-made tables and against the definition of Fleiss' kappa."""

from __future__ import annotations

import math

import pytest

from unslant.errors import InputError
from unslant.studies.unbiased.annotation import agreement_of, read_sheets


def test_by_hand():
    verdicts = {
        "ann": {"1": True, "2": True, "3": False, "4": True},
        "bob": {"1": True, "2": True, "3": True, "4": True},
    }
    found = agreement_of(verdicts, {"1": "OS", "2": "OS", "3": "DH+AR", "4": "LR"})
    assert found.confirmed.value == pytest.approx(0.875)
    assert {name: e.value for name, e in found.by_annotator.items()} == {"ann": 0.75, "bob": 1.0}
    assert {name: e.value for name, e in found.by_intervention.items()} == {"DH+AR": 0.5, "LR": 1.0, "OS": 1.0}
    assert found.agreement.value == 0.75
    assert found.disputed == ("3",)
    # observed disagreement 2/8, expected 2*7*1/(8*7)
    assert found.kappa == pytest.approx(1 - (2 / 8) / (14 / 56))


def test_items_seen_by_one_person_do_not_count_for_agreement():
    found = agreement_of({"ann": {"1": True, "2": False}, "bob": {"1": True}})
    assert found.agreement.n == 1
    assert math.isnan(found.kappa)
    assert found.confirmed.n == 2


def test_items_of_one_question_are_drawn_together(tmp_path):
    """All four true/false items of a question are wrong where its key is: 40 questions, not 160 items."""
    lines = ["item,question_id,interventions,right"]
    lines += [f"q{q}|{k},q{q},BT,{'no' if q % 8 == 0 else 'yes'}" for q in range(40) for k in range(4)]
    (tmp_path / "ann.csv").write_text("\n".join(lines) + "\n")
    found = read_sheets([tmp_path / "ann.csv"])
    for share in (found.confirmed, found.by_annotator["ann"], found.by_intervention["BT"]):
        assert (share.value, share.n) == (0.875, 160)
        assert share.low < 0.76  # of 40 yes-or-no answers Wilson's begins at 0.739, of 160 at 0.815
    alone = agreement_of(
        {"ann": {"q1|0": True, "q1|1": True, "q1|2": False}}, {}, dict.fromkeys(("q1|0", "q1|1"), "q1")
    )
    assert alone.confirmed.note == "fewer than 5 contexts: no interval"


def test_an_empty_sheet_is_refused():
    with pytest.raises(InputError, match="no verdicts: fill in the column 'right'"):
        agreement_of({"ann": {}})
