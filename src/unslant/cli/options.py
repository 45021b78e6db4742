"""Options and arguments that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    pass

DEFAULT_MODEL = "prefers-a"
DEFAULT_QUESTIONS = "embedded"

Model = Annotated[str, typer.Argument(help="Reference model (fair, prefers-a, ...), model folder, or Hub id.")]
Questions = Annotated[
    str, typer.Argument(help="Question file (JSONL, JSON, CSV, Parquet), recipe name, or 'embedded'.")
]
Fields = Annotated[
    list[str] | None,
    typer.Option("--field", help="Field of the file for one of ours, as OURS=THEIRS; may be given several times."),
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave bad lines out and count them, instead of stopping.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only N questions, sampled by the seed.")]
Seed = Annotated[int, typer.Option(help="Seed of every random choice.")]
Labels = Annotated[str, typer.Option(help="Label set: A, a, 1, I, i, or your own separated by commas.")]
Template = Annotated[str, typer.Option(help="Prompt template: a name, or the path of a .toml file.")]
Chat = Annotated[bool, typer.Option("--chat", help="Ask through the tokenizer's chat template.")]
Shots = Annotated[int, typer.Option(min=0, max=16, help="Worked examples before each question.")]
ShotsFrom = Annotated[
    str | None, typer.Option(help="Take the worked examples from this question file; default: from the set itself.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
Adapter = Annotated[str | None, typer.Option(help="A peft adapter to put on the model: folder or Hub id.")]
RemoteCode = Annotated[bool, typer.Option("--trust-remote-code", help="Run model code that comes with the weights.")]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        help="Address of an OpenAI-compatible server that knows MODEL and returns log-probabilities, such as "
        "http://127.0.0.1:8080/v1; key: UNSLANT_API_KEY or OPENAI_API_KEY."
    ),
]
JsonOut = Annotated[Path | None, typer.Option("--json", help="Write every number, with N and interval, to this file.")]
ResponsesOut = Annotated[
    Path | None, typer.Option("--responses", help="Write the table of responses to this Parquet file.")
]
StorePath = Annotated[
    Path | None, typer.Option("--store", help="File that keeps every score (default: in your data folder).")
]
NoStore = Annotated[bool, typer.Option("--no-store", help="Keep no scores, and use none that were kept.")]
HtmlOut = Annotated[Path | None, typer.Option("--html", help="Write a report that opens in a browser to this file.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]


def parse_fields(pairs: list[str] | None) -> dict[str, str] | None:
    """``["question=prompt"]`` as ``{"question": "prompt"}``.

    Raises:
        typer.BadParameter: if a pair has no equals sign.
    """
    if not pairs:
        return None
    fields = {}
    for pair in pairs:
        ours, sign, theirs = pair.partition("=")
        if not sign or not ours or not theirs:
            raise typer.BadParameter(f"--field {pair!r}: write it as OURS=THEIRS, for example --field question=prompt")
        fields[ours] = theirs
    return fields


def check_writable(*paths: Path | None) -> None:
    """Refuse an output path that cannot be written before any work is done.

    Raises:
        unslant.errors.InputError: naming the path.
    """
    from unslant.errors import InputError

    for path in paths:
        if path is None:
            continue
        if path.is_dir():
            raise InputError.at(path, "is a folder; give the name of a file to write")
        if not path.parent.is_dir():
            raise InputError.at(path, f"cannot be written: there is no folder {path.parent}")


def show(summary: Callable[..., str]) -> None:
    """Print a result's summary as wide as the terminal (100 columns at least: tables lose nothing), in colour there."""
    from rich.console import Console

    console = Console()
    typer.echo(summary(width=max(100, min(console.width, 120)), color=console.is_terminal))
