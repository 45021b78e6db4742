"""``unslant train``: a LoRA-1 adapter that makes answers independent of the order."""

from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unslant.experiment import options as o
from unslant.studies.debias.adapter import AdapterSettings


def train(
    model: o.Model,
    questions: o.Questions,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for adapter, log and checkpoint; an existing checkpoint is resumed.")],
    settings: AdapterSettings = AdapterSettings(),
    models: o.Models = o.ModelOptions(),
    store: o.Stores = o.StoreOptions(),
    quiet: o.Quiet = False,
) -> None:
    """Train a rank-1 adapter, without right answers, that makes probabilities independent of the order (LoRA-1, P1).

    The adapter is a peft folder: load it with --adapter, or with peft. To resume, repeat the command.

    Examples:
      unslant train org/name questions.jsonl --out adapter/
      unslant audit org/name others.jsonl --adapter adapter/
    """
    from unslant.experiment.outputs import check_folder
    from unslant.experiment.recording import recording
    from unslant.models.open import address_of, open_model
    from unslant.studies.debias.adapter import train as run

    check_folder(out)
    o.check_unused("only a local model can be trained", store, only=("offline",))
    address_of(model, models, ("score", "train"))
    found = settings.load(questions)
    with recording(store, quiet) as record:
        opener = record.loader(partial(open_model, model, models), settings.sampled(found))
        log = run(opener, found, out, settings, progress=record.progress)
        record.note_score(log)
    if not quiet:
        print(*found.report.caveats, log.summary(), sep="\n")
        print(f"adapter in {out}: use it with --adapter {out}")
    record.check_kept()
