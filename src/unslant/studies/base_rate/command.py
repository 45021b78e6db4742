"""``unslant study base-rate``: label preferences and their effect on the score (P5)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from unslant.experiment import options as o
from unslant.flags import Flag
from unslant.studies.base_rate.settings import BaseRateSettings


def base_rate(
    model: o.OptionalModel = None,
    questions: o.OptionalQuestions = None,
    /,
    *,
    log: o.Logs = (),
    charts: Annotated[Path | None, Flag(help="Draw figure 1 of P5 to this .pdf, .svg or .png file.")] = None,
    settings: BaseRateSettings = BaseRateSettings(),
    models: o.Models = o.ModelOptions(),
    outputs: o.Outputs = o.OutputOptions(),
    store: o.Stores = o.StoreOptions(),
    shards: o.Shards = o.ShardOptions(),
) -> None:
    """Measure label base rates, by cloze and by counterfactual, and Nvr-X; test hypotheses H1 to H4.

    Without arguments, studies the reference model prefers-a on the embedded questions. With --log FILE, uses recorded
    label log-probabilities (.csv, .parquet, .gz): MODEL selects a recorded model, QUESTIONS provides the texts for the
    shortcut controls, and --field maps the file's columns.

    Examples:
      unslant study base-rate org/name mmlu --html report.html
      unslant study base-rate --log scores.csv.gz
    """
    from functools import partial

    from unslant.experiment.outputs import check_file, check_outputs, write_outputs
    from unslant.experiment.recording import run_study
    from unslant.studies.base_rate.charts import check_format, save_charts
    from unslant.studies.base_rate.study import base_rate as run
    from unslant.studies.base_rate.study import base_rate_recorded, base_rate_responses

    if log:
        o.check_unused(o.WITH_LOG, settings, models, but=("fields", "seed"))
        shards.check_none("--log")
    if charts:
        shards.check_none("--charts")
        check_file(charts)
        check_format(charts)
    also = [partial(save_charts, path=charts)] if charts else []
    if log:
        check_outputs(outputs)
        texts = settings.pool(questions)
        result = base_rate_recorded(log, texts, model=model, fields=settings.fields, seed=settings.seed)
        write_outputs(result, outputs, *(partial(write, result) for write in also))
    else:
        names, part = [model or o.DEFAULT_MODEL], (base_rate_responses, shards)
        run_study(run, names, questions or o.EMBEDDED, settings, models, outputs, store, part=part, also=also)
