"""How many requests are under way, and which come one after the other."""

from __future__ import annotations

import _thread
import asyncio
import itertools
import math
import threading
import time
import warnings
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest

from tests.serving import Fault, FaultServer
from unslant.models.concurrent import Limit, Server, _loop, from_several
from unslant.models.served import ServedModel
from unslant.prompts import Prompt

REPLY = {"choices": [{"logprobs": {"top_logprobs": [{" A": -0.7, " B": -0.9}]}}]}
runs = ServedModel.runs


def answered(limit: Limit, seconds: float, times: int) -> None:
    for _ in range(times):
        limit.answered(seconds)


def test_it_starts_with_one_alone_and_rises_as_long_as_the_server_keeps_up() -> None:
    limit = Limit(16)
    assert limit.size == 1
    answered(limit, 0.1, 1)
    assert limit.size == 2
    answered(limit, 0.1, 2)
    assert limit.size == 4
    answered(limit, 0.1, 100)
    assert limit.size == 16


def test_a_refusal_halves_it_and_from_there_it_rises_by_one_a_round() -> None:
    limit = Limit(16)
    answered(limit, 0.0, 16)
    limit.overloaded()
    limit.overloaded()  # of the same burst
    assert limit.size == 8
    answered(limit, 0.0, 8)
    assert 8.9 < limit.size < 9.1


def test_a_server_whose_replies_take_longer_and_longer_gets_fewer_requests() -> None:
    slots = 2
    limit = Limit(32)
    sizes = []
    for _ in range(400):  # requests beyond its slots queue up
        limit._cut_at = -math.inf
        limit.answered(0.5 * max(1.0, limit.size / slots))
        sizes.append(limit.size)
    assert max(sizes[50:]) < 16
    assert min(sizes[50:]) >= 1
    later = sizes[-1]
    answered(limit, 0.5, 50)  # and it recovers
    assert limit.size > later


def test_longer_prompts_do_not_hold_it_down_for_ever() -> None:
    limit = Limit(8)
    answered(limit, 0.1, 20)
    for _ in range(500):
        limit._cut_at = -math.inf
        limit.answered(1.0)
    assert limit.size == 8


def test_without_adapting_it_stays() -> None:
    limit = Limit(8, adaptive=False)
    limit.overloaded()
    answered(limit, 100.0, 3)
    assert limit.size == 8


