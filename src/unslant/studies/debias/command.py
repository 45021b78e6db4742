"""``unslant study debias``: every debiasing method, side by side."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from unslant.cli import options as o
from unslant.cli.progress import progress


def register(group: typer.Typer) -> None:
    """Add the command to ``group``."""
    group.command("debias")(debias)


def debias(
    model: Annotated[str, typer.Argument(help="Model, or several separated by commas.")] = o.DEFAULT_MODEL,
    questions: Annotated[
        str, typer.Argument(help="Question file, recipe or 'embedded', or several separated by commas.")
    ] = o.DEFAULT_QUESTIONS,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods separated by commas, with settings after colons; by default vote, adaptive-fast, pride, "
            "gray-box (both), bnp, aoi, set-based and lora-1."
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            help="Questions to train on, one file for each of QUESTIONS, separated by commas; by default half of each."
        ),
    ] = None,
    no_transfer: Annotated[
        bool, typer.Option("--no-transfer", help="Do not measure methods on sets they were not fitted on.")
    ] = False,
    orders: Annotated[
        str, typer.Option(help="Orders in which questions are listed to see what bias is left.")
    ] = "auto",
    labels: o.Labels = "A",
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
    """Compare debiasing methods: bias, accuracy, what they cost, and whether what they learned carries over."""
    from unslant.debias import method_named
    from unslant.models.hf.loading import load_model
    from unslant.questions import load_questions
    from unslant.studies.debias.study import DEFAULT_METHODS, debias_study

    o.check_writable(json, html)
    chosen = tuple(name.strip() for name in methods.split(",")) if methods else DEFAULT_METHODS
    for name in chosen:
        method_named(name)
    on_bad = "skip" if skip_bad else "error"
    fields = o.parse_fields(field)
    sets = [load_questions(name, fields=fields, limit=limit, seed=seed, on_bad=on_bad) for name in questions.split(",")]
    training = [load_questions(name, fields=fields, on_bad=on_bad) for name in train.split(",")] if train else []
    models = [
        partial(load_model, name, dtype=dtype, device=device, trust_remote_code=trust_remote_code)
        for name in model.split(",")
    ]
    with progress(quiet) as watch:
        result = debias_study(
            models,
            sets,
            methods=chosen,
            train=training,
            transfer=not no_transfer,
            orders=orders,
            labels=labels,
            template=template,
            chat=chat,
            seed=seed,
            watch=watch,
        )
    if json:
        result.to_json(json)
    if html:
        result.to_html(html)
    if not quiet:
        o.show(result.summary)
