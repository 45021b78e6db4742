"""A reply that can be read in two ways is an error, never a number."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.command_line import unslant
from tests.models.decision_server import OPTIONS, ORGOO, prompt_of, reply_of
from tests.models.server_formats import OF_KIND
from tests.serving import Fault, FaultServer
from unslant.models.decisions import DecisionModel
from unslant.models.first_token import Malformed, echoed, top_logprobs
from unslant.models.served import ServedModel
from unslant.prompts import Message, Prompt
from unslant.questions import load_questions, write_questions

LABELS = (" A", " B")
PROMPT = Prompt("Question?\nAnswer:", LABELS, group="q0")
CHAT = Prompt("", ("A", "B"), (Message("user", "Question?"),), group="q0")


def legacy(*tops: dict[str, Any], **choice: Any) -> dict[str, Any]:
    return {"logprobs": {"top_logprobs": list(tops)}, **choice}


def chat(*entries: tuple[Any, Any], **choice: Any) -> dict[str, Any]:
    tops = [{"token": token, "logprob": value} for token, value in entries]
    return {"logprobs": {"content": [{**tops[0], "top_logprobs": tops}]}, **choice}


def test_of_several_choices_the_one_of_index_0_is_read() -> None:
    first, other = legacy({" A": -0.1, " B": -3.0}, index=0), legacy({" A": -3.0, " B": -0.1}, index=1)
    for choices in ([first, other], [other, first]):
        assert top_logprobs({"choices": choices})[" A"] == -0.1


WRONG: dict[str, Any] = {
    "index 1 alone": {"choices": [legacy({" A": -0.1}, index=1)]},
    "no index of two": {"choices": [legacy({" A": -0.1}), legacy({" A": -0.2})]},
    "index 0 twice": {"choices": [legacy({" A": -0.1}, index=0), legacy({" A": -0.2}, index=0)]},
    "index as text": {"choices": [legacy({" A": -0.1}, index="0")]},
    "index true": {"choices": [legacy({" A": -0.1}, index=False)]},
    "two positions": {"choices": [legacy({" A": -0.1}, {" B": -0.1})]},
    "two positions of a chat": {"choices": [{"logprobs": {"content": chat(("A", -1.0))["logprobs"]["content"] * 2}}]},
    "tokens and tops differ": {"choices": [{"logprobs": {"tokens": ["x", " A"], "top_logprobs": [{" A": -0.1}]}}]},
    "positions as an object": {"choices": [{"logprobs": {"top_logprobs": {"0": {" A": -0.1}}}}]},
    "number as text": {"choices": [legacy({" A": "-0.1"})]},
    "true": {"choices": [legacy({" A": -0.5, " B": False})]},
    "null": {"choices": [legacy({" A": -0.5, " B": None})]},
    "huge": {"choices": [legacy({" A": -(10**400)})]},
    "not a number": {"choices": [legacy({" A": math.nan})]},
    "minus infinity": {"choices": [legacy({" A": -0.1, " B": -math.inf})]},
    "sentinel": {"choices": [legacy({" A": -0.1, " B": -9999.0})]},
    "another sentinel": {"choices": [legacy({" A": -0.1, "x": -1e30})]},
    "a sentinel of a chat": {"choices": [chat(("A", -0.1), ("B", -1000))]},
    "a label twice": {"choices": [chat(("A", -0.1), ("B", -3.0), ("B", -4.0))]},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_can_be_read_in_two_ways_or_none_is_refused(name: str) -> None:
    with pytest.raises(Malformed):
        top_logprobs(WRONG[name], (" A", " B", "A", "B"))


def test_more_positions_are_read_where_more_tokens_were_asked_for() -> None:
    reply = {"choices": [{"logprobs": {"content": chat(("A", -1.0))["logprobs"]["content"] * 2}}]}
    assert top_logprobs(reply, tokens=2) == {"A": -1.0}


@pytest.mark.parametrize("name", [*WRONG, "a key twice", "a label's key twice"])
def test_such_a_reply_is_a_row_of_status_error_and_the_others_are_scored(name: str) -> None:
    texts = {
        "a key twice": '{"choices": [%s], "choices": [%s]}' % ((json.dumps(legacy({" A": -0.1})),) * 2),
        "a label's key twice": '{"choices": [{"logprobs": {"top_logprobs": [{" A": -0.1, " A": -2.0}]}}]}',
    }
    bad = texts.get(name) or json.dumps(WRONG.get(name))
    good = {"choices": [legacy({" A": -0.1, " B": -3.0})]}
    chat_good = {"choices": [chat(("A", -0.1), ("B", -3.0))]}

    def answer(request: dict[str, Any]) -> Fault:
        text = request.get("prompt") or request["messages"][0]["content"]
        return Fault(body=bad if "bad" in text else chat_good if "messages" in request else good)

    in_chat = name in ("a label twice", "a sentinel of a chat")
    prompts = [
        Prompt("", ("A", "B"), (Message("user", f"{what} {i}"),), group=f"q{i}")
        if in_chat
        else Prompt(f"{what} {i}", LABELS, group=f"q{i}")
        for i, what in enumerate(("fine", "bad", "fine"))
    ]
    with FaultServer(answer).running() as server:
        found = {one.index: one for one in ServedModel("m", server.url, server="openai", wait=0.01).score(prompts)}
    assert [found[i].logprobs is None for i in range(3)] == [False, True, False]
    assert "question 'q1'" in found[1].error


ECHO = {"tokens": ["Q", ":", " A", "!"], "token_logprobs": [None, -1.0, -0.5, -0.1]}


def echo(**changes: Any) -> dict[str, Any]:
    usage = changes.pop("usage", {"completion_tokens": 1})
    return {"choices": [{"index": 0, "logprobs": ECHO | changes}], "usage": usage}


def test_an_echo_is_read_from_before_the_generated_token() -> None:
    assert echoed(echo(), " A") == -0.5


@pytest.mark.parametrize(
    "reply",
    [
        echo(token_logprobs=[None, -1.0, -0.5]),
        echo(token_logprobs=[None, -1.0, "-0.5", -0.1]),
        echo(token_logprobs=[None, -1.0, -9999, -0.1]),
        echo(token_logprobs=[None, -1.0, 0.5, -0.1]),
        echo(token_logprobs=[None, -1.0, math.nan, -0.1]),
        echo(usage={"completion_tokens": 0}),
        echo(usage={"completion_tokens": "1"}),
        {"choices": [{"index": 1, "logprobs": ECHO}]},
    ],
)
def test_an_echo_that_can_be_read_in_two_ways_is_refused(reply: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        echoed(reply, " A")


GOOD = reply_of(dict(zip(OPTIONS, (0.7, 0.1, 0.1, 0.1), strict=True)))
ANSWER = GOOD["answers"]["q"]
OPENAI = reply_of(dict(zip(OPTIONS, (0.7, 0.1, 0.1, 0.1), strict=True)), "decisions")


def probabilities(**changes: Any) -> dict[str, Any]:
    return GOOD | {"answers": {"q": ANSWER | {"probabilities": ANSWER["probabilities"] | changes}}}


@pytest.mark.parametrize(
    ("format", "bad"),
    [
        ("systemone", json.dumps(GOOD).replace('"Fenton":', '"Fenton": 0.1, "Fenton":', 1)),
        ("systemone", json.dumps(probabilities(Fenton="0.7"))),
        ("systemone", json.dumps(probabilities(Fenton=True))),
        ("systemone", json.dumps(probabilities(Fenton=-9999))),
        ("systemone", json.dumps(GOOD | {"answers": {"q": ANSWER, "r": ANSWER}})),
        ("systemone", json.dumps(GOOD | {"answers": {"r": ANSWER}})),
        ("systemone", json.dumps(GOOD | {"model": 3})),
        ("systemone", json.dumps(GOOD | {"usage": {"input_tokens": "10"}})),
        ("decisions", json.dumps(OPENAI | {"answers": OPENAI["answers"] * 2})),
        ("decisions", json.dumps(OPENAI | {"answers": [OPENAI["answers"][0] | {"name": "r"}]})),
    ],
)
def test_a_decision_that_can_be_read_in_two_ways_is_an_error(format: str, bad: str) -> None:
    replies = iter([json.dumps(GOOD if format == "systemone" else OPENAI), bad])
    with FaultServer(lambda _: Fault(body=next(replies))).running() as server:
        model = DecisionModel("m", f"{server.url}/{format}", connections=1)
        first, second = (next(iter(model.score([prompt_of(ORGOO)]))) for _ in range(2))
    assert first.logprobs is not None
    assert second.logprobs is None
    assert not second.declined
    assert second.error


# Exit codes


def refusing(kind: str, share: float = 1.0) -> Callable[[dict[str, Any]], Fault]:
    """A server whose scores cannot be used, but for the first request and a few others."""
    good = OF_KIND[kind]()
    count = iter(range(1_000_000))

    def answer(request: dict[str, Any]) -> Fault:
        fault = good.answer(request)
        if isinstance(fault.body, dict) and fault.body.get("choices") and next(count) % 10 < 10 * share:
            choice = fault.body["choices"][0]
            return Fault(body=fault.body | {"choices": [choice | {"index": 1}]})
        return fault

    return answer


@pytest.mark.parametrize(
    "words",
    [
        *(
            pytest.param(one, marks=pytest.mark.thorough)
            for one in (("audit",), ("study", "base-rate"), ("leaderboard",))
        ),
    ],
)
def test_scores_that_are_all_refused_end_with_3(tmp_path: Any, words: Any) -> None:
    with FaultServer(refusing("vllm"), OF_KIND["vllm"]().get).running() as server:
        model = ("--model", f"{server.url}#m") if words == ("leaderboard",) else (f"{server.url}#m",)
        questions = ("--sets", "embedded") if words == ("leaderboard",) else ("embedded",)
        ran = unslant(
            *words[:2], *model, *questions, *words[2:], "--limit", 6, "--no-store", "--json", tmp_path / "o.json"
        )
    assert ran.code == 3, ran.err
    assert "failed" in ran.err.splitlines()[-1]
    if words != ("study", "base-rate"):  # which measures nothing then
        headline = json.loads((tmp_path / "o.json").read_text("utf-8"))["headline"]
        assert "too few answers are left for a verdict" in headline


@pytest.mark.thorough
def test_debias_of_scores_that_are_all_refused_ends_with_3(tmp_path: Any) -> None:
    with FaultServer(refusing("vllm"), OF_KIND["vllm"]().get).running() as server:
        ran = unslant(
            "debias", f"{server.url}#m", "embedded", "--limit", 4, "--no-store", "--out", tmp_path / "a.jsonl"
        )
    assert ran.code == 3, ran.err


@pytest.mark.thorough
def test_no_verdict_on_what_few_requests_left(tmp_path: Any) -> None:
    four = [question for question in load_questions("embedded") if len(question.options) == 4]  # it knows A to D
    write_questions(four[:8], tmp_path / "four.jsonl")
    with FaultServer(refusing("llama.cpp", 0.9), OF_KIND["llama.cpp"]().get).running() as server:
        ran = unslant("audit", f"{server.url}#m", tmp_path / "four.jsonl", "--no-store", "--json", tmp_path / "o.json")
    assert ran.code == 3
    headline = json.loads((tmp_path / "o.json").read_text("utf-8"))["headline"]
    assert "chance" not in headline
    assert " of m failed (" in headline
