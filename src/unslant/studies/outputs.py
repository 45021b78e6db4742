"""Outputs: paths are checked before any work, written after it, and the summary is printed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unslant.errors import InputError, MostlyFailedError, OutputError
from unslant.files import check_writable, make_folder
from unslant.studies.options import ReportOptions
from unslant.studies.provenance import mostly_failed

if TYPE_CHECKING:
    from unslant.studies.result import StudyResult

T = TypeVar("T", bound="StudyResult")
_FILES = {"json": "numbers.json", "html": "report.html", "responses": "responses.parquet"}


def check_file(*paths: Path | None) -> None:
    """Raise InputError, naming the path, for a file that cannot be written."""
    for path in paths:
        try:
            if path is not None:
                check_writable(path)
        except OutputError as error:  # before any work it is the path that is at fault
            raise InputError(str(error)) from None


def check_folder(*paths: Path | None) -> None:
    """Raise InputError, naming the path, for a folder that cannot be created."""
    for path in paths:
        if path is not None and path.exists() and not path.is_dir():
            raise InputError.at(path, "is a file; give a folder name")


def check_outputs(options: ReportOptions) -> None:
    """Raise InputError, naming the path, for an output that cannot be written."""
    check_file(*(getattr(options, name, None) for name in _FILES))
    check_folder(options.out)


def write_outputs(result: StudyResult, options: ReportOptions) -> None:
    """Write what was asked for, and print the summary unless ``quiet``; where one file fails, the others are written.

    Raises:
        OutputError: naming every file that could not be written.
        MostlyFailedError: if more than half of the requests to a model failed; everything is written nevertheless.
    """
    wanted = {name: getattr(options, name, None) for name in _FILES}
    if options.out:
        make_folder(options.out)
        wanted = {name: path or options.out / _FILES[name] for name, path in wanted.items()}
    writers: dict[str, Any] = {"responses": getattr(result, "to_parquet", None)}
    writers |= {"json": result.to_json, "html": result.to_html}
    failed: list[Exception] = []
    for name, write in writers.items():
        try:
            if wanted[name] and write:
                write(wanted[name])
        except Exception as error:
            failed.append(error)
    if not options.quiet:
        from rich.console import Console

        console = Console()
        known = console.is_terminal or "COLUMNS" in os.environ
        width = max(80, min(console.width, 120)) if known else 100
        print(result.summary(width=width, color=console.is_terminal, details=options.details))
    for failure in failed:
        if not isinstance(failure, OutputError):
            raise failure
    if failed:
        raise OutputError("; ".join(map(str, failed)))
    if told := mostly_failed(getattr(result, "meta", {})):
        raise MostlyFailedError(told)


def read_logs(paths: Sequence[Path], kind: type[T]) -> list[T]:
    """Results of one study from its tables of responses.

    Raises:
        InputError: naming a file that cannot be read or belongs to another study.
    """
    from unslant.studies.readers import read_result

    found = []
    for path in paths:
        result = read_result(path)
        if not isinstance(result, kind):
            held = getattr(result, "study", type(result).__name__)
            raise InputError.at(
                path, f"contains responses of the study {held}; this command reads those of {kind.study}"
            )
        found.append(result)
    return found
