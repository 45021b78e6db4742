"""``unslant rerun``: make a result again from the file of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from unslant.errors import InputError, first_line
from unslant.experiment import options as o
from unslant.reach import Reach

AGAIN = ("audit", "leaderboard", "debias", "study", "train")
"""Commands that are run again."""
_ONLY = f"results of {', '.join(AGAIN)} can be made again"


def rerun(
    file: Annotated[Path, Parameter(help="JSON, Parquet or HTML file of a result, or the folder of an adapter.")],
    /,
    *again: Annotated[
        str,
        Parameter(name="OPTIONS", allow_leading_hyphen=True, help="Options of the command that you type again."),
        Reach.SECRET,
    ],
    trust: o.Trust = False,
    anyway: Annotated[bool, Parameter(help="Run even if the questions or the model have changed.")] = False,
    outputs: o.Outputs = o.OutputOptions(),
) -> None:
    """Repeat the command that made a result.

    Every option is the same but where to write. Stops if the questions or the model are not those of the file. Give
    file names as the command did, in its folder.

    A command that runs code of others, names an address, reads your environment or leaves this folder is shown and not
    run, unless those options are typed again or --trust is given. Keys go to no address that you did not type.

    Examples:
      unslant rerun report.html --json again.json
      unslant rerun served.json --base-url http://127.0.0.1:8080/v1
    """
    from unslant.cli import arguments_of, repeat
    from unslant.cli.words import Recorded
    from unslant.experiment.provenance_block import EXPECTED

    block = read_provenance(file)
    if not block.command or block.command[0] not in AGAIN:
        made = f"was made by 'unslant {block.command[0]}'" if block.command else "was made from Python"
        raise InputError.at(file, f"{made}; {_ONLY}")
    try:
        recorded = Recorded(arguments_of, block.command, file, f"unslant rerun {shlex.quote(str(file))}", trust)
    except InputError as error:
        raise InputError.at(file, str(error)) from None
    words = list(again)
    for name in ("json", "html", "responses", "out", "figures", "tables", "baseline"):
        value = getattr(outputs, name)
        words += [f"--{name}", str(value)] if value is not None else []
    words += [f"--fail-if={condition}" for condition in outputs.fail_if]
    words += [f"--{name}" for name in ("details", "quiet") if getattr(outputs, name)]
    before = EXPECTED.set(None if anyway else block)
    try:
        repeat(recorded, words)
    finally:
        EXPECTED.reset(before)


def read_provenance(path: Path) -> Any:
    """The block in a file that we wrote.

    Raises:
        InputError: if the file cannot be read, is not ours, or holds several results.
    """
    from unslant.responses.provenance import checked_provenance

    path = path / "provenance.json" if path.is_dir() else path
    try:
        blocks = [block for block in _blocks(path) if block]
    except (ValueError, TypeError) as error:
        raise InputError.at(path, f"is not JSON, Parquet or HTML that unslant wrote: {first_line(error)}") from None
    if len(blocks) != 1:
        raise InputError.at(
            path, "holds several results; give the file of one" if blocks else "is not a result of ours"
        )
    return checked_provenance(blocks[0], path)


def _blocks(path: Path) -> Iterator[Any]:
    from unslant.files import parse_json, read_text
    from unslant.responses.checks import read_table
    from unslant.responses.provenance import META_NAME

    if path.suffix.lower() == ".parquet":
        yield read_table(path)[1].provenance.model_dump(exclude_defaults=True)
    elif path.suffix.lower() in (".html", ".htm"):
        tag = re.search(f'<meta name="{META_NAME}" content="(.*?)">', read_text(path))
        yield from parse_json(unescape(tag[1])) if tag else ()
    else:
        value = parse_json(read_text(path))
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict):
            yield value if "versions" in value else value.get("provenance")
