"""What a user may choose, said once: field, default and help; commands show it as flags, functions take it as keywords.

A study's settings are one dataclass that inherits what it shares with others from here. ``with_options`` makes it from
the keywords of a Python call, cyclopts from the flags of a command. It reads annotations, which must not be strings:
modules with settings do without ``from __future__ import annotations``.
"""

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, cast

from cyclopts import Group, Parameter, Token

from unslant.errors import InputError
from unslant.models import GenerateOptions as GenerateOptions
from unslant.models import LengthOptions as LengthOptions
from unslant.models import ModelOptions as ModelOptions

if TYPE_CHECKING:
    from unslant.prompts import Writer
    from unslant.questions import QuestionSet

DEFAULT_MODEL = "prefers-a"
EMBEDDED = "embedded"
T = TypeVar("T")


def pairs(name: str, given: "Mapping[str, Any] | Sequence[str]", kind: Callable[[str], Any] = str) -> dict[str, Any]:
    """A mapping, also where it was given as texts ``NAME=VALUE``.

    Raises:
        InputError: on a text that is none, naming ``name``.
    """
    if isinstance(given, Mapping):
        return dict(given)
    found: dict[str, Any] = {}
    for text in given:
        key, sign, value = text.partition("=")
        try:
            found[key] = kind(value)
        except ValueError:
            sign = ""
        if not sign or not key:
            example = "question=prompt" if kind is str else "OS=0.3"
            raise InputError(f"{name} {text!r}: write it as NAME=VALUE, for example {example}")
    return found


def _split(_: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Reads A,B,C, given any number of times, as one tuple."""
    return tuple(part.strip() for token in tokens for part in token.value.split(",") if part.strip())


def _temperatures(_: Any, tokens: Sequence[Token]) -> tuple[float, ...]:
    """Reads 0,0.7,1, given any number of times, as one tuple."""
    try:
        return tuple(map(float, _split(_, tokens)))
    except ValueError as error:
        raise InputError(f"--temperature: {error}; write 0.5, or several as 0,0.7,1") from None


def _off(_: Any, tokens: Sequence[Token]) -> bool:
    """Reads a switch that turns something off."""
    return not tokens


if TYPE_CHECKING:
    Pairs = Mapping[str, str]
    Numbers = Mapping[str, float]
    Names = Sequence[str]
    Temperatures = Sequence[float]
    Pool = str | Path | QuestionSet[Any]
    Pools = Sequence[Pool]
else:  # what the flags are made of
    Pairs = Annotated[tuple[str, ...], Parameter(metavar="NAME=VALUE")]
    Numbers = Annotated[tuple[str, ...], Parameter(metavar="NAME=NUMBER")]
    Names = Annotated[tuple[str, ...], Parameter(converter=_split, metavar="NAME,...")]
    Temperatures = Annotated[tuple[float, ...], Parameter(converter=_temperatures, metavar="NUMBER,...")]
    Pool = str
    Pools = Names


def switch_off(flag: str, help: str) -> Parameter:
    """A field that is True unless ``flag`` is given."""
    return Parameter(name=flag, help=help, converter=_off)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Checks numbers against the least that is allowed.

    Raises:
        InputError: naming the first number that is too small.
    """

    LEAST: ClassVar[Mapping[str, float]] = {}

    def __post_init__(self) -> None:
        for kind in type(self).__mro__:
            for name, least in vars(kind).get("LEAST", {}).items():
                value = getattr(self, name)
                if value is not None and value < least:
                    raise InputError(f"{name} {value}: give {least:g} or more")

    def recorded(self, *left_out: str) -> dict[str, Any]:
        """The settings that say how a model was asked, for JSON: not where questions came from."""
        hidden = {*(f.name for f in dataclasses.fields(LoadOptions) if f.name != "seed"), "shots_from", *left_out}
        found = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in hidden}
        return found | ({"seed": found.pop("seed")} if "seed" in found else {})


