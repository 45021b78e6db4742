"""A study at work: what it was given, its models, and what it asks one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from unslant.asking import Asked, Progress, ask, ask_for_replies
from unslant.experiment.options import GenerateOptions, ModelOptions, PromptOptions, ShardOptions
from unslant.models.open import open_chat, open_model, opened
from unslant.scale.options import WHOLE

if TYPE_CHECKING:
    from unslant.experiment.recording import Recording
    from unslant.prompts import Elicitation, Writer
    from unslant.questions import QuestionSet
    from unslant.responses import Responses
    from unslant.scale.plan import Share

S = TypeVar("S", bound=PromptOptions)


@dataclass(frozen=True, kw_only=True)
class Given(Generic[S]):
    """What a study was given, on the command line or as arguments of its function.

    Attributes:
        models: names; from Python also models, or functions that load one.
        questions: what :func:`unslant.load_questions` takes; for some studies several of these.
        log: files of recorded responses, in place of models and questions.
        options: how each of the models is found and run.
        inputs: further files, of the type :attr:`Study.inputs`.
        outputs: what the command writes; None from Python, where the result itself writes.
    """

    settings: S
    models: tuple[Any, ...] = ()
    questions: Any = None
    log: tuple[Path, ...] = ()
    options: tuple[ModelOptions, ...] = ()
    generate: GenerateOptions = field(default_factory=GenerateOptions)
    shards: ShardOptions = WHOLE
    inputs: Any = None
    outputs: Any = None


@dataclass
class Job(Generic[S]):
    """A study at work.

    Attributes:
        questions: what :meth:`Study.load` returned.
        needs: what a model must be able to do.
        settings: of each model (:meth:`Study.settings_of_each`).
        record: opens models so that scores and replies are stored, if there is a store.
        saves: each writes another output once the result is there.
    """

    needs: Callable[[S], tuple[str, ...]]
    given: Given[S]
    questions: Any
    settings: Sequence[S]
    record: Recording
    saves: list[Callable[[], object]] = field(default_factory=list)

    @property
    def progress(self) -> Progress:
        return self.record.progress

    def open(self, place: int, needs: Sequence[str] = (), *questions: QuestionSet[Any], run_of: str = "") -> Any:
        """The model of this place, which can do what is needed: by default what its settings need."""
        model, given = self.given.models[place], self.given
        needs = needs or self.needs(self.settings[place])
        if not isinstance(model, str):
            return opened(model, needs)
        return self.open_named(model, needs, given.options[place], *questions, run_of=run_of)

    def open_named(
        self, name: str, needs: Sequence[str], options: ModelOptions, *questions: QuestionSet[Any], run_of: str = ""
    ) -> Any:
        """A model by name, its scores or replies stored under the run, which is ``run_of`` all models by default."""
        every = run_of or (", ".join(map(str, self.given.models)) if len(self.given.models) > 1 else "")
        load: Callable[[], Any] = partial(open_model, name, options, needs)
        if "generate" in needs:
            load = partial(open_chat, name, options, self.given.generate)
        return self.record.loader(load, *questions, run_of=every)()


@dataclass
class Asking(Generic[S]):
    """One model that is asked.

    Attributes:
        whole: all questions that were loaded; questions: those that are asked.
    """

    study: str
    job: Job[S]
    place: int
    settings: S

    @cached_property
    def whole(self) -> QuestionSet[Any]:
        return cast("QuestionSet[Any]", self.job.questions)

    @cached_property
    def questions(self) -> QuestionSet[Any]:
        return self.job.settings[self.place].sampled(self.whole)

    @property
    def shards(self) -> ShardOptions:
        return self.job.given.shards

    @property
    def progress(self) -> Progress:
        return self.job.progress

    @cached_property
    def model(self) -> Any:
        """Opened on first access, so that everything that can be refused is refused before."""
        model = self.job.open(self.place, (), self.questions)
        self._before = model.cost.copy()
        if self.settings.in_words and model.info.remote:  # a model that is not local is always asked in a chat
            self.settings = replace(self.settings, chat=True)
        return model

    @property
    def cost(self) -> Any:
        """What the model has cost so far in this run."""
        return self.model.cost - self._before

    def share(self, asked: Callable[[], Iterable[Asked]], ways: Sequence[Elicitation | Writer]) -> Share:
        """The part of what is asked that this machine asks."""
        recorded = self.settings.recorded()
        return self.shards.share(self.study, self.questions, recorded, ways, asked, self.progress)

    def ask(self, asked: Sequence[Asked], elicitations: Sequence[Elicitation], **about: Any) -> Responses:
        """Score everything, or this machine's share of it; ``about``: further fields of the run."""
        model = self.model
        share = self.share(lambda: asked, elicitations)
        responses = ask(model, list(share.cut(asked)), elicitations, progress=self.progress)
        return self.finished(responses, share, **about)

    def ask_for_replies(self, asked: Sequence[Asked], read: Any = None, repeats: int = 1, **about: Any) -> Responses:
        """Ask for replies to everything, or to this machine's share of it; for ``repeats`` of them, each a sample."""
        model, writer = self.model, self.settings.writer()
        share = self.share(lambda: asked, [writer])
        own = list(share.cut(asked))
        samples = [sample for sample in range(repeats) for _ in own]
        responses = ask_for_replies(model, own * repeats, writer, read=read, repeats=samples, progress=self.progress)
        return self.finished(responses, share, **about)

    def finished(
        self, responses: Responses, share: Share, questions: QuestionSet[Any] | None = None, **about: Any
    ) -> Responses:
        """The responses with their run: model, cost, settings, provenance and what is said ``about`` it."""
        from unslant.experiment.run_record import run_of, with_run

        run = run_of(self.study, self.questions, self.settings.recorded(), self.model, self._before, self.settings)
        return with_run(responses, replace(run, shard=share.header, **about), questions or share.own(self.questions))
