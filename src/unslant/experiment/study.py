"""A study: one declaration that gives its command, its Python function and the reader of its files.

A study is a subclass of :class:`Study`. Its docstring is the help of its command, its attributes declare its options,
and :meth:`Study.ask` is its recipe. Most studies ask one model at a time, and their result follows from the responses
alone; studies of several models at once override :meth:`Study.measure`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, ParamSpec, Protocol, TypeVar, cast, get_type_hints

import unslant.experiment as o
from unslant.asking import Progress, no_progress
from unslant.errors import InputError, for_the_caller, naming_flags
from unslant.experiment.job import Asking, Given, Job
from unslant.experiment.result import RecordedResult, StudyResult, listed_files, logs_in, tables_of
from unslant.flags import Flag, Heading, UnknownOptionError, Without, by_kind, check_unused, in_place_of, part_of
from unslant.models.base import Model, in_turn, is_whole
from unslant.models.open import address_of, options_of_each
from unslant.reach import Reach
from unslant.writing import write_all

if TYPE_CHECKING:
    from unslant.experiment.running import Recording
    from unslant.responses import Responses

P = ParamSpec("P")
S = TypeVar("S", bound=o.PromptOptions)
R_co = TypeVar("R_co", bound=StudyResult, covariant=True)


class Study(Generic[S]):
    """A study.

    Attributes:
        name: as in ``unslant study NAME``.
        settings: the dataclass of its settings.
        result: the class of its result for one model.
        model, questions: defaults; without a default the user must name them.
        inputs: a dataclass of further inputs that the study reads.
        outputs: the dataclass of options that say what its command writes.
        generate: options of replies, if it can ask for replies.
        of_logs: settings that have an effect on recorded responses; None if the study cannot use any.
        in_memory: whether logs may also be tables in memory.
        several: whether it takes several models.
        compared: study of the result of several models; empty if it is not known before the run.
        in_commas: whether one text may name several models or question sets, separated by commas.
        in_shards: whether several machines can share its work.
        without: options of models that have no effect, because models are asked for replies only.
        switch: the option that makes it read replies, named in the error on reply options where labels are scored.
    """

    name: ClassVar[str]
    settings: ClassVar[type[Any]]
    result: ClassVar[type[StudyResult]]
    model: ClassVar[str | None] = o.DEFAULT_MODEL
    questions: ClassVar[str | None] = o.EMBEDDED
    about_questions: ClassVar[str] = ""
    inputs: ClassVar[type[Any] | None] = None
    outputs: ClassVar[type[o.ReportOptions]] = o.OutputOptions
    generate: ClassVar[type[Any] | None] = None
    of_logs: ClassVar[tuple[str, ...] | None] = ()
    in_memory: ClassVar[bool] = False
    several: ClassVar[bool] = False
    compared: ClassVar[str] = ""
    in_commas: ClassVar[bool] = False
    in_shards: ClassVar[bool] = False
    without: ClassVar[frozenset[str]] = frozenset()
    switch: ClassVar[str] = "--elicit=generate"
    function: ClassVar[Any]

    # What a study declares

    def ask(self, asking: Asking[S]) -> Responses:
        """The recipe: ask one model."""
        raise NotImplementedError

    def measure(self, job: Job[S]) -> StudyResult:
        """The result of one model, from its responses, or the comparison of several."""
        tables = job.each_model(partial(self.responses_of, job))
        if len(job.given.models) == 1:
            job.record.keep(tables[0])
            return cast("StudyResult", self.measured(tables[0]))
        return self.compare([self.measured(table) for table in tables], job.given)

    def measured(self, responses: Responses) -> Any:
        """The result of one model from its fresh responses."""
        return cast("type[RecordedResult]", self.result).of(responses)

    def compare(self, results: Sequence[Any], given: Given[S]) -> StudyResult:
        """One result from those of several models."""
        raise InputError(f"{self.name}: one model at a time; to compare several, use: unslant report FILES")

    def read(self, given: Given[S]) -> StudyResult:
        """The result of recorded responses."""
        from unslant.responses.importers.logged import placed

        with placed(listed_files(given.log)):
            tables = tables_of(self.name, given.log, getattr(given.settings, "fields", None))
            results = [self.recorded(table, given) for table in tables]
        return results[0] if len(results) == 1 else self.compare(results, given)

    def recorded(self, responses: Responses, given: Given[S]) -> Any:
        """The result of one model from a file, with the settings of :attr:`of_logs`."""
        return cast("type[RecordedResult]", self.result).of(responses)

    def load(self, given: Given[S]) -> Any:
        """All questions, before the model is opened."""
        return given.settings.load(given.questions)

    def settings_of_each(self, given: Given[S]) -> list[S]:
        """The settings of each model; InputError if they are incompatible."""
        if not isinstance(given.settings, o.ElicitOptions):
            return [given.settings] * len(given.models)
        return [given.settings.of_model(*each) for each in zip(given.models, given.options, strict=True)]

    def needs(self, settings: S) -> tuple[str, ...]:
        """The abilities that a model must have."""
        return ("generate",) if settings.in_words else ("score",)

    def check(self, given: Given[S]) -> None:
        """Raise InputError on options that the types allow but the study does not; called before anything is read."""

    def also(self, result: StudyResult, given: Given[S]) -> Iterator[Callable[[], object]]:
        """Functions that write further outputs."""
        yield from ()

    # What follows from the declaration

    def result_of(self, job: Job[S]) -> StudyResult:
        """The result, which names the models that failed."""
        result = self.measure(job)
        if job.record.failed:  # results are frozen, and those of several models compute their run
            vars(result)["run"] = replace(result.run, failed_models=job.record.failed)
        return result

    def responses_of(self, job: Job[S], place: int) -> Responses:
        return self.ask(Asking(self.name, job, place, job.settings[place]))

    def of_model(self, model: Any, questions: Any, settings: S, record: Recording) -> Any:
        """The result of an open model, as part of another study."""
        given = Given(settings=settings, models=(model,), options=(o.ModelOptions(),))
        return self.measured(self.responses_of(Job(self.needs, given, questions, [settings], record), 0))

    def prepared(self, given: Given[S], record: Recording) -> Job[S]:
        """Check and read everything without opening a model."""
        settings = self.settings_of_each(given)
        names: list[tuple[str, str]] = []  # as typed, and as results call the model
        for model, options, one in zip(given.models, given.options, settings, strict=True):
            if isinstance(model, str):
                names.append((model, address_of(model, options, self.needs(one)).model))
            elif isinstance(model, Model) and is_whole(model):  # opening refuses or names any other object
                names.append((model.name, model.name))
        if len({name for _, name in names}) < len(names):
            raise InputError(f"models {', '.join(typed for typed, _ in names)}: two have the same name")
        return Job(self.needs, given, self.load(given), settings, record)

    def run(self, given: Given[S], outputs: o.ReportOptions, store: o.StoreOptions) -> None:
        """The command."""
        from unslant.experiment.outputs import check_outputs, check_owner, check_shard, write_outputs, write_shard
        from unslant.experiment.running import reading_logs, recording

        self.check(given)
        if shard := given.shards.shard:
            check_shard(cast(o.OutputOptions, outputs), given.shards, given.models)
        study = self.compared if len(given.models) > 1 else self.result.study
        check_outputs(outputs, self.result, "" if given.log else study)  # a log may be of several models
        if given.log:
            with reading_logs(given.log, outputs.quiet):
                result = self.read(given)
            return write_outputs(result, outputs, *self.also(result, given))
        check_owner(outputs)
        self.check_replies(given, self.settings_of_each(given))
        with recording(store, outputs.quiet) as record:
            job = self.prepared(given, record)
            if outputs.baseline is not None:
                from unslant.experiment.gates import Baseline

                job.checks.append(partial(Baseline.check, outputs.baseline, self.result, study))
            if shard:
                responses = self.responses_of(job, 0)
                record.keep(responses)
                record.note_score(f"shard {shard}")
            else:
                result = self.result_of(job)
                record.note_score(result.key_number)
        if shard:
            return write_all(record.check_kept, partial(write_shard, responses, cast(o.OutputOptions, outputs)))
        return write_outputs(result, outputs, *job.saves, *self.also(result, given), record.check_kept, asked=True)

    def check_replies(self, given: Given[S], settings: Sequence[S]) -> None:
        """Raise InputError on options of replies if the run reads none."""
        if self.generate:
            o.check_generate(given.generate, any(one.in_words for one in settings), self.switch)

    def call(self, given: Given[S], record: Recording) -> Any:
        """The Python function."""
        self.check(given)
        if given.log:
            return self.read(given)
        self.check_replies(given, self.settings_of_each(given))
        job = self.prepared(given, record)
        result = self.result_of(job)
        for write in (*job.saves, *self.also(result, given)):
            write()
        return result

    def responses(
        self, model: Any, questions: Any = None, settings: S | None = None, *, shards: o.ShardOptions = o.WHOLE
    ) -> Responses:
        """The responses of one model to all questions, or to those of a shard, without measuring them."""
        from unslant.experiment.running import Recording

        given = replace(self.given((model,), questions, (), {}), shards=shards)
        given = replace(given, settings=settings) if settings is not None else given
        self.check(given)
        return self.responses_of(self.prepared(given, Recording(no_progress, None)), 0)

    def given(self, models: Any, questions: Any, log: Any, options: Mapping[str, Any]) -> Given[S]:
        """The arguments of a Python call; UnknownOptionError naming an unknown keyword and all valid ones."""
        kinds = {"settings": self.settings, "options": o.ModelOptions, "generate": o.GenerateOptions}
        kinds |= {"inputs": self.inputs} if self.inputs else {}
        parts = by_kind(kinds, options, in_place_of(self.outputs, o.StoreOptions, o.ShardOptions))
        groups: dict[str, Any] = {name: kind(**parts[name]) for name, kind in kinds.items()}
        if log := logs_in(log):
            if self.of_logs is None:
                raise UnknownOptionError(f"no option 'log': {self.name} asks models, and reads no recorded responses")
            if not self.in_memory and not all(isinstance(one, str | Path) for one in log):
                raise InputError(f"log: {self.name} reads files; tables in memory are for audit, leaderboard and judge")
            checked = [groups["settings"], groups["options"], *([groups["generate"]] if self.generate else [])]
            self.check_log(next(iter(models), None), questions, (), checked)
            return Given(**groups | {"options": ()}, models=tuple(models), questions=questions, log=log)
        models = tuple(models) or ((self.model,) if self.model else ())
        groups["options"] = tuple(options_of_each(models, groups["options"]))
        return Given(**groups, models=models, questions=self.questions if questions is None else questions)

    # The command

    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of the command."""
        once, keyword = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
        model = Flag(help=o.MODEL + f" [default: {self.model}]" * bool(self.model))
        about = self.about_questions or o.QUESTIONS
        source = Flag(help=about + f" [default: {self.questions}]" * bool(self.questions))
        rows: list[tuple[str, Any, Any, Any]] = [
            ("model", once, None, Annotated[str | None, model, Reach.MODEL]),
            ("questions", once, None, Annotated[str | None, source, Reach.PLACE]),
        ]
        rows += [("more", keyword, (), o.MoreModels)] * self.several
        rows += [("log", keyword, (), o.Logs)] if self.of_logs is not None else []
        rows += [("inputs", keyword, None, self.inputs)] if self.inputs else []
        rows += [("settings", keyword, None, self.settings)]
        rows.append(("models", keyword, None, Annotated[o.Models, Without(*self.without)]))
        if self.generate:
            rows.append(("generate", keyword, None, Annotated[self.generate, Heading("Replies", 3)]))
        rows += [("outputs", keyword, None, Annotated[self.outputs, Heading("Output", 4)])]
        rows += [("store", keyword, None, o.Stores)]
        rows += [("shards", keyword, None, o.Shards)] * self.in_shards
        return [inspect.Parameter(name, kind, default=value, annotation=hint) for name, kind, value, hint in rows]

    def command(
        self,
        model: str | None = None,
        questions: str | None = None,
        /,
        *,
        settings: S,
        models: o.ModelOptions,
        outputs: o.ReportOptions,
        store: o.StoreOptions,
        generate: Any = None,
        inputs: Any = None,
        shards: o.ShardOptions = o.WHOLE,
        more: Sequence[str] = (),
        log: Sequence[Path] = (),
    ) -> None:
        """Run the study with arguments from the command line, those of :meth:`parameters`."""
        replies = part_of(generate, o.GenerateOptions)
        given = Given(
            settings=settings, log=tuple(log), generate=replies, shards=shards, inputs=inputs, outputs=outputs
        )
        if log:
            groups = [settings, models, *([generate] if generate is not None else [])]
            self.check_log(model, questions, more, groups)
            shards.check_none("--log")
            given = replace(given, models=(model,) if model else (), questions=questions)
        else:
            names, source = self.named(model, questions, more)
            options = tuple(options_of_each(names, models))
            given = replace(given, models=tuple(names), questions=source, options=options)
        self.run(given, outputs, store)

    def check_log(self, model: str | None, questions: str | None, more: Sequence[str], groups: Sequence[Any]) -> None:
        """Raise InputError on arguments that have no effect on recorded responses."""
        check_unused(o.WITH_LOG, *groups, but=self.of_logs or ())
        o.check_no_model(model, questions, more)

    def named(self, model: str | None, questions: str | None, more: Sequence[str]) -> tuple[Sequence[str], Any]:
        """Models and questions of the command; with ``--model`` a single word is the questions."""
        if self.in_commas:
            texts = [text for name in (model, *more) if name for text in name.split(",")]
            names = [text.strip() for text in texts if text.strip()]
        else:
            if "" in (model, questions, *more):  # as a shell passes a variable that is not set
                raise InputError("the name of a model or of questions is empty; give one, or leave it out")
            if more and questions is None:
                model, questions = None, model
            names = [*([model] if model else []), *more]
            if len(set(names)) < len(names):
                raise InputError(f"models {', '.join(names)}: give each once")
        names = names or ([self.model] if self.model else [])
        return names, self.questions if questions is None else questions


