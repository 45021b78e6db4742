"""Chat models: greedy replies of local models, and replies through inspect with failures kept as failures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.serving import Fault, FaultServer, completion
from tests.studies.small_models import random_model
from unslant.errors import ModelError
from unslant.models import GenerateOptions, ModelOptions
from unslant.models.chat import LocalChat
from unslant.models.hf.model import TransformersModel
from unslant.models.inspect_chat import InspectChat
from unslant.models.open import open_chat
from unslant.prompts import Message, Prompt

PROMPTS = [
    Prompt("Question: What colour is the lamp of Orin?\nAnswer:", ()),
    Prompt("Answer:", ()),
    Prompt("", (), (Message("system", "Be short."), Message("user", "What does Orin eat at noon?"))),
    Prompt("Question: Which option is red?\nA. red\nB. blue\nAnswer:", ()),
]
SHORT = GenerateOptions(max_tokens=6)


def test_local_replies_are_greedy_and_the_same_in_any_batch():
    model = random_model()
    alone = {r.index: r.text for r in LocalChat(model, SHORT, batch=1).generate(PROMPTS)}
    together = {r.index: r.text for r in LocalChat(model, SHORT, batch=4).generate(PROMPTS)}
    assert sorted(alone) == [0, 1, 2, 3]
    assert alone == together
    assert all(isinstance(text, str) for text in alone.values())


def test_sampled_replies_differ_from_greedy_ones_and_repeat_themselves():
    model = random_model()
    warm = GenerateOptions(max_tokens=6, temperature=2.0)
    replies = [[r.text for r in LocalChat(model, options).generate(PROMPTS)] for options in (SHORT, warm, warm)]
    assert replies[0] != replies[1] == replies[2]


def test_equal_prompts_are_different_samples_in_every_batch():
    model, warm = random_model(), GenerateOptions(max_tokens=6, temperature=1.0)
    texts = [reply.text for reply in LocalChat(model, warm, batch=4).generate(PROMPTS[:1] * 12)]
    assert len(set(texts)) == 12


@pytest.mark.parametrize("end", [0, [0]])
def test_a_checkpoints_end_of_text_may_be_the_first_token_of_its_vocabulary(end, monkeypatch):
    model = random_model()
    monkeypatch.setattr(type(model.encoder), "end_of_turn", [])
    monkeypatch.setattr(model.model, "generate", lambda ids, **_: torch.cat([ids, torch.tensor([[7, 0, 8]])], dim=1))
    model.model.generation_config.eos_token_id = end
    (reply,) = LocalChat(model, SHORT).generate(PROMPTS[:1])
    assert (reply.output_tokens, reply.cut) == (2, False)


@pytest.mark.parametrize(
    "settings",
    [
        {"return_dict_in_generate": True},
        {"num_return_sequences": 2, "do_sample": True},
        {"stop_strings": ["a"]},
        {"prompt_lookup_num_tokens": 3},
        {"penalty_alpha": 0.6, "top_k": 4},
        {"forced_eos_token_id": 2},
        {"max_time": 1e-4},
        {"min_p": 0.9, "do_sample": True},
    ],
    ids=lambda settings: next(iter(settings)),
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_settings_that_come_with_a_checkpoint_do_not_end_or_cut_replies(settings, temperature):
    model = random_model()
    chat = LocalChat(model, GenerateOptions(max_tokens=6, temperature=temperature))
    before = {reply.index: (reply.text, reply.cut) for reply in chat.generate(PROMPTS)}
    for name, value in settings.items():
        setattr(model.model.generation_config, name, value)
    assert {reply.index: (reply.text, reply.cut) for reply in chat.generate(PROMPTS)} == before


def test_a_prompt_without_room_for_a_reply_is_refused():
    long = Prompt("Question: Which option is red?\n" * 400, ())
    with pytest.raises(ModelError, match="use fewer shots"):
        list(LocalChat(random_model()).generate([long]))


def test_a_template_with_a_token_that_the_model_has_not_is_refused():
    model = random_model()
    model.tokenizer.add_special_tokens({"additional_special_tokens": ["<|turn|>"]})
    model.tokenizer.chat_template = "{% for m in messages %}<|turn|>{{ m['content'] }}{% endfor %}"
    model = TransformersModel(model.model, model.tokenizer, "small")
    with pytest.raises(ModelError, match="question 'q1': the tokenizer gives token 1620, the model has 1,620"):
        list(LocalChat(model, SHORT).generate([Prompt("", (), (Message("user", "Hi"),), "q1")]))


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("can't allocate memory")])
def test_too_little_memory_for_replies_is_one_line(error, monkeypatch):
    def full(*_: Any, **__: Any) -> None:
        raise error

    model = random_model()
    monkeypatch.setattr(model.model, "generate", full)
    with pytest.raises(ModelError, match=r"out of memory with 4 replies at a time.* give a smaller connections"):
        list(LocalChat(model, SHORT).generate(PROMPTS))


inspect = pytest.importorskip("inspect_ai.model", reason="needs inspect_ai: pip install 'unslant[inspect]'")


class FakeInspectModel:
    """Stands for a model object of inspect: replies with the last message, and fails where it says so."""

    def __init__(self):
        self.seen = []
        self.api = SimpleNamespace(generate=None, is_auth_failure=lambda _: False, should_retry=lambda _: False)

    async def generate(self, messages, config):
        self.seen.append(([(m.role, m.content) for m in messages], config.temperature, config.max_tokens))
        if "Which option" in messages[-1].content:
            raise RuntimeError("rate limit")
        return inspect.ModelOutput.from_content("fake", messages[-1].content.upper())


def test_inspect_replies_and_failures():
    fake = FakeInspectModel()
    chat = InspectChat(fake, "fake/model", GenerateOptions(max_tokens=50), ModelOptions(connections=3))
    replies = {r.index: r for r in chat.generate(PROMPTS)}
    assert replies[0].text == PROMPTS[0].text.upper()
    assert replies[2].text == "WHAT DOES ORIN EAT AT NOON?"
    assert replies[3].text is None
    assert replies[3].error == "RuntimeError: rate limit"
    assert ([("system", "Be short."), ("user", "What does Orin eat at noon?")], 0.0, 50) in fake.seen


def test_an_unknown_inspect_model_is_named():
    with pytest.raises(ModelError, match="no-such-provider/x"):
        open_chat("inspect:no-such-provider/x")


def test_what_is_added_to_requests_goes_with_replies_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai")
    monkeypatch.setenv("UNSLANT_API_KEY", "none")
    with FaultServer(lambda _: Fault(body=completion("A"))).running() as server:
        options = ModelOptions(header=("Authorization: Basic word",), extra_body='{"top_k": 1}')
        model = open_chat(f"{server.url}#m", options, SHORT)
        (reply,) = model.generate(PROMPTS[:1])
    assert reply.text == "A"
    assert {request["top_k"] for request in server.requests} == {1}
    assert set(server.authorizations) == {"Basic word"}
    assert model.info.identity["extra_body"] == '{"top_k": 1}'
    assert "word" not in str(model.info.identity)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("fault", "asked"),
    [
        (Fault(400, {"error": {"message": "A: too long", "code": "context_length_exceeded"}}), 1),
        (Fault(body={"error": {"message": "A: upstream overloaded", "code": 502}}), 2),
        (Fault(body={"error": {"message": "A: no such option"}}), 1),
    ],
    ids=["too long", "may pass", "refused"],
)
def test_the_message_of_a_server_that_fails_is_no_reply(fault, asked, monkeypatch):
    monkeypatch.setenv("UNSLANT_API_KEY", "none")

    def answer(request):
        return fault if "lamp" in str(request["messages"]) else Fault(body=completion("B"))

    with FaultServer(answer).running() as server:
        model = open_chat(f"{server.url}#m", ModelOptions(retries=1), SHORT)
        replies = {reply.index: reply for reply in model.generate(PROMPTS[::-1])}
    assert [replies[index].text for index in range(4)] == ["B", "B", "B", None]
    assert fault.body["error"]["message"] in replies[3].error
    assert sum("lamp" in str(request["messages"]) for request in server.requests) == asked


PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "B?"}]}, {"type": "text", "text": "A"}]
BROKEN_OFF = completion("The answer is A")
BROKEN_OFF["choices"][0] |= {"finish_reason": "error", "error": {"code": 502, "message": "upstream left"}}


@pytest.mark.parametrize(
    ("body", "text", "error"),
    [
        (completion(PARTS), "A", ""),
        (completion("A") | {"usage": {"total_tokens": 3}}, "A", ""),
        (completion("A") | {"choices": None}, None, "no choices in the reply"),
        (completion("A") | {"choices": [{"index": 0, "text": "A"}]}, None, "a choice in the reply has no message"),
        (BROKEN_OFF, None, "502 (the server replied: upstream left)"),
        (Fault(body='[{"error": {"code": 503, "message": "full"}}]'), None, "503 (the server replied: full)"),
        (Fault(400, '[{"error": {"code": 400, "message": "no key"}}]'), None, "400 (the server replied: no key)"),
        (Fault(400, {"error": "not pulled"}), None, "400 (not pulled)"),
        (Fault(500, "<html>Bad Gateway</html>"), None, "500 (a web page)"),
        (Fault(body="oops"), None, "502 (oops)"),
    ],
)  # fmt: skip
def test_replies_of_other_shapes_are_read_or_said_to_be_so(
    body: Any, text: str | None, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("inspect_ai")
    monkeypatch.setenv("UNSLANT_API_KEY", "none")
    fault = body if isinstance(body, Fault) else Fault(body=body)

    def answer(request: dict[str, Any]) -> Fault:
        return fault if "lamp" in str(request["messages"]) else Fault(body=completion("B"))

    with FaultServer(answer).running() as server:
        model = open_chat(f"{server.url}#m", ModelOptions(retries=0), SHORT)
        replies = {reply.index: reply for reply in model.generate(PROMPTS[::-1])}
    assert [replies[index].text for index in range(4)] == ["B", "B", "B", text]
    assert error in replies[3].error


def test_a_server_that_names_the_length_limit_otherwise_is_asked_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai")
    monkeypatch.setenv("UNSLANT_API_KEY", "none")
    refused = {"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}

    def answer(request: dict[str, Any]) -> Fault:
        return Fault(400, refused) if "max_tokens" in request else Fault(body=completion("A"))

    with FaultServer(answer).running() as server:
        replies = list(open_chat(f"{server.url}#m", ModelOptions(retries=0), SHORT).generate(PROMPTS))
    assert {reply.text for reply in replies} == {"A"}
    assert sum("max_tokens" in request for request in server.requests) == 1
    assert server.requests[-1]["max_completion_tokens"] == SHORT.max_tokens


@pytest.mark.parametrize("status", [400, 500])
def test_replies_too_are_asked_without_a_system_message_where_the_server_refuses_it(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("inspect_ai")
    monkeypatch.setenv("UNSLANT_API_KEY", "none")

    def answer(request: dict[str, Any]) -> Fault:
        refused = request["messages"][0]["role"] == "system"
        return Fault(status, {"error": {"message": "System role not supported"}}) if refused else (
            Fault(body=completion("A")))  # fmt: skip

    with FaultServer(answer).running() as server:
        model = open_chat(f"{server.url}#m", ModelOptions(retries=0), SHORT)
        assert [reply.text for reply in model.generate(PROMPTS[:2])] == ["A", "A"]
        assert "chat_template" not in model.info.facts
        for asked in (2, 1):  # it remembers
            server.requests.clear()
            (reply,) = model.at(SHORT).generate(PROMPTS[2:3])
            assert (reply.text, len(server.requests)) == ("A", asked)
    (turn,) = server.requests[-1]["messages"]
    assert turn == {"role": "user", "content": "Be short.\n\nWhat does Orin eat at noon?"}
    assert "takes no system message" in str(model.info.facts["chat_template"])


@pytest.mark.parametrize(
    ("extra", "advice"),
    [(None, "give temperature=1;"), ('{"temperature": 0.5}', "leave out temperature in extra_body")],
)
def test_the_temperature_of_replies_is_not_changed_unasked(
    extra: str | None, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("inspect_ai")
    monkeypatch.setenv("UNSLANT_API_KEY", "none")
    words = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported."

    def answer(request: dict[str, Any]) -> Fault:
        if request.get("temperature") != 1:
            return Fault(400, {"error": {"message": words}})
        return Fault(body=completion("A"))

    with FaultServer(answer).running() as server:
        model = open_chat(f"{server.url}#m", ModelOptions(extra_body=extra), SHORT)
        with pytest.raises(ModelError, match=advice) as refused:
            list(model.generate(PROMPTS))
        assert len(server.requests) == 1
        assert "Only the default (1)" in str(refused.value)
        warm = model.at(GenerateOptions(max_tokens=6, temperature=1.0))
        if not extra:
            assert {reply.text for reply in warm.generate(PROMPTS)} == {"A"}


def test_a_server_on_this_machine_is_not_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSLANT_API_KEY", "none")
    here = FaultServer(lambda _: Fault(body=completion("A")))
    with FaultServer(lambda _: Fault(500)).running() as proxy, here.running() as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        (reply,) = open_chat(f"{server.url}#m", ModelOptions(retries=0), SHORT).generate(PROMPTS[:1])
    assert (reply.text, proxy.requests) == ("A", [])
