"""The store's file: intact in every accident, with clear errors."""

from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import unslant.store.runs
from tests.stores import vouch_for_runs
from unslant import InputError
from unslant.store import Kept, Store, StoreError, default_path, digest
from unslant.store.database import DamagedError
from unslant.store.runs import LEASE

IDENTITY = {"model": "m", "weights": "0"}


def keys(*numbers: int) -> list[bytes]:
    return [digest(bytes([number])) for number in numbers]


def scores(number: int) -> Kept:
    return Kept(np.array([-0.1 * number, -1 / 3, -np.pi]))


def write(store: Store, numbers: list[int], run: str = "", upto: int | None = None) -> None:
    found = store.open_pass(Kept, IDENTITY, keys(*numbers), run)
    rows = [(i, scores(numbers[i])) for i in found.planned.tolist()[:upto]]
    found.write(rows, len(found.stored()) + len(rows), {"prompts": len(rows)}, {})


def table_sizes(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("passes", "scores", "states", "runs", "run_passes")
        }


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "new" / "folder" / "store.sqlite3") as opened:
        yield opened


def test_the_default_is_in_the_folder_that_the_environment_names(
    unslant_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert default_path() == unslant_home / "store.sqlite3"
    monkeypatch.delenv("UNSLANT_HOME")
    assert default_path().name == "store.sqlite3"
    assert unslant_home not in default_path().parents


@st.composite
def kept_scores(draw: st.DrawFn) -> tuple[list[float], tuple[int, ...]]:
    some = draw(st.lists(st.floats(-1e300, 1e-6), min_size=1, max_size=130))
    bounds = draw(st.sets(st.integers(0, len(some) - 1), max_size=len(some)))
    return some, tuple(sorted(bounds))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(kept_scores(), min_size=1, max_size=20))
def test_what_is_written_is_read_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, values) -> None:
    path = tmp_path_factory.mktemp("store") / "s.sqlite3"
    prompts = keys(*range(len(values)))
    with Store(path) as store:
        rows = [(i, Kept(np.array(some), bounds)) for i, (some, bounds) in enumerate(values)]
        store.open_pass(Kept, IDENTITY, prompts).write(rows, len(rows), {}, {})
    with Store(path, read_only=True) as store:
        pass
    with Store(path) as store:
        found = store.open_pass(Kept, IDENTITY, prompts).stored()
    assert [(found[i].logprobs.tobytes(), found[i].bounds) for i in range(len(found))] == [
        (np.array(some).tobytes(), bounds) for some, bounds in values
    ]


def test_a_pass_is_all_of_its_prompts_in_their_order(store: Store) -> None:
    write(store, [1, 2, 3])
    same = store.open_pass(Kept, IDENTITY, keys(1, 2, 3))
    assert sorted(same.stored()) == [0, 1, 2]
    other = store.open_pass(Kept, IDENTITY, keys(3, 4, 1))
    assert other.id != same.id
    assert other.planned.tolist() == [1]
    np.testing.assert_array_equal(other.stored()[0].logprobs, scores(3).logprobs)
    np.testing.assert_array_equal(other.stored()[2].logprobs, scores(1).logprobs)
    # What is taken over is decided when a pass begins, and stays so.
    write(store, [4])
    assert store.open_pass(Kept, IDENTITY, keys(3, 4, 1)).planned.tolist() == [1]
    assert sorted(store.open_pass(Kept, IDENTITY, keys(3, 4, 1)).stored()) == [0, 2]


