"""Another model behind the same address, a server gone bad, and secrets: none of them passes unnoticed."""

from __future__ import annotations

import base64
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unslant
from tests.serving import Fault, FaultServer
from unslant.errors import InputError, ModelError
from unslant.models import http
from unslant.models.base import Scored, facts_of
from unslant.models.served import ServedModel
from unslant.models.stored import StoredModel
from unslant.prompts import Message, Prompt
from unslant.store import Store

pytestmark = pytest.mark.thorough

KEY = 'sk-secret"\\key'
PROMPTS = [Prompt(f"Question {i}?\nAnswer:", (" A", " B"), group=f"q{i}") for i in range(20)]
HELLO = "1 + 1 ="


def reply(a: object, b: object = math.log(0.3), **more: Any) -> dict[str, Any]:
    return {"choices": [{"logprobs": {"top_logprobs": [{" A": a, " B": b, "x": -9.0}]}}], **more}


@dataclass
class Behind:
    """What stands behind an address: P(A) by the number of the question, and what the server says of itself."""

    share: Callable[[int], float] = lambda number: 0.2 + number / 40
    models: Any = None
    props: Any = None
    fingerprint: str | None = None

    def answer(self, request: dict[str, Any]) -> Fault:
        if "prompt" not in request:
            return Fault(404)
        if request["prompt"] == HELLO:
            return Fault(body=reply(-1.0, system_fingerprint=self.fingerprint))
        p = self.share(int(request["prompt"].split("?")[0].split()[-1]))
        return Fault(body=reply(math.log(p), math.log(0.99 - p)))

    def about(self, path: str) -> Fault:
        found = {"/v1/models": self.models, "/props": self.props}.get(path)
        return Fault(404) if found is None else Fault(body=found)


@contextmanager
def serving(behind: Behind) -> Iterator[FaultServer]:
    with FaultServer(lambda request: behind.answer(request), lambda path: behind.about(path)).running() as server:
        yield server


def served(url: str, **more: Any) -> ServedModel:
    return ServedModel("m", url, key_variable="UNSLANT_TEST_KEY", **{"wait": 0.01, "retries": 1} | more)


def asked(server: FaultServer) -> int:
    """Questions put to the server since the last look."""
    found = sum(request.get("prompt", HELLO) != HELLO for request in server.requests)
    server.requests.clear()
    return found


def scores(model: Any, prompts: list[Prompt] = PROMPTS) -> dict[int, Scored]:
    found = {scored.index: scored for scored in model.score(prompts)}
    assert sorted(found) == list(range(len(prompts)))
    return found


def share(scored: Scored) -> float:
    assert scored.logprobs is not None
    return float(np.exp(scored.logprobs[0]))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "s.sqlite3") as opened:
        yield opened


def test_a_sample_of_what_is_stored_is_asked_again_and_no_more(store: Store) -> None:
    with serving(Behind()) as server:
        first = scores(StoredModel(served(server.url), store))
        assert asked(server) == 20 + 5  # a quarter of them again, at the end
        kept = StoredModel(served(server.url), store)
        again = scores(kept)
        assert asked(server) == 8
        few = scores(StoredModel(served(server.url), store), PROMPTS[:5])
        assert asked(server) == 5
        half = scores(StoredModel(served(server.url), store), [*PROMPTS[:12], Prompt("Question 30?", (" A", " B"))])
        assert asked(server) == 8 + 1
    assert kept.recalled == 20
    for found in (again, few):
        assert all((found[i].logprobs == first[i].logprobs).all() for i in found)  # type: ignore[union-attr]
    assert share(half[12]) == pytest.approx(0.95)


def test_another_model_at_the_same_address_and_name_is_asked_everything(store: Store) -> None:
    behind = Behind()
    with serving(behind) as server:
        scores(StoredModel(served(server.url), store))
        scores(StoredModel(served(server.url), store), PROMPTS[:15])  # taken over by another call
        asked(server)
        behind.share = lambda number: 0.7 - number / 40
        changed = StoredModel(served(server.url), store)
        found = scores(changed)
        assert asked(server) == 8 + 20 + 5
        assert changed.recalled == 0
        for i, scored in found.items():
            assert share(scored) == pytest.approx(behind.share(i), abs=1e-6)
        found = scores(
            StoredModel(served(server.url), store), PROMPTS[:15]
        )  # the other call finds no old scores either
        assert share(found[3]) == pytest.approx(behind.share(3), abs=1e-6)


