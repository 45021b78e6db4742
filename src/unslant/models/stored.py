"""A model that remembers: what the store knows is not asked again, and what is asked is kept as it comes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np

from unslant.arrays import Floats
from unslant.models.base import Cost, Encoded, ResumableModel, Scored, ScoringModel
from unslant.prompts.prompt import Prompt
from unslant.store import Pass, Store
from unslant.store.scores import digest

_SECONDS_BETWEEN_WRITES = 0.5
_MOST_SECONDS_BETWEEN_WRITES = 30.0
_SHARE_OF_TIME = 0.01
"""Writing may take this share of the time; where a write takes long, the next one waits accordingly."""


class StoredModel:
    """Wraps a model; scores of prompts that the store knows come from there.

    A prompt is known by the model's identity and its exact tokens (its text, where the model does not tokenize by
    itself). An interrupted call is gone on with by making the same call again, in this process or another one. For a
    :class:`~unslant.models.base.ResumableModel` the scores are then equal, bit for bit, to those of an unbroken call.

    ``cost`` is what the scores have cost whenever they were computed, in this process or before; prompts taken over
    from *other* calls cost nothing.

    Args:
        model: the model that is asked.
        store: where scores are kept.
        run: id of the run on whose behalf it is asked.

    Attributes:
        recalled: prompts that came from the store so far.
        taken_over: those of them that other calls had scored.
    """

    def __init__(self, model: ScoringModel, store: Store, run: str = "") -> None:
        self.model_asked = model
        self.store = store
        self.run = run
        self.cost = Cost()
        self.recalled = 0
        self.taken_over = 0

    @property
    def name(self) -> str:
        """The model's own."""
        return self.model_asked.name

    @property
    def identity(self) -> Mapping[str, str]:
        """The model's own."""
        return self.model_asked.identity

    @property
    def engine(self) -> str:
        """What scores: the model's engine, or its class."""
        return str(getattr(self.model_asked, "engine", type(self.model_asked).__name__))

    @property
    def parameters(self) -> int | None:
        """Number of weights, where the model tells."""
        return getattr(self.model_asked, "parameters", None)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        """See :meth:`unslant.models.base.ScoringModel.score`.

        Raises:
            StoreError: if the store cannot be written; what was written before is kept.
        """
        model = self.model_asked
        identity = model.identity
        if not isinstance(model, ResumableModel):
            keys = _keys(identity, (_text_bytes(prompt) for prompt in prompts))
            yield from _Call(self, self.store.open_pass(identity, keys, self.run)).score(prompts)
            return
        started = time.perf_counter()
        encoded = model.encode(prompts)
        keys = _keys(identity, map(_token_bytes, encoded))
        seconds = time.perf_counter() - started
        call = _ResumableCall(self, self.store.open_pass(identity, keys, self.run))
        model.cost.seconds += seconds
        yield from call.score_encoded(model, prompts, encoded)


