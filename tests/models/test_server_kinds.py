"""Every kind of server: told by what it answers, and asked in the most exact way that it has."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.models.server_formats import LOGPROBS, OF_KIND, Served
from tests.serving import Fault, FaultServer
from unslant.errors import ModelError
from unslant.models import served as module
from unslant.models.http import hint_of
from unslant.models.served import ServedModel
from unslant.prompts import Message, Prompt

pytestmark = pytest.mark.thorough

PLAIN = Prompt("Question?\nAnswer:", (" A", " B", " C"), group="q")
CHAT = Prompt("", ("A", "B", "C"), (Message("user", "Question?"),), group="q")


def served(url: str, **more: Any) -> ServedModel:
    return ServedModel("m", url, **{"key_variable": "UNSLANT_TEST_KEY", "wait": 0.01, "retries": 1} | more)


def one(model: ServedModel, prompt: Prompt) -> tuple[list[float], tuple[int, ...]]:
    (scored,) = model.score([prompt])
    assert scored.logprobs is not None, scored.error
    return scored.logprobs.tolist(), scored.bounds


def exact(prompt: Prompt) -> list[float]:
    return [LOGPROBS[label] for label in prompt.continuations]


def requests_of(server: Any) -> list[dict[str, Any]]:
    """The requests for scores."""
    return [request for request in server.requests if "logprobs" in request]


@pytest.mark.parametrize("kind", [kind for kind in OF_KIND if kind != "openai"])
def test_a_server_is_told_by_what_it_answers(kind: str) -> None:
    with OF_KIND[kind]().running() as server:
        model = served(server.url)
        one(model, CHAT)
        assert model.info.facts == {"server": kind}
        told = served(server.url, server="openai")
        one(told, CHAT)
    assert told.info.facts == {"server": "openai"}


@pytest.mark.parametrize("status", [200, 403, 429, 502])
def test_whatever_else_stands_at_the_root_of_an_address_says_nothing(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK", 0.2)
    other = Fault(status, "<html>")
    server = Served("somebody")
    look = server.get
    server.get = lambda path: look(path) if path == "/v1/models" else other  # type: ignore[method-assign]
    with server.running() as running:
        model = served(running.url, wait=60.0)
        model.identify()
        one(model, CHAT)
    assert model.info.facts == {"server": "unknown"}


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
@pytest.mark.parametrize("prompt", [PLAIN, CHAT], ids=["plain", "chat"])
def test_every_label_is_exact_where_the_server_can(kind: str, prompt: Prompt) -> None:
    with OF_KIND[kind]().running() as server:
        logprobs, bounds = one(served(server.url), prompt)
    assert bounds == ()
    assert logprobs == pytest.approx(exact(prompt))


def test_vllm_is_asked_for_the_labels_by_their_ids() -> None:
    with OF_KIND["vllm"]().running() as server:
        one(served(server.url), PLAIN)
        (request,) = requests_of(server)
        assert len(request["logprob_token_ids"]) == request["logprobs"] == 3
    with replace(OF_KIND["vllm"](), by_id=False).running() as server:  # before 0.26: the field is ignored
        model = served(server.url)
        logprobs, bounds = one(model, PLAIN)
        one(model, PLAIN)
        assert [len(request.get("logprob_token_ids", ())) for request in requests_of(server)] == [3, 0, 0, 0]
    assert bounds == (2,)
    assert logprobs[:2] == pytest.approx(exact(PLAIN)[:2])
    assert logprobs[2] >= exact(PLAIN)[2]


@pytest.mark.parametrize(
    ("kind", "prompt", "tops"),
    [
        ("llama.cpp", PLAIN, [100, 1_000, 10_000]),
        ("sglang", CHAT, [100, 1_000, 10_000]),
        ("openai", PLAIN, [100, 20, 5]),
        ("openai", CHAT, [100, 100, 20]),
        ("ollama", CHAT, [100, 20]),
        ("tgi", CHAT, [100, 20, 5]),
    ],
)
def test_the_number_of_tokens_is_found_by_asking(kind: str, prompt: Prompt, tops: list[int]) -> None:
    server = replace(OF_KIND[kind](), needs="max_completion_tokens" if kind == "openai" and prompt is CHAT else "")
    with server.running() as running:
        model = served(running.url, server=kind)
        one(model, prompt)
        assert [request.get("top_logprobs", request["logprobs"]) for request in requests_of(running)] == tops
        running.requests.clear()
        one(model, prompt)  # it remembers
        assert len(requests_of(running)) == (3 if kind in ("llama.cpp", "sglang") else 1)


@pytest.mark.parametrize(("most", "tops"), [(20, [100, 20]), (100, [100, 1_000])])
def test_a_server_that_fails_on_too_many_tokens_is_asked_for_fewer(most: int, tops: list[int]) -> None:
    kind = Served("somebody", most={"completions": most, "chat": most})

    def answer(request: dict[str, Any]) -> Fault:
        reply = kind.answer(request)
        return Fault(500, "Internal Server Error") if reply.status == 400 else reply

    with FaultServer(answer, kind.get).running() as server:
        model = served(server.url, server="llama.cpp" if most == 100 else "auto", retries=0)
        one(model, PLAIN)
        assert [request["logprobs"] for request in requests_of(server)] == tops
        one(model, PLAIN)
        assert [request["logprobs"] for request in requests_of(server)][len(tops) :] == [most]


def test_a_number_that_is_given_is_the_one_asked_for() -> None:
    with OF_KIND["openai"]().running() as server:
        with pytest.raises(ModelError, match=r"'q'.*logprobs: 50 is more than 20"):
            one(served(server.url, top=50, max_completion_tokens=1), CHAT)
        _, bounds = one(served(server.url, top=7, max_completion_tokens=1), CHAT)
        assert bounds == (2,)
    with OF_KIND["vllm"]().running() as server:  # by rank, not by id
        _, bounds = one(served(server.url, top=4), PLAIN)
    assert bounds == (2,)


@pytest.mark.parametrize("kind", ["ollama", "tgi"])
def test_a_plain_prompt_is_refused_where_it_would_be_no_plain_prompt(kind: str) -> None:
    with OF_KIND[kind]().running() as server:
        with pytest.raises(ModelError, match="use chat=True"):
            one(served(server.url), PLAIN)
        assert not requests_of(server)
        _, bounds = one(served(server.url), CHAT)
    assert bounds == (2,)


def test_a_server_without_log_probabilities_is_refused_by_name() -> None:
    refusing = Served(most={"completions": 0, "chat": 0})
    with refusing.running() as server, pytest.raises(ModelError, match=f"m at {server.url}.*HTTP 400"):
        one(served(server.url), PLAIN)
    silent = Served()
    silent.answer = lambda request: OF_KIND["ollama"]().answer({"prompt": "", "logprobs": 0})  # type: ignore[method-assign]
    with silent.running() as server, pytest.raises(ModelError, match=f"m at {server.url}.*without log-probabilities"):
        one(served(server.url), PLAIN)


def half_a_character(served: Served) -> Served:
    """A server whose model would begin with a byte of a character: llama.cpp answers so unless a grammar forbids it."""
    plain = served.answer

    def answer(request: dict[str, Any]) -> Any:
        fault = plain(request)
        if "logprobs" in request and "grammar" not in request:
            said = {"text": "\ufffd", "message": {"content": "\ufffd"}, "logprobs": None}
            fault.body["choices"][0] |= said  # type: ignore[index]
        return fault

    served.answer = answer  # type: ignore[method-assign]
    return served


@pytest.mark.parametrize("prompt", [PLAIN, CHAT])
def test_a_first_token_that_is_half_a_character_costs_no_scores(prompt: Prompt) -> None:
    with OF_KIND["llama.cpp"]().running() as server:
        expected = one(served(server.url), prompt)
    with half_a_character(OF_KIND["llama.cpp"]()).running() as server:
        assert one(served(server.url), prompt) == expected
    with (
        half_a_character(OF_KIND["vllm"]()).running() as server,
        pytest.raises(ModelError, match="without log-probabilities"),
    ):
        one(served(server.url), prompt)


LONG = Prompt("Question?\nAnswer:", (" first", " second"), group="q")


@pytest.mark.parametrize("kind", ["vllm", "sglang", "unknown"])
def test_labels_of_several_tokens_are_read_from_the_echoed_prompt(kind: str) -> None:
    server = OF_KIND.get(kind, lambda: Served(echo=True))()
    with server.running() as running:
        logprobs, bounds = one(served(running.url), LONG)
    assert bounds == ()
    assert logprobs == [-6.0, -7.0]  # a token each letter, of log-probability -1


def test_labels_of_several_tokens_are_refused_where_they_cannot_be_scored() -> None:
    refused = "label ' first' is 6 tokens.*probability of one token only; use labels=\"A\""
    for prompt in (LONG, replace(CHAT, continuations=(" first", " second"))):
        with OF_KIND["llama.cpp"]().running() as server, pytest.raises(ModelError, match=refused):
            one(served(server.url), prompt)
    with replace(OF_KIND["vllm"](), echo=False).running() as server, pytest.raises(ModelError, match=refused):
        one(served(server.url), LONG)
    with Served().running() as server:  # which does not say how many tokens they are
        _, bounds = one(served(server.url), LONG)
    assert bounds == (0, 1)


def test_labels_whose_tokens_are_known_may_begin_one_another_in_letters_only() -> None:
    begins = Prompt("Question?\nAnswer:", (" A", " Ab"), group="q")
    with OF_KIND["vllm"]().running() as server:
        logprobs, _ = one(served(server.url), begins)  # " Ab" is three tokens of its own
    assert logprobs == [-2.0, -3.0]
    nested = Prompt("Question?\nAnswer:", (" d", " dd"), group="q")
    with OF_KIND["vllm"]().running() as server, pytest.raises(ModelError, match="' d' and ' dd'"):
        one(served(server.url), nested)


@pytest.mark.parametrize("kind", ["vllm", "llama.cpp", "openai"])
@pytest.mark.parametrize("say", ["<think>", "<|channel|>", "◁think▷"])
def test_a_model_that_is_about_to_think_is_refused(kind: str, say: str) -> None:
    refusing = pytest.raises(ModelError, match="thinks before it answers")
    with replace(OF_KIND[kind](), say=say, needs="").running() as server, refusing as refused:
        one(served(server.url, server=kind), CHAT)
    assert say in str(refused.value)
    assert """try extra_body='{"chat_template_kwargs":{"enable_thinking":false}}' (""" in str(refused.value)


def test_thoughts_beside_the_reply_are_thoughts_too() -> None:
    server = OF_KIND["sglang"]()
    plain = server.answer

    def answer(request: dict[str, Any]) -> Any:
        fault = plain(request)
        if "choices" in fault.body:
            fault.body["choices"][0]["message"] = {"content": "", "reasoning_content": "Okay"}  # type: ignore[index]
        return fault

    server.answer = answer  # type: ignore[method-assign]
    with server.running() as running, pytest.raises(ModelError, match="begins with 'Okay'"):
        one(served(running.url), CHAT)


def test_the_server_counts_the_tokens_it_saved() -> None:
    for kind, plain, computed in (("vllm", 40, 8), ("llama.cpp", 20, 1), ("sglang", 0, 0), ("ollama", 0, 0)):
        with OF_KIND[kind]().running() as server:
            model = served(server.url)
            one(model, CHAT)
        assert (model.cost.tokens_plain, model.cost.tokens) == (plain, computed)


def test_what_is_added_to_requests_is_part_of_who_is_asked() -> None:
    body = {"chat_template_kwargs": {"enable_thinking": False}, "temperature": 1}
    with OF_KIND["vllm"]().running() as server:
        model = served(server.url, extra_body=body, headers={"X-Team": "eval"})
        model.identify()
        one(model, CHAT)
        hello, *_, last = (request for request in server.requests if "messages" in request)
        assert last.items() >= body.items()
        assert hello.items() >= body.items()
        identity = model.info.identity
        assert identity["extra_body"] == '{"chat_template_kwargs": {"enable_thinking": false}, "temperature": 1}'
        assert "eval" not in str(identity)
        assert "extra_body" not in served(server.url).info.identity


def test_probabilities_sum_to_what_the_labels_hold() -> None:
    with OF_KIND["vllm"]().running() as server:
        logprobs, _ = one(served(server.url), PLAIN)
    assert math.fsum(np.exp(logprobs)) == pytest.approx(0.6 + 1e-5)


@pytest.mark.parametrize("kind", ["llama.cpp", "sglang"])
def test_a_name_that_the_server_would_take_for_its_only_model_is_refused(kind: str) -> None:
    with OF_KIND[kind]().running() as server:
        for ask in (lambda model: one(model, PLAIN), ServedModel.identify):
            with pytest.raises(
                ModelError,
                match=r"^other at http\S+: no such model, although the server answers to any name; use one of m$",
            ):
                ask(ServedModel("other", server.url, retries=0))
        one(served(server.url), PLAIN)
    with OF_KIND["vllm"]().running() as server:  # which refuses a wrong name itself
        one(ServedModel("other", server.url, retries=0), PLAIN)


def test_an_address_without_its_version_is_pointed_out() -> None:
    with OF_KIND["vllm"]().running() as server:
        root = server.url.removesuffix("/v1")
        model = ServedModel("m", f"{root}/v2", server="openai", retries=0)
        assert not hint_of(f"{root}/v2")
        one(model, PLAIN)  # an address of any other shape is taken as it is
    with FaultServer(lambda _: Fault(404, "File Not Found")).running() as server:
        for url, hint in (
            (server.url.removesuffix("/v1"), rf" \(most servers are at {server.url}\)"),
            (server.url, r" \(a server that only chats needs chat\)"),
        ):
            with pytest.raises(ModelError, match=f"HTTP 404 Not Found: File Not Found{hint}$"):
                one(ServedModel("m", url, server="openai", retries=0), PLAIN)


@pytest.mark.parametrize("status", [429, 500])
def test_completions_are_left_alone_where_a_chat_answers(status: int) -> None:
    """A proxy that is asked for a route that its backend does not have stops asking it at all for a while."""
    kind = OF_KIND["vllm"]()
    with FaultServer(lambda body: kind.answer(body) if "messages" in body else Fault(status), kind.get).running() as at:
        served(at.url).identify()
        assert [body for body in at.requests if "prompt" in body and "max_tokens" in body] == []


@pytest.mark.parametrize("missing", [Fault(404), Fault(500), Fault(delay=1.5)], ids=["404", "500", "hangs"])
def test_a_proxy_whose_backend_has_chats_only_answers_every_request(missing: Fault) -> None:
    """LiteLLM 1.106.2 refuses a backend for seconds after a 404, and tries three times for each request after a 500."""
    kind, statuses, cooldown = Served("me"), [], []

    def answer(body: dict[str, Any]) -> Fault:
        if cooldown:
            fault = cooldown.pop()
        elif "messages" in body:
            fault = kind.answer(body)
        else:
            cooldown.append(Fault(429, headers={"Retry-After": "0"}))
            fault = missing
        statuses.append((fault.status, fault.delay))
        return fault

    with FaultServer(answer, kind.get).running() as server:
        model = served(server.url, timeout=1, retries=5)
        model.identify()
        for _ in range(2):
            one(model, CHAT)
    assert set(statuses) == {(200, 0)}


@pytest.mark.parametrize("status", [404, 500])
def test_a_chat_that_wants_another_name_for_its_length_is_a_chat(status: int) -> None:
    """As OpenAI's reasoning models; plain completions, which its backend does not have, would make a proxy refuse."""
    kind = replace(OF_KIND["vllm"](), needs="max_completion_tokens")
    with FaultServer(lambda body: kind.answer(body) if "messages" in body else Fault(status), kind.get).running() as at:
        served(at.url).identify()
        assert ["prompt" in body for body in at.requests] == [False, False]


def test_completions_that_fail_for_good_are_not_waited_for() -> None:
    kind = OF_KIND["vllm"]()
    with FaultServer(lambda body: Fault(400 if "messages" in body else 500), kind.get).running() as server:
        served(server.url, retries=9).identify()
        assert len([body for body in server.requests if "prompt" in body]) == 2


def test_a_list_of_models_that_fails_for_good_is_not_waited_for() -> None:
    kind = OF_KIND["vllm"]()
    with FaultServer(kind.answer, lambda path: Fault(500)).running() as server:
        served(server.url, retries=9).identify()
        assert server.looked_at.count("/v1/models") == 2


def test_sglang_scores_all_labels_of_a_plain_prompt_in_one_request() -> None:
    for has_route in (True, False):  # older versions do not have it
        kind = OF_KIND["sglang"]()
        kind.score_route = has_route
        with kind.running() as server:
            model = served(server.url)
            for _ in range(2):
                values, bounds = one(model, PLAIN)
                assert values == pytest.approx(exact(PLAIN), abs=1e-9)
                assert bounds == ()
            asked = [body for body in server.requests if "label_token_ids" in body]
            assert len(asked) == (2 if has_route else 1)
            assert {key: asked[0][key] for key in ("query", "items", "apply_softmax")} == {
                "query": PLAIN.text, "items": [""], "apply_softmax": False
            }  # fmt: skip
            assert bool(requests_of(server)) is not has_route
    kind = OF_KIND["sglang"]()
    kind.scored = lambda request: Fault(body={"scores": [[0.9, 0.8, 0.7]], "model": "m"})
    with kind.running() as server:
        (scored,) = served(server.url).score([PLAIN])
    assert "not one probability for each of 3 labels" in scored.error


@pytest.mark.parametrize(("slots", "connections", "most"), [(1, 32, 1), (4, 32, 4), (4, 2, 2), (None, 32, 32)])
def test_llama_cpp_is_asked_no_more_at_once_than_it_has_caches(slots: int | None, connections: int, most: int) -> None:
    kind = OF_KIND["llama.cpp"]()
    kind.about["/props"]["total_slots"] = slots
    with kind.running() as server:
        model = served(server.url, connections=connections)
        one(model, PLAIN)
        assert model.server.limit.most == most


SYSTEM = Message("system", "Answer with a letter.")


@pytest.mark.parametrize(
    "refusal",
    [
        Fault(400, "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is."),
        Fault(400, "Unsupported parameter: 'temperature' is not supported with this model."),
        Fault(400, "litellm.UnsupportedParamsError: O-series models don't support temperature=0. Only 1 is supported."),
        Fault(422, "invalid temperature: only 1 is allowed for this model"),
    ],
    ids=["openai", "azure", "litellm", "moonshot"],
)
def test_a_server_that_takes_no_temperature_is_asked_without(refusal: Fault) -> None:
    """And with the other name of the length limit, as models that reason want both."""
    kind = replace(OF_KIND["openai"](), needs="max_completion_tokens")

    def answer(request: dict[str, Any]) -> Fault:
        return refusal if "temperature" in request and "max_tokens" not in request else kind.answer(request)

    with FaultServer(answer, kind.get).running() as server:
        model = served(server.url, server="openai")
        assert one(model, CHAT)[0][:2] == pytest.approx(exact(CHAT)[:2])
        server.requests.clear()
        one(model, CHAT)
        (request,) = requests_of(server)  # it remembers both
        assert not {"temperature", "max_tokens"} & request.keys()
        server.requests.clear()
        insists = served(server.url, server="openai", extra_body={"temperature": 0.5})
        with pytest.raises(ModelError, match="leave out temperature in extra_body"):
            one(insists, CHAT)
        assert len(requests_of(server)) == 2  # the first shows that it wants the other name of the length limit


@pytest.mark.parametrize(
    "refusal",
    ["System role not supported", "Conversation roles must alternate user/assistant/user/assistant/..."],
    ids=["Gemma 2", "Mistral 7B"],
)
@pytest.mark.parametrize("status", [400, 500])
def test_an_instruction_begins_the_users_message_where_the_server_refuses_the_system_role(
    status: int, refusal: str
) -> None:
    kind = OF_KIND["vllm"]()

    def answer(request: dict[str, Any]) -> Fault:
        refused = request.get("messages", [{}])[0].get("role") == "system"
        return Fault(status, f'{{"object": "error", "message": "{refusal}"}}') if refused else kind.answer(request)

    with FaultServer(answer, kind.get).running() as server:
        model = served(server.url)
        one(model, CHAT)
        assert "chat_template" not in model.info.facts
        one(model, replace(CHAT, messages=(SYSTEM, *CHAT.messages)))
        (folded,) = requests_of(server)[-1]["messages"]
        assert folded == {"role": "user", "content": "Answer with a letter.\n\nQuestion?"}
        (note,) = model.info.facts["chat_template"]  # type: ignore[misc]
        assert "takes no system message" in note


def test_a_refusal_that_mentions_the_system_prompt_for_another_reason_changes_no_later_request() -> None:
    kind = OF_KIND["vllm"]()
    long = Message("user", "Long? " * 20)

    def answer(request: dict[str, Any]) -> Fault:
        too_long = "Long?" in request.get("messages", [{}])[-1].get("content", "")
        return Fault(400, "system prompt and question are too long, temperature not only") if too_long else (
            kind.answer(request))  # fmt: skip

    with FaultServer(answer, kind.get).running() as server:
        model = served(server.url)
        prompts = [
            replace(CHAT, messages=(SYSTEM, *last), group=str(i)) for i, last in enumerate(([long], CHAT.messages))
        ]
        results = {scored.index: scored for scored in model.score(prompts)}
        assert "too long" in results[0].error
        request = requests_of(server)[-1]
        assert request["temperature"] == 0
        assert request["messages"][0]["role"] == "system"
    assert model.info.facts == {"server": "vllm"}
