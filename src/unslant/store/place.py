"""Where a store's file is: one name for each file, and whether the locks of its file system can be relied on.

SQLite finds a file's log by the file's name, so a file with two names would have two logs, and lose what is in one.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
"""What is mounted where (Linux)."""
_NETWORK = frozenset(
    "9p acfs afs beegfs ceph cifs coda davfs drvfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs "
    "prl_fs pvfs2 smb3 smbfs vboxsf virtiofs vmhgfs wekafs fuse".split()
)
JOURNALS = ("-wal", "-shm", "-journal")
"""Ends of the names of what SQLite keeps next to a file."""

FileId = tuple[int, int]


def file_id(path: str | Path) -> FileId | None:
    """Device and number of a file, the same under all its names; None if there is none. It is not opened."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def sibling(path: Path, end: str) -> Path:
    """The file of a longer name in the same folder."""
    return path.with_name(path.name + end)


def other_names(path: Path) -> str | None:
    """What is wrong with a file that has more than one name; None if it has one.

    Symbolic links do not count: they are resolved before a store is opened.
    """
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
    """The type of the network file system that a path is on; None for a disk of this machine.

    Anything in user space (FUSE) counts as one: what is behind it cannot be known.
    """
    kind = _mount(path)[1]
    return kind if kind.partition(".")[0] in _NETWORK else None


def _mount(path: Path) -> tuple[Path, str]:
    """The last mount that a path is under, and its type; an unknown one where the system does not list them."""
    mount = Path("/"), ""
    for point, kind in _mounts():
        if path.is_relative_to(point) and len(point.parts) >= len(mount[0].parts):  # a later one hides an earlier
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
