"""SQLite's list of ways to corrupt a database (howtocorrupt), and what the store does about each."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.reliability import store as attack
from tests.stores import vouch_for_runs
from unslant.store import Kept, Store, StoreError, database, tables
from unslant.store.repair import repair
from unslant.store.runs import LEASE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.sqlite3"


@pytest.mark.thorough
@pytest.mark.parametrize("times", [1, 3])
def test_one_long_run_and_ten_short_ones_on_one_store(tmp_path: Path, path: Path, times: int) -> None:
    from benchmarks.reliability.at_once import at_once  # loads torch

    for number in range(times):
        assert at_once(tmp_path / str(number), path, number) == ""
    assert not repair(path).damage


@pytest.mark.parametrize("seed", range(6))
def test_a_file_or_log_pulled_away_is_noticed(tmp_path: Path, seed: int) -> None:
    assert attack.pulled_away(random.Random(seed), tmp_path) == ""


def test_a_forked_process_neither_uses_nor_closes_the_store_of_its_parent(tmp_path: Path) -> None:
    assert attack.forked(random.Random(1), tmp_path) == ""


def test_a_process_forked_after_the_store_was_closed_opens_its_own(path: Path) -> None:
    with Store(path) as store:
        attack.ask(store, Kept, range(10))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with Store(path) as store:
                code = attack.ask(store, Kept, range(10))
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_share_one_connection(path: Path) -> None:
    """Signs of life among them: no thread opens the file a second time."""
    with Store(path) as store:
        run = store.runs.start(["audit"], path.parent, "m")
        stop = store.runs.keep_alive(run)
        threads = [
            threading.Thread(target=attack.ask, args=(store, Kept, range(100 * i, 100 * i + 100))) for i in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        opened = [os.readlink(link) for link in _descriptors()]
        assert opened.count(str(path)) == 1
        stop()
    with Store(path) as store:
        assert attack.ask(store, Kept, range(400)) == 0


def _descriptors() -> list[Path]:
    return [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]


def test_the_file_is_opened_by_nothing_but_sqlite(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(path).close()
    found, real = [], os.open
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda name, flags, *rest: found.append((name, flags)) or real(name, flags, *rest))
        with Store(path) as store:
            run = store.runs.start(["audit"], path.parent, "m")
            store.runs.keep_alive(run)()
    assert all(flags & os.O_EXCL for name, flags in found if name == path)


def test_a_file_with_two_names_is_refused(tmp_path: Path, path: Path) -> None:
    Store(path).close()
    os.link(path, tmp_path / "other")
    with pytest.raises(StoreError, match=r"has 2 names \(hard links\), one of them other; remove all but one"):
        Store(path)
    (tmp_path / "other").unlink()
    Store(path).close()


def test_symbolic_links_lead_to_one_log(tmp_path: Path, path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (link := tmp_path / "folder" / "link").symlink_to(path)
    with Store(link) as one, Store(path) as other:
        attack.ask(one, Kept, range(10))
        assert attack.ask(other, Kept, range(10)) == 0
        assert sorted(os.listdir(tmp_path / "folder")) == ["link"]


def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *entries: tuple[Path, str]) -> None:
    """As Linux lists them, where a space is an octal number."""
    lines = [f"1 1 0:1 / {str(point).replace(' ', chr(92) + '040')} rw - {kind} x rw" for point, kind in entries]
    (tmp_path / "mountinfo").write_text("\n".join(lines))
    monkeypatch.setattr(tables, "MOUNTS", tmp_path / "mountinfo")


def test_a_file_mounted_by_itself_is_refused(tmp_path: Path, path: Path, monkeypatch) -> None:
    Store(path).close()
    mounts(tmp_path, monkeypatch, (Path("/"), "ext4"), (path, "ext4"))
    with pytest.raises(StoreError, match=r"is mounted as a single file.*mount its folder"):
        Store(path)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs", "lustre", "virtiofs"])
def test_a_network_file_system_is_said_once_and_gets_no_shared_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (folder := tmp_path / "a disk").mkdir()
    path = folder / "s.sqlite3"
    with Store(path) as store:
        attack.ask(store, Kept, range(50))
    assert _mode(path) == "wal"
    mounts(tmp_path, monkeypatch, (Path("/"), "ext4"), (folder, kind), (tmp_path / "a", "ext4"))
    database._warn_of_network.cache_clear()
    with pytest.warns(UserWarning, match=rf"network file system \({kind}\).*one machine at a time"):
        one = Store(path)
    with one, Store(path) as other:
        assert attack.ask(other, Kept, range(100)) == 50
        assert attack.ask(one, Kept, range(100)) == 0
        assert os.listdir(folder) == ["s.sqlite3"]
        with Store(path, read_only=True) as looking:
            assert looking.runs.all() == []
    assert _mode(path) == "delete"
    monkeypatch.undo()
    with Store(path) as store:
        assert attack.ask(store, Kept, range(100)) == 0
    assert _mode(path) == "wal"


def _mode(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


def test_disks_of_this_machine_are_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "apfs", "fuseblk"):
        mounts(tmp_path, monkeypatch, (Path("/"), "nfs"), (tmp_path, kind))
        assert tables.network(tmp_path / "s.sqlite3") is None


def test_a_copy_without_its_log_is_a_store_of_an_earlier_moment(tmp_path: Path, path: Path) -> None:
    file, log = attack.killed()
    path.write_bytes(file)
    assert attack.check_repair(path) == ""
    whole = tmp_path / "with its log"
    whole.write_bytes(file)
    Path(f"{whole}-wal").write_bytes(log)
    with Store(whole) as store:
        assert attack.ask(store, Kept, range(attack.SCORES + 100)) == 0


def test_a_log_that_is_left_by_another_store_brings_nothing_wrong(path: Path) -> None:
    """A file put back over one whose process was killed, without deleting the log of the latter."""
    path.write_bytes(attack.filled()[0])
    Path(f"{path}-wal").write_bytes(attack.killed()[1])
    assert attack.check_repair(path, attack.SCORES + 100) == ""


def test_the_log_is_cut_short_by_a_checkpoint_that_keeps_writers_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_LOG_BYTES", 50_000)
    with Store(path) as store:
        assert store._database.connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
        for number in range(40):
            attack.ask(store, Kept, range(100 * number, 100 * number + 100))
        assert Path(f"{path}-wal").stat().st_size < 200_000
    assert path.stat().st_size > 200_000


def test_a_store_of_another_version_is_refused(path: Path) -> None:
    Store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 5")
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"another version of unslant \(tables 5, not 6\).*move it away"):
            Store(path, read_only=read_only)


def test_a_log_that_cannot_be_read_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, log = attack.killed()
    (tmp_path / "s.sqlite3").write_bytes(file)
    (tmp_path / "s.sqlite3-wal").write_bytes(log)

    real = database._connected
    monkeypatch.setattr(database, "_connected", lambda uri: _Unreadable() if "mode=ro" in uri else real(uri))
    with pytest.raises(StoreError, match=r"its log \(-wal\) cannot be read here"):
        Store(tmp_path / "s.sqlite3", read_only=True)


class _Unreadable:
    def execute(self, *_: object) -> None:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    def close(self) -> None:
        pass


@pytest.mark.parametrize("jump", [-86400.0, 86400.0])
def test_a_clock_that_jumps_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    with Store(path) as store:
        run = store.runs.start(["audit"], path.parent, "m")
        attack.ask(store, Kept, range(10), run)
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + jump)
        assert store.runs.get(run).status == "interrupted"  # until it is heard of again
        store.runs.note(run, {"updated": time.time()})
        assert store.runs.get(run).status == "running"
        monkeypatch.undo()
        assert store.runs.get(run).status == "interrupted"
        store.runs.end(run, "done")
        assert (store.runs.get(run).status, store.runs.get(run).done) == ("done", 10)


def test_a_process_that_was_taken_over_does_not_say_that_the_run_has_failed(path: Path) -> None:
    """As two host names on one mounted store do."""
    with Store(path) as store:
        run = store.runs.start(["audit"], path.parent, "m")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE runs SET host = 'another'")
            vouch_for_runs(connection)
        store.runs.end(run, "failed", "killed")
        assert store.runs.get(run).status == "running"
        assert time.time() - store.runs.get(run).updated < LEASE
        store.runs.end(run, "done")
        assert store.runs.get(run).status == "done"


def test_a_run_that_is_deleted_while_at_work_hears_of_it(path: Path) -> None:
    with Store(path) as one, Store(path) as other:
        run = one.runs.start(["audit"], path.parent, "m")
        asked = one.open_pass(Kept, {"model": "m"}, [attack.key(Kept, 1)], run)
        other.runs.remove(other.runs.get(run))
        other.open_pass(Kept, {"model": "m"}, [attack.key(Kept, 2)])  # takes the number of the one that is gone
        with pytest.raises(StoreError, match="was deleted by another command while it was at work; run it again"):
            asked.write([(0, attack.truth(Kept, 1))], 1)


def test_a_copy_of_a_store_is_one_of_its_own(tmp_path: Path, path: Path) -> None:
    with Store(path) as store:
        attack.ask(store, Kept, range(10))
    shutil.copy(path, tmp_path / "copy.sqlite3")
    with Store(tmp_path / "copy.sqlite3") as store:
        assert attack.ask(store, Kept, range(20)) == 10
