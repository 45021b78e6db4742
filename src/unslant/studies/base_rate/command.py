"""``unslant study base-rate``: label preferences before anything is read, and what they do to the score (P5)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unslant.cli import options as o
from unslant.cli.recording import recording


def register(group: typer.Typer) -> None:
    """Add the command to ``group``."""
    group.command("base-rate")(base_rate)


def base_rate(
    model: Annotated[
        str | None,
        typer.Argument(
            help=f"Reference model, model folder, or Hub id (default {o.DEFAULT_MODEL}); "
            "with --responses, which of the recorded models."
        ),
    ] = None,
    questions: Annotated[
        str | None,
        typer.Argument(
            help=f"Question file, recipe name, or 'embedded' (default {o.DEFAULT_QUESTIONS}); "
            "with --responses, the texts for the shortcut controls."
        ),
    ] = None,
    responses: Annotated[
        Path | None,
        typer.Option("--responses", help="Recorded label log-probabilities (.csv, .parquet, .gz) instead of a model."),
    ] = None,
    field: o.Fields = None,
    labels: o.Labels = "A",
    template: o.Template = "base-rate",
    chat: o.Chat = False,
    shots: o.Shots = 0,
    shots_from: o.ShotsFrom = None,
    canary: Annotated[str, typer.Option(help="Word or words scored after each label (counterfactual).")] = "best",
    no_nvr: Annotated[bool, typer.Option("--no-nvr", help="Leave the Nvr-X variants out.")] = False,
    limit: o.Limit = None,
    seed: o.Seed = 0,
    skip_bad: o.SkipBad = False,
    device: o.Device = "auto",
    dtype: o.Dtype = "auto",
    adapter: o.Adapter = None,
    trust_remote_code: o.RemoteCode = False,
    json: o.JsonOut = None,
    html: o.HtmlOut = None,
    charts: Annotated[
        Path | None, typer.Option("--charts", help="Draw the paper's figure 1 into this .svg or .png file.")
    ] = None,
    save_responses: Annotated[
        Path | None, typer.Option("--save-responses", help="Write the table of responses to this Parquet file.")
    ] = None,
    store: o.StorePath = None,
    no_store: o.NoStore = False,
    quiet: o.Quiet = False,
) -> None:
    """Measure the base rates of the labels, cloze against counterfactual, and Nvr-X; test hypotheses H1 to H4.

    With --responses FILE the same is computed from recorded log-probabilities, and --field maps that file's columns.
    """
    from unslant.questions import load_questions
    from unslant.studies.base_rate import study

    o.check_writable(json, html, charts, save_responses)
    if charts:
        from unslant.studies.base_rate.panels import check_format

        check_format(charts)
    on_bad = "skip" if skip_bad else "error"
    fields = o.parse_fields(field)
    if responses:
        texts = load_questions(questions, on_bad=on_bad) if questions else None
        result = study.base_rate_recorded(responses, texts, model=model, fields=fields, seed=seed)
    else:
        from unslant.models.hf.loading import load_model

        found = load_questions(questions or o.DEFAULT_QUESTIONS, fields=fields, limit=limit, seed=seed, on_bad=on_bad)
        pool = load_questions(shots_from, on_bad=on_bad) if shots_from else None
        load = partial(
            load_model,
            model or o.DEFAULT_MODEL,
            dtype=dtype,
            device=device,
            adapter=adapter,
            trust_remote_code=trust_remote_code,
        )
        with recording(store, no_store, quiet) as record:
            result = study.base_rate(
                record.loader(load, found),
                found,
                labels=labels,
                template=template,
                chat=chat,
                shots=shots,
                shots_from=pool,
                canary=canary,
                nvr=not no_nvr,
                seed=seed,
                watch=record.watch,
            )
            record.keep(result.responses)
    if save_responses:
        result.to_parquet(save_responses)
    if json:
        result.to_json(json)
    if html:
        result.to_html(html)
    if charts:
        from unslant.studies.base_rate.panels import save_charts

        save_charts(result, charts)
    if not quiet:
        o.show(result.summary)