class StudyFunction(Protocol[P, R_co]):
    """A study as a Python function; its keywords are the options of its command."""

    study: Study[Any]

    def __call__(self, model: Any = ..., questions: Any = ..., /, *log: P.args, **options: P.kwargs) -> R_co:
        """Ask models, or read recorded responses with ``log=``."""


def function(study: Study[Any], keywords: Callable[P, object], result: type[R_co]) -> StudyFunction[P, R_co]:
    """The Python function of a study.

    Args:
        keywords: a dataclass with every keyword, for editors and type checkers. The examples in its docstring, a call
            and what follows from it, take the place of those of the command.
    """
    from unslant.experiment.running import Recording, progress_of_python

    def run(model: Any = None, questions: Any = None, /, **options: Any) -> Any:
        if not callable(progress := options.pop("progress", None) or progress_of_python()):
            raise InputError(f"progress={progress!r}: give a function of phase, done and total, or leave it out")
        log, several = options.pop("log", ()), isinstance(model, list | tuple) and study.several
        models = () if model is None else model if several else (model,)
        if several and not models:
            raise InputError("no models: give one or more")
        models = tuple(str(one) if isinstance(one, Path) else one for one in models)
        with in_turn(models):
            return study.call(study.given(models, questions, log, options), Recording(progress, None))

    run.__name__ = run.__qualname__ = study.name.replace("-", "_")
    run.__module__ = type(study).__module__
    with naming_flags(False):  # a command may be what imports the study
        about = for_the_caller(inspect.cleandoc(study.__doc__ or "").partition("\n\nExamples:\n")[0])
    # no list of keywords: their help is read from the sources of the settings, which is too slow for an import
    run.__doc__ = f"{about}\n\nKeywords are the options of the command ``{study.name}``; see its ``--help-all``.\n"
    _, _, example = inspect.cleandoc(keywords.__doc__ or "").partition("\n\nExamples:\n")
    run.__doc__ += f"\nExamples:\n{example}\n" * bool(example)
    public: Any = run
    public.study = study
    type(study).function = public
    positional = [p for p in inspect.signature(run).parameters.values() if p.name in ("model", "questions")]
    kinds = get_type_hints(keywords)
    by_name = [p.replace(annotation=kinds[p.name]) for p in inspect.signature(keywords).parameters.values()]
    public.__signature__ = inspect.Signature([*positional, *by_name])
    return cast("StudyFunction[P, R_co]", public)


@dataclass(frozen=True, kw_only=True)
class Keywords(o.ModelOptions):
    """The keywords that functions of all studies have, besides their settings.

    Attributes:
        progress: called with phase, done and total; by default a line in notebooks, and nothing elsewhere.
        log: files of recorded responses, instead of a model and questions; of an audit, a leaderboard and judges also
            tables in memory (a list of dicts, a DataFrame, a Dataset, ...), or responses.
    """

    progress: Progress | None = None
    log: Any = ()