@dataclass(frozen=True, kw_only=True)
class FieldOptions(Options):
    """Which column holds what."""

    fields: Annotated[Pairs, Parameter(name="--field", metavar="OURS=THEIRS")] = ()  # type: ignore[assignment]
    """Column of the file (THEIRS) for one of our fields; may be given several times."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "fields", pairs("--field", self.fields))


@dataclass(frozen=True, kw_only=True)
class LoadOptions(FieldOptions):
    """Which questions are read, and how."""

    LEAST: ClassVar = {"limit": 1}

    skip_bad: bool = False
    """Leave bad lines out and count them, instead of stopping."""
    limit: int | None = None
    """Only N questions, sampled by the seed."""
    seed: int = 0
    """Seed of every random choice."""

    def load(self, source: str | Path, maths: bool = False) -> "QuestionSet[Any]":
        """All questions of a file, recipe or built-in set, multiple-choice or (``maths``) open maths.

        Raises:
            InputError: if they cannot be read; it names file, line and field.
        """
        from unslant.questions import load_math, load_questions

        read: Callable[..., QuestionSet[Any]] = load_math if maths else load_questions
        return read(source, fields=dict(self.fields), on_bad="skip" if self.skip_bad else "error")

    def pool(self, source: Pool | None, maths: bool = False) -> "QuestionSet[Any] | None":
        """Further questions, in a file of the usual form or loaded already."""
        return replace(self, fields={}).load(source, maths) if isinstance(source, str | Path) else source

    def sampled(self, questions: "QuestionSet[Any]") -> "QuestionSet[Any]":
        """At most ``limit`` of the questions."""
        from unslant.questions.loaders import sample

        return replace(questions, questions=sample(questions.questions, self.limit, self.seed))


@dataclass(frozen=True, kw_only=True)
class PromptOptions(LoadOptions):
    """How questions are worded."""

    template: str = "plain"
    """Prompt template: a name, or the path of a .toml file."""
    chat: bool = False
    """Ask through the tokenizer's chat template."""

    def writer(self) -> "Writer":
        """What writes the prompts.

        Raises:
            InputError: if the template cannot be used.
        """
        from unslant.prompts import Writer, load_template

        return Writer(load_template(self.template), self.chat)


@dataclass(frozen=True, kw_only=True)
class LabelOptions(Options):
    """How options are labelled."""

    labels: str = "A"
    """Label set: A, a, 1, 0, I, i, or your own separated by commas."""


@dataclass(frozen=True, kw_only=True)
class ShotOptions(Options):
    """Worked examples."""

    LEAST: ClassVar = {"shots": 0}

    shots: int = 0
    """Worked examples before each question."""
    shots_from: Pool | None = None
    """Questions to take the worked examples from; by default the set itself (never the question itself)."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Where numbers go."""

    json: Path | None = None
    """Write every number, with N and interval, to this file."""
    html: Path | None = None
    """Write a report that opens in a browser to this file."""
    out: Path | None = None
    """Folder to write everything to: numbers.json, report.html, and responses.parquet where there are responses."""
    details: bool = False
    """Print every table, not only what fits on one screen."""
    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"))] = False
    """No progress, no summary."""


@dataclass(frozen=True, kw_only=True)
class OutputOptions(ReportOptions):
    """Where numbers and responses go."""

    responses: Path | None = None
    """Write the table of responses to this Parquet file; --log reads it back."""


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Where scores are kept."""

    store: Path | None = None
    """File that keeps every score (default: in your data folder)."""
    no_store: bool = False
    """Keep no scores, and use none that were kept."""


def flags(title: str, place: int) -> Parameter:
    """Turns the fields of a dataclass into flags under a heading of the help."""
    return Parameter(name="*", group=Group(title, sort_key=place))


OPTIONS = Group("Options", sort_key=1)
SETTINGS = Parameter(name="*")
Models = Annotated[ModelOptions, flags("Model", 2)]
Generate = Annotated[GenerateOptions, flags("Replies", 3)]
Length = Annotated[LengthOptions, flags("Replies", 3)]
Outputs = Annotated[OutputOptions, flags("Output", 4)]
Reports = Annotated[ReportOptions, flags("Output", 4)]
Stores = Annotated[StoreOptions, flags("Store", 5)]
Logs = Annotated[
    tuple[Path, ...],
    Parameter(consume_multiple=True, metavar="FILE...", help="Read recorded responses instead of asking a model."),
]
Quiet = Annotated[bool, Parameter(name=("--quiet", "-q"), help="No progress, no summary.")]
Store = Annotated[Path | None, Parameter(help="File that keeps every score (default: in your data folder).")]
Model = Annotated[
    str,
    Parameter(
        help="Reference model (fair, prefers-a, ...), folder or Hub id; http://HOST/v1#NAME; inspect:PROVIDER/NAME."
    ),
]
Questions = Annotated[str, Parameter(help="Question file (JSONL, JSON, CSV, Parquet), recipe name, or 'embedded'.")]


def part_of(settings: object, kind: Callable[..., T], **changes: Any) -> T:
    """The fields of ``settings`` that ``kind`` has too."""
    names = [f.name for f in dataclasses.fields(cast(Any, kind)) if hasattr(settings, f.name)]
    return kind(**{name: getattr(settings, name) for name in names} | changes)


class UnknownOptionError(InputError, TypeError):
    """A keyword that a function's settings do not have."""


def with_options(kind: Callable[..., T], settings: T | None, options: Mapping[str, Any]) -> T:
    """The settings of a Python call, given as an object, as keywords, or both.

    Raises:
        UnknownOptionError: naming the keyword, what it may have meant, and all there are.
    """
    start: Any = settings if settings is not None else kind()
    known = [f.name for f in dataclasses.fields(start)]
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise UnknownOptionError(f"no option {name!r}: {meant}there are {', '.join(sorted(known))}")
    return cast(T, replace(start, **options))
