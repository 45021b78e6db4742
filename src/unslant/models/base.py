"""What unslant needs of a model: :class:`ModelInfo`, which every model has, and the methods of its kind.

A model of your own is a subclass of :class:`ScoringModel` (or of :class:`~unslant.models.chat.ChatModel`)::

    class Coin(ScoringModel):
        def __init__(self):
            super().__init__(ModelInfo(name="coin", identity={"model": "coin", "version": "1"}))

        def score(self, prompts):
            for index, prompt in enumerate(prompts):
                yield Scored(index, np.log(np.full(len(prompt.continuations), 1 / len(prompt.continuations))))
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import RLock
from typing import Any, Literal
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats, are_logprobs
from unslant.errors import InputError, ModelError
from unslant.prompts import Prompt
from unslant.responses.provenance import Cost as Cost

Ids = NDArray[np.int32]
Ability = Literal["score", "generate", "attend", "train"]
"""``score``: log-probabilities of labels. ``generate``: replies. ``attend``: attention and hidden states can be read
and changed. ``train``: weights can be trained."""
NOBODY = ("", "")
"""A reply that names neither a model nor a system."""


class Malformed(ModelError):
    """The reply can be read in several ways, or in none; asking again would give the same."""


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """Who a model is and what it can do. A wrapper passes it on, or a changed copy (:func:`dataclasses.replace`).

    Attributes:
        name: display name, such as the folder or Hub id.
        identity: everything besides the prompts that may change a score or a reply: weights digest, adapter, dtype,
            tokenizer, engine, address. Stored scores are kept under it. It is as of the last :meth:`Model.identify`;
            before the first one, what is known without computing or asking.
        engine: what computes, such as ``tree`` or ``plain``.
        facts: what every result must say about the model, as fields of a :class:`~unslant.responses.run.Run`; see
            :func:`facts_of`.
        can: what it can do.
        remote: its weights are out of reach. Only its server can say who it is, and ``offline`` forbids asking.
        renders_prompts: it words its prompts itself, as decision endpoints do, so it takes only prompts with a
            ``state``.
        takes_turns: of a model that replies: it can be shown a conversation of several turns.
        parameters: number of weights, where known.
        copies: copies of the model that work at the same time.
    """

    name: str
    identity: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    can: frozenset[Ability] = frozenset({"score"})
    remote: bool = False
    renders_prompts: bool = False
    takes_turns: bool = True
    parameters: int | None = None
    copies: int = 1


class Model:
    """What all models have in common; subclass :class:`ScoringModel` or :class:`~unslant.models.chat.ChatModel`.

    Attributes:
        recalled: number of prompts that came from a store so far.
        taken_over: how many of those other calls had asked.
    """

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self.recalled = self.taken_over = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def info(self) -> ModelInfo:
        """Who the model is and what it can do; cheap to read."""
        return self._info

    @property
    def name(self) -> str:
        """Display name."""
        return self.info.name

    def identify(self) -> ModelInfo:
        """Find out who the model is now, as it may have changed: digest its weights, or ask its server.

        Raises:
            ModelError: if its server does not answer.
        """
        return self.info

    def describe(self) -> ModelInfo:
        """The info for a result, with all facts, including those that take computing; asks no server."""
        return self.info

    @property
    def foreign_code(self) -> tuple[str, ...]:
        """Code that acts on the model and comes from no installed library; nothing is then stored or recalled."""
        return ()

    @property
    def waiting(self) -> str:
        """What a request that failed for the time being waits for; empty otherwise."""
        return ""

    @property
    def unwrapped(self) -> Model:
        """The model that is asked, without a store in front of it."""
        return self


def facts_of(model: Model) -> dict[str, object]:
    """The facts about a model that every result states, JSON-able: its engine, its identity, and its facts.

    Among the facts are ``offline`` (scores came from the store alone), ``incomplete`` (weights are missing from the
    checkpoint), ``half_precision`` (its agreement with float32), ``special_tokens`` (questions that spell some).
    """
    info = model.describe()
    return {"engine": info.engine or type(model.unwrapped).__name__, "identity": dict(info.identity), **info.facts}


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of one prompt, or why there are none.

    Attributes:
        logprobs: ``logprobs[c]`` is the natural-log probability of continuation ``c`` (whole text, summed over its
            tokens, over the full vocabulary), shape ``(len(prompt.continuations),)``; None if the reply held no
            log-probabilities.
        error: what the reply held then.
        bounds: the continuations for which ``logprobs`` is only an upper bound, since a server returns few tokens.
        declined: whether the reply was a refusal.
        by: the model and the system that the reply names; empty where it names none.
    """

    index: int
    logprobs: Floats | None
    error: str = ""
    bounds: tuple[int, ...] = ()
    declined: bool = False
    by: tuple[str, str] = NOBODY


