"""Where a store's file is: whether it has one name only, and whether locks work on its file system."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
"""The list of mounts (Linux)."""
_NETWORK = frozenset(
    "9p acfs afs beegfs ceph cifs coda davfs drvfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs "
    "prl_fs pvfs2 smb3 smbfs vboxsf virtiofs vmhgfs wekafs fuse".split()
)
JOURNALS = ("-wal", "-shm", "-journal")
"""Name endings of the files that SQLite keeps next to a database."""

FileId = tuple[int, int]


def file_id(path: str | Path) -> FileId | None:
    """Device and inode of a file, the same under all its names; None if there is no such file."""
    try:  # not by opening it: closing a descriptor of a store drops this process's locks on it
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def sibling(path: Path, end: str) -> Path:
    """The file next to ``path`` whose name has this ending added."""
    return path.with_name(path.name + end)


def other_names(path: Path) -> str | None:
    """Why a file cannot be a store if it has several names; None if it has one."""
    # SQLite finds the log by the name of the file: under two names a file has two logs, and loses what is in one of
    # them. Symbolic links are no problem, they are resolved before a store is opened.
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return "is not a file"
    if status.st_nlink > 1:
        same = [name for name in os.listdir(path.parent) if file_id(path.parent / name) == file_id(path)]
        others = "".join(f", one of them {name}" for name in same if name != path.name)
        return f"has {status.st_nlink} names (hard links){others}; remove all but one, or make copies of it"
    if _mount(path)[0] == path:
        return "is mounted as a single file, which has a log of its own in each place; mount its folder"
    return None


def network(path: Path) -> str | None:
    """The type of the network file system that a path is on; None for a local disk."""
    kind = _mount(path)[1]  # anything in user space (FUSE) counts as a network: what is behind it cannot be known
    return kind if kind.partition(".")[0] in _NETWORK else None


def _mount(path: Path) -> tuple[Path, str]:
    """The mount point of a path, and the type of its file system; empty where the system does not list mounts."""
    mount = Path("/"), ""
    for point, kind in _mounts():
        if path.is_relative_to(point) and len(point.parts) >= len(mount[0].parts):  # a later mount hides an earlier one
            mount = point, kind
    return mount


def _mounts() -> Iterator[tuple[Path, str]]:
    try:
        lines = MOUNTS.read_bytes().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        before, _, after = line.partition(b" - ")
        if len(words := before.split(b" ")) > 4:
            point = re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), words[4])  # spaces are \040
            yield Path(os.fsdecode(point)), os.fsdecode(after.partition(b" ")[0])
