"""A model with a store: prompts in the store are not asked again, and new scores are kept as they arrive."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Generic, TypeVar

import numpy as np

from unslant.errors import ModelError
from unslant.models import base
from unslant.models.base import Cost, Encoded, Journal, ModelInfo, ResumableModel, Scored, ScoringModel, TokenizingModel
from unslant.prompts import Prompt
from unslant.store import Kept, Pass, Store, digest

PROBES = 4
"""Stored prompts that a local model scores again before any is recalled: the longest one, and others at random."""
_SECONDS_BETWEEN_WRITES = 0.5
_MOST_SECONDS_BETWEEN_WRITES = 30.0
_SHARE_OF_TIME = 0.01
"""Writing may take this share of the time: after a slow write, the next one waits accordingly."""


_Kind = TypeVar("_Kind", bound=base.Model)


class Stored(base.Model, Generic[_Kind]):
    """A model behind a store: its info is the model's, except for the identity, which is the one the store uses.

    Args:
        model: the model to ask.
        store: where results are kept.
        run: id of the run that asks.
        offline: do not ask a remote model; everything must be in the store.
    """

    _identity: Mapping[str, str] | None = None
    """The identity under which the results of the last call are stored."""
    apart = ""

    def __init__(self, model: _Kind, store: Store, run: str = "", *, offline: bool = False) -> None:
        super().__init__(model.info)
        self.model_asked, self.store, self.run = model, store, run
        self.offline = offline and model.info.remote

    @property
    def info(self) -> ModelInfo:
        return self._as_stored(self.model_asked.info)

    def describe(self) -> ModelInfo:
        return self._as_stored(self.model_asked.describe())

    def _as_stored(self, info: ModelInfo) -> ModelInfo:
        facts = {name: fact for name, fact in (("offline", self.offline), ("apart", self.apart)) if fact}
        return replace(info, identity=self._identity or info.identity, facts={**info.facts, **facts})

    @property
    def waiting(self) -> str:
        return self.model_asked.waiting

    @property
    def unwrapped(self) -> base.Model:
        return self.model_asked

    def _why_apart(self) -> str:
        """Why nothing is stored or reused; empty if nothing speaks against it."""
        foreign = ", ".join(self.model_asked.foreign_code[:3])
        return f"code from outside any installed library acts on it: {foreign}" if foreign else ""

    def _not_stored(self, missing: int, total: int, what: str = "prompts") -> ModelError:
        return ModelError(
            f"{self.name}: offline, and {missing:,} of {total:,} {what} are not in the store; leave out --offline"
        )


class StoredModel(Stored[ScoringModel], ScoringModel):
    """Wraps a model; scores of prompts that are in the store come from there.

    A prompt's key is the model's identity and its exact tokens (its text, if the model does not tokenize by itself). An
    interrupted call resumes when the same call is made again, in this process or another one. For a
    :class:`~unslant.models.base.ResumableModel` the scores then equal those of an uninterrupted call, bit for bit.

    The weights of a remote model cannot be digested. So it is asked who it is, and :data:`ASKED_AGAIN` of the stored
    prompts are asked again. If they get another model's scores (:func:`~unslant.models.answered.have_changed`), all
    scores stored of that model are dropped and asked again; if an earlier call has returned some of them, the call
    fails.

    ``cost`` is what the scores cost when they were computed, in this process or before; prompts taken over from *other*
    calls cost nothing and are counted as ``cost.reused``.

    Attributes:
        apart: why the model's scores are neither stored nor reused, such as code that acts on it; empty otherwise.
        purpose: what the scores are for. Calls share scores only within one purpose, so that the cost measured for each
            is its own. Most commands use the empty one.
    """

    purpose = ""

    def identify(self) -> ModelInfo:
        self._identity = self._identified(0)
        return self.info

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        model = self.model_asked
        identity = self._identity = self._identified(len(prompts))
        if not isinstance(model, TokenizingModel):
            keys = keys_of(identity, (_text_bytes(prompt) for prompt in prompts), self.purpose)
            stored_pass = self.store.open_pass(Kept, identity, keys, self.run)
            if model.info.remote and not self._still_right(stored_pass, prompts):
                self.store.forget(identity)
                if self.recalled:
                    raise ModelError(
                        f"{self.name}: the server no longer gives its stored scores, and this "
                        "run has used some; they have been dropped: run the same command again"
                    )
                stored_pass = self.store.open_pass(Kept, identity, keys, self.run)
            from unslant.models.answered import ModelChanged  # not needed where weights are at hand

            try:
                for position, row in sorted(stored_pass.stored().items()):
                    model.note_stored(row.by, prompts[position].group)
                yield from _StoredCall(self, stored_pass).score(prompts)
            except ModelChanged as change:  # the other model's scores were stored as this one's
                self.store.drop(keys_of(identity, (_text_bytes(prompt) for prompt in change.since), self.purpose))
                raise change.with_store() from None
            return
        if why := self._why_apart():
            yield from self._apart(prompts, why)
            return
        started = time.perf_counter()
        encoded = model.encode(prompts)
        keys = keys_of(identity, map(_token_bytes, encoded), self.purpose)
        seconds = time.perf_counter() - started
        stored_pass = self.store.open_pass(Kept, identity, keys, self.run)
        if not self._agrees(model, stored_pass, encoded):
            yield from self._apart(prompts, "it gives other scores than those that are stored of it")
            return
        if isinstance(model, ResumableModel):
            call = _ResumableCall(self, stored_pass)
            model.cost.seconds += seconds
            yield from call.score_encoded(model, prompts, encoded)
        else:
            yield from _StoredCall(self, stored_pass).score(prompts, encoded)

    def _agrees(self, model: TokenizingModel, stored_pass: Pass[Kept], encoded: Sequence[Encoded]) -> bool:
        """Whether a local model gives the stored scores, on the longest prompt and a few others."""
        if not (stored := stored_pass.stored()):
            return True
        from unslant.models.answered import some_of

        # The longest, since a change in memory may act at late positions only.
        longest = max(stored, key=lambda i: len(encoded[i].context))
        probes = [longest, *some_of(sorted(set(stored) - {longest}), PROBES - 1)]
        return model.agrees([encoded[i] for i in probes], [stored[i].logprobs for i in probes])

    def _apart(self, prompts: Sequence[Prompt], why: str) -> Iterator[Scored]:
        """Scores that are neither stored nor reused, since something in memory acts on the model."""
        self.apart = why
        warnings.warn(f"{self.name}: {why}; its scores are neither stored nor reused", stacklevel=3)
        before, inner = self.cost.copy(), self.model_asked.cost.copy()
        for scored in self.model_asked.score(prompts):
            self.cost = before + (self.model_asked.cost - inner)
            yield scored

    def _identified(self, prompts: int) -> Mapping[str, str]:
        """The model's identity now, as the store knows it; ``prompts`` are about to be asked."""
        if self.offline:
            latest = self.store.latest(self.model_asked.info.identity)  # not asked yet, so this is its address
            if latest is None:
                raise self._not_stored(prompts, prompts)
            return latest
        identity, before = self.store.known_as(self.model_asked.identify().identity), self._identity or {}
        count = self.cost.prompts + self.recalled
        if self.model_asked.info.remote and count and identity != before:
            key = min(key for key in {**identity, **before} if identity.get(key) != before.get(key))
            from unslant.models.answered import WHAT_TO_DO, clock

            raise ModelError(
                f"{self.name}: after {count:,} prompts ({clock(time.time())}) the server "
                f"reports a different {key}: {identity.get(key, 'nothing')}, before {before.get(key, 'nothing')}. "
                f"{WHAT_TO_DO}"
            )
        return identity

    def _still_right(self, stored_pass: Pass[Kept], prompts: Sequence[Prompt]) -> bool:
        """Whether a remote model answers a sample of the stored prompts as it did."""
        stored = stored_pass.stored()
        if self.offline:
            if missing := len(prompts) - len(stored):
                raise self._not_stored(missing, len(prompts))
            return True
        from unslant.models.answered import ASKED_AGAIN, have_changed, some_of, weight_of_change

        positions = some_of(sorted(stored), ASKED_AGAIN)
        answers = list(self.model_asked.ask_again([prompts[i] for i in positions]))
        failed = [scored.error for scored in answers if scored.logprobs is None and not scored.declined]
        if failed:
            raise ModelError(f"{self.name}: a stored prompt was asked again, to compare, and failed: {failed[0]}")
        weights = []
        for scored in answers:
            if scored.logprobs is not None:
                row = stored[positions[scored.index]]
                if row.by[0] and scored.by[0] and row.by[0] != scored.by[0]:
                    return False
                weights.append(weight_of_change(row.logprobs, scored.logprobs))
        return not have_changed(weights, len(weights))


