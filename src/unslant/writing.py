"""Several outputs at once: where one cannot be written the others are, and standard output is one of them."""

from __future__ import annotations

import io
import os
import select
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from unslant.errors import OutputError, UnslantError
from unslant.files import make_folder, scratch_prefix, sync_folder, target_of, unwritable

_NAMED = 5
"""Outputs that an error names, where more could not be written."""


def write_folder(folder: str | Path, save: Callable[[Path], object]) -> None:
    """Write the files that ``save`` puts into a folder, made where it is missing; each is whole, or as it was before.

    Args:
        save: is called with an empty folder, from which its files are then moved.

    Raises:
        OutputError: if one of them cannot be written.
    """
    folder = make_folder(folder)
    try:
        prefix = scratch_prefix(folder)
        with tempfile.TemporaryDirectory(prefix=prefix, suffix=".tmp", dir=folder, ignore_cleanup_errors=True) as own:
            try:
                save(Path(own))
            except Exception as error:  # libraries in other languages have errors of their own for a full disk
                raise unwritable(folder, error) from error
            for file in sorted(file for file in Path(own).rglob("*") if file.is_file()):
                target, mode = target_of(make_folder(folder / file.parent.relative_to(own)) / file.name)
                if mode is not None:
                    file.chmod(mode)
                with file.open("rb") as written:
                    os.fsync(written.fileno())
                os.replace(file, target)
        sync_folder(folder)
    except OSError as error:
        raise unwritable(folder, error) from error


def write_all(*writes: Callable[[], object]) -> None:
    """Call all of these, each of which writes an output: where one fails the others are written all the same.

    Raises:
        OutputError: naming every output that could not be written, and what else failed on purpose.
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
        told = list(dict.fromkeys(map(str, failed)))
        more = [f"and {len(told) - _NAMED:,} more"] if len(told) > _NAMED else []
        raise OutputError("; ".join(told[:_NAMED] + more))


# Standard output and standard error


class _Outlet(io.FileIO):
    """A standard stream that stops nothing: what it cannot take is dropped, and the reason kept in ``error``."""

    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            while self.error is None:
                written = super().write(data)
                if written is not None:
                    return written
                select.select((), (self,), ())  # a terminal or pipe that was set not to wait
        except OSError as error:
            self.error = error
        return len(data)


@contextmanager
def unfailing_streams() -> Iterator[Callable[[], str]]:
    """While the block runs, a full disk or a closed pipe behind standard output or error raises nothing.

    Yields:
        A function that says why standard output could not be written; empty if it was, or if its reader has gone away.
    """
    for descriptor in range(3):  # a closed one would be given to the next file that is opened, and written into
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _unfailing(sys.stdout, sys.__stdout__, 1), _unfailing(sys.stderr, sys.__stderr__, 2)

    def lost() -> str:
        sys.stdout.flush()
        error = _error_of(sys.stdout)
        return "" if error is None or isinstance(error, BrokenPipeError) else str(unwritable("standard output", error))

    try:
        yield lost
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


def print_whole(text: str) -> None:
    """Print an output that was asked for on standard output.

    Raises:
        OutputError: if it cannot be written, also because its reader has gone away.
    """
    try:
        print(text, end="", flush=True)
    except OSError as error:
        raise unwritable("standard output", error) from error
    if lost := _error_of(sys.stdout):
        raise unwritable("standard output", lost)


def _unfailing(stream: TextIO | None, own: TextIO | None, descriptor: int) -> TextIO:
    """The stream, or one in its place that does not fail, where it is the process's own or was closed."""
    if stream is not None and stream is not own:
        return stream
    if stream is not None:
        stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Outlet(descriptor, "wb", closefd=False)),
        encoding=stream.encoding if stream else "utf-8",
        errors=stream.errors if stream else "backslashreplace",
        line_buffering=descriptor == 2 or bool(stream and stream.isatty()),
    )


def _error_of(stream: object) -> OSError | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw.error if isinstance(raw, _Outlet) else None
