"""``unslant debias``, corrected answers with probabilities, and ``unslant train``, an adapter for them (LoRA-1)."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

import unslant.experiment as o
from unslant.debiasing import method_named
from unslant.errors import InputError, MostlyFailedError
from unslant.flags import Without, check_unused
from unslant.models.options import options_for
from unslant.studies.debias.settings import AdapterSettings, AnswerSettings

if TYPE_CHECKING:
    from unslant.debiasing.base import Answers


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
    """Answer questions with a debiasing method and write probabilities over the options.

    Methods: {METHODS}. Methods that are trained or use right answers (bnp, lora-1) require --train.

    Models that return only text (inspect:...), and others with --elicit generate, answer in replies: none, vote,
    vote-hard and adaptive work on these. The probabilities are then shares of the votes.

    With --log, answers come from the scores or replies in logs of any format that unslant audit reads, without a model:
    none, vote, vote-hard, pride, gray-box, gray-box-calibrated.

    Examples:
      unslant debias org/name questions.jsonl --method pride --out answers.jsonl
      unslant debias --log one_order.eval shuffled_1.eval shuffled_2.eval --out answers.jsonl
    """
    from unslant.experiment.outputs import check_file

    if log:
        from unslant.experiment.running import reading_logs
        from unslant.studies.debias.answers import debias_log

        o.check_no_model(model, questions)
        check_unused(o.WITH_LOG, settings, models, generate, but=("method", "fields", "skip_bad"))
        check_file(out)
        with reading_logs(log, quiet):
            answers = debias_log(log, settings.method, settings.fields, settings.skip_bad)
        _write(answers, out, quiet)
        return
    if model is None or questions is None:
        raise InputError("give MODEL and QUESTIONS, or recorded answers with --log FILE")
    from unslant.experiment.running import recording
    from unslant.models.open import address_of, open_chat, open_model
    from unslant.studies.debias.answers import debias as run
    from unslant.writing import write_all

    check_file(out)
    settings = settings.of_model(model, models)
    in_words = settings.in_words
    o.check_generate(generate, in_words)
    address_of(model, models, method_named(settings.method).asks(in_words))
    question_set = settings.load(questions)
    with recording(store, quiet) as record:
        opener = partial(open_chat, model, models, generate) if in_words else partial(open_model, model, models)
        loader = record.loader(model, opener, settings.sampled(question_set))
        answers = run(loader, question_set, settings=settings, progress=record.progress)
        record.note_score(_score(answers) or f"{len(answers.questions):,} answers")
    for caveat in question_set.report.caveats if not quiet else ():
        print(caveat)
    write_all(record.check_kept, partial(_write, answers, out, quiet))


def _score(answers: "Answers") -> str:
    right = [o.choice in q.answers for q, o in zip(answers.questions, answers.outcomes, strict=True) if q.answers]
    return f"{sum(right):,} of {len(right):,} right" if right else ""


def _write(answers: "Answers", out: Path, quiet: bool) -> None:
    """Write the answers, and say how many are right and what they cost."""
    from unslant.files import dump_json
    from unslant.reports.numbers import count
    from unslant.writing import write_atomically

    write_atomically(out, "".join(dump_json(one, indent=None) for one in answers.records()))
    if answers.mostly_failed:
        some = any(outcome.status == "ok" for outcome in answers.outcomes)
        held = "the answers in {} rest on the others" if some else "{} has a reason for each question, and no answer"
        raise MostlyFailedError(f"{answers.mostly_failed}; {held.format(out)}")
    if quiet:
        return
    spent = answers.cost + answers.fit_cost
    # prompts from the store are presentations like the others, but cost no tokens now
    tokens = 0.0 if spent.reused else spent.tokens / len(answers.questions)
    cost = f"{answers.forwards_per_question:.2f} presentations" + (f" and {tokens:.0f} tokens" if tokens else "")
    given = sum(outcome.status == "ok" for outcome in answers.outcomes)
    asked = f" to {count(len(answers.questions), 'question')}" * (given < len(answers.questions))
    parts = (f"{answers.method}: {count(given, 'answer')}{asked} in {out}", _score(answers), f"{cost} per question")
    print("; ".join(filter(None, parts)), *(f"note: {note}" for note in answers.notes), sep="\n")


def train(
    model: o.LocalModel,
    questions: o.Questions,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for adapter, log and checkpoint; an existing checkpoint is resumed.")],
    settings: AdapterSettings = AdapterSettings(),
    models: Annotated[o.LocalModels, Without("bits", *options_for("score"))] = o.ModelOptions(),
    store: o.LocalStores = o.StoreOptions(),
    quiet: o.Quiet = False,
) -> None:
    """Train an adapter that makes answers independent of option order (LoRA-1).

    It needs no right answers.

    The adapter is a peft folder: load it with --adapter, or with peft. To resume, repeat the command.

    Examples:
      unslant train org/name questions.jsonl --out adapter/
      unslant audit org/name others.jsonl --adapter adapter/
    """
    from unslant.experiment.outputs import check_folder
    from unslant.experiment.running import recording
    from unslant.models.open import address_of, open_model
    from unslant.studies.debias.training import train as run

    check_folder(out)
    address_of(model, models, ("score", "train"))
    question_set = settings.load(questions)
    with recording(store, quiet) as record:
        loader = record.loader(model, partial(open_model, model, models), settings.sampled(question_set))
        log = run(loader, question_set, out, settings, progress=record.progress)
        record.note_score(log.key_number)
    if not quiet:
        print(*question_set.report.caveats, log.summary(), f"adapter in {out}: use it with --adapter {out}", sep="\n")
    record.check_kept()