def test_a_server_that_changes_once_stored_scores_were_used_fails_the_run(store: Store) -> None:
    behind = Behind()
    with serving(behind) as server:
        scores(StoredModel(served(server.url), store))
        model = StoredModel(served(server.url), store)
        scores(model, PROMPTS[:10])
        behind.share = lambda number: 0.7 - number / 40
        with pytest.raises(ModelError, match="run the same command again"):
            scores(model, PROMPTS[10:])
        again = scores(StoredModel(served(server.url), store))
    assert share(again[3]) == pytest.approx(behind.share(3), abs=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"models": {"data": [{"id": "m", "created": 7, "root": "/models/other"}, {"id": "n"}]}},
        {"props": {"model_path": "other.gguf"}},
        {"props": {"model_path": "m.gguf", "chat_template": "other"}},
    ],
)
def test_a_server_that_says_it_is_another_is_asked_everything(store: Store, change: dict[str, Any]) -> None:
    known = {
        "models": {"data": [{"id": "m", "created": 5, "root": "/models/m"}, {"id": "n"}]},
        "props": {"model_path": "m.gguf", "default_generation_settings": {"id_task": 3}},
        "fingerprint": "fp_1",
    }
    with serving(Behind(**known)) as server:
        scores(StoredModel(served(server.url), store))
    passing = known | {"models": {"data": [{"id": "m", "created": 6, "root": "/models/m"}]}}
    behind = Behind(**passing)
    with serving(behind) as other:
        model = served(server.url)
        model.server._url = other.url  # the same address, on this machine
        same = StoredModel(model, store)
        scores(same)
        assert same.recalled == 20
        assert asked(other) == 8
        for name, value in change.items():
            setattr(behind, name, value)
        different = StoredModel(model, store)
        scores(different)
        assert different.recalled == 0
        assert asked(other) == 20 + 5


def test_a_server_that_cannot_be_reached_is_an_error_unless_offline_is_said(store: Store) -> None:
    with serving(Behind()) as server:
        first = scores(StoredModel(served(server.url), store))
    with pytest.raises(ModelError, match=r"does not say who it is: no connection.*offline"):
        scores(StoredModel(served(server.url), store))
    offline = StoredModel(served(server.url), store, offline=True)
    found = scores(offline)
    assert all((found[i].logprobs == first[i].logprobs).all() for i in found)  # type: ignore[union-attr]
    assert facts_of(offline)["offline"] is True
    assert facts_of(offline)["identity"]["base_url"] == server.url  # type: ignore[index]
    with pytest.raises(ModelError, match="offline, and 1 of 2 prompts are not in the store"):
        scores(StoredModel(served(server.url), store, offline=True), [PROMPTS[0], Prompt("Other?", (" A", " B"))])
    with pytest.raises(ModelError, match=r"offline, and (\d+) of \1 prompts are not in the store"):
        scores(StoredModel(served("http://127.0.0.1:9/v1"), store, offline=True))


@pytest.mark.parametrize("bad", ["NaN", "-Infinity", "Infinity", 0.5, 1e-5, -9999.0, "-1.5", None])
def test_a_value_that_is_not_a_log_probability_is_an_error_and_asked_again(store: Store, bad: object) -> None:
    behind = Behind()
    broken = {3, 7}

    def answer(request: dict[str, Any]) -> Fault:
        number = request.get("prompt", "").split("?")[0].split()[-1:]
        if number and number[0].isdigit() and int(number[0]) in broken:
            text = str(reply(bad)).replace("'", '"').replace('"NaN"', "NaN").replace("None", "null")
            return Fault(body=text.replace('"Infinity"', "Infinity").replace('"-Infinity"', "-Infinity"))
        return behind.answer(request)

    with FaultServer(answer).running() as server:
        found = scores(StoredModel(served(server.url), store))
        assert sorted(i for i in found if found[i].logprobs is None) == sorted(broken)
        assert re.search("'q3': the.*(no valid log-probabilities|in place of|not in a known shape)", found[3].error)
        asked(server)
        broken.clear()
        mended = StoredModel(served(server.url), store)
        assert all(scored.logprobs is not None for scored in scores(mended).values())
        assert mended.recalled == 18
        assert asked(server) == 8 + 2


