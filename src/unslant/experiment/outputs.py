"""Outputs: their paths are checked before any work; after it they are written, and the summary is printed."""

from __future__ import annotations

import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from html import unescape
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from unslant.errors import FailedConditionsError, InputError, MostlyFailedError, OutputError, first_line, needed, shown
from unslant.experiment import OutputOptions, ReportOptions, ShardOptions
from unslant.experiment.page_parts import mostly_failed, unanswered
from unslant.experiment.result import StudyResult
from unslant.files import dump_json, parse_json, read_text
from unslant.flags import check_unused
from unslant.reach import COMMAND
from unslant.responses import Responses
from unslant.responses.provenance import META_NAME, Provenance, checked_provenance
from unslant.writing import check_writable, locked_folder, mode_of, print_whole, write_all, write_atomically

if TYPE_CHECKING:
    from unslant.responses.run import ShardHeader
    from unslant.scale.plan import Shard

FILES = {"json": "numbers.json", "responses": "responses.parquet", "html": "report.html"}
"""Option -> the file that it writes in the folder of ``--out``."""
_HOW_ASKED = frozenset("--connections --offline --ray --ray-actors --ray-gpus --retries --timeout".split())
"""Options that say how fast, and by which machines, a model is asked, and change no number."""
PROVENANCE = "provenance.json"
FOLDERS = {"out": tuple(FILES.values()), "figures": (PROVENANCE,), "tables": (PROVENANCE,)}
"""Option -> the files in its folder that say which command made it; the first that there is counts."""
STDOUT = Path("-")
"""``--json -`` writes to standard output; the summary then goes to standard error."""


def check_file(*paths: Path | None) -> None:
    """Raise InputError, naming the path, for a file that cannot be written."""
    for path in filter(None, paths):
        if path == STDOUT:
            raise InputError("only --json can be written to standard output (-); give a file name")
        try:
            check_writable(path)
        except OutputError as error:  # before any work it is the path that is at fault
            raise InputError(str(error)) from None


def check_folder(*paths: Path | None) -> None:
    """Raise InputError, naming the path, for a folder that cannot be created or written into."""
    for path in filter(None, paths):
        there = next(folder for folder in (path, *Path(os.path.abspath(path)).parents) if os.path.lexists(folder))
        try:
            mode = mode_of(path)
            if mode is not None and not stat.S_ISDIR(mode):
                raise InputError.at(path, "is a file; give a folder name")
            if mode is None and (path == STDOUT or path.parts[0].startswith("~")):  # --out=~/x, which shells leave so
                raise InputError.at(path, "would be a folder of this very name: give another, without the sign")
            if not os.path.isdir(there):
                raise InputError.at(path, f"cannot be made: {there} is not a folder")
            check_writable(there / ".unslant-trial")  # ".unslant" may be the folder that UNSLANT_HOME names
        except OutputError as error:
            raise InputError.at(path, f"cannot be written: {str(error).rpartition(': ')[2]}") from None


def check_outputs(options: ReportOptions, kind: type[StudyResult] | None = None, study: str = "") -> None:
    """Raise InputError for an output that cannot be written, a bad condition, or a baseline that cannot be read.

    Args:
        kind, study: see :meth:`unslant.experiment.gates.Baseline.check`.
    """
    if options.fail_if or options.baseline:
        from unslant.experiment.gates import Baseline, Condition

        for text in options.fail_if:
            condition = Condition.parse(text)
            if kind and options.baseline is None and condition.name.startswith("baseline."):
                raise InputError(f"--fail-if {text!r}: needs a baseline; add --baseline FILE")
        if options.baseline is not None:
            Baseline.check(options.baseline, kind, study)
    check_folder(options.out, options.figures, options.tables)
    if options.figures:
        needed("vl_convert", "drawing figures")
    # Files in a folder that does not exist yet cannot be tried out; check_folder tried the folder above it.
    in_folder = options.out is not None and os.path.exists(options.out)
    for name, path in files_of(options).items():
        if not (name == "json" and path == STDOUT) and (getattr(options, name, None) or in_folder):
            check_file(path)


def check_owner(options: ReportOptions, *made: Provenance) -> None:
    """Raise InputError for a folder with other results than those ``made``, by default by the running command."""
    for name, marks in FOLDERS.items():
        folder = getattr(options, name)
        file = _first_of(folder, marks) if folder else None
        if file is None:
            continue
        try:
            before = _provenances(file)
        except InputError as error:
            raise InputError(f"{error}; give another folder") from None
        runs = before, made or (Provenance(command=list(COMMAND.get().repeatable)),)
        # Python calls have no command
        one, other = ([_options(run.command) or (run.models, run.questions, run.settings) for run in of] for of in runs)
        if one != other:
            calls = (shlex.join(["unslant", *run.command]) if run.command else "a Python call" for run in before)
            raise InputError.at(folder, f"holds the result of {' and '.join(calls)}; give another folder")