class _Call:
    """One call of ``score``: yields what is stored, asks for the rest, and writes it as it comes."""

    def __init__(self, owner: StoredModel, found: Pass) -> None:
        self.owner = owner
        self.found = found
        self.known = found.stored()
        self.total = len(found.keys)
        self.done = len(self.known)
        self.before = owner.cost.copy()
        self.earlier = Cost(**found.cost)
        self.inner_before = owner.model_asked.cost.copy()
        self.rows: list[tuple[int, Floats]] = []
        self.states: dict[str, tuple[int, Callable[[], bytes]]] = {}
        self.next_write = time.perf_counter() + _SECONDS_BETWEEN_WRITES
        owner.recalled += self.done
        owner.taken_over += self.total - len(found.planned)
        self.count()

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        missing = [i for i in range(self.total) if i not in self.known]
        yield from self.recall()
        if not missing:
            return
        try:
            for scored in self.owner.model_asked.score([prompts[i] for i in missing]):
                self.rows.append((missing[scored.index], scored.logprobs))
                self.count()
                self.write_if_due()
                yield Scored(missing[scored.index], scored.logprobs)
        finally:
            self.write()

    def recall(self) -> Iterator[Scored]:
        for position, logprobs in self.known.items():
            yield Scored(position, logprobs)

    def cost(self) -> Cost:
        return self.earlier + (self.owner.model_asked.cost - self.inner_before)

    def count(self) -> None:
        """Take stock, with the results at hand: work on results that never came is not kept."""
        self.spent = self.cost()
        self.owner.cost = self.before + self.spent

    def write_if_due(self) -> None:
        if time.perf_counter() >= self.next_write:
            self.write()

    def write(self) -> None:
        """Keep what has come; if that fails, it is not tried a second time."""
        rows, states = self.rows, self.states
        if not rows and not states:
            return
        self.rows, self.states = [], {}
        started = time.perf_counter()
        self.done += len(rows)
        finished = self.done == self.total
        written = {} if finished else {stretch: (step, state()) for stretch, (step, state) in states.items()}
        self.found.write(rows, self.done, asdict(self.spent), written)
        now = time.perf_counter()
        pause = max(_SECONDS_BETWEEN_WRITES, (now - started) / _SHARE_OF_TIME)
        self.next_write = now + min(pause, _MOST_SECONDS_BETWEEN_WRITES)


class _ResumableCall(_Call):
    """A call whose model goes on behind its last batch; it is the journal that the model writes in."""

    def score_encoded(
        self, model: ResumableModel, prompts: Sequence[Prompt], encoded: Sequence[Encoded]
    ) -> Iterator[Scored]:
        self.planned = self.found.planned.tolist()
        yield from self.recall()
        if self.done == self.total:
            return
        own = [prompts[i] for i in self.planned]
        given = set(self.known)
        try:
            for scored in model.score_encoded(own, [encoded[i] for i in self.planned], self):
                position = self.planned[scored.index]
                if position not in given:  # it is, where a state was lost and the model had to begin anew
                    given.add(position)
                    yield Scored(position, scored.logprobs)
        finally:
            self.write()
        if len(given) < self.total:
            # Another process was at work too, and ahead: the model went on behind what that one had noted.
            others = {i: logprobs for i, logprobs in self.found.stored().items() if i not in given}
            self.done += len(others)
            self.found.write((), self.done, asdict(self.spent), {})
            self.owner.recalled += len(others)
            for position, logprobs in others.items():
                yield Scored(position, logprobs)

    def cost(self) -> Cost:
        cost = super().cost()
        now = self.owner.model_asked.cost - self.inner_before
        if now.tokens_plain:  # counted over the whole call by every process that works on it
            cost.tokens_plain, cost.tokens_baqckv = now.tokens_plain, now.tokens_baqckv
        return cost

    def state(self, stretch: str) -> bytes:
        """See :class:`unslant.models.base.Journal`."""
        state = self.found.state(stretch)
        if state and not self.states:  # another process may have come further since this one looked
            self.earlier = Cost(**self.found.cost)
        return state

    def note(self, stretch: str, step: int, results: Sequence[Scored], state: Callable[[], bytes]) -> None:
        """See :class:`unslant.models.base.Journal`."""
        rows = ((self.planned[scored.index], scored.logprobs) for scored in results)
        self.rows += [row for row in rows if row[0] not in self.known]
        self.states[stretch] = (step, state)
        self.count()
        self.write_if_due()


def _keys(identity: Mapping[str, str], contents: Iterator[bytes]) -> list[bytes]:
    model = digest(json.dumps(dict(identity), sort_keys=True).encode())
    return [digest(model, content) for content in contents]


def _token_bytes(item: Encoded) -> bytes:
    lengths = np.array([len(item.context), *map(len, item.candidates)], dtype="<i8")
    return b"".join((lengths.tobytes(), item.context.tobytes(), *(ids.tobytes() for ids in item.candidates)))


def _text_bytes(prompt: Prompt) -> bytes:
    messages = [(message.role, message.content) for message in prompt.messages]
    return json.dumps([prompt.text, prompt.continuations, messages]).encode()