def test_a_row_without_scores_is_a_failure_and_nothing_else(store: Store, tmp_path: Path) -> None:
    def answer(request: dict[str, Any]) -> Fault:
        if "What is the capital of" in request.get("prompt", ""):
            return Fault(body=reply(float("nan")))
        return Fault(body={"choices": [{"logprobs": {"top_logprobs": [{" A": -0.7, " B": -0.9, "x": -9.0}]}}]})

    questions = [
        unslant.Question(f"q{i}", stem, ("one", "two"), frozenset({0}))
        for i, stem in enumerate(["Is it?", "What is the capital of it?", "Was it?"])
    ]
    with FaultServer(answer).running() as server:
        result = unslant.audit(StoredModel(served(server.url), store), questions)
    statuses = {(row.question_id, row.status) for row in result.responses.rows() if row.kind != "control"}
    assert ("q1", "error") in statuses
    assert {("q0", "ok"), ("q2", "ok")} <= statuses
    assert all(
        row.logprobs is None and "no valid" in str(row.raw) for row in result.responses.rows() if row.status == "error"
    )
    result.to_json(tmp_path / "out.json")
    assert "NaN" not in (tmp_path / "out.json").read_text("utf-8")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(body=reply(-1.0), delay=30),
        Fault(body=reply(-1.0), drip=0.05),
        Fault(body=reply(-1.0), drip=0.05, drip_head=True),
        Fault(500, "x" * 400, drip=0.05),
    ],
    ids=["silent", "slow", "slow head", "slow error"],
)
def test_a_reply_that_does_not_end_is_given_up(fault: Fault) -> None:
    given_up = pytest.raises(ModelError, match=r"'q0': no usable reply after 2 tries.*no whole reply within 0.3 s")
    with FaultServer(lambda _: fault).running() as server, given_up:
        scores(served(server.url, timeout=0.3), PROMPTS[:1])


def test_all_tries_together_have_a_deadline() -> None:
    with FaultServer(lambda _: Fault(503, headers={"Retry-After": "1"})).running() as server:
        with pytest.raises(ModelError, match=r"no usable reply after \d tries.*503"):
            scores(served(server.url, deadline=2.5, retries=1000), PROMPTS[:1])
        assert len(server.requests) < 5
    given_up = pytest.raises(ModelError, match=r"no usable reply within 0.5 s")
    with FaultServer(lambda _: Fault(delay=30)).running() as server, given_up:
        scores(served(server.url, deadline=0.5, retries=1000, timeout=20), PROMPTS[:1])


def test_a_long_time_for_one_reply_is_not_cut_by_the_one_for_all_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "DEADLINE", 0.2)
    with FaultServer(lambda _: Fault(body=reply(-1.0), delay=0.6)).running() as server:
        assert scores(served(server.url, timeout=20), PROMPTS[:1])[0].logprobs is not None


