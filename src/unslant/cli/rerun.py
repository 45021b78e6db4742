"""``unslant rerun``: make a result again from the file of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from unslant.errors import InputError, first_line
from unslant.studies import options as o

AGAIN = ("audit", "leaderboard", "debias", "study", "train")
"""Commands that are run again."""


def rerun(
    file: Annotated[Path, Parameter(help="JSON, Parquet or HTML file of a result, or the folder of an adapter.")],
    /,
    *,
    anyway: Annotated[bool, Parameter(help="Run even if the questions or the model have changed.")] = False,
    outputs: o.Outputs = o.OutputOptions(),
) -> None:
    """Repeat the command that made a result, with every option but its outputs.

    Stops if the questions or the model are not those of the file. Give file names as the command did, in its folder.

    Examples:
      unslant rerun numbers.json
      unslant rerun report.html --json again.json
    """
    from unslant.cli import repeat
    from unslant.studies.command_line import reproducing
    from unslant.studies.provenance_block import EXPECTED

    block = read_provenance(file)
    words = reproducing(block.command)
    if not words or words[0] not in AGAIN:
        made = f"was made by 'unslant {words[0]}'" if words else "was made from Python"
        raise InputError.at(file, f"{made}; results of {', '.join(AGAIN)} can be made again")
    for risk, why in (("***@", "a password was left out of it"), ("--trust-remote-code", "it runs code of others")):
        if any(risk in word for word in words):
            raise InputError.at(file, f"type the command yourself, because {why}: unslant {' '.join(words)}")
    for name in ("json", "html", "responses", "out", "baseline"):
        value = getattr(outputs, name)
        words += [f"--{name}", str(value)] if value is not None else []
    words += [f"--fail-if={condition}" for condition in outputs.fail_if]
    words += [f"--{name}" for name in ("details", "quiet") if getattr(outputs, name)]
    before = EXPECTED.set(None if anyway else block)
    try:
        repeat(words)
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
        blocks = [found for found in _blocks(path) if found]
    except (ValueError, TypeError) as error:
        raise InputError.at(path, f"is no JSON, Parquet or HTML that unslant wrote: {first_line(error)}") from None
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
        found = re.search(f'<meta name="{META_NAME}" content="(.*?)">', read_text(path))
        yield from parse_json(unescape(found[1])) if found else ()
    else:
        value = parse_json(read_text(path))
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict):
            yield value if "versions" in value else value.get("provenance")