def _first_of(folder: Path, names: Iterable[str]) -> Path | None:
    """The first of these files that a folder has; an empty one, which a killed run leaves, does not count."""
    files = (folder / name for name in names)
    return next((file for file in files if os.path.isfile(file) and os.path.getsize(file)), None)


def _options(words: Sequence[str]) -> list[list[str]]:
    """The words of a command that can change its numbers: its arguments, then its options by name, with values."""
    parts: list[list[str]] = []
    for word in words:
        if not word.startswith("-") and parts and len(parts[-1]) == 1 and parts[-1][0].startswith("-"):
            parts[-1].append(word)
        else:
            parts.append(word.split("=", 1) if word.startswith("-") else [word])
    parts = [part for part in parts if part[0] not in _HOW_ASKED]
    return sorted(parts, key=lambda part: part[0] if part[0].startswith("-") else "")


def files_of(options: ReportOptions) -> dict[str, Path | None]:
    """Option of :data:`FILES` -> the file named, or the one in the folder of ``--out``; None if it is not written."""
    in_folder = {name: options.out / file if options.out else None for name, file in FILES.items()}
    return {name: getattr(options, name, None) or file for name, file in in_folder.items()}


def read_provenance(path: Path) -> Provenance:
    """The provenance in a file that we wrote, or in the folder of such files.

    Raises:
        InputError: if the file cannot be read, is not ours, or holds several results.
    """
    path = _first_of(path, (*FILES.values(), PROVENANCE)) or path
    first, *others = _provenances(path)
    if others:
        raise InputError.at(path, "holds several results; give the file of one")
    return first


def _provenances(path: Path) -> list[Provenance]:
    """The provenance of every result in a file; InputError if it holds none of ours."""
    try:
        blocks = [block for block in _blocks(path) if block]
    except (ValueError, TypeError) as error:
        raise InputError.at(path, f"is not JSON, Parquet or HTML that unslant wrote: {first_line(error)}") from None
    if not blocks:
        raise InputError.at(path, "is not a result of ours")
    return [checked_provenance(block, path) for block in blocks]


def _blocks(path: Path) -> Iterator[Any]:
    from unslant.responses.checks import TableFile

    if path.suffix.lower() == ".parquet":
        yield TableFile(path).run.provenance.model_dump(exclude_defaults=True)
    elif path.suffix.lower() in (".html", ".htm"):
        tag = re.search(f'<meta name="{META_NAME}" content="(.*?)">', read_text(path))
        yield from parse_json(unescape(tag[1])) if tag else ()
    else:
        value = parse_json(read_text(path))
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict):
            yield value if "versions" in value else value.get("provenance")


def write_outputs(
    result: StudyResult, options: ReportOptions, *also: Callable[[], object], asked: bool = False
) -> None:
    """Print the summary unless ``quiet``, then write the outputs; if one file fails, the others are still written.

    Args:
        also: each writes another output of the command.
        asked: a model was asked, after :func:`check_owner`. If another command has written into a folder in
            the meantime, this result goes into a new one next to it.

    Raises:
        OutputError: naming every file that could not be written.
        InputError: if a folder has the result of another command; or, with everything but the differences written, if
            the baseline is of other questions or another study, or a condition names no number.
        MostlyFailedError: if more than half of the requests to a model failed, or none brought an answer; everything is
            written.
        FailedConditionsError: if a condition of ``--fail-if`` holds; everything is written.
    """
    refused: InputError | None = None
    made = result.provenance
    if not asked:
        check_owner(options, made)
    writers: dict[str, Any] = {"out": lambda _: None, "responses": getattr(result, "to_parquet", None)}
    if options.baseline is not None:
        from unslant.experiment.gates import Baseline

        try:
            result = Baseline.read(options.baseline, type(result)).compared_with(result)
        except InputError as error:
            refused = error
    writers |= {"json": lambda path: write_json(result.to_dict(), path), "html": result.to_html}
    writers |= {"figures": result.save_figures, "tables": result.save_tables}
    outputs = files_of(options) | {name: getattr(options, name) for name in FOLDERS}
    paths = {name: path for name, path in outputs.items() if path and writers[name]}
    before = _files_of_models(options.out)

    def claim(name: str) -> None:
        """Keep others out of a folder while it is written, or out of a new one if it has another's files by now."""
        locks.close()  # of the folder before: two commands that hold one and wait for the other's would never end
        folder = paths[name]
        inside = [one for one, path in paths.items() if path != STDOUT and path.is_relative_to(folder)]
        below = {one: paths[one].relative_to(folder) for one in inside}
        for here in chain((folder,), (Path(f"{os.path.abspath(folder)}-{number}") for number in count(2))):
            paths.update({one: here / path for one, path in below.items()})
            locks.enter_context(locked_folder(here))
            with suppress(InputError):
                check_owner(ReportOptions(**{name: here}), made)
                break
        if here != folder:
            print(f"warning: {folder} has another command's files by now; this result is in {here}", file=sys.stderr)

    def write(name: str) -> None:
        if name in FOLDERS:
            claim(name)
        writers[name](paths[name])

    with ExitStack() as locks:
        writes = (partial(write, name) for name in writers if name in paths)
        write_all(partial(_print_summary, result, options), *writes, *also)
    for file, _ in sorted(before & _files_of_models(paths.get("out"))):
        print(f"warning: {shown(file)} is of an earlier run; this one has no such responses", file=sys.stderr)
    if files := [shown(paths[name]) for name in writers if name in paths and name != "out" and paths[name] != STDOUT]:
        _print(f"Written: {', '.join(files)}", options)
    if refused:
        raise refused
    lines = []
    if options.fail_if:
        from unslant.experiment.gates import failed_conditions

        lines = failed_conditions(options.fail_if, result.to_dict())
    if result.failure:
        raise MostlyFailedError("; ".join((result.failure, *lines)))
    if lines:
        raise FailedConditionsError(lines)