@pytest.mark.parametrize("key", ["sk-caf\u00e9", "sk-two\nlines"])
def test_a_key_that_no_header_can_hold_is_refused_at_once(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSLANT_TEST_KEY", key)
    with FaultServer(lambda _: Fault(body=reply(-1.0))).running() as server:
        with pytest.raises(ModelError, match="the key in UNSLANT_TEST_KEY contains characters") as refused:
            scores(served(server.url), PROMPTS[:1])
        assert server.requests == []
    assert "sk-" not in str(refused.value)


@pytest.mark.parametrize("after", ["nan", "-nan", "-5", "inf", "1e400", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", ""])
def test_any_retry_after_is_survived(after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_LONGEST_WAIT", 0.05)
    faults = itertools.chain([Fault(429, headers={"Retry-After": after})], itertools.repeat(Fault(body=reply(-1.0))))
    with FaultServer(lambda _: next(faults)).running() as server:
        assert scores(served(server.url), PROMPTS[:1])[0].logprobs is not None


def test_a_reply_without_end_in_space_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LARGEST_REPLY", 1 << 20)
    for status, problem in ((200, "larger than 1 MiB"), (400, "HTTP 400 Bad Request: xxx")):
        with FaultServer(lambda _, status=status: Fault(status, "x" * (3 << 20))).running() as server:
            with pytest.raises(ModelError, match=problem) as refused:
                scores(served(server.url), PROMPTS[:1])
            assert len(str(refused.value)) < 1000
            assert len(server.requests) == {200: 1, 400: 3}[status]  # 100 tokens may have been too many, and 20
    deep = FaultServer(lambda _: Fault(body="[" * 200_000))
    with deep.running() as server, pytest.raises(ModelError, match=r"RecursionError|JSON"):
        scores(served(server.url), PROMPTS[:1])


def test_a_reply_may_begin_with_a_byte_order_mark() -> None:
    with FaultServer(lambda _: Fault(body="\ufeff" + json.dumps(reply(-1.0)))).running() as server:
        assert scores(served(server.url), PROMPTS[:1])[0].logprobs is not None


def test_a_wait_is_announced() -> None:
    told: list[str] = []
    release = threading.Event()

    def answer(_: dict[str, Any]) -> Fault:
        return Fault(body=reply(-1.0)) if release.is_set() else Fault(503, headers={"Retry-After": "0.2"})

    with FaultServer(answer).running() as server:
        model = served(server.url, retries=100)
        found = model.score(PROMPTS[:1])
        waiter = threading.Thread(target=lambda: told.extend(scored.error for scored in found))
        waiter.start()
        while not model.waiting:
            pass
        words = model.waiting
        release.set()
        waiter.join()
    assert "HTTP 503" in words
    assert "next try in 0 s" in words
    assert model.waiting == ""
    assert told == [""]


SECRET_FAULTS = [
    Fault(401, f'{{"error": "Incorrect API key provided: {KEY}"}}'),
    Fault(401, '{"error": "no such key: sk-secret\\"\\\\key"}'),
    Fault(403, f"Basic {base64.b64encode(b'me:pass/word').decode()} for me:pass/word or me:pass%2Fword"),
    Fault(400, f"http://me:pass%2Fword@127.0.0.1/v1?key={KEY}"),
]


@pytest.mark.parametrize("fault", SECRET_FAULTS)
def test_secrets_are_in_no_message_and_no_file(fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSLANT_TEST_KEY", KEY)
    with FaultServer(lambda _: fault).running() as server, Store(tmp_path / "s.sqlite3") as store:
        url = server.url.replace("http://", "http://me:pass%2Fword@")
        run = store.runs.start(["audit", "m", "--base-url", url, f"{url}#m"], tmp_path, "m")
        messages = []
        for model in (served(url), StoredModel(served(url), store, run)):
            with pytest.raises(ModelError) as refused:
                scores(model, PROMPTS[:2])
            messages.append(str(refused.value))
            assert "***" in messages[-1]
        store.runs.end(run, "failed", messages[-1])
        messages += [repr(store.runs.get(run)), repr(served(url).info.identity), repr(facts_of(served(url)))]
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for text in (*messages, written.decode("utf-8", "replace")):
        for secret in ("pass/word", "pass%2Fword", "sk-secret", base64.b64encode(b"me:pass/word").decode()):
            assert secret not in text
    assert os.stat(tmp_path / "s.sqlite3").st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="a part of the address was not recorded"):
        served("http://***@127.0.0.1:9/v1")


def test_loopback_is_not_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSLANT_TEST_KEY", "sk-secret")
    with FaultServer(lambda _: Fault(502)).running() as proxy, serving(Behind()) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        for host in ("127.0.0.1", "localhost"):
            scores(served(server.url.replace("127.0.0.1", host)), PROMPTS[:2])
        assert proxy.requests == []
        with pytest.raises(ModelError):  # and the proxy is the one that is asked for any other host
            scores(served("http://model.example/v1", retries=0), PROMPTS[:1])
        assert len(proxy.requests) == 1


def test_labels_that_begin_one_another_are_refused_before_anything_is_asked() -> None:
    with serving(Behind()) as server:
        for labels in ((" 1", " 2", " 10"), ("I", "II", "III")):
            with pytest.raises(ModelError, match=r"use labels=.A."):
                scores(served(server.url), [PROMPTS[0], Prompt("Question 1?", labels)])
        with pytest.raises(ModelError, match="the probability of one token"):
            scores(served(server.url), [Prompt("Question 1?", (" A", " B"), to_end=True)])
        with pytest.raises(ModelError, match="middle of the assistant's turn"):
            scores(served(server.url), [Prompt("Answer", (" A", " B"), (Message("user", "?"),))])
        assert asked(server) == 0


CHILD = """
import sys
from unslant.models.served import ServedModel
from unslant.prompts import Prompt
print("asking", flush=True)
list(ServedModel("m", sys.argv[1], retries=100, wait=30).score([Prompt("Question 1?", (" A", " B"))] * 20))
"""


@pytest.mark.parametrize("fault", [Fault(delay=60), Fault(503)], ids=["hangs", "waits"])
def test_ctrl_c_ends_it(fault: Fault) -> None:
    with FaultServer(lambda _: fault).running() as server:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"asking\n"
        while not server.requests:
            pass
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
    assert child.returncode != 0


def test_a_loop_that_runs_already_does_not_matter() -> None:
    import asyncio

    async def in_a_notebook(url: str) -> int:
        return len(scores(served(url), PROMPTS[:3]))

    with serving(Behind()) as server:
        assert asyncio.run(in_a_notebook(server.url)) == 3


FEW_FILES = """
import os, resource, sys
from unslant.models.http import Endpoint

endpoint = Endpoint(sys.argv[1])
async def ask(client, item):
    return await endpoint.send(client, "ask", {"item": item}, timed=True)

list(endpoint.all([0], ask))
files = len(os.listdir("/proc/self/fd")) + 4
resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
print(len(list(endpoint.all(range(60), ask))), endpoint.limit.size < 10)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts its open files, as Linux lists them")
def test_a_process_that_may_open_few_files_asks_fewer_at_a_time() -> None:
    with FaultServer(lambda _: Fault(body={"answer": 1}, delay=0.05)).running() as server:
        ran = subprocess.run([sys.executable, "-c", FEW_FILES, server.url], capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["60", "True"], ran.stderr