class ScoringModel(Model, ABC):
    """A model that gives log-probabilities of continuations.

    Attributes:
        cost: running total; subtract a copy taken before to get the cost of one call.
    """

    def __init__(self, info: ModelInfo) -> None:
        super().__init__(info)
        self.cost = Cost()

    @abstractmethod
    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        """Score every prompt; yields each prompt's result once, as it is ready, in any order.

        Raises:
            ModelError: if a prompt cannot be scored (longer than the model's context, for example); it names the group.
        """

    def ask_again(self, prompts: Sequence[Prompt]) -> Iterable[Scored]:
        """Scores of prompts that were asked before, only to compare them."""
        return self.score(prompts)

    def note_stored(self, by: tuple[str, str], group: str) -> None:  # only servers name themselves
        """Note that a prompt's score comes from the store, and which model the stored reply named.

        Raises:
            ModelChanged: if it names another model than the replies before.
        """


_TURNS: dict[int, RLock] = {}
"""Lock of each loaded model, by its id: a model of other people may have no hash, as a dataclass has none."""


@contextmanager
def in_turn(models: Iterable[object]) -> Iterator[None]:
    """Keep other threads from using the same loaded models in the block, whose cost would contain theirs."""
    loaded = {id(one.unwrapped): one.unwrapped for one in models if isinstance(one, Model)}
    with ExitStack() as stack:
        for key in sorted(loaded):  # in one order, so that no two threads wait for each other
            if key not in _TURNS:
                finalize(loaded[key], _TURNS.pop, key, None)
            stack.enter_context(_TURNS.setdefault(key, RLock()))
        yield


def misplaced(result: Any, kind: type, missing: Collection[int], total: int) -> str:
    """Why this is not the result, of a ``kind``, for one of ``total`` prompts that is still ``missing``; empty if it
    is."""
    if not isinstance(result, kind):
        return f"yields {type(result).__name__}, where {kind.__name__} is expected"
    index = getattr(result, "index", None)
    if not isinstance(index, int | np.integer) or index not in missing:
        return f"yields index {index!r}, which came before or is not one of 0 to {total - 1}"
    return ""


