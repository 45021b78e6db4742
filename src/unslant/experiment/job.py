"""A running study: its arguments, its models, the questions that it asks one of them, and the record of how.

The record is the block ``provenance`` of the result, and the :class:`~unslant.responses.run.Run` of its responses.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack

import numpy as np

from unslant import __version__
from unslant.arrays import jsonable
from unslant.asking import Asked, Progress, Share, ask, ask_for_replies
from unslant.errors import ModelError
from unslant.experiment import WHOLE, GenerateOptions, ModelOptions, PromptOptions, ShardOptions
from unslant.models import Model, facts_of
from unslant.models.open import check_opens, open_chat, open_model, opened
from unslant.questions import Question, QuestionSet
from unslant.reach import COMMAND, url_without_secrets
from unslant.responses import Responses, Run
from unslant.responses.provenance import AskedModel, AskedQuestions, ChatCost, Cost, Provenance, model_block

if TYPE_CHECKING:
    from unslant.experiment.running import Recording
    from unslant.models import ChatModel
    from unslant.prompts import Elicitation, Writer
    from unslant.responses.run import AdaptiveRun, ComposedCounts, TwoPhaseRun, UntilRun

S = TypeVar("S", bound=PromptOptions)
R = TypeVar("R")


class About(TypedDict, total=False):
    """Fields of a :class:`~unslant.responses.run.Run` that only the recipe of a study knows."""

    parameters: int | None
    example_prompt: str
    counts: ComposedCounts
    cost: Cost
    order_costs: dict[str, float]
    cost_once: float
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
    """A running study.

    Attributes:
        questions: the return value of :meth:`Study.load`.
        needs: the abilities that a model must have.
        settings: of each model (:meth:`Study.settings_of_each`).
        record: opens models, and stores their scores and replies if there is a store.
        saves: each writes another output after the result.
        checks: each looks at the questions of a model before it is opened.
    """

    needs: Callable[[S], tuple[str, ...]]
    given: Given[S]
    questions: Any
    settings: Sequence[S]
    record: Recording
    saves: list[Callable[[], object]] = field(default_factory=list)
    checks: list[Callable[[QuestionSet[Any]], object]] = field(default_factory=list)

    @property
    def progress(self) -> Progress:
        return self.record.progress

    def each_model(self, ask: Callable[[int], R]) -> list[R]:
        """What ``ask`` returns for the place of each model. Of several, one that fails is left out, with a warning.

        Raises:
            ModelError: if one of several cannot be opened, before any is asked; or if all fail.
        """
        models, answers = self.given.models, []
        named = [one for one in zip(models, self.given.options, self.settings, strict=True) if isinstance(one[0], str)]
        for model, options, settings in named if len(models) > 1 and not self.record.offline else ():
            check_opens(model, options, self.needs(settings))
        for place, model in enumerate(models):
            try:
                answers.append(ask(place))
            except ModelError as error:
                if len(models) == 1:
                    raise
                name = model.name if isinstance(model, Model) else url_without_secrets(str(model))
                self.record.failed[name] = str(error)
                warnings.warn(f"{name} is left out: {error}", stacklevel=2)
        if not answers:
            raise ModelError("; ".join(self.record.failed.values()))
        return answers

    def open(self, place: int, needs: Sequence[str] = (), *questions: QuestionSet[Any], run_of: str = "") -> Any:
        """The model of this place, with the abilities needed: by default those that its settings need."""
        model, given = self.given.models[place], self.given
        generate = None if needs else given.generate  # a study that names its needs changes how a model replies itself
        needs = needs or self.needs(self.settings[place])
        for check, one in product(self.checks, questions):
            check(one)
        if not isinstance(model, str):
            return opened(model, needs, generate=generate)
        return self.open_named(model, needs, given.options[place], *questions, run_of=run_of)

    def open_named(
        self, name: str, needs: Sequence[str], options: ModelOptions, *questions: QuestionSet[Any], run_of: str = ""
    ) -> Any:
        """A model by name; the store keeps its scores or replies under a run of ``run_of``, by default all models."""
        every = run_of or (", ".join(map(str, self.given.models)) if len(self.given.models) > 1 else "")
        load: Callable[[], Any] = partial(open_model, name, options, needs)
        if "generate" in needs:
            load = partial(open_chat, name, options, self.given.generate)
        return self.record.loader(name, load, *questions, run_of=every)()


@dataclass
class Asking(Generic[S]):
    """One model of a running study.

    Attributes:
        questions: the model's sample of the job's questions.
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
        """This machine's share of everything that is asked, which ``asked`` returns in order; called for shards."""
        if not self.shards.shard:
            return Share()
        from unslant.scale.plan import Shard, ShardShare, planned

        recorded = self.settings.recorded()
        plan, *sizes = planned(self.study, self.questions, recorded, ways, asked(), self.progress)
        if self.shards.plan is not None:
            plan.agree(Path(self.shards.plan))
        return ShardShare.of(Shard.parse(self.shards.shard), self.questions, plan, *sizes)

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
        run = run_of(self.study, self.questions, self.settings.recorded(), self.model, self._before, self.settings)
        return with_run(responses, replace(run, shard=share.header, **about), questions or share.own(self.questions))


