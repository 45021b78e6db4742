"""What a study is: one declaration, from which its command, its Python function and the reader of its files come.

A study is a subclass of :class:`Study`. Its docstring is the help of its command; its attributes say which options it
has; :meth:`Study.ask` is its recipe. Most studies ask one model at a time and are measured on the table of its
responses alone; those that look at several models at once override :meth:`Study.measure`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, ParamSpec, Protocol, TypeVar, cast, get_type_hints

from unslant.asking import Progress, no_progress
from unslant.errors import InputError, MostlyFailedError, UnslantError
from unslant.experiment import options as o
from unslant.experiment.job import Asking, Given, Job
from unslant.experiment.options import (
    GenerateOptions,
    ModelOptions,
    OutputOptions,
    ReportOptions,
    ShardOptions,
    StoreOptions,
)
from unslant.experiment.result import RecordedResult, StudyResult
from unslant.flags import Flag, Heading, Without
from unslant.models.open import address_of, options_of_each
from unslant.reach import Reach
from unslant.scale.options import WHOLE

if TYPE_CHECKING:
    from unslant.experiment.recording import Recording
    from unslant.responses import Responses

P = ParamSpec("P")
S = TypeVar("S", bound=o.PromptOptions)
R_co = TypeVar("R_co", bound=StudyResult, covariant=True)


class Study(Generic[S]):
    """A study.

    Attributes:
        name: as in ``unslant study NAME``.
        settings: the dataclass of what can be chosen.
        result: what it gives for one model.
        model, questions: what is asked where none is named; without a default they must be.
        inputs: a dataclass of further inputs that the study reads.
        outputs: what its command can write.
        generate: options of replies, if it can ask for any.
        of_logs: settings that have an effect on recorded responses; None where the study cannot be made from any.
        several: whether it takes several models.
        in_commas: whether several models and question sets can be given as one text, between commas.
        in_shards: whether several machines can share its work.
        without: options of models that cannot matter, as models are asked for replies only.
        switch: what has replies read, for the error where options of replies are given and labels are scored.
    """

    name: ClassVar[str]
    settings: ClassVar[type[Any]]
    result: ClassVar[type[StudyResult]]
    model: ClassVar[str | None] = o.DEFAULT_MODEL
    questions: ClassVar[str | None] = o.EMBEDDED
    about_questions: ClassVar[str] = ""
    inputs: ClassVar[type[Any] | None] = None
    outputs: ClassVar[type[ReportOptions]] = OutputOptions
    generate: ClassVar[type[Any] | None] = None
    of_logs: ClassVar[tuple[str, ...] | None] = ()
    several: ClassVar[bool] = False
    in_commas: ClassVar[bool] = False
    in_shards: ClassVar[bool] = False
    without: ClassVar[frozenset[str]] = frozenset()
    switch: ClassVar[str] = "--elicit=generate"
    function: ClassVar[Any]

    # What a study says of itself

    def ask(self, asking: Asking[S]) -> Responses:
        """The recipe: what one model is asked."""
        raise NotImplementedError

    def measure(self, job: Job[S]) -> StudyResult:
        """The result: of one model, measured on its responses; of several, their comparison."""
        tables = [self.responses_of(job, place) for place in range(len(job.given.models))]
        if len(tables) == 1:
            job.record.keep(tables[0])
        results = [self.measured(table) for table in tables]
        return results[0] if len(results) == 1 else self.compare(results, job.given)

    def measured(self, responses: Responses) -> Any:
        """The result of one model from what it has just answered."""
        return cast("type[RecordedResult]", self.result).of(responses)

    def compare(self, results: Sequence[Any], given: Given[S]) -> StudyResult:
        """One result of those of several models."""
        raise InputError(f"{self.name}: one model at a time; to compare several, use: unslant report FILES")

    def read(self, given: Given[S]) -> StudyResult:
        """The result of recorded responses."""
        from unslant.experiment.recorded import listed_files, tables_of
        from unslant.responses.importers.logged import placed

        with placed(listed_files(given.log)):
            tables = tables_of(self.name, given.log, getattr(given.settings, "fields", None))
            results = [self.recorded(table, given) for table in tables]
        return results[0] if len(results) == 1 else self.compare(results, given)

    def recorded(self, responses: Responses, given: Given[S]) -> Any:
        """The result of one model from a file, with the settings that have an effect there (:attr:`of_logs`)."""
        return cast("type[RecordedResult]", self.result).of(responses)

    def load(self, given: Given[S]) -> Any:
        """All questions, before the model is opened."""
        return given.settings.load(given.questions)

    def settings_of_each(self, given: Given[S]) -> list[S]:
        """The settings of each model, refused here where they do not go together."""
        return [given.settings] * len(given.models)

    def needs(self, settings: S) -> tuple[str, ...]:
        """What a model must be able to do."""
        return ("generate",) if settings.in_words else ("score",)

    def check(self, given: Given[S]) -> None:
        """Refuse what the types cannot: called first, before anything is read."""

    def also(self, result: StudyResult, given: Given[S]) -> Iterator[Callable[[], object]]:
        """What else is written."""
        yield from ()

    # What follows from that

    def responses_of(self, job: Job[S], place: int) -> Responses:
        return self.ask(Asking(self.name, job, place, job.settings[place]))

    def of_model(self, model: Any, questions: Any, settings: S, record: Recording) -> Any:
        """The result of an open model, as a part of another study."""
        given = Given(settings=settings, models=(model,), options=(ModelOptions(),))
        return self.measured(self.responses_of(Job(self.needs, given, questions, [settings], record), 0))

    def prepared(self, given: Given[S], record: Recording) -> Job[S]:
        """Everything checked and read, nothing opened."""
        settings = self.settings_of_each(given)
        named = [
            (model, options, one)
            for model, options, one in zip(given.models, given.options, settings, strict=True)
            if isinstance(model, str)
        ]
        names = [(model, address_of(model, options, self.needs(one)).model) for model, options, one in named]
        names += [(model.name, model.name) for model in given.models if isinstance(getattr(model, "name", None), str)]
        if len({name for _, name in names}) < len(names):
            raise InputError(f"models {', '.join(model for model, _ in names)}: two have the same name")
        return Job(self.needs, given, self.load(given), settings, record)

    def run(self, given: Given[S], outputs: ReportOptions, store: StoreOptions) -> None:
        """The command."""
        from unslant.experiment.outputs import check_outputs, check_shard, write_outputs, write_shard
        from unslant.experiment.recording import recording
        from unslant.writing import write_all

        self.check(given)
        shard = given.shards.shard
        if shard:
            check_shard(cast(OutputOptions, outputs), given.shards, given.models)
        check_outputs(outputs)
        if given.log:
            result = self.read(given)
            return write_outputs(result, outputs, *self.also(result, given))
        self.check_replies(given, self.settings_of_each(given))
        with recording(store, outputs.quiet) as record:
            job = self.prepared(given, record)
            if shard:
                responses = self.responses_of(job, 0)
                record.keep(responses)
                record.note_score(f"shard {shard}")
            else:
                result = self.measure(job)
                record.note_score(result)
        if shard:
            return write_all(record.check_kept, partial(write_shard, responses, cast(OutputOptions, outputs)))
        return write_outputs(result, outputs, *job.saves, *self.also(result, given), record.check_kept)

    def check_replies(self, given: Given[S], settings: Sequence[S]) -> None:
        """Refuse options of replies where none is read."""
        if self.generate:
            o.check_generate(given.generate, any(one.in_words for one in settings), self.switch)

    def call(self, given: Given[S], record: Recording) -> Any:
        """The Python function."""
        self.check(given)
        if given.log:
            return self.read(given)
        job = self.prepared(given, record)
        result = self.measure(job)
        for write in (*job.saves, *self.also(result, given)):
            write()
        return result

    def responses(
        self,
        model: Any,
        questions: Any = None,
        settings: S | None = None,
        *,
        shards: ShardOptions = WHOLE,
        progress: Progress = no_progress,
    ) -> Responses:
        """What the study's function measures: the answers of one model to all questions, or to those of a shard."""
        from unslant.experiment.recording import Recording

        given = replace(self.given((model,), questions, (), {}), shards=shards)
        given = replace(given, settings=settings) if settings is not None else given
        self.check(given)
        return self.responses_of(self.prepared(given, Recording(progress, None)), 0)

    def given(self, models: Any, questions: Any, log: Any, options: Mapping[str, Any]) -> Given[S]:
        """The arguments of a Python call, sorted.

        Raises:
            UnknownOptionError: naming an unknown keyword and those there are.
        """
        kinds = {"settings": self.settings, "options": ModelOptions, "generate": GenerateOptions}
        kinds |= {"inputs": self.inputs} if self.inputs else {}
        parts = o.by_kind(kinds, options)
        made: dict[str, Any] = {name: kind(**parts[name]) for name, kind in kinds.items()}
        log = (log,) if isinstance(log, str | Path) else tuple(log)
        if log:
            named = next(iter(models), None)
            groups = [made["settings"], made["options"], *([made["generate"]] if self.generate else [])]
            self.check_log(named, questions, (), groups)
            return Given(**made | {"options": ()}, models=tuple(models), questions=questions, log=log)
        if not models:
            models = (self.model,) if self.model else ()
        return Given(
            **made | {"options": tuple(options_of_each(models, made["options"]))},
            models=tuple(models),
            questions=self._default_questions(questions),
            log=log,
        )

    def _default_questions(self, questions: Any) -> Any:
        return self.questions if questions is None else questions

    # The command

    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of the command."""
        once, keyword = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
        model = Flag(help=o.MODEL + f" [default: {self.model}]" * bool(self.model))
        asked = Flag(
            help=(self.about_questions or o.QUESTIONS) + f" [default: {self.questions}]" * bool(self.questions)
        )
        rows: list[tuple[str, Any, Any, Any]] = [
            ("model", once, None, Annotated[str | None, model, Reach.MODEL]),
            ("questions", once, None, Annotated[str | None, asked, Reach.PLACE]),
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

    @property
    def command(self) -> Callable[..., None]:
        """The function of the command; its parameters are :meth:`parameters`."""

        def run(*arguments: Any, **options: Any) -> None:
            self._command(**inspect.signature(run).bind(*arguments, **options).arguments)

        parameters = self.parameters()
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__doc__ = self.__doc__
        return run

    def _command(
        self,
        model: str | None = None,
        questions: str | None = None,
        *,
        settings: S,
        models: ModelOptions,
        outputs: ReportOptions,
        store: StoreOptions,
        generate: Any = None,
        inputs: Any = None,
        shards: ShardOptions = WHOLE,
        more: Sequence[str] = (),
        log: Sequence[Path] = (),
    ) -> None:
        replies = o.part_of(generate, GenerateOptions) if generate is not None else GenerateOptions()
        if log:
            groups = [settings, models, *([generate] if generate is not None else [])]
            self.check_log(model, questions, more, groups)
            shards.check_none("--log")
            given = Given(settings=settings, log=tuple(log), generate=replies, inputs=inputs, outputs=outputs)
            return self.run(replace(given, models=(model,) if model else (), questions=questions), outputs, store)
        names, asked = self.named(model, questions, more)
        return self.run(
            Given(
                settings=settings,
                models=tuple(names),
                questions=asked,
                options=tuple(options_of_each(names, models)),
                generate=replies,
                shards=shards,
                inputs=inputs,
                outputs=outputs,
            ),
            outputs,
            store,
        )

    def check_log(self, model: str | None, questions: str | None, more: Sequence[str], groups: Sequence[Any]) -> None:
        """Refuse what has no effect on recorded responses."""
        o.check_unused(o.WITH_LOG, *groups, but=self.of_logs or ())
        o.check_no_model(model, questions, more)

    def named(self, model: str | None, questions: str | None, more: Sequence[str]) -> tuple[Sequence[str], Any]:
        """Models and questions of the command."""
        if not self.in_commas:
            names, asked = o.models_and_questions(model, questions, more, default=self.model or "")
            return names, asked if questions or (model and more) else self._default_questions(questions)
        texts = [model] if model else []
        names = [part.strip() for text in (*texts, *more) for part in text.split(",") if part.strip()]
        return names or ([self.model] if self.model else []), self._default_questions(questions)


class StudyFunction(Protocol[P, R_co]):
    """A study as a Python function; its keywords are those that its command takes as options."""

    study: Study[Any]

    def __call__(self, model: Any = ..., questions: Any = ..., /, *log: P.args, **options: P.kwargs) -> R_co:
        """Ask models, or read recorded responses with ``log=``."""


def function(study: Study[Any], keywords: Callable[P, object], result: type[R_co]) -> StudyFunction[P, R_co]:
    """The Python function of a study.

    Args:
        keywords: a dataclass with every keyword, for editors and type checkers.
    """

    from unslant.experiment.progress import progress_of_python
    from unslant.experiment.recording import Recording

    def run(model: Any = None, questions: Any = None, /, **options: Any) -> Any:
        progress, log = options.pop("progress", None) or progress_of_python(), options.pop("log", ())
        several = isinstance(model, list | tuple) and study.several
        models = () if model is None else tuple(model) if several else (model,)
        return study.call(study.given(models, questions, log, options), Recording(progress, None))

    run.__name__ = run.__qualname__ = study.name.replace("-", "_")
    run.__module__, run.__doc__ = type(study).__module__, study.__doc__
    made: Any = run
    made.study = study
    type(study).function = made
    positional = [p for p in inspect.signature(run).parameters.values() if p.name in ("model", "questions")]
    kinds = get_type_hints(keywords)
    by_name = [p.replace(annotation=kinds[p.name]) for p in inspect.signature(keywords).parameters.values()]
    made.__signature__ = inspect.Signature([*positional, *by_name])
    return cast("StudyFunction[P, R_co]", made)


@dataclass(frozen=True, kw_only=True)
class Keywords(ModelOptions):
    """Keywords that every study has: with its settings they are those of its function.

    Attributes:
        progress: called with phase, done and total; by default a line in notebooks, and nothing elsewhere.
        log: files of recorded responses, in place of a model and its questions.
    """

    progress: Progress | None = None
    log: str | Path | Sequence[str | Path] = ()


def check_answered(responses: Responses, error: InputError) -> UnslantError:
    """The error that few answers led to, which is the model's fault where few of them came."""
    from unslant.experiment.provenance import unanswered

    failure = unanswered(responses)
    return MostlyFailedError(f"{failure}: {error}") if failure else error
