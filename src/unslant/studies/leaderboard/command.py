"""``unslant leaderboard``."""

from __future__ import annotations

from typing import Annotated

from unslant.auditing.settings import AuditSettings
from unslant.experiment import options as o
from unslant.flags import Heading
from unslant.studies.leaderboard.settings import LeaderboardOutputs, Sets


def leaderboard(
    *,
    more: o.MoreModels = (),
    questions: Sets = (),
    log: o.Logs = (),
    settings: AuditSettings = AuditSettings(),
    models: o.Models = o.ModelOptions(),
    generate: o.Generate = o.GenerateOptions(),
    outputs: Annotated[LeaderboardOutputs, Heading("Output", 4)] = LeaderboardOutputs(),
    store: o.Stores = o.StoreOptions(),
) -> None:
    """Rank several models on several question sets by their mean score over option orders.

    Audits every model on every set, one model at a time: ranks with intervals beside the published ones, which
    neighbours can be told apart, PBM against accuracy, and the tokens and time of each way of computing it.

    With --log, ranks recorded audits: tables of `audit --responses`, one a model and set, or logs of other harnesses,
    where all logs of one model are one set.

    Examples:
      unslant leaderboard -m org/one -m org/two -q arc.jsonl -q mmlu.jsonl --html board.html
      unslant leaderboard --log one-arc.parquet two-arc.parquet
    """
    from functools import partial

    from unslant.errors import InputError
    from unslant.experiment.outputs import check_outputs, write_outputs
    from unslant.experiment.recording import recording
    from unslant.models.open import address_of, check_opens, open_chat, open_model, options_of_each
    from unslant.questions import QuestionSet
    from unslant.studies.leaderboard.result import Leaderboard
    from unslant.studies.leaderboard.study import check_names, check_settings, in_words
    from unslant.studies.leaderboard.study import leaderboard as run

    check_outputs(outputs)
    if log:
        if more or questions:
            raise InputError("--log reads recorded audits: leave out --model and --questions")
        o.check_unused(o.WITH_LOG, settings, models, generate, but=("fields",))
        from unslant.auditing.logs import recorded_audits

        return write_outputs(Leaderboard.of(recorded_audits(log, settings.fields)), outputs)
    if not more:
        raise InputError("no models: give one or more, as in: unslant leaderboard -m org/one -m org/two -q FILE")
    asked = [
        (name, own, in_words(name, settings, own))
        for name, own in zip(more, options_of_each(more, models), strict=True)
    ]
    for name, own, words in asked:
        address_of(name, own, ("generate",) if words else ("score",))
    check_names([address_of(name, own).model for name, own, _ in asked])
    ways = {words for *_, words in asked}
    o.check_generate(generate, True in ways)
    loaded = settings.load_each(questions or o.EMBEDDED)
    for words in ways:
        check_settings(loaded, settings.resolved(words), words)
    for name, own, words in asked:
        if not store.offline:
            check_opens(name, own, ("generate",) if words else ("score",))
    every = QuestionSet.of([q for found in loaded for q in found], ", ".join(found.name for found in loaded))
    with recording(store, outputs.quiet) as record:
        record.begin(", ".join(more), every)
        openers = [
            record.loader(
                partial(open_chat, name, own, generate) if words else partial(open_model, name, own),
                *loaded,
                run_of=", ".join(name for name, *_ in asked),
            )
            for name, own, words in asked
        ]
        result = run(openers, loaded, settings, progress=record.progress)
    write_outputs(result, outputs, record.check_kept)
    return None
