"""``unslant study instruction-boundary``: the effect of instructions on generated answers (P3)."""

from __future__ import annotations

from typing import Annotated

from unslant.experiment import options as o
from unslant.flags import Flag
from unslant.reach import Reach
from unslant.studies.instruction_boundary.settings import BoundarySettings


def instruction_boundary(
    model: o.OptionalModel = None,
    questions: Annotated[
        str | None,
        Flag(help="File from 'unslant questions build instruction-boundary', or 'embedded'."),
        Reach.PLACE,
    ] = None,
    /,
    *,
    more: o.MoreModels = (),
    log: o.Logs = (),
    ranking: o.Ranking = None,
    settings: BoundarySettings = BoundarySettings(),
    models: o.Models = o.ModelOptions(),
    generate: o.Length = o.LengthOptions(),
    outputs: o.Outputs = o.OutputOptions(),
    store: o.Stores = o.StoreOptions(),
) -> None:
    """Ask the same questions under complete, excessive and incomplete instructions.

    One, several or no options may be right; a statement may be true, false or unknown. Replies are stored as they come:
    the same command goes on where it was stopped, and with --judge added asks only the judge. Several models, or
    several logs, are set side by side: what each setting does over models, who is robust, if another ranking agrees.

    Examples:
      unslant study instruction-boundary inspect:openai/gpt-4o-mini --limit 60 --html report.html
      unslant study instruction-boundary -m inspect:openai/gpt-4o -m inspect:google/gemini-2.0-flash -m org/name
    """
    from functools import partial

    from unslant.experiment.outputs import check_outputs
    from unslant.experiment.ranking import ranking_of
    from unslant.experiment.recording import Recording, report_logs, run_models
    from unslant.models.open import open_chat, options_of_each
    from unslant.studies.instruction_boundary.comparison import compare_boundaries
    from unslant.studies.instruction_boundary.question_sources import load_boundary
    from unslant.studies.instruction_boundary.result import BoundaryStudy
    from unslant.studies.instruction_boundary.study import instruction_boundary as run

    names, asked = o.models_and_questions(model, questions, more, default="words")
    compare = partial(compare_boundaries, ranking=ranking_of(ranking, len(log or names)))
    if log:
        o.check_no_model(model, questions, more)
        o.check_unused(o.WITH_LOG, settings, models, generate)
        return report_logs(log, BoundaryStudy, outputs, compare)
    check_outputs(outputs)
    own = options_of_each(names, models, ("generate",))
    found = load_boundary(asked, **settings.reading)

    def ask(record: Recording, name: str, how: o.ModelOptions) -> BoundaryStudy:
        return run(
            record.loader(partial(open_chat, name, how)),
            found,
            settings,
            generate=o.GenerateOptions(max_tokens=generate.max_tokens),
            load=lambda other, certain: record.stored(open_chat(other, None, certain)),
            progress=record.progress,
        )

    run_models(names, own, ask, outputs, store, compare)
    return None
