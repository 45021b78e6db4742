"""``unslant train``: a LoRA-1 adapter that answers alike in every order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unslant.cli import options as o
from unslant.cli.progress import progress


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("train")(train)


def train(
    model: o.Model,
    questions: o.Questions,
    out: Annotated[Path, typer.Option(help="Folder for the adapter, its log and the checkpoint; resumed if there.")],
    held_out: Annotated[
        str | None,
        typer.Option(help="Questions to follow the training with; by default a fifth of QUESTIONS, at most 64."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes.")] = 5,
    questions_per_epoch: Annotated[int, typer.Option(min=1, help="Questions drawn for each.")] = 64,
    questions_per_step: Annotated[int, typer.Option(min=1, help="Questions whose gradients make one step.")] = 1,
    orders: Annotated[int, typer.Option(min=2, help="Most orders a question.")] = 24,
    learning_rate: Annotated[float, typer.Option(help="Of AdamW.")] = 1e-4,
    weight_decay: Annotated[float, typer.Option(help="Of AdamW.")] = 0.001,
    entropy_weight: Annotated[float, typer.Option(help="Lambda: how much confidence is worth.")] = 0.1,
    rank: Annotated[int, typer.Option(min=1, help="Of the adapter.")] = 1,
    alpha: Annotated[float, typer.Option(help="Of the adapter.")] = 16.0,
    dropout: Annotated[float, typer.Option(help="Of the adapter.")] = 0.05,
    targets: Annotated[
        str, typer.Option(help="Modules to adapt, separated by commas; by default the attention projections, found.")
    ] = "",
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
    quiet: o.Quiet = False,
) -> None:
    """Train a rank-1 adapter, without labels, to give an option the same probability wherever it stands (LoRA-1, P1).

    The adapter is an ordinary peft folder: load it with --adapter, or with peft. A run that was cut short goes on.
    """
    from unslant.debias import ModelAsker
    from unslant.debias.lora1 import TrainSettings
    from unslant.debias.lora1.adapter import require_peft
    from unslant.debias.lora1.method import split
    from unslant.errors import InputError
    from unslant.presentations import parse_labels
    from unslant.prompts import Cloze, Writer, load_template
    from unslant.questions import load_questions

    settings = TrainSettings(
        rank=rank, alpha=alpha, dropout=dropout, learning_rate=learning_rate, weight_decay=weight_decay,
        entropy_weight=entropy_weight, epochs=epochs, questions_per_epoch=questions_per_epoch,
        questions_per_step=questions_per_step, orders=orders, targets=targets, seed=seed,
    )  # fmt: skip
    if out.is_file():
        raise InputError.at(out, "is a file; give a folder")
    require_peft()
    on_bad = "skip" if skip_bad else "error"
    found = load_questions(questions, fields=o.parse_fields(field), limit=limit, seed=seed, on_bad=on_bad).questions
    if held_out:
        training, following = list(found), list(load_questions(held_out, on_bad=on_bad).questions)
    else:
        training, following = split(found, seed)
    elicitation = Cloze(Writer(load_template(template), chat))
    alphabet = parse_labels(labels)

    from unslant.debias.lora1.training import train as run
    from unslant.models.hf.loading import load_model

    loaded = load_model(model, dtype=dtype, device=device, trust_remote_code=trust_remote_code)
    with progress(quiet) as watch:
        asker = ModelAsker(loaded, elicitation, alphabet)
        trained = run(asker, training, following, settings, out=out, watch=watch)
    trained.adapted.close()
    if quiet:
        return
    typer.echo(f"epoch   loss     PBM  entropy  accuracy (mean over orders, {len(following)} held-out questions)")
    for entry in trained.log:
        typer.echo(f"{entry.epoch:5d} {entry.loss:6.2f} {entry.pbm:7.4f}  {entry.entropy:7.3f}  {entry.accuracy:8.3f}")
    typer.echo(f"adapter in {out}: use it with --adapter {out}")
