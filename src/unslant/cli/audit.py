"""``unslant audit``: the main job."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from unslant.cli import options as o
from unslant.cli.recording import recording


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("audit")(audit)


def audit(
    model: o.Model = o.DEFAULT_MODEL,
    questions: o.Questions = o.DEFAULT_QUESTIONS,
    orders: Annotated[
        str, typer.Option(help="auto, all, cyclic, reverse, given, or a number of sampled orders.")
    ] = "auto",
    labels: o.Labels = "A",
    template: o.Template = "plain",
    chat: o.Chat = False,
    shots: o.Shots = 0,
    shots_from: o.ShotsFrom = None,
    limit: o.Limit = None,
    seed: o.Seed = 0,
    field: o.Fields = None,
    skip_bad: o.SkipBad = False,
    device: o.Device = "auto",
    dtype: o.Dtype = "auto",
    adapter: o.Adapter = None,
    trust_remote_code: o.RemoteCode = False,
    json: o.JsonOut = None,
    responses: o.ResponsesOut = None,
    html: o.HtmlOut = None,
    store: o.StorePath = None,
    no_store: o.NoStore = False,
    quiet: o.Quiet = False,
) -> None:
    """Ask every question in many orders, and say what the score is worth.

    Without arguments: the embedded model prefers-a on the embedded questions.
    """
    from unslant.models.loading import load_model
    from unslant.questions import load_questions
    from unslant.studies.audit import audit as run

    o.check_writable(json, responses, html)
    on_bad = "skip" if skip_bad else "error"
    fields = o.parse_fields(field)
    found = load_questions(questions, fields=fields, limit=limit, seed=seed, on_bad=on_bad)
    pool = load_questions(shots_from, on_bad=on_bad) if shots_from else None
    load = partial(load_model, model, dtype=dtype, device=device, adapter=adapter, trust_remote_code=trust_remote_code)
    with recording(store, no_store, quiet) as record:
        result = run(
            record.loader(load, found),
            found,
            orders=orders,
            labels=labels,
            template=template,
            chat=chat,
            shots=shots,
            shots_from=pool,
            seed=seed,
            watch=record.watch,
        )
        record.keep(result.responses)
    if responses:
        result.to_parquet(responses)
    if json:
        result.to_json(json)
    if html:
        result.to_html(html)
    if not quiet:
        o.show(result.summary)
