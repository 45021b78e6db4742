"""``unslant lm-eval``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import unslant.experiment as o
from unslant.errors import InputError
from unslant.flags import Flag
from unslant.plugins.lm_eval.tasks import LmEvalSettings
from unslant.reach import Reach


def lm_eval(
    tasks: Annotated[str, Flag(help="Tasks, groups or task files of lm-eval, separated by commas."), Reach.CODE],
    /,
    *,
    model: o.MoreModels = (),
    samples: Annotated[
        Path | None, Flag(help="Write requests and scores of the published order, as lm-eval --log_samples does.")
    ] = None,
    settings: LmEvalSettings = LmEvalSettings(),
    models: o.LocalModels = o.ModelOptions(),
    outputs: o.Outputs = o.OutputOptions(),
    store: o.LocalStores = o.StoreOptions(),
) -> None:
    """Run an lm-eval task in many option orders.

    Prompts, worked examples and tokens of the published order are lm-eval's own, and lm-eval computes its metrics; the
    task's own templates write the other orders. Local models only.

    Examples:
      unslant lm-eval medmcqa --model org/name --html report.html
      unslant lm-eval my_task --include-path tasks/ --model org/name --num-fewshot 5
    """
    from unslant.auditing.comparison import AuditComparison
    from unslant.experiment.outputs import check_file, check_outputs, write_outputs
    from unslant.experiment.running import recording
    from unslant.models.open import open_model, options_of_each
    from unslant.plugins.lm_eval.documents import load
    from unslant.plugins.lm_eval.study import TaskRun, check_local
    from unslant.writing import write_atomically

    check_outputs(outputs)
    check_file(samples)
    if not model:
        raise InputError("name the model to ask: --model=NAME")
    if samples is not None and len(model) > 1:
        raise InputError("--samples is for one model")
    for name in model:
        check_local(name, models)
    loaded = load(tasks, settings)
    from lm_eval.utils import handle_non_serializable

    lines: list[str] = []
    results = []
    with recording(store, outputs.quiet) as record:
        for name, options in zip(model, options_of_each(model, models), strict=True):
            opener = record.loader(partial(open_model, name, options), loaded.questions)
            run = TaskRun(opener, loaded, settings, record.progress)
            results.append(run.result)
            if samples is not None:
                lines += [json.dumps(one, ensure_ascii=False, default=handle_non_serializable) for one in run.samples()]
        if len(results) == 1:
            record.keep(results[0].responses)
        result = results[0] if len(results) == 1 else AuditComparison.of(results)
        record.note_score(result.key_number)
    also = [lambda: write_atomically(samples, "".join(f"{line}\n" for line in lines))] if samples else []
    write_outputs(result, outputs, *also, record.check_kept)
