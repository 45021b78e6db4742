"""``unslant study probe``: what models do to a benchmark when they rewrite its questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unslant.cli import options as o
from unslant.cli.progress import progress

if TYPE_CHECKING:
    from unslant.studies.probe.judging import Participant

INSPECT = "inspect:"


def register(group: typer.Typer) -> None:
    """Add the command to ``group``."""
    group.command("probe")(probe)


def probe(
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Two models or more: reference model, folder, Hub id, or inspect:PROVIDER/MODEL."),
    ] = None,
    questions: Annotated[
        str, typer.Option("--questions", help="Question file, recipe name, or 'embedded'.")
    ] = o.DEFAULT_QUESTIONS,
    scores: Annotated[
        Path | None, typer.Option("--scores", help="A recorded table of confidences instead of models.")
    ] = None,
    accuracy: Annotated[
        Path | None, typer.Option("--accuracy", help="With --scores: a file of accuracy by model and subject.")
    ] = None,
    strength: Annotated[
        list[float] | None,
        typer.Option("--strength", help="Share of questions rephrased, 0 to 1; may be given several times."),
    ] = None,
    save_scores: Annotated[
        Path | None, typer.Option("--save-scores", help="Write the table of confidences to this CSV file.")
    ] = None,
    template: o.Template = "plain",
    chat: o.Chat = False,
    limit: o.Limit = None,
    seed: o.Seed = 0,
    field: o.Fields = None,
    skip_bad: o.SkipBad = False,
    device: o.Device = "auto",
    dtype: o.Dtype = "auto",
    trust_remote_code: o.RemoteCode = False,
    json: o.JsonOut = None,
    html: o.HtmlOut = None,
    quiet: o.Quiet = False,
) -> None:
    """Let every model rephrase the questions and judge every version: consensus errors, over- and under-confidence.

    The questions under random interventions are judged beside the rephrased ones.
    """
    from unslant.errors import InputError
    from unslant.studies.probe.study import STRENGTHS, probe_recorded
    from unslant.studies.probe.study import probe as run

    o.check_writable(json, html, save_scores)
    strengths = tuple(sorted(set(strength))) if strength else STRENGTHS
    if scores is not None:
        if models:
            raise InputError("give models or --scores, not both")
        result = probe_recorded(scores, accuracy, strengths=strengths, seed=seed)
    else:
        from unslant.models.chat import InspectSpeaker
        from unslant.models.hf.loading import load_model
        from unslant.prompts import Writer, load_template
        from unslant.questions import load_questions
        from unslant.studies.probe.judging import local_participant, speaking_participant

        writer = Writer(load_template(template), chat)
        found = load_questions(questions, fields=o.parse_fields(field), on_bad="skip" if skip_bad else "error")

        def participant(name: str) -> Participant:
            if name.startswith(INSPECT):
                return speaking_participant(InspectSpeaker(name.removeprefix(INSPECT)), writer)
            loaded = load_model(name, device=device, dtype=dtype, trust_remote_code=trust_remote_code)
            return local_participant(loaded, writer)

        if len(models or ()) < 2:
            raise InputError("the probe needs two models or more (or --scores FILE)")
        participants = [participant(name) for name in models or ()]
        with progress(quiet) as watch:
            result = run(
                participants,
                found,
                strengths=strengths,
                template=template,
                chat=chat,
                limit=limit,
                seed=seed,
                watch=watch,
            )
    if save_scores:
        result.table.to_csv(save_scores)
    if json:
        result.to_json(json)
    if html:
        result.to_html(html)
    if not quiet:
        o.show(result.summary)
