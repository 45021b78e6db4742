"""Dataclasses as plain values for JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Jsonable, json_fields, jsonable
from unslant.metrics import Estimate


@dataclass(frozen=True)
class _Inner:
    values: np.ndarray
    chosen: frozenset[int]


@dataclass(frozen=True)
class _Outer(Jsonable):
    estimate: Estimate
    by_size: dict[int, _Inner]
    notes: tuple[str, ...]
    hidden: object = None

    @property
    def double(self) -> float:
        return 2 * self.estimate.value


def test_nested_dataclasses_become_plain_values() -> None:
    inner = _Inner(np.array([[0.5, math.nan], [math.inf, -math.inf]]), frozenset({2, 1}))
    plain = _Outer(Estimate(0.5, math.nan, 1.0, 3, "none"), {4: inner}, ("a",)).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["estimate"]["value"] == 0.5
    assert plain["estimate"]["low"] is None
    assert plain["by_size"] == {"4": {"values": [[0.5, None], ["inf", "-inf"]], "chosen": [1, 2]}}
    assert plain["notes"] == ["a"]


def test_a_dataclass_says_itself_what_json_shows_of_it() -> None:
    class Own(_Outer):
        def to_dict(self) -> dict[str, object]:
            return json_fields(self, omit=("hidden", "by_size"), also=("double",))

    own = Own(Estimate(0.5, 0.0, 1.0, 3, "none"), {}, (), hidden=object())
    assert jsonable([own]) == [{"estimate": own.estimate.to_dict(), "notes": [], "double": 1.0}]


def test_numpy_scalars_are_numbers() -> None:
    assert jsonable({"n": np.int64(3), "x": np.float32(0.5), "ok": np.bool_(True)}) == {"n": 3, "x": 0.5, "ok": True}
