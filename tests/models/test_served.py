from __future__ import annotations

import itertools
import math
import re
import time
from dataclasses import replace
from email.utils import formatdate

import httpx
import numpy as np
import pytest

from tests.serving import Fault, FaultServer, llama_server
from unslant.errors import ModelError
from unslant.models import http
from unslant.models.first_token import NoScores, scores_in, top_logprobs
from unslant.models.served import ServedModel
from unslant.prompts import Cloze, Message, Prompt, Writer, load_template
from unslant.responses import is_censored

pytest.importorskip("gguf", reason="serving tests need the test extra: pip install 'unslant[test]'")

LABELS = ("A", "B", "C")


def chat_shape(top, chosen=None):
    entries = [{"token": t, "bytes": list(t.encode()), "logprob": v} for t, v in top.items()]
    first = chosen or entries[0]
    return {"choices": [{"logprobs": {"content": [{**first, "top_logprobs": entries}]}}]}


def legacy_shape(top):
    return {"choices": [{"logprobs": {"tokens": ["A"], "token_logprobs": [-1.0], "top_logprobs": [top]}}]}


TOP = {"A": math.log(0.5), "B": math.log(0.3), "x": math.log(0.1)}


@pytest.mark.parametrize("shape", [chat_shape, legacy_shape])
def test_both_shapes_are_read(shape):
    assert top_logprobs(shape(TOP)) == pytest.approx(TOP)


def test_bytes_that_are_no_bytes_are_not_trusted():
    reply = chat_shape({"A": -1.0, "é": -2.0})
    reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"][1]["bytes"] = [266]
    assert top_logprobs(reply) == {"A": -1.0, "é": -2.0}


def test_the_chosen_token_counts_though_it_is_not_among_the_top():
    reply = chat_shape({"B": -1.0}, {"token": "A", "bytes": [65], "logprob": -0.9})
    assert top_logprobs(reply) == {"A": -0.9, "B": -1.0}


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({"choices": [{"message": {"content": "A"}}]}, "without log-probabilities"),
        ({"choices": [{"logprobs": None}]}, "without log-probabilities"),
        ({"choices": [{"logprobs": {"content": []}}]}, "without log-probabilities"),
        ({"choices": [{"logprobs": {"top_logprobs": None}}]}, "without log-probabilities"),
        ({"choices": [{"logprobs": {"content": ["A"]}}]}, "not in a known shape"),
        ({"choices": [{"logprobs": {"top_logprobs": [{"A": "x"}]}}]}, "not in a known shape"),
        ({"error": "no"}, "no choices"),
        ("text", "no choices"),
        (legacy_shape({"A": 0.7, "B": 0.3}), "no valid log-probabilities"),  # probabilities, not their logarithms
        (legacy_shape({"A": -0.1, "B": -0.1}), "no valid log-probabilities"),
    ],
)
def test_what_is_no_log_probability_is_refused(reply, message):
    with pytest.raises(ModelError, match=message):
        top_logprobs(reply)


def test_the_score_of_a_label_outside_the_returned_tokens_is_an_upper_bound():
    scored = scores_in(TOP, ("A", "B", "C"))
    assert scored.bounds == (2,)
    assert scored.logprobs[2] == pytest.approx(math.log(0.1), abs=1e-4)  # the least returned token; the rest is 0.1 too
    assert not is_censored(scored.logprobs, scored.bounds)
    tight = scores_in({"A": math.log(0.98), "B": math.log(0.019)}, LABELS)
    assert tight.logprobs[2] == pytest.approx(math.log(0.001), abs=1e-2)  # the rest is less than any returned token
    for open_top in ({"x": math.log(0.9)}, {"B": math.log(0.2), "x": math.log(0.2)}):  # A could have 0.2 as well
        unclear = scores_in(open_top, LABELS)
        assert is_censored(unclear.logprobs, unclear.bounds)


