"""A model that remembers: what the store knows is not asked again, and what is asked is kept as it comes."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from unslant.arrays import are_logprobs
from unslant.errors import ModelError
from unslant.models.answered import ASKED_AGAIN, WHAT_TO_DO, ModelChanged, have_changed, some_of, weight_of_change
from unslant.models.base import (
    Cost,
    Encoded,
    Journal,
    Model,
    ModelInfo,
    ResumableModel,
    Scored,
    ScoringModel,
    TokenizingModel,
)
from unslant.prompts.prompt import Prompt
from unslant.store import Kept, Pass, Store, digest

PROBES = 4
"""Stored prompts that a model in this process scores again before any is recalled: the longest, others at random."""

_SECONDS_BETWEEN_WRITES = 0.5
_MOST_SECONDS_BETWEEN_WRITES = 30.0
_SHARE_OF_TIME = 0.01
"""Writing may take this share of the time; where a write takes long, the next one waits accordingly."""


class Stored(Model):
    """A model behind a store: the info is the model's own, but for the identity that the store uses.

    Attributes:
        model_asked: the model that is asked.
        offline: it is not asked; everything must be in the store.
    """

    model_asked: Model
    offline: bool
    _identity: Mapping[str, str] | None = None
    """Under which the results of the last call are stored."""

    @property
    def info(self) -> ModelInfo:
        return self._as_stored(self.model_asked.info)

    def describe(self) -> ModelInfo:
        return self._as_stored(self.model_asked.describe())

    def _as_stored(self, info: ModelInfo) -> ModelInfo:
        facts = {**info.facts, "offline": True} if self.offline else info.facts
        return replace(info, identity=self._identity or info.identity, facts=facts)

    @property
    def waiting(self) -> str:
        return self.model_asked.waiting

    @property
    def unwrapped(self) -> Model:
        return self.model_asked


class StoredModel(Stored, ScoringModel):
    """Wraps a model; scores of prompts that the store knows come from there.

    A prompt is known by the model's identity and its exact tokens (its text, where the model does not tokenize by
    itself). An interrupted call continues when the same call is made again, in this process or another one. For a
    :class:`~unslant.models.base.ResumableModel` the scores are then equal, bit for bit, to those of an unbroken call.

    Nobody can look into a remote model. It is asked who it is, and :data:`ASKED_AGAIN` of the prompts that the store
    knows are put to it again; if they get another model's scores (:func:`~unslant.models.answered.have_changed`),
    everything stored of that model is dropped and asked again (or, where an earlier call has given some of it out, the
    call fails).

    ``cost`` is what the scores have cost whenever they were computed, in this process or before; prompts taken over
    from *other* calls cost nothing.

    Args:
        model: the model that is asked.
        store: where scores are kept.
        run: id of the run on whose behalf it is asked.
        offline: a remote model is not asked at all; every prompt must be in the store.

    Attributes:
        apart: why nothing is stored of the model or recalled: what acts on it in memory; empty otherwise.
        purpose: what it is asked for. Scores are shared among calls of one purpose only, so that the cost measured of
            each is its own. Most commands have the empty one.
    """

    def __init__(self, model: ScoringModel, store: Store, run: str = "", *, offline: bool = False) -> None:
        super().__init__(model.info)
        self.model_asked: ScoringModel = model
        self.store, self.run, self.offline = store, run, offline and model.info.remote
        self.purpose = self.apart = ""

    def identify(self) -> ModelInfo:
        self._identity = self._identified(0)
        return self.info

    def _as_stored(self, info: ModelInfo) -> ModelInfo:
        info = super()._as_stored(info)
        return replace(info, facts={**info.facts, "apart": self.apart}) if self.apart else info

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        model = self.model_asked
        identity = self._identity = self._identified(len(prompts))
        if not isinstance(model, TokenizingModel):
            keys = keys_of(identity, (_text_bytes(prompt) for prompt in prompts), self.purpose)
            found = self.store.open_pass(Kept, identity, keys, self.run)
            if model.info.remote and not self._still_right(found, prompts):
                self.store.forget(identity)
                if self.recalled:
                    raise ModelError(
                        f"{self.name}: the server no longer gives the scores that are stored of it, some of which this "
                        "run has used; they have been dropped: run the same command again"
                    )
                found = self.store.open_pass(Kept, identity, keys, self.run)
            for position, kept in sorted(found.stored().items()):
                model.note_stored(kept.by, prompts[position].group)
            try:
                yield from _Call(self, found).score(lambda missing: model.score([prompts[i] for i in missing]))
            except ModelChanged as change:  # what the other model gave was stored as this one's
                self.store.drop(keys_of(identity, (_text_bytes(prompt) for prompt in change.since), self.purpose))
                raise
            return
        if foreign := model.foreign_code:
            yield from self._apart(
                prompts, f"code that comes from no installed library acts on it: {', '.join(foreign[:3])}"
            )
            return
        started = time.perf_counter()
        encoded = model.encode(prompts)
        keys = keys_of(identity, map(_token_bytes, encoded), self.purpose)
        seconds = time.perf_counter() - started
        found = self.store.open_pass(Kept, identity, keys, self.run)
        if not self._agrees(model, found, encoded):
            yield from self._apart(prompts, "it gives other scores than those that are stored of it")
            return
        if isinstance(model, ResumableModel):
            call = _ResumableCall(self, found)
            model.cost.seconds += seconds
            yield from call.score_encoded(model, prompts, encoded)
        else:
            yield from _Call(self, found).score(
                lambda missing: model.score([prompts[i] for i in missing], [encoded[i] for i in missing])
            )

    def _agrees(self, model: TokenizingModel, found: Pass[Kept], encoded: Sequence[Encoded]) -> bool:
        """Whether a model in this process gives the scores that are stored, on the longest prompt and a few others."""
        known = found.stored()
        if not known:
            return True
        longest = max(known, key=lambda i: len(encoded[i].context))
        others = sorted(set(known) - {longest})
        probes = [longest, *some_of(others, PROBES - 1)]
        return model.agrees([encoded[i] for i in probes], [known[i].logprobs for i in probes])

    def _apart(self, prompts: Sequence[Prompt], why: str) -> Iterator[Scored]:
        """Scores of a model whose scores are neither stored nor recalled, because of what acts on it in memory."""
        self.apart = why
        warnings.warn(f"{self.name}: {why}; its scores are neither stored nor recalled", stacklevel=3)
        before, inner = self.cost.copy(), self.model_asked.cost.copy()
        for scored in self.model_asked.score(prompts):
            self.cost = before + (self.model_asked.cost - inner)
            yield scored

    def _identified(self, asked: int) -> Mapping[str, str]:
        """Who the model is now, under the name by which the store knows it; ``asked`` prompts are put to it."""
        remote = self.model_asked.info.remote
        if self.offline:
            found = self.store.latest(self.model_asked.info.identity)  # not asked yet, so that this is its address
            if found is None:
                raise self._not_stored(asked, asked)
            return found
        found, before = self.store.known_as(self.model_asked.identify().identity), self._identity or {}
        if remote and self.cost.prompts + self.recalled and found != before:
            differ = sorted(key for key in {**found, **before} if found.get(key) != before.get(key))
            raise ModelError(
                f"{self.name}: after {self.cost.prompts + self.recalled:,} prompts "
                f"({time.strftime('%H:%M:%S UTC', time.gmtime())}) the server says something else of its {differ[0]}: "
                f"{found.get(differ[0], 'nothing')}, before {before.get(differ[0], 'nothing')}. {WHAT_TO_DO}"
            )
        return found

    def _not_stored(self, missing: int, asked: int) -> ModelError:
        return ModelError(
            f"{self.name}: offline, and {missing:,} of {asked:,} prompts are not in the store; leave out --offline"
        )

    def _still_right(self, found: Pass[Kept], prompts: Sequence[Prompt]) -> bool:
        """Whether a remote model answers a sample of the stored prompts as it did."""
        known = found.stored()
        if self.offline:
            if missing := len(prompts) - len(known):
                raise self._not_stored(missing, len(prompts))
            return True
        positions = some_of(sorted(known), ASKED_AGAIN)
        answers = list(self.model_asked.ask_again([prompts[i] for i in positions]))
        failed = [scored.error for scored in answers if scored.logprobs is None and not scored.declined]
        if failed:
            raise ModelError(f"{self.name}: a stored prompt was asked again, to compare, and failed: {failed[0]}")
        pairs = [(known[positions[scored.index]], scored) for scored in answers if scored.logprobs is not None]
        if any(kept.by[0] and scored.by[0] and kept.by[0] != scored.by[0] for kept, scored in pairs):
            return False
        weights = [
            weight_of_change(kept.logprobs, scored.logprobs) for kept, scored in pairs if scored.logprobs is not None
        ]
        return not have_changed(weights, len(weights))


class _Call:
    """One call of ``score``: yields what is stored, asks for the rest, and writes it as it comes."""

    def __init__(self, owner: StoredModel, found: Pass[Kept]) -> None:
        self.owner = owner
        self.found = found
        self.known = found.stored()
        self.total = len(found.keys)
        self.done = len(self.known)
        self.before = owner.cost.copy()
        self.earlier = Cost(**found.cost)
        self.inner_before = owner.model_asked.cost.copy()
        self.rows: list[tuple[int, Kept]] = []
        self.states: dict[str, tuple[int, Callable[[], bytes]]] = {}
        self.next_write = time.perf_counter() + _SECONDS_BETWEEN_WRITES
        owner.recalled += self.done
        owner.taken_over += self.total - len(found.planned)
        self.count()

    def score(self, ask: Callable[[list[int]], Iterator[Scored]]) -> Iterator[Scored]:
        """All results; ``ask`` scores the prompts at the positions that the store does not know."""
        missing = [i for i in range(self.total) if i not in self.known]
        yield from self.recall()
        if not missing:
            return
        try:
            for scored in ask(missing):
                position = missing[scored.index]
                if scored.logprobs is None:  # not kept, so that it is asked again
                    yield replace(scored, index=position)
                elif not are_logprobs(scored.logprobs):
                    yield Scored(position, None, f"not log-probabilities: {scored.logprobs.tolist()}")
                else:
                    self.rows.append((position, Kept(scored.logprobs, scored.bounds, scored.by)))
                    self.count()
                    self.write_if_due()
                    yield replace(scored, index=position)
        finally:
            self.write()

    def recall(self) -> Iterator[Scored]:
        for position, kept in self.known.items():
            yield _recalled(position, kept)

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


class _Finished(Exception):
    """Another process has finished the call meanwhile."""


class _ResumableCall(_Call, Journal):
    """A call whose model resumes after its last batch; it is the journal that the model writes in.

    Several processes may work on one call. Each takes over what the one ahead of it has noted, with its cost, so that
    the cost of a call is that of one unbroken call in all of them.
    """

    def score_encoded(
        self, model: ResumableModel, prompts: Sequence[Prompt], encoded: Sequence[Encoded]
    ) -> Iterator[Scored]:
        self.planned = self.found.planned.tolist()
        self.unfinished = self.found.done < self.total  # as opposed to finished, and some of its scores lost since
        yield from self.recall()
        if self.done == self.total:
            return
        own = [prompts[i] for i in self.planned]
        given = set(self.known)
        try:
            for scored in model.score_encoded(own, [encoded[i] for i in self.planned], self):
                position = self.planned[scored.index]
                if position not in given:  # it is, where a state was lost and the model had to start again
                    given.add(position)
                    yield Scored(position, scored.logprobs)
        except _Finished:
            self.take_over()
        finally:
            self.write()
        if len(given) < self.total:
            # Another process was at work too, and ahead: the model resumed after what that one had noted.
            others = {i: kept for i, kept in self.found.stored().items() if i not in given}
            self.owner.recalled += len(others)
            for position, kept in others.items():
                yield _recalled(position, kept)

    def cost(self) -> Cost:
        cost = super().cost()
        now = self.owner.model_asked.cost - self.inner_before
        if now.tokens_plain:  # counted over the whole call by every process that works on it
            cost.tokens_plain, cost.tokens_baqckv = now.tokens_plain, now.tokens_baqckv
        return cost

    def state(self, stretch: str) -> bytes:
        state = self.found.state(stretch)
        if self.unfinished and self.found.done == self.total:  # its states are gone: the model would begin again
            raise _Finished
        if state:  # another process may have come further since this one looked
            self.take_over()
        return state

    def take_over(self) -> None:
        """Replace what this process has done of the call by what the store has just said of it."""
        self.rows, self.states = [], {}
        self.done, self.earlier = self.found.done, Cost(**self.found.cost)
        now = self.owner.model_asked.cost
        self.inner_before = replace(now, seconds=self.inner_before.seconds)
        self.count()

    def note(self, stretch: str, step: int, results: Sequence[Scored], state: Callable[[], bytes]) -> None:
        rows = [(self.planned[one.index], Kept(one.logprobs)) for one in results if one.logprobs is not None]
        self.rows += [row for row in rows if row[0] not in self.known]
        self.states[stretch] = (step, state)
        self.count()
        self.write_if_due()


def _recalled(position: int, kept: Kept) -> Scored:
    return Scored(position, kept.logprobs, bounds=kept.bounds, by=kept.by)


def keys_of(identity: Mapping[str, str], contents: Iterator[bytes], purpose: str = "") -> list[bytes]:
    model = digest(json.dumps(dict(identity), sort_keys=True).encode(), *([purpose.encode()] if purpose else []))
    return [digest(model, content) for content in contents]


def _token_bytes(item: Encoded) -> bytes:
    lengths = np.array([len(item.context), *map(len, item.candidates)], dtype="<i8")
    return b"".join((lengths.tobytes(), item.context.tobytes(), *(ids.tobytes() for ids in item.candidates)))


def _text_bytes(prompt: Prompt) -> bytes:
    messages = [(message.role, message.content) for message in prompt.messages]
    state = [] if prompt.state is None else [prompt.state]
    return json.dumps([prompt.text, prompt.continuations, messages, prompt.to_end, *state]).encode()
