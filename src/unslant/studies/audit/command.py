"""``unslant audit``: the main job."""

from __future__ import annotations

from os import environ
from typing import TYPE_CHECKING, Annotated

import typer

from unslant.cli import options as o
from unslant.cli.recording import recording

if TYPE_CHECKING:
    from unslant.models.base import ScoringModel
    from unslant.models.served import ServedModel


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
    base_url: o.BaseUrl = None,
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
    from unslant.models.hf.loading import load_model
    from unslant.questions import load_questions
    from unslant.studies.audit.study import audit as run

    o.check_writable(json, responses, html)
    on_bad = "skip" if skip_bad else "error"
    fields = o.parse_fields(field)
    found = load_questions(questions, fields=fields, limit=limit, seed=seed, on_bad=on_bad)
    pool = load_questions(shots_from, on_bad=on_bad) if shots_from else None
    served = None
    if base_url:
        local_only = adapter or trust_remote_code or dtype != "auto" or device != "auto"
        served = _served(model, base_url, local_only=bool(local_only))

    def load() -> ScoringModel:
        return served or load_model(
            model, dtype=dtype, device=device, adapter=adapter, trust_remote_code=trust_remote_code
        )

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
    if served is not None and served.censored:
        typer.echo(
            f"note: {served.censored:,} label scores are upper bounds: the label was not among the {served.top} most "
            "probable tokens that the server returns",
            err=True,
        )
    if not quiet:
        o.show(result.summary)


def _served(model: str, base_url: str, *, local_only: bool) -> ServedModel:
    """The model behind a server, with the key that the environment has for it."""
    from unslant.errors import InputError
    from unslant.models.served import KEY_VARIABLE, ServedModel

    if local_only:
        raise InputError(
            "--base-url: what a server runs cannot be changed from here; leave out --adapter, --device, --dtype and "
            "--trust-remote-code"
        )
    key = "UNSLANT_API_KEY" if "UNSLANT_API_KEY" in environ else KEY_VARIABLE
    return ServedModel(model, base_url, key_variable=key)