def provenance(models: Iterable[Any], questions: Iterable[Any], settings: Any) -> Provenance:
    """The block of a result.

    Args:
        models: models, or their blocks from :func:`model_block`.
        questions: the sets asked; those without a name as ``(name, set)``.
        settings: a dataclass of them, or a mapping.
    """
    values: Mapping[str, Any] = settings
    if dataclasses.is_dataclass(settings):
        values = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
    blocks = [model if isinstance(model, dict) else model_block(model.name, facts_of(model)) for model in models]
    versions = {"python": platform.python_version(), "unslant": __version__, "numpy": np.__version__}
    versions |= {name: version for block in blocks for name, version in block.get("versions", {}).items()}
    sample = {"limit": values.get("limit"), "seed": values.get("seed")}
    return Provenance(
        versions=dict(sorted(versions.items())),
        platform=platform.platform(),
        models=[AskedModel(**{key: value for key, value in block.items() if key != "versions"}) for block in blocks],
        questions=[
            AskedQuestions(name=url_without_secrets(str(name)), digest=one.digest, n=len(one), **sample)
            for name, one in (q if isinstance(q, tuple) else (q.name, q) for q in questions)
        ],
        settings={name: _plain(value) for name, value in values.items()},
        command=list(COMMAND.get().repeatable),
        date=_today(),
    )


def combined(blocks: Sequence[Provenance]) -> Provenance:
    """The block of a comparison, from those of its results; settings only if all have the same."""
    models = [model for block in blocks for model in block.models]
    questions = [entry for block in blocks for entry in block.questions]
    settings = [block.settings for block in blocks]
    whole = provenance((), (), settings[0] if all(one == settings[0] for one in settings) else {})
    versions = {name: version for block in (*blocks, whole) for name, version in block.versions.items()}
    distinct = [entry for i, entry in enumerate(questions) if entry not in questions[:i]]
    update = {"models": models, "questions": distinct, "versions": dict(sorted(versions.items()))}
    return whole.model_copy(update=update)


def _plain(value: object) -> Any:
    """A setting for JSON, without secrets."""
    if isinstance(value, QuestionSet):
        return {"name": value.name, "digest": value.digest}
    if isinstance(value, str | Path):
        return url_without_secrets(str(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return jsonable(value) if isinstance(value, int | float | None) else str(value)


def _today() -> str:
    """The day; ``SOURCE_DATE_EPOCH`` can set it, so that equal runs give equal files on any day."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    return moment.date().isoformat()


def facts_of_replies(model: ChatModel, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a run of replies says of its model: those of its facts that bear on them, and who answered."""
    return {key: facts[key] for key in ("offline", "chat_template") if key in facts} | model.answerers.facts


def run_of(
    study: str,
    questions: QuestionSet[Any],
    settings: Mapping[str, Any],
    model: Any,
    before: Cost | ChatCost | None = None,
    chosen: object = None,
) -> Run:
    """Model, questions, settings and provenance of a run; with its cost ``before``, also cost, engine and caveats.

    Args:
        model: a model, or its name where nothing was asked.
        chosen: every setting, by default ``settings``.
    """
    facts: dict[str, Any] = {} if before is None else facts_of(model)
    if settings.get("chat") is False:  # a model does not know how the replies were asked for that a store has of it
        facts.pop("chat_template", None)
    name = model if isinstance(model, str) else model.name
    run = Run(
        study=study,
        model=name,
        questions=questions.name,
        questions_digest=questions.digest,
        loading=questions.report,
        settings=json.loads(json.dumps(dict(settings))),  # as they are read back: tuples become lists
        provenance=provenance([model_block(name, facts)], [questions], chosen or settings),
    )
    if isinstance(before, ChatCost):
        requests = requests_of({name: (model, before)})
        return replace(run, requests=requests, **facts_of_replies(model, facts))
    if before is None:
        return run
    facts.pop("revision", None)  # in the provenance
    if special := facts.get("special_tokens"):  # the model counts over all runs; keep the questions of this one
        ids = {question.id for question in questions}
        here = tuple(question_id for question_id in special.questions if question_id in ids)
        facts["special_tokens"] = replace(special, questions=here) if here else None
    return replace(run, **facts, cost=model.cost - before)


def requests_of(costs_before: Mapping[str, tuple[ChatModel, ChatCost]]) -> dict[str, ChatCost]:
    """The cost of the replies of each model since an earlier cost, and the most frequent error among them."""

    def why(model: ChatModel) -> str:  # of equally frequent errors the first by name: arrival order is chance
        return min(model.errors, key=lambda text: (-model.errors[text], text), default="")

    return {name: replace(model.cost - before, error=why(model)) for name, (model, before) in costs_before.items()}


def with_run(responses: Responses, run: Run, questions: QuestionSet[Any]) -> Responses:
    """The responses with their run and the questions that have texts."""
    texts = tuple(question for question in questions if isinstance(question, Question))
    return Responses(responses.table, run, texts)
