"""A model of one's own that gives something other than its docstring asks for: one line that says what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unslant
from unslant.models import ModelInfo, Scored, ScoringModel
from unslant.models.stored import StoredModel
from unslant.prompts import Prompt
from unslant.store import Store


class Own(ScoringModel):
    """Yields what a function makes of each place and number of labels."""

    def __init__(self, result: Callable[[int, int], Any]) -> None:
        super().__init__(ModelInfo(name="own", identity={"model": "own"}))
        self.result = result

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        return (self.result(i, len(prompt.continuations)) for i, prompt in enumerate(prompts))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda i, n: Scored(i, np.full(n - 1, -2.0)), r"own: score\(\) yields the logprobs '\[-2.*of \d numbers"),
        (lambda i, n: Scored(i, np.full((1, n), -2.0)), r"own: score\(\) yields the logprobs '\[\[-2.*of \d numbers"),
        (lambda i, n: Scored(i, [-2.0] * n), r"own: score\(\) yields the logprobs '\[-2.0, -2.0.*of \d numbers"),
        (lambda i, n: Scored(i - 1, np.full(n, -2.0)), r"own: score\(\) yields index -1, which .* 0 to \d+"),
        (lambda i, n: Scored(0, np.full(n, -2.0)), r"own: score\(\) yields index 0, which came before"),
        (lambda i, n: Scored(i, np.full(n, "-2")), r"own: score\(\) yields the logprobs .*of \d numbers"),
        (lambda i, n: Scored([i], np.full(n, -2.0)), r"own: score\(\) yields index \[0\], which came before"),
        (lambda i, n: -2.0, r"own: score\(\) yields float, where Scored is expected"),
    ],
)
def test_results_of_another_kind(result: Callable[[int, int], Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(unslant.ModelError, match=message):
        unslant.audit(Own(result), "embedded", limit=4)
    with Store(tmp_path / "s.sqlite3") as store, pytest.raises(unslant.ModelError, match=message):
        unslant.audit(StoredModel(Own(result), store), "embedded", limit=4)
    # Nothing wrong was stored: mended, the model is asked everything.
    mended = Own(lambda i, n: Scored(i, np.log(np.full(n, 1 / n))))
    with Store(tmp_path / "s.sqlite3") as store:
        unslant.audit(StoredModel(mended, store), "embedded", limit=4)


def test_a_result_that_is_missing_is_a_failed_response() -> None:
    model = Own(lambda i, n: Scored(i, np.log(np.full(n, 1 / n)) if i else None))
    assert unslant.audit(model, "embedded", limit=4).to_dict()["metrics"]["counts"]["failed_rows"] == 1
    refused = Own(lambda i, n: Scored(i, np.log(np.full(n, 1 / n))) if i % 3 else Scored(i, None, "too long\x1b"))
    summary = " ".join(unslant.audit(refused, "embedded", limit=4).summary().split())
    assert "responses failed: no reply, or no usable scores (too long\\x1b). Their questions" in summary