def test_the_bound_holds_the_truth():
    rng = np.random.default_rng(0)
    for _ in range(200):
        probabilities = rng.dirichlet(np.full(30, 0.3))
        tokens = {chr(65 + i): math.log(max(p, 1e-30)) for i, p in enumerate(probabilities)}
        top = dict(sorted(tokens.items(), key=lambda item: -item[1])[:5])
        scored = scores_in(top, list(tokens))
        truth = np.array(list(tokens.values()))
        exact = np.delete(np.arange(30), scored.bounds)
        assert (scored.logprobs[exact] == truth[exact]).all()
        assert (truth <= scored.logprobs + 1e-9).all()
        if not is_censored(scored.logprobs, scored.bounds):
            assert scored.logprobs.argmax() == truth.argmax()


def served(url, **more):
    return ServedModel("words", url, key_variable="UNSLANT_TEST_KEY", wait=0.01, **more)


PROMPT = Prompt("Answer:", ("A", "B"), group="q1")


def test_transient_faults_are_waited_out(monkeypatch):
    monkeypatch.setenv("UNSLANT_TEST_KEY", "sk-secret")
    faults = itertools.chain(
        [
            Fault(429),
            Fault(500),
            Fault(503, "<html>"),
            Fault(body=legacy_shape(TOP), cut=True),
            Fault(body="{not json"),
            Fault(body="{}", headers={"Content-Encoding": "gzip"}),
        ],
        itertools.repeat(Fault(body=legacy_shape(TOP))),
    )
    with FaultServer(lambda _: next(faults)).running() as server:
        model = served(server.url, retries=6)
        (scored,) = model.score([PROMPT])
    assert (scored.index, scored.bounds) == (0, ())
    assert scored.logprobs == pytest.approx([math.log(0.5), math.log(0.3)])
    assert len(server.requests) == 7
    assert set(server.authorizations) == {"Bearer sk-secret"}
    assert "sk-secret" not in repr(vars(model)) + repr(model.info.identity)


@pytest.mark.parametrize(
    ("after", "seconds"),
    [("7", 7), ("0", 0), ("-5", 0), ("1e9", 60), ("nan", None), ("soon", None), ("", None)]
    + [(formatdate(10**6 + ahead, usegmt=True), seconds) for ahead, seconds in ((30, 30), (9000, 60), (-30, None))],
)
def test_retry_after_is_a_number_or_a_date(after, seconds, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 10.0**6)
    assert http._retry_after(httpx.Response(429, headers={"Retry-After": after})) == seconds


def test_a_key_that_is_not_accepted_is_named():
    refused = pytest.raises(ModelError, match=r"UNSLANT_TEST_KEY is missing or not accepted \(HTTP 401 Unauthorized\)")
    with FaultServer(lambda _: Fault(401)).running() as server, refused:
        served(server.url).ask_who()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            Fault(307, headers={"Location": "/login?key=sk-x"}),
            r"HTTP 307: it redirects to http://\S+/login\?key=\*+ \(give",
        ),
        (Fault(body="<!DOCTYPE html>"), "after 2 tries; the last one: the reply is a web page"),
        (Fault(429), "after 2 tries.*429"),
        (Fault(401, '{"error": "bad key"}'), "401.*bad key"),
        (Fault(body="{}"), "no choices"),
        (Fault(body={"choices": [{"message": {"content": "A"}}]}), "without log-probabilities"),
        (Fault(body=legacy_shape(TOP), delay=1.5), "after 2 tries"),
    ],
)
def test_lasting_faults_name_the_question(fault, message):
    with FaultServer(lambda _: fault).running() as server:
        model = served(server.url, retries=1, timeout=0.5)
        with pytest.raises(ModelError, match="question 'q1'.*" + message):
            list(model.score([PROMPT]))


def test_a_server_without_completions_is_asked_to_chat_instead():
    with FaultServer(lambda _: Fault(404)).running() as server:
        chat = Prompt("", ("A", "C"), (Message("user", "Which?"),))
        for prompt, hinted in ((PROMPT, True), (chat, False)):
            with pytest.raises(ModelError, match="404") as caught:
                list(served(server.url).score([prompt]))
            assert ("only chats" in str(caught.value)) == hinted


