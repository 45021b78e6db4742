"""What all studies share: options, running, outputs, provenance, results, comparison.

This file holds shared options, each defined once with default and help: flags of the commands and keywords of the
functions.

The settings of a study are a dataclass that inherits its shared options from here. ``with_options`` makes one from
keywords; :mod:`unslant.cli.commands` makes one from flags, by the annotations and the docstrings below the fields.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from unslant.errors import InputError
from unslant.flags import CheckedOptions, Flag, Heading, Without, check_unused, pairs
from unslant.models import GenerateOptions as GenerateOptions
from unslant.models import ModelOptions as ModelOptions
from unslant.models.open import gives_replies
from unslant.models.options import options_for
from unslant.reach import Reach, url_without_secrets

if TYPE_CHECKING:
    from unslant.presentations import Chooser
    from unslant.prompts import Writer
    from unslant.questions import Question, QuestionSet

SERVED_ONLY = {f.name for f in dataclasses.fields(ModelOptions)} - options_for("")
DEFAULT_MODEL = "prefers-a"
EMBEDDED, SKEWED = "embedded", "embedded-skewed"


if TYPE_CHECKING:
    Pairs = Mapping[str, str]
    Numbers = Mapping[str, float]
    Names = Sequence[str]
    Temperatures = Sequence[float]
    Pool = str | Path | QuestionSet[Any]
    Pools = Sequence[Pool]
    Labels = str | Sequence[str]
    Template = str | Path
else:  # as flags
    Pairs = Annotated[tuple[str, ...], Flag(metavar="NAME=VALUE")]
    Numbers = Annotated[tuple[str, ...], Flag(metavar="NAME=NUMBER")]
    Names = Annotated[tuple[str, ...], Flag(commas=True, metavar="NAME,...")]
    Temperatures = Annotated[tuple[float, ...], Flag(commas=True, metavar="NUMBER,...")]
    Pool = Annotated[str, Reach.PLACE]
    Pools = Annotated[Names, Reach.PLACE]
    Labels = Template = str


@dataclass(frozen=True, kw_only=True)
class Options(CheckedOptions):
    """Settings of a study."""

    @property
    def in_words(self) -> bool:
        """Whether replies are read; labels are scored otherwise."""
        return False

    @property
    def scored_to_end(self) -> bool:
        """Whether the score of a label includes its end."""
        return False

    def recorded(self, *left_out: str) -> dict[str, Any]:
        """The settings for JSON, without those that only select questions."""
        hidden = {*(f.name for f in dataclasses.fields(LoadOptions)), "shots_from", *left_out} - {"seed"}
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in hidden}
        return {name: url_without_secrets(value) if isinstance(value, str) else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class FieldOptions(Options):
    """Which column holds which field, and how answers are written."""

    fields: Annotated[Pairs, Flag(metavar="FIELD=COLUMN")] = ()  # type: ignore[assignment]
    """Read FIELD from COLUMN, as in question=prompt; repeatable."""
    answer_base: int | None = None
    """Index of the first option, 0 or 1; by default 0, or 1 if 20 answers or more fit only that."""
    answer_kind: str = "auto"
    """How answers are written: index, letter, label, text (the option's), marked ("B) text"), or auto."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "fields", pairs("--fields", self.fields))

    @property
    def reading(self) -> dict[str, Any]:
        """These options as keywords of :func:`unslant.load_questions`."""
        return {"fields": dict(self.fields), "answer_base": self.answer_base, "answer_kind": self.answer_kind}


def sources_in(value: Any) -> list[Any]:
    """The sources of question sets in a list of several; a table, or a list of questions or dicts, is one source."""
    from unslant.questions import Question

    several = isinstance(value, list | tuple) and not any(isinstance(item, Mapping | Question) for item in value)
    return list(value) if several else [value]


@dataclass(frozen=True, kw_only=True)
class LoadOptions(FieldOptions):
    """Which questions are read, and how."""

    LEAST: ClassVar = {"limit": 1, "seed": 0}

    skip_bad: bool = False
    """Skip and count bad lines instead of stopping."""
    limit: int | None = None
    """Sample at most N questions."""
    seed: int = 0
    """Random seed."""

    def load(self, source: Any, maths: bool = False) -> "QuestionSet[Any]":
        """All questions of a source for :func:`unslant.load_questions`, multiple-choice or (``maths``) open maths.

        Raises:
            InputError: naming file, line and field that cannot be read.
        """
        from unslant.questions import MathQuestion, QuestionSet, load_questions

        first = next(iter(source), None) if isinstance(source, Sequence | QuestionSet) else None
        maths = maths or isinstance(first, MathQuestion)
        if not maths:
            return load_questions(source, skip_bad=self.skip_bad, **self.reading)
        if self.answer_base is not None or self.answer_kind != "auto":
            raise InputError("--answer-base and --answer-kind are for options; the answers of open maths are numbers")
        from unslant.questions import load_math

        return load_math(source, skip_bad=self.skip_bad, fields=dict(self.fields))

    def load_each(self, sources: Any) -> "list[QuestionSet[Any]]":
        """Samples of one or several sets of different names, from sources for :func:`unslant.load_questions`.

        Raises:
            InputError: if there is none, one cannot be read, or two have the same name.
        """
        sets = [self.sampled(self.load(source)) for source in sources_in(sources)]
        if not sets:
            raise InputError("no question sets: give one or more")
        if len({question_set.name for question_set in sets}) < len(sets):
            raise InputError("two question sets have the same name; give each set once")
        return sets

    def pool(self, source: Any, maths: bool = False) -> "QuestionSet[Any] | None":
        """Further questions, from a source with our field names; None for None."""
        return None if source is None else replace(self, fields={}).load(source, maths)

    def sampled(self, questions: "QuestionSet[Any]") -> "QuestionSet[Any]":
        from unslant.questions.loaders import sample

        return replace(questions, questions=sample(questions.questions, self.limit, self.seed))


@dataclass(frozen=True, kw_only=True)
class TemplateOptions(LoadOptions):
    """How questions are worded."""

    template: Annotated[Template, Reach.PLACE] = "plain"
    """Prompt template: a name or the path of a .toml file."""


@dataclass(frozen=True, kw_only=True)
class PromptOptions(TemplateOptions):
    """How prompts are written."""

    chat: bool = False
    """Use the model's chat template."""

    def writer(self) -> "Writer":
        """The prompt writer; InputError if the template is invalid."""
        from unslant.prompts import Writer, load_template

        return Writer(load_template(self.template), self.chat, self.scored_to_end)


@dataclass(frozen=True, kw_only=True)
class ElicitOptions(PromptOptions):
    """Whether labels are scored or replies are read."""

    template: Annotated[Template, Reach.PLACE] = ""
    """Prompt template: a name or the path of a .toml file. By default plain; for replies label-alone or reasoning."""
    elicit: Literal["auto", "labels", "generate"] = "auto"
    """What to read: labels (their log-probabilities) or generate (replies in words); auto: labels if possible."""
    reasoning: bool = False
    """Let the model reason before it answers (replies only)."""

    @property
    def in_words(self) -> bool:
        """See :attr:`Options.in_words`; after :meth:`resolved`."""
        return self.elicit == "generate"

    def of_model(self, model: Any, options: ModelOptions | None = None) -> Self:
        """The settings in which a model is asked; ``auto`` reads the replies of one that gives nothing else."""
        return self.resolved(gives_replies(model, options) if self.elicit == "auto" else self.elicit == "generate")

    def resolved(self, generate: bool) -> Self:
        """The settings of one way to ask, with its usual template; InputError on settings of the other way."""
        from unslant.prompts import usual_template

        if generate and self.scored_to_end:
            raise InputError("--to-end applies only to scored labels, and this run reads replies; leave it out")
        template = usual_template(generate, self.reasoning, self.template)
        return replace(self, elicit="generate" if generate else "labels", template=template)


@dataclass(frozen=True, kw_only=True)
class LabelOptions(Options):
    """How options are labelled."""

    labels: Labels = "A"
    """Label set: A, a, 1, 0, I, i, or your own, separated by commas."""


@dataclass(frozen=True, kw_only=True)
class ScoredLabelOptions(LabelOptions):
    """How options are labelled where labels are scored."""

    to_end: bool = False
    """Include the label's end in its score, for labels that are prefixes of each other (1 and 10)."""

    @property
    def scored_to_end(self) -> bool:
        """See :attr:`Options.scored_to_end`."""
        return self.to_end


@dataclass(frozen=True, kw_only=True)
class ShotOptions(Options):
    """Worked examples."""

    LEAST: ClassVar = {"shots": 0}

    shots: int = 0
    """Worked examples before each question."""
    shots_from: Pool | None = None
    """Source of the worked examples; by default the question set, without the question asked."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.shots:
            chosen = ("shots_from", "shots_by_subject")
            check_unused("no worked examples are shown (--shots=5 shows five)", self, only=chosen)


@dataclass(frozen=True, kw_only=True)
class ChooseShotsOptions(ShotOptions, LoadOptions):
    """Worked examples, shared by many questions."""

    shots_by_subject: bool = False
    """Take worked examples from the question's subject, as in published MMLU scores."""

    def chooser(self, questions: "QuestionSet[Question]", alphabet: tuple[str, ...] | None = None) -> "Chooser":
        """A chooser of the worked examples of a run; InputError if there are too few."""
        if not self.shots:
            return lambda question: ()
        from unslant.presentations import parse_labels
        from unslant.presentations.shots import ShotChooser

        pool = (self.pool(self.shots_from) or questions).questions
        alphabet = alphabet or parse_labels("A")
        return ShotChooser(pool, self.shots, self.seed, alphabet=alphabet, by_subject=self.shots_by_subject).of

    def recorded(self, *left_out: str) -> dict[str, Any]:
        """See :meth:`Options.recorded`."""
        return super().recorded(*left_out, *["shots_by_subject"] * (not self.shots_by_subject))


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Where to write results."""

    json: Path | None = None
    """Write all numbers, with N and interval, to a file."""
    html: Path | None = None
    """Write a report that opens in any browser."""
    out: Path | None = None
    """Write numbers.json, report.html and, if the command has responses, responses.parquet to a folder."""
    figures: Path | None = None
    """Write every chart to a folder, as PDF, SVG and PNG, with its caption in LaTeX."""
    tables: Path | None = None
    """Write every table to a folder, as CSV and LaTeX."""
    fail_if: Annotated[tuple[str, ...], Flag(metavar="CONDITION")] = ()
    """Exit with code 4 if a condition holds, such as "expected_accuracy<0.6"; repeatable."""
    baseline: Path | None = None
    """Show differences from an earlier result (its JSON or Parquet file; for audits also a log)."""
    details: bool = False
    """Print every table, not just the summary."""
    quiet: Annotated[bool, Flag("--quiet", "-q")] = False
    """Print no progress and no summary."""

    def __post_init__(self) -> None:
        if self.quiet and self.details:
            raise InputError("--quiet prints nothing: leave out --details")


@dataclass(frozen=True, kw_only=True)
class OutputOptions(ReportOptions):
    """Where to write results and responses."""

    responses: Path | None = None
    """Write every response to a Parquet file, which --log reads."""


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Where to store scores and replies."""

    store: Path | None = None
    """File that keeps all scores and replies (default: in your data folder)."""
    no_store: bool = False
    """Do not store scores and replies, nor reuse stored ones."""
    offline: bool = False
    """Open no connection; take every score and reply of a server from the store."""

    def __post_init__(self) -> None:
        if self.offline and self.no_store:
            raise InputError("--offline takes everything from the store: leave out --no-store")
        if self.store and self.no_store:
            raise InputError("--no-store stores nothing: leave out --store")


@dataclass(frozen=True, kw_only=True)
class ShardOptions:
    """The part of the work that this machine does."""

    shard: str = ""
    """Ask only part I of N, such as 3/16; unslant merge joins the parts."""
    plan: Path | None = None
    """With --shard: file in which the first part records what is asked; the others must match it."""

    def __post_init__(self) -> None:
        if self.shard:
            from unslant.scale.plan import Shard

            Shard.parse(self.shard)
        elif self.plan:
            raise InputError("--plan applies only to shards: add --shard, such as --shard=1/16, or leave it out")

    def check_none(self, other: str) -> None:
        """InputError if a shard is given together with ``other``, an option for whole runs."""
        if self.shard:
            raise InputError(f"{other} is for whole runs, and --shard asks only part of one: leave one of them out")


WHOLE = ShardOptions()
"""All of the work."""
WITH_LOG = "--log reads recorded responses"
"""The reason for :func:`check_unused` why an option has no effect."""
Models = Annotated[ModelOptions, Heading("Model", 2)]
LocalModels = Annotated[ModelOptions, Heading("Model", 2), Without("connections", *SERVED_ONLY)]
ChatModels = Annotated[ModelOptions, Heading("Model", 2), Without(*options_for("score"))]
Generate = Annotated[GenerateOptions, Heading("Replies", 3)]
Outputs = Annotated[OutputOptions, Heading("Output", 4)]
Reports = Annotated[ReportOptions, Heading("Output", 4)]
Stores = Annotated[StoreOptions, Heading("Store", 5)]
LocalStores = Annotated[StoreOptions, Heading("Store", 5), Without("offline")]
Shards = Annotated[ShardOptions, Heading("Several machines", 6)]
Logs = Annotated[
    tuple[Path, ...],
    Flag(many=True, metavar="FILE...", help="Read recorded responses or logs instead of asking a model."),
]
Quiet = Annotated[bool, Flag("--quiet", "-q", help="Print no progress and no summary.")]
Trust = Annotated[bool, Flag(help="Trust the file: run its code, ask its addresses, use paths outside this folder.")]
Store = Annotated[Path | None, Flag(help="File that keeps all scores and replies (default: in your data folder).")]
MODEL = (
    "Folder, Hub id or .gguf file; http://HOST/v1#NAME for a server; inspect:PROVIDER/NAME; or a reference model: "
    "fair, prefers-a, prefers-last, memorised, half-taught, words."
)
LOCAL_MODEL = "Folder, Hub id or .gguf file of a local model, or a reference model, such as fair."
QUESTIONS = "File (JSONL, JSON, CSV, Excel, Parquet), a known set such as mmlu, embedded or embedded-skewed."
LocalModel = Annotated[str, Flag(help=LOCAL_MODEL), Reach.MODEL]
OptionalModel = Annotated[str | None, Flag(help=MODEL), Reach.MODEL]
MoreModels = Annotated[
    tuple[str, ...],
    Flag("--model", "-m", metavar="MODEL", help="One of several models to compare; repeat for each."),
    Reach.MODEL,
]
Questions = Annotated[str, Flag(help=QUESTIONS), Reach.PLACE]
OptionalQuestions = Annotated[str | None, Flag(help=QUESTIONS), Reach.PLACE]


def check_no_model(model: str | None, questions: str | None, more: Sequence[str] = ()) -> None:
    """Raise InputError if a model or questions are named together with recorded responses."""
    if names := [*filter(None, (model, questions)), *more]:
        words = " and ".join(map(str, names))
        raise InputError(f"--log replaces the model and its questions: leave out {words}")


def check_generate(generate: GenerateOptions, in_words: bool, switch: str = "--elicit=generate") -> None:
    """Raise InputError on options of replies if labels are scored; ``switch`` is the option that has replies read."""
    if not in_words:
        check_unused(f"labels are scored (for replies add {switch})", generate)