class _StoredCall:
    """One call of ``score``: yields what is stored, asks for the rest, and writes it as it arrives."""

    def __init__(self, owner: StoredModel, stored_pass: Pass[Kept]) -> None:
        self.owner, self.stored_pass, self.stored = owner, stored_pass, stored_pass.stored()
        self.total, self.done = len(stored_pass.keys), len(self.stored)
        self.before = owner.cost.copy()
        self.earlier = self.so_far()
        self.inner_before = owner.model_asked.cost.copy()
        self.rows: list[tuple[int, Kept]] = []
        self.states: dict[str, tuple[int, Callable[[], bytes]]] = {}
        self.next_write = time.perf_counter() + _SECONDS_BETWEEN_WRITES
        owner.recalled += self.done
        owner.taken_over += self.total - len(stored_pass.planned)
        self.count()

    def score(self, prompts: Sequence[Prompt], *more: Sequence[Encoded]) -> Iterator[Scored]:
        """All results; the model scores the prompts that are not in the store, by their tokens where given."""
        missing = [i for i in range(self.total) if i not in self.stored]
        yield from _recalled(self.stored)
        if not missing:
            return
        left: list[Any] = [[sequence[i] for i in missing] for sequence in (prompts, *more)]
        try:
            for scored in base.checked(self.owner.model_asked, *left):
                scored = replace(scored, index=missing[scored.index])
                if scored.logprobs is not None:  # a failure is not stored, so that it is asked again
                    self.rows.append((scored.index, Kept(scored.logprobs, scored.bounds, scored.by)))
                    self.count()
                yield scored
        finally:
            self.write()

    def so_far(self) -> Cost:
        """The cost that the store has recorded, with the prompts that the pass took over when it began."""
        return replace(Cost(**self.stored_pass.cost), reused=self.total - len(self.stored_pass.planned))

    def cost(self) -> Cost:
        return self.earlier + (self.owner.model_asked.cost - self.inner_before)

    def count(self) -> None:
        """Update the cost when results arrive, since work on results that never arrive is not counted; write if due."""
        self.spent = self.cost()
        self.owner.cost = self.before + self.spent
        if time.perf_counter() >= self.next_write:
            self.write()

    def write(self) -> None:
        """Store the results so far; if that fails, they are not written a second time."""
        rows, states = self.rows, self.states
        if not rows and not states:
            return
        self.rows, self.states = [], {}
        started = time.perf_counter()
        self.done += len(rows)
        finished = self.done == self.total
        written = {} if finished else {stretch: (step, state()) for stretch, (step, state) in states.items()}
        self.stored_pass.write(rows, self.done, asdict(self.spent), written)
        now = time.perf_counter()
        pause = max(_SECONDS_BETWEEN_WRITES, (now - started) / _SHARE_OF_TIME)
        self.next_write = now + min(pause, _MOST_SECONDS_BETWEEN_WRITES)


