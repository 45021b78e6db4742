"""Agreement of people: against hand-made tables and against the definition of Fleiss' kappa."""

from __future__ import annotations

import math

import pytest

from unslant.errors import InputError
from unslant.studies.unbiased.annotation import agreement_of


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


def test_an_empty_sheet_is_refused():
    with pytest.raises(InputError, match="no verdicts: fill in the column 'right'"):
        agreement_of({"ann": {}})
