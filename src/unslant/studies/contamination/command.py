"""``unslant study contamination``: what seeing the test set does to a score, as published and under interventions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unslant.cli import options as o
from unslant.cli.progress import progress
from unslant.studies.unbiased.command import NoInstructions, Probability, parse_probabilities


def register(group: typer.Typer) -> None:
    """Add the command to ``group``."""
    group.command("contamination")(contamination)


def contamination(
    model: o.Model = "fair",
    questions: o.Questions = o.DEFAULT_QUESTIONS,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Compare with this model instead of fine-tuning; MODEL is the clean one."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the questions, at most.")] = 40,
    learning_rate: Annotated[float, typer.Option(help="Of the fine-tuning.")] = 1e-3,
    batch: Annotated[int, typer.Option(min=1, help="Questions in one step.")] = 16,
    save: Annotated[Path | None, typer.Option("--save", help="Folder for the fine-tuned model.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Random draws of interventions for every question.")] = 5,
    shots: o.Shots = 0,
    probability: Probability = None,
    no_instructions: NoInstructions = False,
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
    """Fine-tune a model on the questions as published, and show what that buys it under interventions.

    With --against, two models are compared that exist already: MODEL and one suspected of having seen the questions.
    """
    from unslant.models.hf.loading import load_model
    from unslant.questions import load_questions
    from unslant.studies.contamination.finetuning import Training
    from unslant.studies.contamination.study import compare
    from unslant.studies.contamination.study import contamination as run
    from unslant.studies.unbiased.study import unbiased

    o.check_writable(json, html)
    training = Training(epochs=epochs, learning_rate=learning_rate, batch=batch, seed=seed)
    on_bad = "skip" if skip_bad else "error"
    found = load_questions(questions, fields=o.parse_fields(field), limit=limit, seed=seed, on_bad=on_bad)
    load = partial(load_model, dtype=dtype, device=device, trust_remote_code=trust_remote_code)
    with progress(quiet) as watch:
        if against is None:
            result = run(
                partial(load, model),
                found,
                training=training,
                runs=runs,
                shots=shots,
                probabilities=parse_probabilities(probability),
                instructions=not no_instructions,
                template=template,
                chat=chat,
                seed=seed,
                save=save,
                watch=watch,
            )
        else:
            measure = partial(
                unbiased,
                questions=found,
                runs=runs,
                shots=shots,
                probabilities=parse_probabilities(probability),
                instructions=not no_instructions,
                alone=False,
                template=template,
                chat=chat,
                seed=seed,
                watch=watch,
            )
            result = compare(measure(partial(load, model)), measure(partial(load, against)))
    if json:
        result.to_json(json)
    if html:
        result.to_html(html)
    if not quiet:
        o.show(result.summary)