def test_a_pass_that_another_process_begins_at_the_same_moment_keeps_its_plan(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.open_pass(Kept, IDENTITY, keys(1, 2))
    write(store, [1, 5])
    find, first = store._find, iter([True])
    monkeypatch.setattr(store, "_find", lambda *asked: None if next(first, False) else find(*asked))
    same = store.open_pass(Kept, IDENTITY, keys(1, 2))
    assert (same.planned.tolist(), same.stored()) == ([0, 1], {})  # the score of 1 would change its batches


def test_the_process_that_is_ahead_says_how_far_a_pass_is(store: Store) -> None:
    slow, fast = (store.open_pass(Kept, IDENTITY, keys(1, 2, 3)) for _ in range(2))
    fast.write([(0, scores(1)), (1, scores(2))], 2, {"tokens": 20}, {"tree": (2, b"behind two")})
    slow.write([(0, scores(1))], 1, {"tokens": 10}, {"tree": (1, b"behind one")})
    assert slow.state("tree") == b"behind two"
    assert (slow.cost, slow.done) == ({"tokens": 20}, 2)
    found = store.open_pass(Kept, IDENTITY, keys(1, 2, 3))
    assert found.cost == {"tokens": 20}
    assert found.state("tree") == b"behind two"
    assert found.state("plain") == b""
    found.write([(2, scores(3))], 3, {"tokens": 30}, {"tree": (3, b"behind all")})
    assert found.state("tree") == b""  # not needed any more
    assert table_sizes(store.path)["scores"] == 3


def test_a_full_disk_keeps_all_or_nothing_of_a_write(store: Store) -> None:
    numbers = list(range(200))
    found = store.open_pass(Kept, IDENTITY, keys(*numbers))
    found.write([(0, scores(0))], 1, {"prompts": 1}, {})
    connection = found.database.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    big = [(i, Kept(np.zeros(1000))) for i in range(1, 200)]
    with pytest.raises(StoreError, match=r"disk or a quota is full.*what was scored so far is kept.*no_store"):
        found.write(big, 200, {"prompts": 200}, {"tree": (1, b"x" * 10_000)})
    assert sorted(found.stored()) == [0]
    assert found.state("tree") == b""
    assert store.open_pass(Kept, IDENTITY, keys(*numbers)).cost == {"prompts": 1}
    connection.execute("PRAGMA max_page_count = 1000000")
    found.write(big, 200, {"prompts": 200}, {})
    assert len(found.stored()) == 200


def test_a_store_that_turns_read_only_under_way(store: Store) -> None:
    found = store.open_pass(Kept, IDENTITY, keys(1, 2))
    found.database.connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match=r"store.sqlite3: cannot be written \(.*readonly"):
        found.write([(0, scores(1))], 1, {}, {})


def test_a_process_that_keeps_it_locked(store: Store) -> None:
    found = store.open_pass(Kept, IDENTITY, keys(1, 2))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        found.database.connection.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(StoreError, match="another process has kept it locked"):
            found.write([(0, scores(1))], 1, {}, {})
        other.execute("ROLLBACK")
    found.write([(0, scores(1))], 1, {}, {})


@pytest.mark.parametrize(
    ("code", "message", "words", "damaged"),
    [
        ("SQLITE_IOERR_LOCK", "disk I/O error", "cannot be locked, its file system allows no locks", False),
        ("SQLITE_PERM", "access permission denied", "cannot be locked", False),
        ("SQLITE_PROTOCOL", "locking protocol", "cannot be locked", False),
        ("SQLITE_IOERR_WRITE", "disk I/O error", "the disk or a quota is full", False),
        ("SQLITE_FULL", "database or disk is full", "the disk or a quota is full", False),
        ("SQLITE_IOERR_READ", "disk I/O error", "or damaged", True),
        ("SQLITE_NOTADB", "file is not a database", "or damaged", True),
    ],
)
def test_an_error_of_the_file_system_says_what_it_is(
    store: Store, code: str, message: str, words: str, damaged: bool
) -> None:
    """As a network drive without a lock service gives it; a disk with room was said to be full."""
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = getattr(sqlite3, code)
    opened = store.open_pass(Kept, IDENTITY, keys(1))
    with pytest.raises(StoreError, match=words) as explained, opened.database.reading():
        raise error
    assert isinstance(explained.value, DamagedError) is damaged


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"id,question\n1,What?\n" * 300, "not a run store"),
        (b"notes", "is not a run store: move it away, or give another file"),
        (None, 'give another file with store="PATH", or run without one'),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "file"
    if content is None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE mine (x)")
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreError, match=words):
            Store(path, read_only=read_only)
    assert path.read_bytes() == before