def test_no_more_are_under_way_than_may_be_and_a_run_is_asked_in_its_order() -> None:
    limit, under_way, most, order = Limit(4, adaptive=False), 0, 0, []

    async def ask(_: None, item: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        order.append(item)
        await asyncio.sleep(0.002)
        under_way -= 1
        return item

    own = [list(range(start, start + 10)) for start in range(0, 100, 10)]
    found = list(from_several(range(100), [Server(ask, limit, nullcontext)], own))
    assert sorted(found) == [(i, i) for i in range(100)]
    assert 1 < most <= 4
    for run in own:
        assert [item for item in order if item in run] == run


def test_orders_of_a_question_are_one_run_in_the_order_of_their_tree() -> None:
    orders = list(itertools.permutations("wxyz"))
    prompts = [
        Prompt(f"Question {q}?\n" + "\n".join(order), (" A", " B"), group=f"q{q}")
        for order in orders[::-1]
        for q in range(6)
    ]
    found = runs(prompts, 4)
    assert sorted(i for run in found for i in run) == list(range(len(prompts)))
    assert len(found) == 6
    for run in found:
        texts = [prompts[i].text for i in run]
        assert len({prompts[i].group for i in run}) == 1
        assert texts == sorted(texts)
    assert [len(run) for run in runs(prompts[::6], 4)] == [6, 6, 6, 6]  # one question alone is asked in four places
    alone = [Prompt(str(i), (" A", " B")) for i in range(3)]
    assert runs(alone, 8) == [[0], [1], [2]]
    assert runs([], 8) == []


def test_questions_that_share_worked_examples_are_asked_one_after_the_other() -> None:
    subjects = ["law", "art", "law", "art"]
    prompts = [Prompt(f"Examples of {s}. Question {i}?", (" A",), group=str(i)) for i, s in enumerate(subjects)]
    assert runs(prompts, 1) == [[1], [3], [0], [2]]


def test_a_tree_order_saves_what_a_prefix_cache_can_save() -> None:
    """Shared characters of neighbours, against the order in which the audit lists them."""
    orders = list(itertools.permutations(["red lamp", "blue lamp", "green lamp", "old lamp"]))
    prompts = [Prompt("What?\n" + "\n".join(order), (" A",), group="q") for order in orders[::7] + orders[::-5]]
    distinct = list({prompt.text: prompt for prompt in prompts}.values())
    (run,) = runs(distinct, 1)

    def shared(listed: list[Prompt]) -> int:
        return sum(len(commonprefix(a.text, b.text)) for a, b in itertools.pairwise(listed))

    assert shared([distinct[i] for i in run]) > 1.3 * shared(distinct)


def commonprefix(one: str, other: str) -> str:
    return "".join(a for a, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


class Behind:
    """A server in this process that counts the items it is asked and the clients that are open."""

    def __init__(self, connections: int, *, hangs_from: int = 10**9, fails_from: int = 10**9) -> None:
        self.limit, self.hangs_from, self.fails_from = Limit(connections, adaptive=False), hangs_from, fails_from
        self.asked: list[int] = []
        self.open = self.under_way = 0

    @asynccontextmanager
    async def client(self) -> AsyncIterator[str]:
        self.open += 1
        try:
            yield "client"
        finally:
            await asyncio.sleep(0.01)  # closing takes a while, and it is waited for
            self.open -= 1

    async def ask(self, client: str, item: int) -> int:
        assert client == "client"
        self.asked.append(item)
        self.under_way += 1
        try:
            await asyncio.sleep(0.001)
            if len(self.asked) > self.hangs_from:
                await asyncio.Event().wait()
            if len(self.asked) > self.fails_from:
                raise ConnectionError("gone")
            return item
        finally:
            self.under_way -= 1

    @property
    def server(self) -> Server[str, int, int]:
        return Server(self.ask, self.limit, self.client, lambda error: isinstance(error, ConnectionError))

    def is_closed(self) -> bool:
        tasks = [task for task in asyncio.all_tasks(_loop()) if not task.done()]
        return not (self.open or self.under_way or tasks)


def test_a_connection_takes_no_item_before_the_caller_is_done_with_its_last_answer() -> None:
    behind, items = Behind(3), range(30)
    for count, _ in enumerate(from_several(items, [behind.server])):
        time.sleep(0.01)  # time enough to run ahead
        assert len(behind.asked) <= count + 3
    assert sorted(behind.asked) == list(items)
    assert behind.is_closed()


def test_a_caller_that_stops_early_leaves_no_task_no_thread_and_no_client() -> None:
    list(from_several([0], [Behind(1).server]))  # the thread of the loop is there for good
    threads = set(threading.enumerate())
    behind = Behind(4, hangs_from=10)
    answers = from_several(range(100), [behind.server])
    assert len([next(answers) for _ in range(3)]) == 3
    assert behind.open == 1
    answers.close()
    assert behind.is_closed()
    assert set(threading.enumerate()) == threads


@pytest.mark.timeout(60)
def test_a_caller_that_waits_can_be_interrupted() -> None:
    behind = Behind(4, hangs_from=0)

    async def ask(client: str, item: int) -> int:
        if item == 0:
            _thread.interrupt_main()
        return await behind.ask(client, item)

    with pytest.raises(KeyboardInterrupt):
        next(from_several(range(100), [Server(ask, behind.limit, behind.client)]))
    assert behind.is_closed()


def test_the_first_error_aborts_the_call_and_arrives_as_itself() -> None:
    bad, hanging = Behind(2, fails_from=5), Behind(2, hangs_from=2)
    servers = [Server(bad.ask, bad.limit, bad.client), hanging.server]  # none of its errors means a lost server
    with pytest.raises(ConnectionError, match="gone"):
        list(from_several(range(50), servers))
    assert bad.is_closed()
    assert hanging.is_closed()


@pytest.mark.parametrize("fails_from", [0, 1, 7])
def test_each_item_is_answered_once_though_servers_are_lost(fails_from: int) -> None:
    servers = [Behind(3, fails_from=fails_from), Behind(2), Behind(3, fails_from=fails_from)]
    runs = [list(range(start, start + 5)) for start in range(0, 60, 5)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers = list(from_several(range(60), [one.server for one in servers], runs))
    assert Counter(index for index, _ in answers) == Counter(range(60))
    assert all(index == value for index, value in answers)
    lost = [str(one.message) for one in caught if not issubclass(one.category, ResourceWarning)]
    assert lost == ["gone; the other servers continue without it"] * 2
    assert {one.filename for one in caught} == {__file__}
    assert servers[0].is_closed()


def test_when_the_last_server_is_lost_its_error_is_raised() -> None:
    servers = [Behind(2, fails_from=3), Behind(2, fails_from=3)]
    with pytest.warns(UserWarning, match="continue without it"), pytest.raises(ConnectionError, match="gone"):
        list(from_several(range(50), [one.server for one in servers]))
    assert servers[0].is_closed()


@pytest.mark.timeout(60)
def test_a_request_that_cancels_itself_is_an_error_and_no_missing_answer() -> None:
    async def ask(_: None, item: int) -> int:
        if item == 3:
            raise asyncio.CancelledError
        return item

    with pytest.raises(RuntimeError, match="cancelled"):
        list(from_several(range(10), [Server(ask, Limit(2), nullcontext)]))


class Slots:
    """A server that refuses what is more than it has slots, and remembers how many requests it had at once."""

    def __init__(self, slots: int) -> None:
        self.slots, self.now, self.most, self.refused, self.lock = slots, 0, 0, 0, threading.Lock()

    def answer(self, _: dict[str, Any]) -> Fault:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            late = self.now > self.slots
            self.refused += late
        time.sleep(0.01)
        with self.lock:
            self.now -= 1
        return Fault(429, headers={"Retry-After": "0.01"}) if late else Fault(body=REPLY)


@pytest.mark.parametrize("connections", [pytest.param(1, marks=pytest.mark.thorough), 12])
def test_requests_under_way_adapt_to_what_the_server_refuses(connections: int) -> None:
    slots = Slots(3)
    prompts = [Prompt(f"Question {i}?", (" A", " B"), group=f"q{i % 40}") for i in range(120)]
    with FaultServer(slots.answer).running() as server:
        model = ServedModel("m", server.url, key_variable="NONE", wait=0.01, retries=20, connections=connections)
        assert sorted(scored.index for scored in model.score(prompts)) == list(range(120))
    assert slots.most <= connections
    assert slots.refused < 120 / 2
    assert model.server.limit.size < 12
    assert (slots.refused == 0) == (connections == 1)
