"""The only way out to the file system: outputs are complete or absent; also several at once, and standard output."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import re
import secrets
import select
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO

from unslant.errors import OutputError, UnslantError, shown
from unslant.flags import path_in

_NAMED = 5
"""Most outputs that an error names."""


# One file


def write_atomically(path: str | Path, content: bytes | str | Callable[[IO[bytes]], object]) -> None:
    """Write a complete file, or leave the old one.

    Args:
        path: a regular file, a link to one, or a new name.
        content: bytes, text (written as UTF-8), or a function that writes to the open file.

    Raises:
        OutputError: in one line, if the path is not a file or cannot be written.
    """
    target, mode = target_of(path_in("path", path))
    raw: _RawFile | None = None
    try:
        with _scratch(target) as scratch:
            raw = _RawFile(scratch, "xb")
            with io.BufferedWriter(raw) as file:
                if mode is not None:
                    scratch.chmod(mode)
                if callable(content):
                    content(file)
                else:
                    # A name with half a character must not cost the whole file.
                    file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
                file.flush()
                # Before the rename: after a power cut the new name must not lead to an empty file.
                os.fsync(file.fileno())
            os.replace(scratch, target)  # readers see the old file or the new one, never a part
        sync_folder(target.parent)
    except Exception as error:
        reason = error if isinstance(error, OSError) else raw.error if raw else None
        if reason is None:
            raise
        raise unwritable(path, reason) from error


class _RawFile(io.FileIO):
    """A file that remembers why it could not be written, since libraries that write to it hide the reason."""

    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.error = error
            raise


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """A name for a temporary file next to ``target``, since only renames within a file system are atomic."""
    scratch = target.parent / f"{scratch_prefix(target.parent)}{secrets.token_hex(8)}.tmp"
    try:
        yield scratch
    finally:
        scratch.unlink(missing_ok=True)


def scratch_prefix(folder: Path) -> str:
    """The prefix of files and folders that this process is writing; deletes those that killed processes left behind."""
    where = _process_numbers()
    if where:  # else the number may be that of another machine or container, where the process still writes
        with suppress(OSError):
            for entry in list(os.scandir(folder)):
                match = re.fullmatch(rf"\.unslant-{where}-([0-9]{{1,9}})-[a-z0-9_]+\.tmp", entry.name)
                if match and _has_ended(int(match[1])):
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path, ignore_errors=True)
                    else:
                        with suppress(OSError):
                            os.unlink(entry.path)
    return f".unslant-{where or 'x'}-{os.getpid()}-"


@functools.cache
def _process_numbers() -> str:
    """A digest of what a process number is unique in: this start of the machine, and the container."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
        return hashlib.blake2b(f"{started}{os.readlink('/proc/self/ns/pid')}".encode(), digest_size=6).hexdigest()
    except (OSError, ValueError):  # not Linux
        return ""


def _has_ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's
        return False
    return False