def test_looking_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing has been recorded yet"):
        Store(tmp_path / "none.sqlite3", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot be made.*no_store"):
        Store(tmp_path / "file" / "store.sqlite3")


def test_runs_are_told_apart_by_command_and_folder(store: Store, tmp_path: Path) -> None:
    one = store.runs.start(["audit", "m", "ü.jsonl"], tmp_path, "m")
    two = store.runs.start(["audit", "m", "ü.jsonl", "--chat"], tmp_path, "m")
    three = store.runs.start(["audit", "m", "ü.jsonl"], tmp_path / "other", "m")
    assert len({one, two, three}) == 3
    store.runs.end(one, "failed", "no memory")
    assert store.runs.get(one).status == "failed"
    assert store.runs.start(["audit", "m", "ü.jsonl"], tmp_path, "m") == one
    run = store.runs.get(one[:6])
    assert (run.status, run.message, run.command) == ("running", "", ("audit", "m", "ü.jsonl"))
    with pytest.raises(InputError, match=r"no run 'zz'.*unslant runs list"):
        store.runs.get("zz")


@pytest.mark.parametrize("host", [socket.gethostname(), "elsewhere"])
def test_a_run_that_nothing_is_heard_of_was_interrupted(store: Store, tmp_path: Path, host: str) -> None:
    run = store.runs.start(["audit"], tmp_path, "m")
    for seconds, status in ((LEASE - 5, "running"), (LEASE + 1, "interrupted")):
        with closing(sqlite3.connect(store.path)) as connection, connection:
            # beyond the largest process id
            connection.execute(
                "UPDATE runs SET host = ?, process = ?, updated = ?", (host, 2**22 + 1, time.time() - seconds)
            )
            vouch_for_runs(connection)
        assert store.runs.get(run).status == status
        assert store.runs.get(run).where == f"process {2**22 + 1} on {host}"


def test_a_run_at_work_gives_signs_of_life_and_no_more_once_it_has_ended(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unslant.store.runs, "HEARTBEAT", 0.01)
    run = store.runs.start(["audit"], tmp_path, "m")
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE runs SET updated = 0")
        vouch_for_runs(connection)
    assert store.runs.get(run).status == "interrupted"
    stop = store.runs.keep_alive(run)
    while not store.runs.get(run).updated:
        time.sleep(0.01)
    assert store.runs.get(run).status == "running"
    store.runs.end(run, "stopped")
    ended = store.runs.get(run).updated
    time.sleep(0.1)
    assert store.runs.get(run).updated == ended
    stop()


def test_a_run_counts_what_its_last_start_asked_for(store: Store, tmp_path: Path) -> None:
    run = store.runs.start(["audit"], tmp_path, "m")
    write(store, [1, 2, 3], run, upto=2)
    assert (store.runs.get(run).done, store.runs.get(run).total) == (2, 3)
    store.runs.start(["audit"], tmp_path, "m")
    assert store.runs.get(run).total == 0
    write(store, [5, 6], run)
    found = store.runs.get(run)
    assert (found.done, found.total) == (2, 2)
    assert found.models == (IDENTITY,)


def test_removing_a_run_keeps_what_others_asked_for(store: Store, tmp_path: Path) -> None:
    one = store.runs.start(["one"], tmp_path, "m")
    two = store.runs.start(["two"], tmp_path, "m")
    write(store, [1, 2], one)
    write(store, [1, 2], two)
    write(store, [3], one)
    write(store, [4])  # of no run
    store.runs.remove(store.runs.get(one))
    assert [run.id for run in store.runs.all()] == [two]
    assert sorted(store.open_pass(Kept, IDENTITY, keys(1, 2)).stored()) == [0, 1]
    assert table_sizes(store.path)["scores"] == 3
    store.runs.clear()
    store.runs.shrink()
    assert set(table_sizes(store.path).values()) == {0}


def test_responses_of_an_unfinished_run(store: Store, tmp_path: Path) -> None:
    run = store.runs.start(["audit"], tmp_path, "m")
    write(store, [1, 2, 3], run, upto=1)
    with pytest.raises(InputError, match=f"1 of 3 prompts scored.*unslant runs resume {run}"):
        store.runs.responses(store.runs.get(run))
    store.runs.keep_responses(run, b"PAR1")
    assert store.runs.responses(store.runs.get(run)) == b"PAR1"
