"""``unslant study debias``: comparison of debiasing methods."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from unslant.experiment import options as o
from unslant.flags import Flag
from unslant.reach import Reach
from unslant.studies.debias.settings import DebiasSettings


def debias(
    models: Annotated[str, Flag(help="Model, or several separated by commas."), Reach.MODEL] = o.DEFAULT_MODEL,
    questions: Annotated[
        str, Flag(help="Question file, recipe or 'embedded', or several separated by commas."), Reach.PLACE
    ] = o.EMBEDDED,
    /,
    *,
    settings: DebiasSettings = DebiasSettings(),
    options: o.Models = o.ModelOptions(),
    outputs: o.Reports = o.ReportOptions(),
    store: o.Stores = o.StoreOptions(),
) -> None:
    """Compare debiasing methods by bias, accuracy, cost and transfer to other questions.

    Scores are stored as they come, each method's apart, so that its cost is its own: the same command goes on where it
    was stopped.

    Examples:
      unslant study debias org/name questions.jsonl --train other.jsonl --json numbers.json
      unslant study debias prefers-a,fair embedded --methods vote,pride,lora-1
    """
    from unslant.debiasing import method_named
    from unslant.experiment.outputs import check_outputs, write_outputs
    from unslant.experiment.recording import recording
    from unslant.models.open import address_of, open_model
    from unslant.studies.debias.study import debias_study

    check_outputs(outputs)
    names = [name.strip() for name in models.split(",")]
    # where some methods can do without the model's inside, the others become notes
    inside = all(method_named(text).needs_model for text in settings.methods if text != "none")
    for name in names:
        address_of(name, options, ("score", "attend") if inside else ("score",))
    sets = [settings.load(name.strip()) for name in questions.split(",")]
    training = [settings.load(str(name)) for name in settings.train]
    with recording(store, outputs.quiet) as record:
        asked = [settings.sampled(found) for found in sets]
        opened = [record.loader(partial(open_model, name, options), *asked, run_of=", ".join(names)) for name in names]
        result = debias_study(opened, sets, replace(settings, train=training), progress=record.progress)
        record.note_score(result)
    write_outputs(result, outputs, record.check_kept)