def make_folder(path: str | Path) -> Path:
    """The folder, created with its parents if missing; OutputError if that fails, or a file has its name."""
    folder = path_in("folder", path, "the name of a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise unwritable(folder, error) from error
    return folder


@contextmanager
def locked_folder(path: str | Path) -> Iterator[None]:
    """The folder of :func:`make_folder`, where a second command waits to write: it gets the files of one at a time."""
    handle = -1
    if make_folder(path) and sys.platform != "win32":
        import fcntl

        with suppress(OSError):  # some network file systems have no locks
            handle = os.open(path, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle >= 0:
            os.close(handle)


def check_writable(path: str | Path) -> None:
    """Raise OutputError if :func:`write_atomically` cannot write there; leaves nothing behind."""
    target, _ = target_of(Path(path))
    try:
        with _scratch(target) as scratch:
            scratch.touch(exist_ok=False)
    except OSError as error:
        raise unwritable(path, error) from error


def target_of(path: Path) -> tuple[Path, int | None]:
    """The file to replace, and its permissions if it exists."""
    mode, target = mode_of(path), Path(os.path.realpath(path))
    if mode is None and os.path.islink(path):
        raise OutputError(f"{shown(path)}: cannot be written: is a broken link")
    if not os.path.isdir(target.parent):
        raise OutputError(f"{shown(path)}: cannot be written: there is no folder {shown(path.parent)}")
    if mode is None:
        return target, None
    if stat.S_ISDIR(mode):
        raise OutputError(f"{shown(path)}: is a folder; give the name of a file to write")
    if not stat.S_ISREG(mode):
        raise OutputError(f"{shown(path)}: cannot be written: is not a regular file")
    if not os.access(target, os.W_OK):
        raise OutputError(f"{shown(path)}: cannot be written: the file is read-only")
    return target, stat.S_IMODE(mode)


def mode_of(path: Path) -> int | None:
    """Kind and permissions of what is there, or None; OutputError for a name that the system refuses."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder survive a power cut, if the system can sync folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def unwritable(path: object, error: Exception) -> OutputError:
    """The error of an output that could not be written."""
    reason = (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
    return OutputError(f"{shown(path)}: cannot be written: {reason.lower()}")


# Several files


def write_folder(folder: str | Path, save: Callable[[Path], object]) -> None:
    """Write the files that ``save`` puts into a folder, created if missing; each is complete, or as it was before.

    Args:
        save: called with an empty folder, from which its files are then moved.

    Raises:
        OutputError: if one of them cannot be written.
    """
    folder = make_folder(folder)
    try:
        prefix = scratch_prefix(folder)
        with tempfile.TemporaryDirectory(prefix=prefix, suffix=".tmp", dir=folder, ignore_cleanup_errors=True) as name:
            try:
                save(Path(name))
            except Exception as error:  # libraries in other languages have other errors for a full disk
                raise unwritable(folder, error) from error
            for file in sorted(file for file in Path(name).rglob("*") if os.path.isfile(file)):
                target, mode = target_of(make_folder(folder / file.parent.relative_to(name)) / file.name)
                with file.open("r+b") as written:  # Windows syncs only files that are open for writing
                    os.fsync(written.fileno())
                if mode is not None:
                    file.chmod(mode)
                os.replace(file, target)
        sync_folder(folder)
    except OSError as error:
        raise unwritable(folder, error) from error


def write_all(*writes: Callable[[], object]) -> None:
    """Call all of these functions that write outputs; if one fails, the others are still called.

    Raises:
        OutputError: naming every output that could not be written, and every other deliberate error.
        UnslantError: the first, if every output could be written.
        Exception: the first that is not an UnslantError, if there is one.
    """
    failed: list[Exception] = []
    for write in writes:
        try:
            write()
        except Exception as error:
            failed.append(error)
    for failure in failed:
        if not isinstance(failure, UnslantError):
            raise failure
    if failed and not any(isinstance(failure, OutputError) for failure in failed):
        raise failed[0]
    if failed:
        reasons = list(dict.fromkeys(map(str, failed)))
        more = [f"and {len(reasons) - _NAMED:,} more"] * (len(reasons) > _NAMED)
        raise OutputError("; ".join(reasons[:_NAMED] + more))


# Standard output and standard error


class _Outlet(io.FileIO):
    """A standard stream that never raises: output that it cannot take is dropped, and ``error`` has the reason."""

    error: OSError | None = None
    reported = False  # once print_whole has raised the error

    def write(self, data: Any, /) -> int:
        try:
            while self.error is None:
                written = super().write(data)
                if written is not None:
                    return written
                select.select((), (self,), ())  # a non-blocking terminal or pipe that is full
        except OSError as error:
            self.error = error
        return len(data)


@contextmanager
def unfailing_streams() -> Iterator[Callable[[], str]]:
    """While the block runs, a full disk or a closed pipe behind standard output or error raises nothing.

    Yields:
        A function that returns why standard output could not be written; empty if it was, if its reader closed it, or
        if an error has said so already.
    """
    for descriptor in range(3):  # the next file opened would get a closed one, and prints would go into that file
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _unfailing(sys.stdout, sys.__stdout__, 1), _unfailing(sys.stderr, sys.__stderr__, 2)

    def lost() -> str:
        sys.stdout.flush()
        outlet = _outlet_of(sys.stdout)
        error = outlet.error if outlet and not outlet.reported else None
        return "" if error is None or isinstance(error, BrokenPipeError) else str(unwritable("standard output", error))

    try:
        yield lost
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


def print_whole(text: str) -> None:
    """Print an output that the user wants on standard output.

    Raises:
        OutputError: if it cannot be written, or its reader closed it.
    """
    try:
        print(text, end="", flush=True)
    except OSError as error:
        raise unwritable("standard output", error) from error
    if (outlet := _outlet_of(sys.stdout)) and outlet.error:
        outlet.reported = True
        raise unwritable("standard output", outlet.error)


def _unfailing(stream: TextIO | None, original: TextIO | None, descriptor: int) -> TextIO:
    """The stream; in place of the process's original one, or a closed one, a stream that never fails."""
    if stream is not None and stream is not original:
        return stream
    if stream is not None:
        stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Outlet(descriptor, "wb", closefd=False)),
        encoding=stream.encoding if stream else "utf-8",
        # of an encoding such as ASCII; surrogateescape, Python's in the C locale, fails on other characters too
        errors=stream.errors if stream and stream.errors not in ("strict", "surrogateescape") else "backslashreplace",
        line_buffering=descriptor == 2 or bool(stream and stream.isatty()),
    )


def _outlet_of(stream: object) -> _Outlet | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Outlet) else None
