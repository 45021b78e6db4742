"""A damaged store becomes a whole one: nothing wrong comes out, what was saved is not asked again, the old is kept."""

from __future__ import annotations

import os
import random
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.reliability import store as attack
from tests.command_line import unslant
from unslant.store import Kept, Store, StoreError, pages
from unslant.store.repair import Repaired, repair
from unslant.store.tables import PAGE, TABLES, columns, expected_definitions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "s.sqlite3"
    found.write_bytes(attack.filled()[0])
    return found


@pytest.mark.parametrize("damage", attack.DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_store_is_repaired(tmp_path: Path, damage) -> None:
    for seed in range(3):
        (folder := tmp_path / str(seed)).mkdir()
        assert attack.damaged(random.Random(seed), folder, damage) == "", seed


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [range(100, 115), pytest.param(range(115, 155), marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("damage", attack.DAMAGES, ids=lambda damage: damage.__name__)
def test_many_damaged_stores_are_repaired(tmp_path: Path, damage, seeds: range) -> None:
    for seed in seeds:
        (folder := tmp_path / str(seed)).mkdir()
        assert attack.damaged(random.Random(seed), folder, damage) == "", seed


@pytest.mark.thorough
def test_a_repair_that_is_killed_is_begun_again(tmp_path: Path) -> None:
    for seed in range(4):
        (folder := tmp_path / str(seed)).mkdir()
        assert attack.interrupted(random.Random(seed), folder) == "", seed


def test_a_whole_store_is_left_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    assert repair(path) == Repaired()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_the_pages_give_the_rows_that_sqlite_gives(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        found = sorted(map(repr, pages.rows(file)))
    finally:
        os.close(file)
    with closing(sqlite3.connect(path)) as connection:
        expected = [
            repr((table, row))
            for table in TABLES
            for row in connection.execute(f"SELECT {columns(table)} FROM {table}").fetchall()
        ]
    assert [row.replace(".0", "") for row in found] == [row.replace(".0", "") for row in sorted(expected)]


def test_the_columns_are_those_of_the_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for table in TABLES:
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            assert ", ".join(names) == columns(table)
    assert len(expected_definitions()) > len(TABLES)


def test_a_damaged_index_is_noticed_and_made_again(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'scores_by_prompt'").fetchone()
    data = bytearray(path.read_bytes())
    (leaf,) = struct.unpack_from(">I", data, PAGE * (root - 1) + 8)  # the last child of the root
    (cell,) = struct.unpack_from(">H", data, PAGE * (leaf - 1) + 8)
    data[PAGE * (leaf - 1) + cell + 9] ^= 1  # in a digest
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok"
    found = repair(path)
    assert found.damage
    assert (found.scores, found.replies, found.calls, found.runs) == (0, 0, 0, ())
    assert repair(path) == Repaired()


def test_what_was_lost_is_said_and_the_damaged_file_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        data = bytearray(path.read_bytes())
        starts = range(0, len(data), PAGE)
        leaf = next(at for at in starts if data[at] == 10 and b'"reply ' in data[at : at + PAGE])
        data[leaf : leaf + PAGE] = bytes(PAGE)
        path.write_bytes(data)
        ran = unslant("runs", "repair", "--store", path)
        assert ran.code == 0, ran.err
        lost, kept = ran.out.splitlines()[2:4]
        assert lost.startswith("lost: 0 scores, ")
        assert not lost.startswith("lost: 0 scores, 0 replies")
        assert kept == f"the damaged file is now {path}.damaged-{number}"
        assert Path(f"{path}.damaged-{number}").read_bytes() == data
        assert "ask for what was lost with: unslant runs resume" in ran.out
    assert unslant("runs", "repair", "--store", path).out == f"nothing is damaged in {path}\n"


def test_a_run_whose_record_is_damaged_can_be_run_again(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE runs SET score = '0.999 accuracy', model = x'ff' WHERE command LIKE '%\"1\"%'")
    with Store(path) as store:
        (damaged,) = [run for run in store.runs.all() if run.status == "damaged"]
        assert (damaged.score, damaged.message) == ("", "unslant runs repair")
        with pytest.raises(StoreError, match="unslant runs repair"):
            store.runs.note(damaged.id, {"score": "1.000 accuracy"})
    assert repair(path).runs == (damaged.id,)
    with Store(path) as store:
        found = store.runs.get(damaged.id)
        assert (found.status, found.command[-1], found.score) == ("failed", "1", "")


def test_a_store_in_use_is_not_repaired(path: Path) -> None:
    with Store(path), pytest.raises(StoreError, match="is open in this process"):
        repair(path)
    data = bytearray(path.read_bytes())
    data[PAGE * 20 : PAGE * 22] = bytes(2 * PAGE)
    path.write_bytes(data)
    code = f"c = sqlite3.connect({str(path)!r}); c.execute('SELECT 1 FROM runs').fetchone(); print(flush=True); input()"
    other = attack.process(f"import sqlite3\n{code}", stdin=True)
    try:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(StoreError, match="another process is using it; stop that one"):
            repair(path)
        assert path.read_bytes() == data
    finally:
        other.kill()
        other.communicate()
    assert repair(path).damage


@pytest.mark.parametrize("content", [b"id,question\n1,What?\n" * 300, bytes(3 * PAGE), b"SQLite"])
def test_what_is_no_store_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    (path := tmp_path / "file").write_bytes(content)
    ran = unslant("runs", "repair", "--store", path)
    assert ran.code == 2
    # a file shorter than a header is refused before anything opens it
    assert ("so it is unchanged" if len(content) > 100 else "is not a run store") in ran.err
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["file"]


def test_the_database_of_another_program_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE mine (x)")
    before = path.read_bytes()
    for command in (("runs", "repair"), ("runs", "list")):
        ran = unslant(*command, "--store", path)
        assert ran.code == 2
        assert "is the database of another program" in ran.err
    assert path.read_bytes() == before


def test_a_full_disk_leaves_the_damaged_store_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(path.read_bytes())
    data[PAGE * 20 : PAGE * 22] = bytes(2 * PAGE)
    path.write_bytes(data)

    with monkeypatch.context() as patch:
        patch.setattr("unslant.store.database._SETTINGS", ("max_page_count = 30",))
        with pytest.raises(StoreError, match="disk or a quota is full"):
            repair(path)
    assert path.read_bytes() == data
    assert not list(path.parent.glob("*.repair*"))
    assert repair(path).damage


def test_rows_that_are_missing_without_a_trace_are_asked_again(path: Path) -> None:
    """As they were after another program had dropped the locks."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM scores WHERE position < 20 AND pass = (SELECT min(pass) FROM scores)")
    found = repair(path)
    assert (found.damage, found.scores) == ("20 scores or replies are missing", 20)
    with Store(path) as store:
        assert attack.ask(store, Kept, range(attack.SCORES)) == 20
