"""A model of one's own that gives something other than its docstring asks for: one line that says what."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unslant
from unslant.models import ChatModel, GenerateOptions, ModelInfo, Reply, Scored, ScoringModel
from unslant.models.answered import named_in
from unslant.models.chat import FunctionChat, StoredChat
from unslant.models.open import open_chat
from unslant.models.stored import StoredModel
from unslant.plugins.contracts import check_model
from unslant.prompts import Prompt
from unslant.store import Store

QUESTIONS = [{"question": f"Is {i} even?", "options": ["yes", "no"], "answer": i % 2} for i in range(6)]


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


class Talker(ChatModel):
    """Yields what a function makes of each place."""

    def __init__(self, reply: Callable[[int], Any]) -> None:
        super().__init__(ModelInfo(name="own", identity={"model": "own"}))
        self.reply = reply

    def replies_to(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        return (self.reply(i) for i in range(len(prompts)))


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (lambda i: Reply(i - 1, "A"), "yields index -1, which came before or is not one of 0 to"),
        (lambda i: Reply(0, "A"), "yields index 0, which came before"),
        (lambda i: "A", "yields str, where Reply is expected"),
        (lambda i: Reply(i, b"A"), "yields the text .*, where a str or None is expected"),
    ],
)
def test_replies_of_another_kind(reply: Callable[[int], Any], message: str, tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite3") as store:
        for model in (Talker(reply), StoredChat(Talker(reply), store)):
            with pytest.raises(unslant.ModelError, match=rf"own: replies_to\(\) {message}"):
                unslant.audit(model, QUESTIONS, orders="1")


def test_half_an_emoji_at_the_end_of_a_reply_and_a_failure_without_a_reason_are_written(tmp_path: Path) -> None:
    cut = unslant.audit(Talker(lambda i: Reply(i, "Answer: A \ud83d", by=("m\ud83d", ""))), QUESTIONS, orders="1")
    assert set(cut.responses.table["raw"].to_pylist()) == {"Answer: A \N{REPLACEMENT CHARACTER}"}
    cut.to_parquet(tmp_path / "cut.parquet")
    assert unslant.read_result(tmp_path / "cut.parquet").headline == cut.headline
    assert named_in({"model": "m\ud83d"}) == ("m\N{REPLACEMENT CHARACTER}", "")
    assert "(no reply came)" in unslant.audit(Talker(lambda i: Reply(i, None)), QUESTIONS, orders="1").headline


def test_a_model_without_options_says_so() -> None:
    with pytest.raises(unslant.InputError, match="own takes no options such as the temperature of this study"):
        Talker(lambda i: Reply(i, "A")).at(GenerateOptions())


def test_a_result_that_is_missing_is_a_failed_response() -> None:
    model = Own(lambda i, n: Scored(i, np.log(np.full(n, 1 / n)) if i else None))
    assert unslant.audit(model, "embedded", limit=4).to_dict()["metrics"]["counts"]["failed_rows"] == 1
    refused = Own(lambda i, n: Scored(i, np.log(np.full(n, 1 / n))) if i % 3 else Scored(i, None, "too long\x1b"))
    summary = " ".join(unslant.audit(refused, "embedded", limit=4).summary().split())
    assert "responses failed: no reply, or no usable scores (too long\\x1b). Their questions" in summary


def first(prompt: str) -> str:
    return "A"


async def second(prompt: str) -> str:
    await asyncio.sleep(0)
    return "B"


class Client:
    """An object that can be called, as clients of servers can."""

    def __call__(self, prompt: str, letter: str) -> str:
        return letter


@pytest.mark.parametrize(
    ("function", "chosen"),
    [(first, 0), (second, 1), (lambda prompt: "B", 1), (partial(first), 0), (partial(Client(), letter="B"), 1)],
)
def test_a_function_of_a_prompt_is_asked_for_replies(function: Any, chosen: int) -> None:
    """Also where an event loop runs, as in a notebook."""

    async def audited() -> unslant.AuditResult:
        return unslant.audit(function, QUESTIONS, orders="given")

    result = asyncio.run(audited())
    assert result.to_pandas("responses")["chosen"].map(list).tolist() == [[chosen]] * len(QUESTIONS)
    with unslant.Debiased(function, "vote") as model:
        assert model.answer(unslant.load_questions(QUESTIONS)[0]).orders == 2
    check_model(FunctionChat(function))


def test_a_function_that_fails_on_a_prompt_fails_on_that_one_alone() -> None:
    replies = iter(["A", OSError("down\nlater"), None, math.nan, "A", "A"])

    def function(prompt: str) -> Any:
        if isinstance(reply := next(replies), Exception):
            raise reply
        return reply

    rows = unslant.audit(function, QUESTIONS, orders="given").to_pandas("responses")
    assert rows["status"].tolist() == ["ok", "error", "error", "error", "ok", "ok"]
    assert rows["raw"].tolist()[1:4] == [
        "OSError: down",
        "returned NoneType, not a string",
        "returned float, not a string",
    ]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_a_function_that_would_end_the_program_ends_the_run(error: BaseException) -> None:
    """The caller waited for ever, and so did every later call that needed the thread of requests."""

    def function(prompt: str) -> str:
        raise error

    with pytest.raises(unslant.ModelError, match=rf"function ended with {type(error).__name__}"):
        unslant.audit(function, QUESTIONS, orders="given")
    assert unslant.audit(first, QUESTIONS, orders="given").metrics.counts.failed_rows == 0


@pytest.mark.parametrize("model", [first, pytest.param("words", id="loaded")])
def test_how_a_loaded_model_replies_is_set_where_it_is_loaded(model: Any) -> None:
    """A temperature was ignored in silence."""
    model = open_chat(model) if isinstance(model, str) else model
    with pytest.raises(unslant.InputError, match="already loaded: leave out temperature"):
        unslant.audit(model, QUESTIONS, elicit="generate", temperature=1.0)


def test_a_model_may_be_a_dataclass_which_has_no_hash() -> None:
    @dataclass
    class Drawn(ScoringModel):
        best: int = 0

        def __post_init__(self) -> None:
            super().__init__(ModelInfo(name="drawn"))

        def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
            for index, prompt in enumerate(prompts):
                yield Scored(index, -np.arange(1.0, 1.0 + len(prompt.continuations)))

    assert unslant.audit(Drawn(), QUESTIONS).metrics.means["accuracy"].n == 6
