"""``unslant debias``: corrected answers with probabilities."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from unslant.errors import MostlyFailedError
from unslant.experiment import options as o
from unslant.studies.debias.settings import AnswerSettings

if TYPE_CHECKING:
    from unslant.debiasing import Answers


def debias(
    model: o.OptionalModel = None,
    questions: o.OptionalQuestions = None,
    /,
    *,
    log: o.Logs = (),
    out: Annotated[Path, Parameter(help="JSONL file to write: one line per question.")],
    settings: AnswerSettings = AnswerSettings(),
    models: o.Models = o.ModelOptions(),
    generate: o.Generate = o.GenerateOptions(),
    store: o.Stores = o.StoreOptions(),
    quiet: o.Quiet = False,
) -> None:
    """Answer every question with a debiasing method and write probabilities over the options.

    Methods: none, vote, vote-hard, adaptive, adaptive-fast, pride, gray-box, gray-box-calibrated, bnp, aoi, set-based,
    set-based-text, lora-1. Methods that are trained or use right answers (bnp, lora-1) require --train.

    Models that give only text (inspect:...), and any other with --elicit generate, are asked for replies: none, vote,
    vote-hard and adaptive work on these. The probabilities are then shares of the votes.

    With --log, answers come from the scores or replies in logs of any format that unslant audit reads, without a model:
    none, vote, vote-hard, pride, gray-box, gray-box-calibrated.

    Examples:
      unslant debias org/name questions.jsonl --method pride --out answers.jsonl
      unslant debias --log one_order.eval shuffled_1.eval shuffled_2.eval --out answers.jsonl
    """
    from unslant.errors import InputError
    from unslant.experiment.outputs import check_file

    if log:
        from unslant.studies.debias.recorded import debias_log

        o.check_no_model(model, questions)
        o.check_unused(o.WITH_LOG, settings, models, generate, but=("method", "fields"))
        check_file(out)
        _write(debias_log(log, settings.method, settings.fields), out, quiet)
        return
    if model is None or questions is None:
        raise InputError("give MODEL and QUESTIONS, or recorded answers with --log FILE")
    from unslant.debiasing import method_named
    from unslant.debiasing.base import check_asker
    from unslant.experiment.recording import recording
    from unslant.models.open import address_of, gives_replies, open_chat, open_model
    from unslant.studies.debias.answers import debias as run
    from unslant.writing import write_all

    check_file(out)
    chosen = method_named(settings.method)
    in_words = gives_replies(model, models) if settings.elicit == "auto" else settings.elicit == "generate"
    check_asker(chosen, in_words)
    o.check_generate(generate, in_words)
    settings = settings.resolved(in_words)
    needs = ("generate",) if in_words else ("score", "attend") if chosen.needs_model else ("score",)
    address_of(model, models, needs)
    found = settings.load(questions)
    with recording(store, quiet) as record:
        opener = partial(open_chat, model, models, generate) if in_words else partial(open_model, model, models)
        asked = settings.sampled(found)
        answers = run(record.loader(opener, asked), found, settings, progress=record.progress)
        record.note_score(_score(answers) or f"{len(answers.questions):,} answers")
    if not quiet:
        print(*found.report.caveats, sep="\n", end="\n" * bool(found.report.caveats))
    write_all(record.check_kept, partial(_write, answers, out, quiet))


def _score(answers: "Answers") -> str:
    right = [o.choice in q.answers for q, o in zip(answers.questions, answers.outcomes, strict=True) if q.answers]
    return f"{sum(right):,} of {len(right):,} right" if right else ""


def _write(answers: "Answers", out: Path, quiet: bool) -> None:
    """Write the answers, and say how many are right and what they cost."""
    from unslant.files import dump_json, write_atomically

    write_atomically(out, "".join(dump_json(one, indent=None) for one in answers.records()))
    if answers.mostly_failed:
        raise MostlyFailedError(f"{answers.mostly_failed}; the answers in {out} rest on the others")
    if quiet:
        return
    parts = [f"{answers.method}: {len(answers.questions):,} answers in {out}", _score(answers)]
    tokens = (answers.cost.tokens + answers.fit_cost.tokens) / len(answers.questions)
    cost = f" and {tokens:.0f} tokens" if tokens else ""
    print("; ".join(filter(None, parts)), f"{answers.forwards_per_question:.2f} presentations{cost} per question",
          sep="; ")  # fmt: skip
    for note in answers.notes:
        print(f"note: {note}")