def checked(model: ScoringModel, prompts: Sequence[Prompt], *more: Any) -> Iterator[Scored]:
    """The results of ``model.score(prompts, *more)``, which may be a model of other people; a prompt has failed whose
    numbers are not log-probabilities.

    Raises:
        ModelError: on anything other than a :class:`Scored`, once for a prompt, with a number for each continuation.
    """
    missing = set(range(len(prompts)))
    for result in model.score(prompts, *more):
        problem = misplaced(result, Scored, missing, len(prompts))
        if not problem and result.logprobs is not None:
            shape = (len(prompts[result.index].continuations),)
            right = isinstance(result.logprobs, np.ndarray) and result.logprobs.dtype.kind in "fiu"
            if not right or result.logprobs.shape != shape:
                given = str(result.logprobs)[:60]
                problem = f"yields the logprobs {given!r}, where an array of {shape[0]} numbers is expected"
        if problem:
            raise ModelError(f"{model.name}: score() {problem}")
        missing.remove(result.index)
        if result.logprobs is not None and not are_logprobs(result.logprobs):
            result = Scored(result.index, None, f"not log-probabilities: {result.logprobs.tolist()}")
        yield result


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of one prompt: ``context`` (shape ``(k,)``) and the tokens to score after it, per candidate."""

    context: Ids
    candidates: tuple[Ids, ...]

    @property
    def longest(self) -> int:
        """Tokens that the model has to take at once. The last token of a candidate is predicted, never read."""
        return len(self.context) + max(map(len, self.candidates)) - 1


class TokenizingModel(ScoringModel):
    """A model that tokenizes by itself, so that the store knows a prompt by its tokens."""

    @abstractmethod
    def encode(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        """Token ids of the prompts."""

    @abstractmethod
    def score(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded] | None = None) -> Iterator[Scored]:
        """As for any model; ``encoded`` is the result of :meth:`encode`, where it was called before."""

    def agrees(self, encoded: Sequence[Encoded], known: Sequence[Floats]) -> bool:
        """Whether the model gives some prompts their stored scores; True where its identity settles that."""
        return True


class Journal(ABC):
    """Where a model notes its progress, so that another process can continue from there."""

    @abstractmethod
    def state(self, stretch: str) -> bytes:
        """The last state noted for a stretch of the work; empty if there is none."""

    @abstractmethod
    def note(self, stretch: str, step: int, results: Sequence[Scored], state: Callable[[], bytes]) -> None:
        """Keep these results; ``state`` gives the bytes from which to continue after them."""


class ResumableModel(TokenizingModel):
    """A model that can continue where another process stopped, with the same numbers bit for bit."""

    @abstractmethod
    def score_encoded(
        self, prompts: Sequence[Prompt], encoded: Sequence[Encoded], journal: Journal | None = None
    ) -> Iterator[Scored]:
        """As ``score``; with a journal, it continues from the noted state and yields the results not noted yet."""


def loaded_by(function: Callable[..., Any]) -> Any:
    """The result of a function without arguments, or of a class of models; InputError for anything else."""
    is_class = inspect.isclass(function) and issubclass(function, Model)
    if not (_is_function(function) or is_class) or not _takes(function):
        raise InputError(not_a_model(function))
    return function()


def replies_to_prompts(model: Any) -> bool:
    """Whether this is a function of a prompt, and not one that loads a model."""
    return _is_function(model) and not _takes(model) and _takes(model, "prompt")


def _is_function(model: object) -> bool:
    # Tokenizers, modules and factories can be called too, and fail in their own ways.
    return inspect.isroutine(model) or isinstance(model, partial)


def _takes(function: Callable[..., Any], *arguments: str) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False
    return True


def of_transformers(model: object) -> bool:
    """Whether this is a causal language model of transformers, or wraps one."""
    # By its shape: the library need not be installed, and models of peft and of others wrap those of transformers.
    return hasattr(model, "get_input_embeddings") and hasattr(getattr(model, "config", None), "name_or_path")


def is_pipeline(model: object) -> bool:
    """Whether this is a pipeline of transformers with such a model."""
    has_both = of_transformers(getattr(model, "model", None)) and hasattr(model, "tokenizer")
    return has_both and not isinstance(model, Model)  # models of our own may have the same two attributes


def is_whole(model: Model) -> bool:
    """Whether a model of a user's own class has called the constructor of its base class."""
    return hasattr(model, "_info")


_ELSEWHERE = {
    "vllm": "start `vllm serve NAME` and give http://127.0.0.1:8000/v1#NAME",
    "sglang": "start `python -m sglang.launch_server --model-path NAME` and give http://127.0.0.1:30000/v1#NAME",
    "llama_cpp": "give its .gguf file by name, or the address of llama-server, as http://127.0.0.1:8080/v1#NAME",
    "xllamacpp": "give its .gguf file by name, or the address of its server, as http://127.0.0.1:8080/v1#NAME",
    "inspect_ai": "give its name, as inspect:PROVIDER/NAME",
    "openai": "give the address that it asks and the model, as https://HOST/v1#NAME",
}
"""Package of a model in memory that cannot be asked in this process -> how to give the same model."""


def not_a_model(model: object) -> str:
    """Why an object cannot be asked, and what to give instead."""
    kind = type(model).__name__
    if of_transformers(model) or (isinstance(model, tuple) and model and of_transformers(model[0])):
        return (
            f"{kind}: give a model of transformers with its tokenizer: unslant.open_model(model, tokenizer=tokenizer)"
        )
    if is_pipeline(model):
        return f"{kind}: a pipeline in memory is asked for the scores of labels; for replies give the model's name"
    if isinstance(model, Model) and not is_whole(model):
        return f"{kind} has no info: call super().__init__(ModelInfo(name=...)) in its __init__"
    if isinstance(model, Model):
        return f"{model.name} can {' and '.join(sorted(model.info.can))} only"
    if how := _ELSEWHERE.get(type(model).__module__.partition(".")[0]):
        return f"{kind} is a model in memory that unslant cannot ask directly: {how}"
    return (
        f"{kind} is not a model; give a name, what unslant.open_model returns, an object whose class is a subclass of "
        "unslant.models.ScoringModel, or a function: of a prompt, which returns the reply, or without arguments, which "
        "loads a model"
    )
