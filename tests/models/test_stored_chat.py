"""Replies are kept as they come: nothing that arrived is asked for again, and nothing that failed is kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes import FakeChat
from unslant.errors import ModelError
from unslant.models.chat import ChatCost, ChatModel, Reply, StoredChat
from unslant.prompts import Message, Prompt
from unslant.store import Store, StoreError
from unslant.store.repair import repair


class Counting(FakeChat):
    """Answers with the number of the request; the prompts in ``fails`` get no reply."""

    def __init__(self, temperature: str = "0", fails: Sequence[str] = ()) -> None:
        super().__init__("counting", {"model": "counting", "temperature": temperature})
        self.fails = fails
        self.seen: list[str] = []

    def replies_to(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        for index, prompt in reversed(list(enumerate(prompts))):
            text = prompt.messages[0].content
            self.seen.append(text)
            if text in self.fails:
                yield Reply(index, None, "server on fire")
            else:
                yield Reply(index, f"{text}, reply {len(self.seen)}", "", text == "no", 3, 2, 1)


def prompts(*texts: str, group: str = "") -> list[Prompt]:
    return [Prompt("", ("x",), (Message("user", text),), group) for text in texts]


def told(chat: ChatModel, asked: Sequence[Prompt]) -> list[str | None]:
    replies = sorted(chat.generate(asked), key=lambda reply: reply.index)
    assert [reply.index for reply in replies] == list(range(len(asked)))
    return [reply.text for reply in replies]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.sqlite3"


def test_each_reply_is_there_before_the_next_one_is_given_out(path: Path) -> None:
    for count in range(1, 4):
        with Store(path) as store:
            replies = StoredChat(model := Counting(), store).generate(prompts("a", "b", "c", "d"))
            for _ in range(count):
                next(replies)
            del replies  # as a process that is killed: nothing is tidied up
            assert len(model.seen) == (1 if count > 1 else count)  # those that came earlier are recalled
    with Store(path) as store:
        last = StoredChat(model := Counting(), store)
        assert told(last, prompts("a", "b", "c", "d"))[1:] == ["b, reply 1", "c, reply 1", "d, reply 1"]
        assert model.seen == ["a"]
        assert (last.recalled, last.cost) == (3, ChatCost(4, 0, 0, 12, 8, 4))


def test_equal_prompts_of_a_call_are_different_samples(path: Path) -> None:
    with Store(path) as store:
        first = told(StoredChat(Counting(), store), prompts("a", "b", "a"))
        assert first == ["a, reply 3", "b, reply 2", "a, reply 1"]
        more = told(StoredChat(model := Counting(), store), prompts("a", "a", "a", "b"))
        assert more == ["a, reply 3", "a, reply 1", "a, reply 1", "b, reply 2"]
        assert model.seen == ["a"]
        assert told(StoredChat(Counting("1"), store), prompts("a")) == ["a, reply 1"]
        assert told(StoredChat(model := Counting(), store), prompts("a", group="elsewhere")) == ["a, reply 3"]
        assert model.seen == []


def test_failures_are_not_kept_and_what_another_call_got_since_is_taken_over(path: Path) -> None:
    with Store(path) as store:
        failing = StoredChat(Counting(fails=["b", "c"]), store)
        assert told(failing, prompts("a", "b", "c")) == ["a, reply 3", None, None]
        assert (failing.cost.failed, failing.errors) == (2, {"server on fire": 2})
        told(StoredChat(Counting(), store), prompts("c"))
        again = StoredChat(model := Counting(), store)
        assert told(again, prompts("a", "b", "c")) == ["a, reply 3", "b, reply 1", "c, reply 1"]
        assert model.seen == ["b"]


def test_what_the_provider_says_is_kept_with_the_reply(path: Path) -> None:
    with Store(path) as store:
        (fresh,) = StoredChat(Counting(), store).generate(prompts("no"))
        (recalled,) = StoredChat(Counting(), store).generate(prompts("no"))
    assert (fresh.declined, recalled.declined) == (True, True)
    assert (fresh.recalled, recalled.recalled) == (False, True)
    assert replace(recalled, recalled=False) == fresh == Reply(0, "no, reply 1", "", True, 3, 2, 1)


def test_offline_everything_must_be_known(path: Path) -> None:
    with Store(path) as store:
        told(StoredChat(Counting(), store), prompts("a"))
        assert told(StoredChat(Counting(), store, offline=True), prompts("a")) == ["a, reply 1"]
        with pytest.raises(ModelError, match="1 of 2 replies are not in the store"):
            told(StoredChat(Counting(), store, offline=True), prompts("a", "b"))


def test_a_damaged_reply_is_named_and_only_it_is_asked_for_again(path: Path) -> None:
    with Store(path) as store:
        run = store.runs.start(["study"], path.parent, "m")
        told(StoredChat(Counting(), store, run), prompts("a", "b", "c"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE replies SET reply = '{}' WHERE position = 1")
    with Store(path) as store, pytest.raises(StoreError, match=r"one of the stored replies is damaged.*runs repair"):
        told(StoredChat(Counting(), store, run), prompts("a", "b", "c"))
    repaired = repair(path)
    assert (repaired.scores, repaired.replies, repaired.runs) == (0, 1, (run,))
    with Store(path) as store:
        told(StoredChat(model := Counting(), store, run), prompts("a", "b", "c"))
        assert model.seen == ["b"]
        (found,) = store.runs.all()
        assert (found.done, found.total) == (3, 3)


def test_replies_go_with_their_model_or_their_last_run(path: Path) -> None:
    with Store(path) as store:
        run = store.runs.start(["study"], path.parent, "m")
        told(StoredChat(Counting(), store, run), prompts("a"))
        told(StoredChat(Counting("1"), store), prompts("a"))
        store.forget({"model": "counting", "temperature": "1"})
        told(StoredChat(model := Counting("1"), store), prompts("a"))
        assert model.seen == ["a"]
        store.runs.remove(store.runs.get(run))
        told(StoredChat(model := Counting(), store), prompts("a"))
        assert model.seen == ["a"]
        store.runs.clear()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM replies").fetchone() == (0,)