class _Finished(Exception):
    """Another process has finished the call in the meantime."""


class _ResumableCall(_StoredCall, Journal):
    """A call whose model resumes after its last batch; it is the journal that the model writes to.

    Several processes may work on one call. Each takes over what the one ahead of it has noted, with its cost, so that
    all of them report the cost of one uninterrupted call.
    """

    def score_encoded(
        self, model: ResumableModel, prompts: Sequence[Prompt], encoded: Sequence[Encoded]
    ) -> Iterator[Scored]:
        self.planned = self.stored_pass.planned.tolist()
        self.unfinished = self.stored_pass.done < self.total  # and not a finished call that has lost scores since
        yield from _recalled(self.stored)
        if self.done == self.total:
            return
        # All planned prompts, the stored ones too: a batch's numbers depend on the batches before it in the last bits.
        planned = [prompts[i] for i in self.planned]
        yielded = set(self.stored)
        try:
            for scored in model.score_encoded(planned, [encoded[i] for i in self.planned], self):
                position = self.planned[scored.index]
                if position not in yielded:  # it is, if a state was lost and the model had to start again
                    yielded.add(position)
                    yield Scored(position, scored.logprobs)
        except _Finished:
            self.take_over()
        finally:
            self.write()
        if len(yielded) < self.total:
            # Another process was ahead with this call: the model resumed after what that one had noted.
            others = {i: row for i, row in self.stored_pass.stored().items() if i not in yielded}
            self.owner.recalled += len(others)
            yield from _recalled(others)

    def cost(self) -> Cost:
        cost = super().cost()
        now = self.owner.model_asked.cost - self.inner_before
        if now.tokens_plain:  # counted over the whole call by every process that works on it
            cost.tokens_plain, cost.tokens_baqckv = now.tokens_plain, now.tokens_baqckv
        return cost

    def state(self, stretch: str) -> bytes:
        state = self.stored_pass.state(stretch)
        if self.unfinished and self.stored_pass.done == self.total:  # its states are gone: the model would start again
            raise _Finished
        if state:  # another process may have got further since this one read it
            self.take_over()
        return state

    def take_over(self) -> None:
        """Replace this process's progress by that in the store."""
        self.rows, self.states = [], {}
        self.done, self.earlier = self.stored_pass.done, self.so_far()
        now = self.owner.model_asked.cost
        self.inner_before = replace(now, seconds=self.inner_before.seconds)
        self.count()

    def note(self, stretch: str, step: int, results: Sequence[Scored], state: Callable[[], bytes]) -> None:
        rows = [(self.planned[one.index], Kept(one.logprobs)) for one in results if one.logprobs is not None]
        self.rows += [row for row in rows if row[0] not in self.stored]
        self.states[stretch] = (step, state)
        self.count()


def _recalled(rows: Mapping[int, Kept]) -> Iterator[Scored]:
    for position, row in rows.items():
        yield Scored(position, row.logprobs, bounds=row.bounds, by=row.by)


def keys_of(identity: Mapping[str, str], contents: Iterator[bytes], purpose: str = "") -> list[bytes]:
    """The keys under which the store holds the results of a model for prompts with these contents."""
    model = digest(json.dumps(dict(identity), sort_keys=True).encode(), *([purpose.encode()] if purpose else []))
    return [digest(model, content) for content in contents]


def _token_bytes(item: Encoded) -> bytes:
    lengths = np.array([len(item.context), *map(len, item.candidates)], dtype="<i8")
    return b"".join((lengths.tobytes(), item.context.tobytes(), *(ids.tobytes() for ids in item.candidates)))


def _text_bytes(prompt: Prompt) -> bytes:
    messages = [(message.role, message.content) for message in prompt.messages]
    state = [] if prompt.state is None else [prompt.state]
    return json.dumps([prompt.text, prompt.continuations, messages, prompt.to_end, *state]).encode()