def _files_of_models(folder: Path | None) -> set[tuple[Path, int]]:
    """The responses of several models in a folder of ``--out``, each with the number that the file system gave it."""
    return {(file, file.stat().st_ino) for file in folder.glob("responses-*.parquet")} if folder else set()


def check_shard(options: OutputOptions, shards: ShardOptions, models: Sequence[str]) -> None:
    """Raise InputError for a command that runs a shard but names other outputs than its table, or another's table."""
    from unslant.scale.plan import Shard

    if len(models) > 1:
        raise InputError("--shard takes one model: run the command once for each")
    if options.responses is None:
        raise InputError(f"--shard={shards.shard}: name the table of the shard with --responses FILE")
    check_unused("--shard writes a table, unslant merge everything else", options, but=("responses", "quiet"))
    if shards.plan and not os.path.exists(shards.plan):
        check_file(shards.plan)
    if other := _other_shard(options.responses, Shard.parse(shards.shard)):
        problem = f"holds shard {other}, which unslant merge needs: give every shard its own file"
        raise InputError.at(options.responses, problem)


def _other_shard(path: Path, shard: Shard | ShardHeader) -> str:
    """The shard in a file, as it is typed; empty if there is none, or the same one."""
    from unslant.scale.merge import shard_in

    other = shard_in(path)
    return f"{other.index}/{other.of}" if other and (other.index, other.of) != (shard.index, shard.of) else ""


def write_shard(responses: Responses, options: OutputOptions) -> None:
    """Write the table of a shard, and say so unless ``quiet``.

    Raises:
        OutputError: if it cannot be written.
        MostlyFailedError: if more than half of the requests failed; it is written all the same.
    """
    path, shard = options.responses, responses.run.shard
    assert path is not None
    assert shard is not None
    with locked_folder(path.parent):  # another shard may end at this moment
        if other := _other_shard(path, shard):
            path = path.with_stem(f"{path.stem}-{shard.index}-of-{shard.of}")
            print(f"warning: {options.responses} holds shard {other} by now; this one is in {path}", file=sys.stderr)
        responses.to_parquet(path)
    if not options.quiet:
        size = f"{shard.questions:,} of {shard.plan['n_questions']:,} questions, {len(responses):,} responses"
        print(f"shard {shard.index} of {shard.of}: {size} in {path}")
        print("when all shards are there: unslant merge MERGED SHARDS...")
    if reason := mostly_failed(responses.run.requests) or unanswered(responses):
        raise MostlyFailedError(reason)


def _print_summary(result: StudyResult, options: ReportOptions) -> None:
    from rich.console import Console

    console = Console(file=_stream(options))
    has_width = console.is_terminal or "COLUMNS" in os.environ
    width = max(80, min(console.width, 120)) if has_width else 100
    _print(result.summary(width=width, color=console.is_terminal, details=options.details).rstrip("\n"), options)


def _print(text: str, options: ReportOptions) -> None:
    if not options.quiet:
        print(text, file=_stream(options), flush=True)


def _stream(options: ReportOptions) -> TextIO:
    """Standard output, unless the numbers go there."""
    return sys.stderr if options.json == STDOUT else sys.stdout


def write_json(value: object, path: Path) -> None:
    """Write a value to a file, or to standard output (:data:`STDOUT`); OutputError if it cannot be written."""
    if path == STDOUT:
        print_whole(dump_json(value, ascii=True))  # the terminal may have another encoding than JSON
    else:
        write_atomically(path, dump_json(value))