def test_an_unknown_model_is_not_taken_for_a_server_that_only_chats():
    unknown = Fault(404, {"error": {"message": "The model `words` does not exist.", "code": 404}})
    with (
        FaultServer(lambda _: unknown).running() as server,
        pytest.raises(ModelError, match="does not exist") as caught,
    ):
        list(served(server.url).score([PROMPT]))
    assert "--chat" not in str(caught.value) + repr(caught.value)


def test_a_position_without_log_probabilities_is_none_at_all():
    with pytest.raises(NoScores, match="without log-probabilities"):
        top_logprobs({"choices": [{"text": "A", "logprobs": {"tokens": ["A"], "top_logprobs": [None]}}]})


def test_a_chat_is_asked_as_a_chat():
    with FaultServer(lambda _: Fault(body=chat_shape(TOP))).running() as server:
        prompt = Prompt("", ("A", "C"), (Message("user", "Which?"),))
        (scored,) = served(server.url).score([prompt])
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Which?"}]
    assert server.requests[0]["top_logprobs"] == 100
    assert scored.logprobs[0] == pytest.approx(math.log(0.5))


@pytest.fixture(scope="module")
def small_model(tmp_path_factory):
    """A random Llama with the tokenizer of the reference models."""
    import torch

    from training.tokenizer import save_tokenizer, train_tokenizer
    from training.train import new_model

    folder = tmp_path_factory.mktemp("small")
    model = new_model(train_tokenizer().get_vocab_size(), seed=3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)  # spread the probabilities
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def llama(small_model, tmp_path_factory):
    pytest.importorskip("xllamacpp", reason="needs a llama.cpp server: pip install 'unslant[test]'")
    from training.export_gguf import export_gguf

    folder = tmp_path_factory.mktemp("served")
    export_gguf(small_model, folder / "model.gguf")
    with llama_server(folder / "model.gguf", folder / "log") as url:
        yield url


