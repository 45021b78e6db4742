"""``unslant debias``: the corrected answers, as labels with probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unslant.cli import options as o
from unslant.cli.progress import progress


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("debias")(debias)


def debias(
    model: o.Model,
    questions: o.Questions,
    out: Annotated[Path, typer.Option(help="JSONL file to write: one line per question.")],
    method: Annotated[
        str,
        typer.Option(
            help="none, vote, vote-hard, adaptive, adaptive-fast, pride, gray-box, gray-box-calibrated, bnp, aoi, "
            "set-based, set-based-text or lora-1; settings follow colons: vote:orders=shared:24, lora-1:adapter=DIR."
        ),
    ] = "vote",
    train: Annotated[
        str | None,
        typer.Option(help="Questions to fit on, for methods that need it; by default the questions themselves."),
    ] = None,
    labels: o.Labels = "A",
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
    quiet: o.Quiet = False,
) -> None:
    """Answer every question with a debiasing method, and write probabilities over the options.

    Methods that are trained or need right answers (bnp, lora-1) have to be given --train.
    """
    import json

    from unslant.debias import ModelAsker, method_named
    from unslant.debias import debias as run
    from unslant.errors import InputError
    from unslant.models.hf.loading import load_model
    from unslant.presentations import parse_labels
    from unslant.prompts import Cloze, Writer, load_template
    from unslant.questions import load_questions

    o.check_writable(out)
    chosen = method_named(method)
    if chosen.held_out and chosen.needs_fit and not train:
        raise InputError(f"{chosen.name} must not be fitted on the questions it answers: give others with --train FILE")
    on_bad = "skip" if skip_bad else "error"
    found = load_questions(questions, fields=o.parse_fields(field), limit=limit, seed=seed, on_bad=on_bad)
    fit_on = load_questions(train, on_bad=on_bad).questions if train else None
    elicitation = Cloze(Writer(load_template(template), chat))
    alphabet = parse_labels(labels)
    loaded = load_model(model, dtype=dtype, device=device, adapter=adapter, trust_remote_code=trust_remote_code)
    with progress(quiet) as watch:
        asker = ModelAsker(loaded, elicitation, alphabet, watch=watch)
        answers = run(chosen, asker, found.questions, fit_on)
    with out.open("w", encoding="utf-8") as file:
        for record in answers.records():
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    if quiet:
        return
    right = [o.choice in q.answers for q, o in zip(answers.questions, answers.outcomes, strict=True) if q.answers]
    told = f"; {sum(right):,} of {len(right):,} right" if right else ""
    tokens = (answers.cost.tokens + answers.fit_cost.tokens) / len(answers.questions)
    typer.echo(
        f"{answers.method}: {len(answers.questions):,} answers in {out}{told}; {answers.forwards_per_question:.2f} "
        f"presentations and {tokens:.0f} tokens a question"
    )
    for note in answers.notes:
        typer.echo(f"note: {note}")
