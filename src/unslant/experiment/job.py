"""A study at work: its arguments, its models, and the questions that it asks one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack

from unslant.asking import Asked, Progress, ask, ask_for_replies
from unslant.experiment import GenerateOptions, ModelOptions, PromptOptions, ShardOptions
from unslant.models.open import open_chat, open_model, opened
from unslant.scale import WHOLE, Share

if TYPE_CHECKING:
    from unslant.experiment.running import Recording
    from unslant.prompts import Elicitation, Writer
    from unslant.questions import QuestionSet
    from unslant.responses import Responses
    from unslant.responses.provenance import Cost
    from unslant.responses.run import AdaptiveRun, ComposedCounts, TwoPhaseRun, UntilRun

S = TypeVar("S", bound=PromptOptions)


class About(TypedDict, total=False):
    """Fields of a :class:`~unslant.responses.run.Run` that only the recipe of a study knows."""

    parameters: int | None
    example_prompt: str
    counts: ComposedCounts
    cost: Cost
    order_costs: dict[str, float]
    until: UntilRun | None
    two_phase: TwoPhaseRun | None
    adaptive: AdaptiveRun | None


@dataclass(frozen=True, kw_only=True)
class Given(Generic[S]):
    """The arguments of a study, from the command line or from Python.

    Attributes:
        models: names; from Python also models, or functions that load one.
        questions: a source for :func:`unslant.load_questions`; for some studies several.
        log: files of recorded responses, or tables in memory, in place of models and questions.
        options: how to open and run each model.
        inputs: further files, of the type :attr:`Study.inputs`.
        outputs: the outputs of the command; None from Python, where the result itself has methods that write.
    """

    settings: S
    models: tuple[Any, ...] = ()
    questions: Any = None
    log: tuple[Any, ...] = ()
    options: tuple[ModelOptions, ...] = ()
    generate: GenerateOptions = field(default_factory=GenerateOptions)
    shards: ShardOptions = WHOLE
    inputs: Any = None
    outputs: Any = None


@dataclass
class Job(Generic[S]):
    """A study at work.

    Attributes:
        questions: the return value of :meth:`Study.load`.
        needs: the abilities that a model must have.
        settings: of each model (:meth:`Study.settings_of_each`).
        record: opens models, and stores their scores and replies if there is a store.
        saves: each writes another output after the result.
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
        """The model of this place, with the abilities needed: by default those that its settings need."""
        model, given = self.given.models[place], self.given
        needs = needs or self.needs(self.settings[place])
        if not isinstance(model, str):
            return opened(model, needs)
        return self.open_named(model, needs, given.options[place], *questions, run_of=run_of)

    def open_named(
        self, name: str, needs: Sequence[str], options: ModelOptions, *questions: QuestionSet[Any], run_of: str = ""
    ) -> Any:
        """A model by name; the store keeps its scores or replies under a run of ``run_of``, by default all models."""
        every = run_of or (", ".join(map(str, self.given.models)) if len(self.given.models) > 1 else "")
        load: Callable[[], Any] = partial(open_model, name, options, needs)
        if "generate" in needs:
            load = partial(open_chat, name, options, self.given.generate)
        return self.record.loader(load, *questions, run_of=every)()


@dataclass
class Asking(Generic[S]):
    """One model at work.

    Attributes:
        questions: the sample that the model is asked, of those of the job.
    """

    study: str
    job: Job[S]
    place: int
    settings: S

    @cached_property
    def questions(self) -> QuestionSet[Any]:
        return self.job.settings[self.place].sampled(self.job.questions)

    @property
    def shards(self) -> ShardOptions:
        return self.job.given.shards

    @property
    def progress(self) -> Progress:
        return self.job.progress

    @cached_property
    def model(self) -> Any:
        """The model, opened on first access: every check that needs no model comes before."""
        model = self.job.open(self.place, (), self.questions)
        self._before = model.cost.copy()
        if self.settings.in_words and model.info.remote:  # a model that is not local is always asked in a chat
            self.settings = replace(self.settings, chat=True)
        return model

    @property
    def cost(self) -> Any:
        """The cost of the model so far in this run."""
        return self.model.cost - self._before

    def share(self, asked: Callable[[], Iterable[Asked]], ways: Sequence[Elicitation | Writer]) -> Share:
        """The share of this machine in everything that is asked."""
        recorded = self.settings.recorded()
        return self.shards.share(self.study, self.questions, recorded, ways, asked, self.progress)

    def ask(self, asked: Sequence[Asked], elicitations: Sequence[Elicitation], **about: Unpack[About]) -> Responses:
        """Score everything, or the share of this machine; ``about`` has further fields of the run."""
        model = self.model
        share = self.share(lambda: asked, elicitations)
        responses = ask(model, list(share.cut(asked)), elicitations, progress=self.progress)
        return self.finished(responses, share, **about)

    def ask_for_replies(
        self, asked: Sequence[Asked], read: Any = None, repeats: int = 1, **about: Unpack[About]
    ) -> Responses:
        """Ask for replies to everything, or to the share of this machine, in ``repeats`` samples."""
        model, writer = self.model, self.settings.writer()
        share = self.share(lambda: asked, [writer])
        here = list(share.cut(asked))
        samples = [sample for sample in range(repeats) for _ in here]
        responses = ask_for_replies(model, here * repeats, writer, read=read, repeats=samples, progress=self.progress)
        return self.finished(responses, share, **about)

    def finished(
        self, responses: Responses, share: Share, questions: QuestionSet[Any] | None = None, **about: Unpack[About]
    ) -> Responses:
        """The responses with their run: model, cost, settings, provenance, and the fields ``about`` it."""
        from unslant.experiment.run_record import run_of, with_run

        run = run_of(self.study, self.questions, self.settings.recorded(), self.model, self._before, self.settings)
        return with_run(responses, replace(run, shard=share.header, **about), questions or share.own(self.questions))