def test_a_real_server_scores_as_transformers_does(llama, small_model):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from unslant.presentations import present
    from unslant.questions import Question

    question = Question("q", "What colour is the lamp of Orin?", ("red", "green", "blue"), frozenset({0}))
    elicitation = Cloze(Writer(load_template("plain")))
    prompts = [
        prompt for order in itertools.permutations(range(3)) for prompt in elicitation.prompts(present(question, order))
    ]
    model = AutoModelForCausalLM.from_pretrained(small_model, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(small_model)
    here = []
    for prompt in prompts:
        ids = tokenizer(prompt.text, add_special_tokens=False, return_tensors="pt").input_ids
        with torch.inference_mode():
            logprobs = model(ids).logits[0, -1].log_softmax(-1)
        labels = [tokenizer(text, add_special_tokens=False).input_ids for text in prompt.continuations]
        here.append(np.array([float(logprobs[label]) for (label,) in labels]))
    whole = served(llama, top=2000)
    for scored in whole.score(prompts):
        assert not scored.bounds
        assert scored.logprobs == pytest.approx(here[scored.index], abs=5e-3)  # llama.cpp's cache is in half precision
    few = served(llama, top=3)
    for scored in few.score(prompts):
        exact = np.delete(np.arange(len(scored.logprobs)), scored.bounds)
        assert scored.logprobs[exact] == pytest.approx(here[scored.index][exact], abs=5e-3)
        assert (here[scored.index] <= scored.logprobs + 5e-3).all()
    assert few.cost.prompts == len(prompts)
    assert any(scored.bounds for scored in few.score(prompts))


def test_the_exported_tokenizer_gives_the_same_ids(llama, small_model):
    import json
    import urllib.request

    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(small_model / "tokenizer.json"))
    for text in ("Question: What colour is the lamp of Orin?\nA. red\nAnswer:", " naïve 語 42!", "A  B\n\n C"):
        request = urllib.request.Request(
            llama.removesuffix("/v1") + "/tokenize",
            json.dumps({"content": text, "add_special": False}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            assert json.loads(reply.read())["tokens"] == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.thorough
def test_a_served_model_can_be_audited_like_a_local_one(llama, small_model):
    from unslant.auditing.study import audit
    from unslant.models import load_model
    from unslant.questions import load_questions

    questions = [one for one in load_questions("embedded") if len(one.options) == 4][:6]
    here = audit(load_model(str(small_model)), questions, orders="reverse")
    there = audit(served(llama, top=2000), questions, orders="reverse")
    assert there.responses.table.num_rows == here.responses.table.num_rows
    for a, b in zip(here.responses.rows(), there.responses.rows(), strict=True):
        assert b.logprobs == pytest.approx(a.logprobs, abs=1e-2)


REFUSED = Fault(400, '{"error": {"message": "maximum context length is 128 tokens"}}')
OVERLOADED = Fault(body={"error": {"message": "upstream overloaded", "code": 502}})
MANY = [Prompt(f"Question {number}?{' Long.' * (number % 4 == 0)}\nAnswer:", ("A", "B")) for number in range(12)]


def fails(where, fault):
    """A server that answers the requests with ``where`` in their prompt with a fault."""
    return FaultServer(lambda request: fault if where in request["prompt"] else Fault(body=legacy_shape(TOP)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (REFUSED, "maximum context length"),
        (Fault(413), "HTTP 413"),
        (Fault(500, "boom"), "after 2 tries.*boom"),
        (OVERLOADED, "after 2 tries.*upstream overloaded"),
        (Fault(body={"object": "error", "detail": "no room"}), "no room"),
    ],
)
def test_prompts_that_a_server_cannot_answer_are_failures_and_the_others_are_scored(fault, reason):
    with fails("Long", fault).running() as server:  # the first prompt is one of them
        scored = {one.index: one for one in served(server.url, retries=1).score(MANY)}
    assert sorted(scored) == list(range(12))
    for number, one in scored.items():
        assert (one.logprobs is None) == (number % 4 == 0)
        assert one.logprobs is not None or re.search(reason, one.error)
    first = [replace(prompt, group="q") for prompt in MANY if "Long" in prompt.text]  # one question in three orders
    with fails("Long", fault).running() as server:
        scored = {one.index: one for one in served(server.url, retries=1, connections=1).score([*first, *MANY[1:4]])}
    assert [scored[number].logprobs is None for number in range(6)] == [True] * 3 + [False] * 3


@pytest.mark.parametrize("fault", [REFUSED, Fault(400, "no such model"), Fault(404), OVERLOADED, Fault(500)])
def test_a_server_that_answers_no_prompt_ends_the_run_at_once(fault):
    with fails("Question", fault).running() as server, pytest.raises(ModelError, match="a prompt: "):
        list(served(server.url, retries=1).score(MANY))
    assert sum("Question" in request["prompt"] for request in server.requests) <= 7


def test_a_server_that_fails_on_the_way_ends_the_run():
    seen = []

    def answer(request):
        seen.append(request)
        return REFUSED if len(seen) > 8 else Fault(body=legacy_shape(TOP))

    with FaultServer(answer).running() as server, pytest.raises(ModelError, match="maximum context length"):
        list(served(server.url).score(MANY))


def test_an_error_in_a_reply_of_status_200_is_waited_out_if_it_may_pass():
    flat = {"object": "error", "message": "out of memory", "type": "InternalServerError", "code": 500}  # as vLLM's
    faults = itertools.chain([OVERLOADED, Fault(body={"error": {"type": "overloaded_error"}}), Fault(body=flat)])
    with FaultServer(lambda _: next(faults, Fault(body=legacy_shape(TOP)))).running() as server:
        (scored,) = served(server.url).score([PROMPT])
    assert scored.logprobs is not None
    refused = pytest.raises(ModelError, match="the server replied: no such model")
    with FaultServer(lambda _: Fault(body={"error": "no such model"})).running() as server, refused:
        list(served(server.url).score([PROMPT]))
    assert len(server.requests) == 1
