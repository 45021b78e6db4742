"""Several servers of one model share the work; one that is lost is named, and one that is another model is refused."""

from __future__ import annotations

import math
import warnings
from contextlib import ExitStack
from typing import Any

import pytest

from tests.serving import Fault, FaultServer
from unslant import InputError, ModelError, open_model
from unslant.models.open import address_of
from unslant.models.options import ModelOptions
from unslant.models.served import ServedModel
from unslant.models.stored import StoredModel
from unslant.prompts import Prompt
from unslant.store import Store

PROMPTS = [Prompt(f"{q} {way} Answer:", ("A", "B"), group=f"q{q}") for q in range(30) for way in range(3)]


def reply(request: dict[str, Any]) -> Fault:
    """A's probability depends on the prompt."""
    if "prompt" not in request:
        return Fault(404)
    p = 0.1 + 0.01 * (sum(request["prompt"].encode()) % 50)
    top = {"A": math.log(p), "B": math.log(0.95 - p)}
    logprobs = {"tokens": ["A"], "token_logprobs": [-1.0], "top_logprobs": [top]}
    return Fault(body={"choices": [{"logprobs": logprobs}], "system_fingerprint": "fp"}, delay=0.002)


def about(made: str) -> Any:
    listed = {"data": [{"id": "words", "owned_by": "vllm", "root": made}]}
    return lambda path: Fault(body=listed) if path.endswith("/models") else Fault(404)


def group(*servers: FaultServer) -> Any:
    urls = tuple(server.url for server in servers)
    return open_model("words", base_url=urls, retries=0, server="openai", connections=4)


def scores(model: Any, prompts: list[Prompt] = PROMPTS) -> list[list[float]]:
    found = {one.index: one.logprobs.tolist() for one in model.score(prompts)}
    assert sorted(found) == list(range(len(prompts)))
    return [found[i] for i in range(len(prompts))]


def started(stack: ExitStack, *servers: FaultServer) -> None:
    for server in servers:
        stack.enter_context(server.running())


def asked_of(server: FaultServer) -> list[str]:
    return [request["prompt"] for request in server.requests if "Answer" in request.get("prompt", "")]


@pytest.mark.thorough
def test_servers_share_the_work_and_give_what_one_gives() -> None:
    servers = [FaultServer(reply, about("x")) for _ in range(3)]
    with ExitStack() as stack:
        started(stack, *servers)
        expected = scores(open_model("words", base_url=servers[0].url, server="openai"))
        for server in servers:
            server.requests.clear()
        model = group(*servers)
        assert scores(model) == expected
        shares = [asked_of(server) for server in servers]
    assert all(shares)
    asked = [prompt for share in shares for prompt in share]
    assert set(asked) == {prompt.text for prompt in PROMPTS}
    assert len(asked) == len(PROMPTS) + min(8, len(PROMPTS) // 4)  # some again, at the end
    assert model.cost.prompts == len(PROMPTS)
    assert model.info.identity["base_url"] == " ".join(sorted(server.url for server in servers))
    assert "root" in model.info.identity["models"]


@pytest.mark.thorough
def test_one_that_fails_is_named_and_the_others_do_its_part() -> None:
    good, bad = FaultServer(reply, about("x")), FaultServer(reply, about("x"))
    count = 0

    def dies(request: dict[str, Any]) -> Fault:
        nonlocal count
        count += "Answer" in request.get("prompt", "")
        return Fault(500) if count > 5 else reply(request)

    bad.answer = dies
    with ExitStack() as stack, warnings.catch_warnings():
        started(stack, good, bad)
        model = group(bad, good)
        with pytest.warns(UserWarning, match=f"{bad.url}.*HTTP 500.*the other servers continue without it"):
            found = scores(model)
        assert found == scores(open_model("words", base_url=good.url, server="openai"))
        good.answer = lambda _: Fault(500)
        warnings.simplefilter("ignore")
        with pytest.raises(ModelError, match="HTTP 500"):
            scores(group(bad, good))


def test_one_that_is_not_there_is_named_and_left_out() -> None:
    good = FaultServer(reply, about("x"))
    with good.running():
        model = open_model("words", base_url=("http://127.0.0.1:9/v1", good.url), server="openai")
        with pytest.warns(UserWarning, match=r"127\.0\.0\.1:9.*no connection.*continue without it"):
            scores(model)


def test_servers_of_different_models_are_refused() -> None:
    one, other = FaultServer(reply, about("this.gguf")), FaultServer(reply, about("that.gguf"))
    with ExitStack() as stack:
        started(stack, one, other)
        with pytest.raises(ModelError, match=r"do not serve the same model.*this\.gguf.*that\.gguf"):
            scores(group(one, other))


def test_what_is_wrong_with_a_request_is_no_servers_fault() -> None:
    servers = [FaultServer(lambda _: Fault(401, "no key"), about("x")) for _ in range(2)]
    with ExitStack() as stack:
        started(stack, *servers)
        with pytest.raises(ModelError, match="HTTP 401"):
            scores(group(*servers))


@pytest.mark.thorough
def test_scores_of_a_group_are_stored(tmp_path: Any) -> None:
    servers = [FaultServer(reply, about("x")) for _ in range(2)]
    with ExitStack() as stack, Store(tmp_path / "store.sqlite3") as store:
        started(stack, *servers)
        expected = scores(StoredModel(group(*servers), store))
        again = StoredModel(group(*servers[::-1]), store)
        assert scores(again) == expected
        assert again.recalled == len(PROMPTS)


def test_the_command_line_takes_several_addresses() -> None:
    from unslant.cli import app

    words = "audit m --base-url http://a/v1 --base-url http://b/v1".split()
    _, given, *_ = app.parse_args(words, exit_on_error=False, print_error=False)
    assert ModelOptions(base_url=given.arguments["base_url"]).base_url == ("http://a/v1", "http://b/v1")


def test_one_address_is_no_group_and_replies_are_asked_of_one() -> None:
    alone = open_model("m", base_url=("http://127.0.0.1:9/v1",))
    assert isinstance(alone, ServedModel)
    assert len(alone.servers) == 1
    twice = ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1")
    assert ModelOptions(base_url=twice).base_url == twice[0]
    both = ModelOptions(base_url=("http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1"))
    group = open_model("m", both)
    assert isinstance(group, ServedModel)
    assert len(group.servers) == 2
    assert address_of("m", both).options.addresses == both.base_url
    with pytest.raises(InputError, match="for replies, give one"):
        address_of("m", both, ("generate",))
    with pytest.raises(InputError, match="is not a URL"):
        address_of("m", ModelOptions(base_url=("http://127.0.0.1:9/v1", "127.0.0.1:8/v1")))
    with pytest.raises(InputError, match="several servers can share only the scoring of labels"):
        address_of("m", ModelOptions(base_url=("http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1/systemone")))
