"""``unslant study unbiased``: a score that survives a change of presentation (P4)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from unslant.cli import options as o
from unslant.cli.progress import progress
from unslant.cli.recording import recording

Probability = Annotated[
    list[str] | None,
    typer.Option("--probability", "-p", help="Of one intervention, as OS=0.3; may be given several times."),
]
NoInstructions = Annotated[
    bool, typer.Option("--no-instructions", help="No sentence in front that says what is asked for.")
]
INSPECT = "inspect:"


def register(group: typer.Typer) -> None:
    """Add the command to ``group``."""
    group.command("unbiased")(unbiased)


def unbiased(
    model: o.Model = o.DEFAULT_MODEL,
    questions: o.Questions = o.DEFAULT_QUESTIONS,
    maths: Annotated[bool, typer.Option("--maths", help="The questions are open, their answers numbers.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Random draws of interventions for every question.")] = 5,
    shots: o.Shots = 5,
    shots_from: o.ShotsFrom = None,
    probability: Probability = None,
    no_instructions: NoInstructions = False,
    words: Annotated[
        bool, typer.Option("--words", help="Read replies in words instead of label probabilities.")
    ] = False,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest reply, where replies are read.")] = 1000,
    no_alone: Annotated[bool, typer.Option("--no-alone", help="Do not ask each intervention by itself too.")] = False,
    template: o.Template = "plain",
    chat: o.Chat = False,
    limit: o.Limit = None,
    seed: o.Seed = 0,
    field: o.Fields = None,
    skip_bad: o.SkipBad = False,
    device: o.Device = "auto",
    dtype: o.Dtype = "auto",
    adapter: o.Adapter = None,
    trust_remote_code: o.RemoteCode = False,
    json: o.JsonOut = None,
    html: o.HtmlOut = None,
    responses: o.ResponsesOut = None,
    store: o.StorePath = None,
    no_store: o.NoStore = False,
    quiet: o.Quiet = False,
) -> None:
    """Score a model as published and under randomly composed changes of presentation, and show the drop.

    Interventions: DH distractor hint, DQ distractor question, AR answer removal, OS option shuffling, LR label
    replacement, BT binary transformation; for maths also QJ question jitter and AJ answer jitter.

    MODEL may be inspect:PROVIDER/MODEL, which is asked in words.
    """
    from unslant.errors import InputError
    from unslant.models.hf.loading import load_model
    from unslant.questions import load_math, load_questions
    from unslant.studies.unbiased.study import unbiased as run
    from unslant.studies.unbiased.study import unbiased_in_words

    o.check_writable(json, html, responses)
    load = load_math if maths else load_questions
    on_bad = "skip" if skip_bad else "error"
    found = load(questions, fields=o.parse_fields(field), on_bad=on_bad)
    pool = load(shots_from, on_bad=on_bad) if shots_from else None
    asked = partial(load_model, model, dtype=dtype, device=device, adapter=adapter, trust_remote_code=trust_remote_code)
    settings: dict[str, Any] = {
        "runs": runs,
        "shots": shots,
        "shots_from": pool,
        "probabilities": parse_probabilities(probability),
        "alone": not no_alone,
        "instructions": not no_instructions,
        "template": template,
        "limit": limit,
        "seed": seed,
    }
    if words or model.startswith(INSPECT):
        from unslant.models.chat import InspectSpeaker, LocalSpeaker, Speaker

        speaker: Speaker
        if model.startswith(INSPECT):
            if adapter:
                raise InputError("--adapter is for local models")
            speaker, chat = InspectSpeaker(model.removeprefix(INSPECT), max_tokens), True
        else:
            speaker = LocalSpeaker(asked(), max_tokens)
        with progress(quiet) as watch:
            result = unbiased_in_words(speaker, found, chat=chat, watch=watch, **settings)
    else:
        with recording(store, no_store, quiet) as record:
            result = run(record.loader(asked, found), found, chat=chat, watch=record.watch, **settings)
            record.keep(result.responses)
    if responses:
        result.to_parquet(responses)
    if json:
        result.to_json(json)
    if html:
        result.to_html(html)
    if not quiet:
        o.show(result.summary)


def parse_probabilities(pairs: list[str] | None) -> dict[str, float]:
    """``["OS=0.3"]`` as ``{"OS": 0.3}``.

    Raises:
        typer.BadParameter: if a pair is not an intervention and a number.
    """
    found = {}
    for pair in pairs or []:
        code, sign, number = pair.partition("=")
        try:
            found[code] = float(number)
        except ValueError:
            sign = ""
        if not sign:
            raise typer.BadParameter(f"--probability {pair!r}: write it as CODE=NUMBER, for example OS=0.3")
    return found
