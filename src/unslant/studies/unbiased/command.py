"""``unslant study unbiased`` and ``unbiased-compare``: a score that survives a change of presentation (P4)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unslant.studies import options as o
from unslant.studies.unbiased.settings import UnbiasedSettings


def unbiased(
    model: o.Model = o.DEFAULT_MODEL,
    questions: o.Questions = o.EMBEDDED,
    /,
    *,
    log: o.Logs = (),
    settings: Annotated[UnbiasedSettings, o.SETTINGS] = UnbiasedSettings(),
    models: o.Models = o.ModelOptions(),
    generate: o.Generate = o.GenerateOptions(),
    outputs: o.Outputs = o.OutputOptions(),
    store: o.Stores = o.StoreOptions(),
) -> None:
    """Score a model as published and under randomly composed changes of presentation, and show the drop.

    Interventions: DH distractor hint, DQ distractor question, AR answer removal, OS option shuffling, LR label
    replacement, BT binary transformation; for maths also QJ question jitter and AJ answer jitter. Models that can only
    generate (inspect:...) are asked for replies.

    Examples:
      unslant study unbiased org/name mmlu --limit 500 --responses run.parquet
      unslant study unbiased inspect:openai/gpt-4o-mini gsm8k --maths --limit 100
    """
    from unslant.models.open import BACKENDS, address_of
    from unslant.studies.recording import report_logs, run_study
    from unslant.studies.unbiased.comparison import compare_models
    from unslant.studies.unbiased.result import UnbiasedResult

    if log:
        return report_logs(log, UnbiasedResult, outputs, compare_models)

    from unslant.studies.unbiased.study import unbiased as run

    can = BACKENDS[address_of(model, models).scheme].can
    chosen = replace(settings, generate=settings.generate or "score" not in can)
    run_study(run, model, questions, chosen, models, outputs, store, generate if chosen.generate else None)
    return None


def unbiased_compare(
    *runs: Annotated[Path, Parameter(help="Files that `study unbiased --responses` wrote, one a model.")],
    ranking: Annotated[
        Path | None, Parameter(help="File with columns model and score; shows which of our scores agrees with it.")
    ] = None,
    outputs: o.Reports = o.ReportOptions(),
) -> None:
    """Compare models by their recorded runs: vanilla, ours, drop, and agreement with another ranking.

    Examples:
      unslant study unbiased-compare one.parquet two.parquet three.parquet --ranking leaderboard.csv
    """
    from unslant.studies.outputs import check_outputs, write_outputs
    from unslant.studies.unbiased.comparison import compare_models, load_ranking
    from unslant.studies.unbiased.result import UnbiasedResult

    check_outputs(outputs)
    external = load_ranking(ranking) if ranking else None
    write_outputs(compare_models([UnbiasedResult.from_parquet(path) for path in runs], external), outputs)
