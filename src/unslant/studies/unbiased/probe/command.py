"""``unslant study probe``: the bias of benchmarks whose questions a model has rewritten."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from unslant.experiment import options as o
from unslant.flags import Flag
from unslant.reach import Reach
from unslant.studies.unbiased.probe.settings import ProbeSettings


def probe(
    models: Annotated[str, Flag(help="Two models or more, separated by commas; see unslant audit."), Reach.MODEL] = "",
    questions: o.Questions = o.EMBEDDED,
    /,
    *,
    log: o.Logs = (),
    accuracy: Annotated[Path | None, Flag(help="With --log: a file of accuracy by model and subject.")] = None,
    settings: ProbeSettings = ProbeSettings(),
    options: o.Models = o.ModelOptions(),
    generate: o.Generate = o.GenerateOptions(),
    outputs: o.Outputs = o.OutputOptions(),
    store: o.Stores = o.StoreOptions(),
) -> None:
    """Let every model rephrase the questions and judge every version: consensus errors, over- and under-confidence.

    The questions under random interventions are judged too. Scores and replies are stored as they come: the same
    command goes on where it was stopped. --log reads a table of confidences.

    Examples:
      unslant study probe org/one,org/two,inspect:openai/gpt-4o-mini mmlu --limit 200
      unslant study probe --log confidences.csv --accuracy accuracy.csv
    """
    from unslant.errors import InputError
    from unslant.experiment.outputs import check_outputs, write_outputs
    from unslant.experiment.provenance_block import check_same
    from unslant.experiment.recording import recording
    from unslant.models.open import options_of_each
    from unslant.studies.unbiased.probe import study
    from unslant.studies.unbiased.probe.judging import open_participant

    check_outputs(outputs)
    names = [name.strip() for name in models.split(",") if name.strip()]
    if log:
        if names or len(log) > 1:
            raise InputError("give models, or --log with one file")
        o.check_unused(o.WITH_LOG, settings, options, generate, but=("strengths", "seed"))
        return write_outputs(study.probe_recorded(log[0], accuracy, settings), outputs)
    if accuracy is not None:
        raise InputError("--accuracy goes with --log: the models' own accuracy is measured here; leave it out")
    if len(names) < 2:
        raise InputError("the probe needs two models or more, separated by commas (or --log FILE)")
    own = options_of_each(names, options, ("generate",))
    found, writer = settings.load(questions), settings.writer()
    check_same(settings.sampled(found))
    with recording(store, outputs.quiet) as record:
        record.begin(", ".join(names), settings.sampled(found))
        participants = [
            open_participant(*each, writer, generate, record.stored) for each in zip(names, own, strict=True)
        ]
        for participant in participants:
            check_same(model=participant.block)
        result = study.probe(participants, found, settings, progress=record.progress)
        record.note_score(result)
    return write_outputs(result, outputs, record.check_kept)
