"""``unslant debias``: corrected answers with probabilities."""

from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unslant.studies import options as o
from unslant.studies.debias.settings import AnswerSettings


def debias(
    model: o.Model,
    questions: o.Questions,
    /,
    *,
    out: Annotated[Path, Parameter(help="JSONL file to write: one line per question.")],
    settings: Annotated[AnswerSettings, o.SETTINGS] = AnswerSettings(),
    models: o.Models = o.ModelOptions(),
    quiet: o.Quiet = False,
) -> None:
    """Answer every question with a debiasing method and write probabilities over the options.

    Methods: none, vote, vote-hard, adaptive, adaptive-fast, pride, gray-box, gray-box-calibrated, bnp, aoi, set-based,
    set-based-text, lora-1. Methods that are trained or use right answers (bnp, lora-1) require --train.

    Examples:
      unslant debias org/name questions.jsonl --out answers.jsonl
      unslant debias org/name questions.jsonl --method pride --out answers.jsonl
    """
    from unslant.debias import method_named
    from unslant.files import dump_json, write_atomically
    from unslant.models.open import address_of, open_model
    from unslant.studies.debias.answers import debias as run
    from unslant.studies.outputs import check_file
    from unslant.studies.progress import show_progress
    from unslant.studies.provenance_block import same_as_before

    check_file(out)
    needs = ("score", "attend") if method_named(settings.method).needs_model else ("score",)
    address_of(model, models, needs)
    found = settings.load(questions)
    with show_progress(quiet) as progress:
        opener = same_as_before(partial(open_model, model, models), settings.sampled(found))
        answers = run(opener, found, settings, progress=progress)
    write_atomically(out, "".join(dump_json(record, indent=None) for record in answers.records()))
    if quiet:
        return
    right = [o.choice in q.answers for q, o in zip(answers.questions, answers.outcomes, strict=True) if q.answers]
    score = f"; {sum(right):,} of {len(right):,} right" if right else ""
    tokens = (answers.cost.tokens + answers.fit_cost.tokens) / len(answers.questions)
    print(
        f"{answers.method}: {len(answers.questions):,} answers in {out}{score}; {answers.forwards_per_question:.2f} "
        f"presentations and {tokens:.0f} tokens per question"
    )
    for note in answers.notes:
        print(f"note: {note}")
