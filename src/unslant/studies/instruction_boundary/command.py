"""``unslant study instruction-boundary``: how much of an answer in words is the instruction (P3)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unslant.cli import options as o


def register(group: typer.Typer) -> None:
    """Add the command to ``group``."""
    group.command("instruction-boundary")(instruction_boundary)


def instruction_boundary(
    model: Annotated[
        str,
        typer.Argument(
            help="Model by inspect's name (openai/gpt-4o, hf/...), reference model, model folder, or with --base-url "
            "the name a server knows it by."
        ),
    ] = "words",
    questions: Annotated[
        str,
        typer.Argument(help="File made by 'unslant questions build instruction-boundary', or 'embedded'."),
    ] = "embedded",
    settings: Annotated[
        str,
        typer.Option(
            help="Settings, separated by commas; all: every one but the disturbing options; disturbing: 1 to 9 of them."
        ),
    ] = "all",
    base_url: Annotated[
        str | None,
        typer.Option(help="Address of an OpenAI-compatible server; its key is read from UNSLANT_API_KEY."),
    ] = None,
    log_dir: Annotated[
        Path, typer.Option(help="Folder of inspect's logs; what has a reply there is not asked again.")
    ] = Path("logs"),
    temperature: Annotated[float, typer.Option(help="Sampling temperature.")] = 0.5,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of a reply.")] = 2048,
    repeats: Annotated[int, typer.Option(min=1, help="Replies for each question and setting.")] = 1,
    judge: Annotated[
        str | None, typer.Option(help="Model (inspect's name) that reads replies in which no answer is found.")
    ] = None,
    polisher: Annotated[
        str | None, typer.Option(help="Model (inspect's name) that rewrites instructions; default: the model itself.")
    ] = None,
    left_out: Annotated[
        str, typer.Option(help="Form that missing-choices leaves out: single, several, none, True, False or Unknown.")
    ] = "",
    connections: Annotated[int, typer.Option(min=1, help="Requests at a time.")] = 8,
    retries: Annotated[int, typer.Option(min=0, help="Repetitions of a request that failed for the time being.")] = 5,
    timeout: Annotated[int | None, typer.Option(min=1, help="Seconds to wait for one reply.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=4, help="At most N questions of each kind, half with a usual answer.")
    ] = None,
    seed: o.Seed = 42,
    json: o.JsonOut = None,
    responses: o.ResponsesOut = None,
    html: o.HtmlOut = None,
    quiet: o.Quiet = False,
) -> None:
    """Ask the same questions under instructions that say everything, too much, or too little.

    One option may be right, several or none; a statement may be true, false or unknown. Start it again with the same
    --log-dir to ask only for what is missing; look at the conversations with 'inspect view --log-dir DIR'.
    """
    from unslant.studies.instruction_boundary.question_sources import load_boundary
    from unslant.studies.instruction_boundary.study import AskOptions, run_instruction_boundary

    o.check_writable(json, responses, html)
    study = run_instruction_boundary(
        model,
        load_boundary(questions),
        settings.split(","),
        log_dir=log_dir,
        options=AskOptions(
            temperature=temperature,
            max_tokens=max_tokens,
            repeats=repeats,
            connections=connections,
            retries=retries,
            timeout=timeout,
            judge=judge,
            polisher=polisher,
        ),
        base_url=base_url,
        limit=limit,
        seed=seed,
        left_out=left_out,
        show=not quiet,
    )
    if responses:
        study.to_parquet(responses)
    if json:
        study.to_json(json)
    if html:
        study.to_html(html)
    if not quiet:
        o.show(study.summary)
