"""The contamination check (P4, sec. 6.2): a score of ability must not rise because the published file was learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unslant.errors import InputError
from unslant.experiment.comparison import ComparedResult, check_comparable
from unslant.experiment.job import Given, Job, provenance
from unslant.experiment.outputs import check_folder
from unslant.experiment.page_parts import settings_rows, spent
from unslant.experiment.study import Keywords, Study, function
from unslant.files import dump_json
from unslant.flags import check_unused, part_of
from unslant.metrics import METRICS, Estimate, verdict
from unslant.metrics.registry import metric
from unslant.models.open import address_of
from unslant.presentations.interventions import VANILLA
from unslant.reach import Reach
from unslant.reports import Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, magnitude, percent, unsettled, with_interval
from unslant.studies.unbiased.contamination.finetuning import FineTuned, Training, fine_tune
from unslant.studies.unbiased.metrics import AS_PUBLISHED, UnbiasedResult
from unslant.studies.unbiased.panels import SAME, confusion, notes, replies_of, unread
from unslant.studies.unbiased.study import ComposeSettings, Unbiased, UnbiasedSettings, plan
from unslant.writing import write_atomically, write_folder

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel
    from unslant.responses.provenance import Provenance


@dataclass(frozen=True, kw_only=True)
class ContaminationSettings(Training, ComposeSettings):
    """How the questions are learned and asked."""

    against: Annotated[str | None, Reach.MODEL] = None
    """Compare with this model, suspected of having seen the questions, instead of fine-tuning MODEL."""
    save_model: Path | None = None
    """Folder for the fine-tuned model."""


@dataclass(frozen=True)
class ContaminationResult(ComparedResult):
    """The clean model and the suspected one on the same questions.

    Attributes:
        before, after: the clean and the suspected model.
        vanilla_gain, ours_gain: as published and under interventions, after minus before, paired by question.
        excess: what the published form gained beyond what survives interventions.
        trained: what fine-tuning did: epochs run, share answered right during the last, questions; None without any.
        training: its settings; None without any.
    """

    study = "contamination"

    before: UnbiasedResult
    after: UnbiasedResult
    vanilla_gain: Estimate
    ours_gain: Estimate
    excess: Estimate
    trained: FineTuned | None = None
    training: Training | None = None

    @property
    def named_parts(self) -> Sequence[tuple[str, UnbiasedResult]]:
        return ("before", self.before), ("after", self.after)

    def described(self) -> Page:
        """Before and after, as published and under interventions."""
        before, after, done = self.before, self.after, self.trained
        gains = {key: vars(self)[key] for key in ("vanilla_gain", "ours_gain", "excess")}
        results = {f"before: {before.model}": before, f"after: {after.model}": after}
        trained = done and (
            f"Fine-tuned on {count(done.questions, 'question')} as published for {count(done.epochs, 'epoch')}; "
            f"{percent(done.share_right, 1)} of them were answered right in the last one."
        )
        return Page(
            about=f"{before.model} and {after.model} on {before.run.question_set}: "
            f"{count(len(before.outcomes.ids), 'question')}",
            headline=_headline(self),
            lines=(_gains(self), *unread(before, after)[:1], spent(before.run, after.run)),
            tiles=Tile.row(*gains.items()),
            panels=(
                Panel(
                    "contamination",
                    "Did the score rise because the file was seen?",
                    "Ability shows under any presentation; a file that was learned shows in its published form alone.",
                    figures=(_accuracy(results), _gain(gains)),
                    notes=(trained,) if trained else (),
                    short="Gain",
                ),
                confusion(results).panel(
                    "Which answers survive?",
                    "Question by question, before and after.",
                    id="contamination-answers",
                    short="Answers",
                ),
            ),
            notes=tuple(f"{run.model}: {note}" for run in (before, after) for note in notes(run)),
            settings=settings_rows(replace(before.run, model="", models=(before.model, after.model))),
            name=f"{before.model}, {after.model}",
            compared=tuple(results),
        )


class Contamination(Study[ContaminationSettings]):
    """Train a model on the published questions, to see whether its gain survives changes.

    With --against, nothing is trained: MODEL, the clean one, is compared with a model suspected of having seen the
    questions. With --log BEFORE AFTER, two recorded runs of `study unbiased` are compared. Scores are stored one by
    one; a resumed run repeats the fine-tuning.

    Examples:
      unslant study contamination org/name questions.jsonl --epochs 10 --save-model tuned/
      unslant study contamination org/clean mmlu --against org/suspect --limit 500
    """

    name = "contamination"
    settings = ContaminationSettings
    result = ContaminationResult
    model = "fair"

    def check(self, given: Given[ContaminationSettings]) -> None:
        settings = given.settings
        if given.log and len(given.log) != 2:
            raise InputError(f"--log: give two files, of the clean and of the suspected model, not {len(given.log)}")
        if settings.against is not None:
            trained = {"save_model", *(f.name for f in fields(Training) if f.name != "seed")}
            check_unused("with --against nothing is trained", settings, only=trained)
            address_of(settings.against, given.options[0], self.needs(settings))
        check_folder(settings.save_model)

    def needs(self, settings: ContaminationSettings) -> tuple[str, ...]:
        return ("score", "train") if settings.against is None else ("score",)

    def measure(self, job: Job[ContaminationSettings]) -> ContaminationResult:
        given, settings, study = job.given, job.given.settings, Unbiased()
        # Options and second stems are borrowed from all questions, as by `study unbiased` with the same --limit.
        whole, options = job.questions, replace(part_of(settings, UnbiasedSettings), no_alone=True)
        sample = settings.sampled(whole)
        needs = self.needs(settings)
        if settings.against is not None:
            both = f"{given.models[0]}, {settings.against}"
            before = study.of_model(job.open(0, needs, sample, run_of=both), whole, options, job.record)
            suspect = job.open_named(settings.against, needs, given.options[0], sample, run_of=both)
            return compare(before, study.of_model(suspect, whole, options, job.record))
        items, _ = plan(sample, replace(options, runs=1, shots=0))
        published = [presentation for _, presentation in items if presentation.kind == VANILLA]
        model, training = job.open(0, needs, sample), part_of(settings, Training)
        before = study.of_model(model, whole, options, job.record)
        trained = fine_tune(model.unwrapped, published, settings.writer(), training, job.progress)
        after = study.of_model(model, whole, options, job.record).renamed(f"{before.model} + test set")
        if settings.save_model is not None:
            origin = after.provenance.model_copy(update={"settings": provenance((), (), settings).settings})
            job.saves.append(partial(_save, model.unwrapped, origin, settings.save_model))
        return compare(before, after, trained=trained, training=training)

    def read(self, given: Given[ContaminationSettings]) -> ContaminationResult:
        return compare(*map(UnbiasedResult.from_parquet, given.log))


@dataclass(frozen=True, kw_only=True)
class ContaminationKeywords(Keywords, ContaminationSettings):
    """Keywords of :func:`contamination`.

    Examples:
        >>> result = unslant.study.contamination("fair", "embedded", against="memorised", limit=20)
        >>> result.vanilla_gain.value > result.ours_gain.value
        True
    """


contamination = function(Contamination(), ContaminationKeywords, ContaminationResult)


def _save(model: TransformersModel, origin: Provenance, folder: Path) -> None:
    def files(scratch: Path) -> None:
        model.model.save_pretrained(scratch)
        model.tokenizer.save_pretrained(scratch)
        write_atomically(scratch / "provenance.json", dump_json(origin.model_dump()))

    write_folder(folder, files)


@metric("vanilla_gain", "gain as published", "after minus before, same questions", unit="difference")
@metric("ours_gain", "gain under interventions", "after minus before, same questions", unit="difference")
@metric("excess", "excess", "gain as published beyond the gain under interventions", unit="difference",
        source="P4 sec. 6.2")  # fmt: skip
def compare(
    before: UnbiasedResult, after: UnbiasedResult, *, trained: FineTuned | None = None, training: Training | None = None
) -> ContaminationResult:
    """Set the results of any two models on the same questions side by side.

    Raises:
        InputError: if the two were not asked the same questions under the same settings.
    """
    check_comparable([before, after])
    clean, suspect = before.outcomes, after.outcomes
    if clean.ids != suspect.ids:
        raise InputError(f"{before.model} and {after.model} cannot be compared: they answered different questions")
    bootstrap = clean.bootstrap.knowing(clean.unsure | suspect.unsure)
    # excess = (vanilla after - before) - (ours after - before). P4 (sec. 6.2) looks at the gain under interventions
    # alone, but training can teach the facts too.
    vanilla = suspect.credit(AS_PUBLISHED) - clean.credit(AS_PUBLISHED)
    ours = suspect.ours() - clean.ours()
    return ContaminationResult(
        before,
        after,
        vanilla_gain=bootstrap.mean(vanilla, share=False),
        ours_gain=bootstrap.mean(ours, share=False, room="bounds, unsure"),
        excess=bootstrap.mean(vanilla - ours, bounds=(-2.0, 2.0), room="bounds, unsure"),
        trained=trained,
        training=training,
    )


def _accuracy(results: Mapping[str, UnbiasedResult]) -> Figure:
    plot = Plot(
        partial(charts.intervals, step=44, expected="chance"),
        "With 95 % intervals; ticks: chance.",
        ["vanilla", "ours"],
        title="Accuracy before and after",
        name=["run"],
        expected=lambda row, key: row[f"{key}_chance"],
        across=True,
        rows="presentation",
    )
    rows = [
        {"model": one.model, "run": run, **vars(one.metrics), "unreadable": one.metrics.replies["ours"]["unreadable"]}
        for run, one in results.items()
    ]
    columns = ["vanilla", "ours", "drop", *replies_of([*results.values()])]
    return Figure("contamination-scores", "Accuracy", ["model"], columns, rows, [plot])


def _gain(gains: Mapping[str, Estimate]) -> Figure:
    plot = Plot(
        partial(charts.intervals, axis="difference in accuracy"),
        "After minus before, paired by question, with 95 % intervals. Excess: what the published form gained beyond "
        "what survives.",
        ["gain"],
        out=lambda row: bool(row["metric.key"] == "excess"),
        rows="gain",
    )
    return Figure.of_metrics("contamination-gains", "Gain", {"gain": gains}, [plot])


def _headline(result: ContaminationResult) -> str:
    """Whether the published form gained something that does not survive."""
    if not result.excess.defined:
        return "Nothing could be measured"
    outcome, more = verdict(result.excess, bound=SAME), magnitude(result.excess)
    base, who = result.before.run.name, result.after.run.name
    if outcome.kind == "above":
        return (
            f"Compared with {base}, {who} does {more} better on published than on altered questions, as expected "
            "after training"
        )
    if outcome.kind == "below":
        return f"Compared with {base}, {who} does {more} worse on published than on altered questions"
    if outcome.kind == "equal":
        return f"{who} differs from {base} equally on published and altered questions, to within {SAME}"
    return f"Whether {who} has seen the questions cannot be determined {unsettled(outcome)}"


def _gains(result: ContaminationResult) -> str:
    """From which model to which, and by how much both scores change."""
    how = METRICS["vanilla_gain"]
    vanilla, ours = (with_interval(gain, how) for gain in (result.vanilla_gain, result.ours_gain))
    who = f"From {result.before.model} to {result.after.model}"
    return f"{who} the score changes by {vanilla} as published and by {ours} under interventions."
