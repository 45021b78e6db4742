"""``unslant study unbiased`` and ``unbiased-compare``: a score that survives a change of presentation (P4)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from unslant.experiment import options as o
from unslant.flags import Flag
from unslant.studies.unbiased.settings import UnbiasedSettings


def unbiased(
    model: o.OptionalModel = None,
    questions: o.OptionalQuestions = None,
    /,
    *,
    more: o.MoreModels = (),
    log: o.Logs = (),
    ranking: o.Ranking = None,
    settings: UnbiasedSettings = UnbiasedSettings(),
    models: o.Models = o.ModelOptions(),
    generate: o.Generate = o.GenerateOptions(),
    outputs: o.Outputs = o.OutputOptions(),
    store: o.Stores = o.StoreOptions(),
    shards: o.Shards = o.ShardOptions(),
) -> None:
    """Score a model as published and under randomly composed changes of presentation, and show the drop.

    Interventions: DH distractor hint, DQ distractor question, AR answer removal, OS option shuffling, LR label
    replacement, BT binary transformation; for maths also QJ question jitter and AJ answer jitter. Models that can only
    generate (inspect:...) are asked for replies. Several models, or several logs, are set side by side.

    Examples:
      unslant study unbiased org/name mmlu --limit 500 --responses run.parquet
      unslant study unbiased -m org/one -m inspect:openai/gpt-4o-mini gsm8k --maths --ranking leaderboard.csv
    """
    from functools import partial

    from unslant.experiment.ranking import ranking_of
    from unslant.experiment.recording import report_logs, run_study
    from unslant.models.open import BACKENDS, address_of, options_of_each
    from unslant.studies.unbiased.comparison import compare_models
    from unslant.studies.unbiased.result import UnbiasedResult

    names, asked = o.models_and_questions(model, questions, more)
    compare = partial(compare_models, external=ranking_of(ranking, len(log or names)))
    if log:
        o.check_no_model(model, questions, more)
        o.check_unused(o.WITH_LOG, settings, models, generate)
        shards.check_none("--log")
        return report_logs(log, UnbiasedResult, outputs, compare)

    from unslant.studies.unbiased.study import unbiased as run
    from unslant.studies.unbiased.study import unbiased_responses

    schemes = [address_of(*one).scheme for one in zip(names, options_of_each(names, models), strict=True)]
    words = settings.generate or any("score" not in BACKENDS[scheme].can for scheme in schemes)
    o.check_generate(generate, words, "--generate")
    # where one of several must be asked in a chat, all are
    chosen = replace(settings, generate=words, chat=settings.chat or (words and any(schemes)))
    replies, part = generate if words else None, (unbiased_responses, shards)
    run_study(run, names, asked, chosen, models, outputs, store, replies, compare, part=part)
    return None


def unbiased_compare(
    *runs: Annotated[Path, Flag(help="Files that `study unbiased --responses` wrote, one a model.")],
    ranking: o.Ranking = None,
    outputs: o.Reports = o.ReportOptions(),
) -> None:
    """Compare recorded runs: as published, under interventions, drop, and agreement with another ranking.

    Examples:
      unslant study unbiased-compare one.parquet two.parquet three.parquet --ranking leaderboard.csv
    """
    from unslant.experiment.outputs import check_outputs, write_outputs
    from unslant.experiment.ranking import load_ranking
    from unslant.studies.unbiased.comparison import compare_models
    from unslant.studies.unbiased.result import UnbiasedResult

    check_outputs(outputs)
    external = load_ranking(ranking) if ranking else None
    write_outputs(compare_models([UnbiasedResult.from_parquet(path) for path in runs], external), outputs)
