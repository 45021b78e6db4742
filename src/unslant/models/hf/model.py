"""A causal language model of the transformers library, scored through the prefix tree."""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from unslant.arrays import Floats
from unslant.errors import ModelError, QuestionError
from unslant.flags import out_of_range, typed
from unslant.models.base import Ability, Cost, Encoded, Ids, Journal, ModelInfo, ResumableModel, Scored
from unslant.models.hf import other_costs, sort_key
from unslant.models.hf.engine import ALONE, Engine, PlainEngine, TreeEngine, inference, is_cut, train
from unslant.models.hf.identity import PROMPTS, Identifier, spread
from unslant.models.hf.precision import MIN_BUDGET, agreement, next_token, out_of_memory, probe, tolerance_of, why_not
from unslant.models.hf.tokenization import Encoder
from unslant.prompts import Prompt
from unslant.responses.provenance import SpecialTokens
from unslant.store import digest

_SCALE = 5.0  # least scale of label scores; the self-check's are of random tokens, which are far less probable
_UNLIMITED = 1 << 30


class TransformersModel(ResumableModel):
    """Scores continuations with a loaded causal language model.

    A self-check on the loaded weights compares the prefix tree with the plain path. A model that the tree cannot serve
    (state-space layers, ALiBi, unusual masks) is scored plainly, after one warning.

    Args:
        model: a causal language model, on its device; in evaluation mode until this object is let go.
        tokenizer: its tokenizer.
        name: its display name.
        engine: ``auto`` (tree if the self-check passes), ``tree`` (refuse otherwise) or ``plain``.
        token_budget: tokens per forward pass; halved, and the run continued, when memory runs out.
        adapter: where its adapter came from.
        incomplete: missing or unexpected weights; reported with every result.

    Attributes:
        sample: a few of the prompts asked, on which half precision is compared with float32.

    Raises:
        ModelError: with ``engine="tree"``, if the self-check fails.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        name: str,
        *,
        engine: str = "auto",
        token_budget: int | None = None,
        adapter: str = "",
        incomplete: str = "",
    ) -> None:
        typed("engine", engine, Literal["auto", "tree", "plain"])
        if token_budget is not None and typed("token_budget", token_budget, int) < 1:
            raise out_of_range("token_budget", token_budget, "1 or more")
        can: frozenset[Ability] = frozenset({"score", "attend", "train"})
        super().__init__(ModelInfo(name=name, can=can, parameters=int(model.num_parameters())))
        if training := [module for module in model.modules() if module.training]:
            weakref.finalize(self, train, training)  # its owner goes on training it
        self.model, self.tokenizer, self.incomplete = model.eval(), tokenizer, incomplete
        self.device = torch.device(model.get_input_embeddings().weight.device)
        self.dtype: torch.dtype = model.dtype
        self._identity = {"model": name, "adapter": adapter} | ({"incomplete": incomplete} if incomplete else {})
        self._identifier = Identifier(model, tokenizer, self._identity)
        self.sample: list[Encoded] = []
        self.encoder = Encoder(tokenizer)
        self.limit = context_limit(model)
        self._rotary_switch = _rotary_switch(model.config)
        self._tree_reach = _UNLIMITED  # tokens of the longest prompts that the tree serves
        budget = token_budget or (16_384 if self.device.type == "cuda" else 2_048)
        self._engine: Engine = PlainEngine(model, budget)
        prompts = probe(model, min(self.limit, self._rotary_switch, 64))
        reason = why_not(model, name, prompts, budget, tree=engine != "plain")
        self._checked = max(item.longest for item in prompts)
        if engine != "plain":
            if not reason:
                self._engine = TreeEngine(model, budget)
            elif engine == "tree":
                raise ModelError(f"{name}: the prefix tree cannot serve this model ({reason}); use the plain engine")
            else:
                warnings.warn(
                    f"{name}: scored without the prefix tree, which is slower ({reason}); results are the same",
                    stacklevel=2,
                )

    @property
    def engine(self) -> str:
        """``tree`` or ``plain``: what scores this model."""
        return "tree" if isinstance(self._engine, TreeEngine) else "plain"

    @property
    def token_budget(self) -> int:
        """Tokens per forward pass."""
        return self._engine.token_budget

    @property
    def info(self) -> ModelInfo:
        """Name, identity as of the last :meth:`identify`, and those facts that apply.

        ``incomplete``: missing weights. ``revision``: the commit on the Hub. ``quantization``: how weights are packed.
        ``chat_template``: sentences on what it made of the prompts. ``special_tokens``: how those that prompts
        spelled were read (``text`` or ``allow``, see :class:`~unslant.models.hf.tokenization.Encoder`), and the ids of
        the questions.
        """
        facts: dict[str, object] = {"incomplete": self.incomplete} if self.incomplete else {}
        if revision := getattr(self.model.config, "_commit_hash", None):
            facts["revision"] = str(revision)
        if getattr(self.model, "is_quantized", False):
            facts["quantization"] = _packing(self.model.config.quantization_config)
        if self.encoder.chat and (notes := self.encoder.answer_place.notes):
            facts["chat_template"] = notes
        if spelling := sorted(self.encoder.spelling):
            facts["special_tokens"] = SpecialTokens(read_as=self.encoder.special_tokens, questions=tuple(spelling))
        return replace(self._info, identity=self._identity, engine=self.engine, facts=facts)

    def identify(self) -> ModelInfo:
        """Who the model is now; see :mod:`unslant.models.hf.identity`."""
        with ALONE:
            self._identity = self._identifier(self.engine)
        return self.info

    def describe(self) -> ModelInfo:
        return replace(self.identify(), facts=self.all_facts())

    def all_facts(self) -> dict[str, object]:
        """The facts of :attr:`info`, and in bfloat16 or float16 ``half_precision``: the model's agreement
        (:class:`~unslant.responses.provenance.Agreement`) with itself in float32 on a few of the prompts asked. Also
        whether it would think first in a chat.
        """
        facts = dict(self.info.facts)
        if self.model.dtype in (torch.bfloat16, torch.float16) and self.sample:
            facts["half_precision"] = agreement(self.model, self.sample)
        if self.encoder.chat and self.sample and not is_cut(self.model):
            from unslant.models.first_token import THOUGHTS

            shortest = min((item.context for item in self.sample), key=len)
            first = str(self.encoder.tokenizer.decode([next_token(self.model, shortest)])).strip()
            if first.lower().startswith(THOUGHTS):
                note = f"Where labels are scored, the model would begin {first!r}: it thinks first, and then answers."
                facts["chat_template"] = (*self.encoder.answer_place.notes, note)
        return facts

    @property
    def foreign_code(self) -> tuple[str, ...]:
        """See :class:`unslant.models.hf.identity.Scan`; as of the last :meth:`identify`."""
        return self._identifier.code.foreign

    def agrees(self, encoded: Sequence[Encoded], known: Sequence[Floats]) -> bool:
        """Whether the model as it is gives prompts their stored scores, up to the engines' rounding.

        Each prompt is run alone and plainly, and counted nowhere. The tolerance is that of the self-check.
        """
        now = dict(PlainEngine(self.model, 1).score(encoded, Cost()))
        apart = max(float(np.abs(now[i] - scores).max()) for i, scores in enumerate(known))
        return bool(apart <= tolerance_of(self.model) * max(_SCALE, *(float(np.abs(scores).max()) for scores in known)))

    def score(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded] | None = None) -> Iterator[Scored]:
        if encoded is None:
            started = time.perf_counter()
            encoded = self.encode(prompts)
            self.cost.seconds += time.perf_counter() - started
        return self.score_encoded(prompts, encoded)

    def score_encoded(
        self, prompts: Sequence[Prompt], encoded: Sequence[Encoded], journal: Journal | None = None
    ) -> Iterator[Scored]:
        """Score prompts encoded by :meth:`encode`; see :class:`unslant.models.base.ResumableModel`.

        The same call gives the same bits in any process with the same number of threads, on the same kind of machine.
        """
        started = time.perf_counter()
        plain, baqckv = other_costs(encoded, [prompt.group for prompt in prompts])
        self.cost.tokens_plain += plain
        self.cost.tokens_baqckv += baqckv
        self.cost.seconds += time.perf_counter() - started
        for engine, members in self._shares(encoded):
            yield from self._run(engine, prompts, encoded, members, journal)

    def _shares(self, encoded: Sequence[Encoded]) -> Iterator[tuple[Engine, list[int]]]:
        """Which engine scores which prompts."""
        # The tree runs many prompts in one sequence, so foreign code that counts positions would act in other places.
        with ALONE:
            foreign = self._identifier.look().foreign
        if foreign:
            yield PlainEngine(self.model, self.token_budget), list(range(len(encoded)))
            return
        started = time.perf_counter()
        self._check_longer([item for item in encoded if item.longest <= self._rotary_switch])
        self.cost.seconds += time.perf_counter() - started
        lengths = np.array([item.longest for item in encoded])
        switched, beyond = lengths > self._rotary_switch, lengths > self._tree_reach
        yield self._engine, np.flatnonzero(~switched & ~beyond).tolist()
        yield PlainEngine(self.model, self.token_budget), np.flatnonzero(~switched & beyond).tolist()
        # One at a time: LongRoPE's frequencies follow the longest prompt of a batch.
        yield PlainEngine(self.model, 1), np.flatnonzero(switched).tolist()

    def _check_longer(self, encoded: Sequence[Encoded]) -> None:
        """Repeat the self-check on the longest prompt, and one that shares most with it, if all before were shorter.

        Some classes compute something else from some length on: they compress what is far away, or skip it.
        """
        longest = max((item.longest for item in encoded), default=0)
        if longest <= self._checked:
            return
        ordered = sorted(encoded, key=lambda item: sort_key(item.context))
        at = [item.longest for item in ordered].index(longest)
        contexts = [ordered[i].context for i in (abs(at - 1), at) if i < len(ordered)]  # neighbours share most
        prompts = probe(self.model, longest, contexts)
        tree = isinstance(self._engine, TreeEngine) and self._tree_reach == _UNLIMITED
        reason = ""
        try:
            reason = why_not(self.model, self.name, prompts, 1, tree=tree)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            # The tree runs a long prompt in parts, so it may do with memory that is too little for a whole one.
            what = f"scores are not compared with those of whole prompts of {longest} tokens"
            warnings.warn(f"{self.name}: {what}: there is no memory for these", stacklevel=2)
        if reason:
            self._tree_reach = self._checked
            warnings.warn(
                f"{self.name}: prompts of more than {self._checked} tokens are scored without the prefix tree, which "
                f"is slower ({reason}); results are the same",
                stacklevel=2,
            )
        self._checked = longest

    def _run(
        self,
        engine: Engine,
        prompts: Sequence[Prompt],
        encoded: Sequence[Encoded],
        left: list[int],
        journal: Journal | None,
    ) -> Iterator[Scored]:
        """Results of the prompts ``left``, each once; continues with a smaller budget when memory runs out."""
        while left:
            stretch, checkpoint = "", b""
            if journal is not None:
                # Budget and remaining prompts decide how the call is cut into batches, so a checkpoint holds for them.
                stretch = f"{type(engine).__name__}/{engine.token_budget}/{digest(np.asarray(left).tobytes()).hex()}"
                checkpoint = journal.state(stretch)
            done: set[int] = set()
            steps = engine.steps([encoded[i] for i in left], self.cost, checkpoint)
            try:
                while True:
                    started = time.perf_counter()
                    step = next(steps, None)
                    self.cost.seconds += time.perf_counter() - started
                    if step is None:
                        return
                    done.update(step.skipped, (position for position, _ in step.results))
                    results = [Scored(left[position], scores) for position, scores in step.results]
                    for position, scores in step.results:
                        if not np.isfinite(scores).all():
                            raise ModelError(
                                f"question {prompts[left[position]].group!r}: the model's log-probabilities are not "
                                "finite numbers; its weights may be damaged, or overflow in this dtype (try "
                                "--dtype=float32)"
                            )
                    if journal is not None:
                        journal.note(stretch, step.number, results, step.checkpoint)
                    yield from results
            except NotImplementedError as error:  # it passed the self-check when it was loaded, and has changed since
                if engine is not self._engine or isinstance(engine, PlainEngine):
                    raise
                warnings.warn(f"{self.name}: scored without the prefix tree from here on ({error})", stacklevel=2)
                engine = self._engine = PlainEngine(self.model, engine.token_budget)
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                self._shrink(engine, error)
            left = [i for position, i in enumerate(left) if position not in done]

    def encode(self, prompts: Sequence[Prompt], *, apart: bool = True) -> list[Encoded]:
        """Token ids of the prompts, checked against the model's context length.

        Args:
            apart: see :meth:`Encoder.encode`.

        Raises:
            QuestionError: naming the groups of all prompts that are too long.
            ModelError: see :meth:`Encoder.encode`.
        """
        encoded = self.encoder.encode(prompts, apart=apart)
        # Read once and assigned once: several threads may encode at the same time.
        if len(sample := self.sample) < PROMPTS:
            self.sample = sample + spread(encoded, PROMPTS - len(sample))
        too_long: dict[str, int] = {}
        for prompt, item in zip(prompts, encoded, strict=True):
            self.check_known(prompt, item.context, *item.candidates)
            if item.longest > self.limit:
                too_long[prompt.group] = item.longest
        if too_long:
            name, length = next(iter(too_long.items()))
            raise QuestionError(
                dict.fromkeys(too_long, f"its prompt is longer than the {self.limit:,} tokens that the model takes"),
                f"question {name!r}: its prompt has {length} tokens, the model takes {self.limit}; use fewer shots or "
                "leave the question out",
            )
        return encoded

    def check_known(self, prompt: Prompt, *ids: Ids | list[int]) -> None:
        """ModelError if the tokenizer gives a token for which the model has no embedding."""
        rows = int(self.model.get_input_embeddings().weight.shape[0])
        if (largest := max(int(np.max(some, initial=0)) for some in ids)) >= rows:
            raise ModelError(
                f"question {prompt.group!r}: the tokenizer gives token {largest}, the model has {rows:,}; they do "
                "not belong together"
            )

    def generated(self, ids: Tensor, mask: Tensor, seed: int, settings: Mapping[str, Any]) -> Tensor:
        """Prompts, padded on the left, with the replies that transformers generates; shape ``(prompts, tokens)``.

        Raises:
            ModelError: if memory runs out.
        """
        with inference(self.model), torch.random.fork_rng():
            torch.manual_seed(seed)
            try:
                out: Tensor = self.model.generate(ids, attention_mask=mask, **settings)
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
                raise ModelError(
                    f"{self.name}: out of memory with {len(ids)} replies at a time to prompts of {ids.shape[1]} "
                    "tokens: give a smaller --connections, --max-tokens or --dtype"
                ) from error
        return out

    def _shrink(self, engine: Engine, error: BaseException) -> None:
        if is_cut(self.model):  # the other processes may have had enough memory, and cannot go back a batch
            raise ModelError(
                f"{self.name}: out of memory: split it across more GPUs, or give a smaller --dtype"
            ) from error
        budget = engine.token_budget // 2
        if budget < MIN_BUDGET:
            raise ModelError(
                f"{self.name}: out of memory even with {MIN_BUDGET} tokens per batch; "
                "use a smaller --dtype or another --device"
            ) from error
        engine.token_budget = budget
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def _packing(config: Any) -> str:
    """``bitsandbytes, 4 bits``, say; the method alone where its bits are unknown."""
    fields = config if isinstance(config, dict) else config.to_dict()
    bits = 4 if fields.get("load_in_4bit") else 8 if fields.get("load_in_8bit") else fields.get("bits")
    method = getattr(fields.get("quant_method"), "value", fields.get("quant_method"))
    return f"{method}, {bits} bits" if bits else str(method)


def _rotary_switch(config: Any) -> int:
    """Length beyond which the rotary frequencies of a whole batch change (LongRoPE); huge where they never do."""
    rotary = getattr(config.get_text_config(), "rope_parameters", None) or {}
    kinds = [rotary, *(value for value in rotary.values() if isinstance(value, dict))]
    switches = [kind["original_max_position_embeddings"] for kind in kinds if kind.get("rope_type") == "longrope"]
    return min(switches, default=_UNLIMITED)


def context_limit(model: Any) -> int:
    """Tokens that a model takes at once; huge where its configuration sets no limit."""
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions")
    values = (getattr(model.config.get_text_config(), name, None) for name in names)
    # RoBERTa and its like number positions from the one after that of padding, so 514 of them take 512 tokens.
    paddings = [getattr(one, "padding_idx", None) for name, one in model.named_modules() if "position_emb" in name]
    unused = max((padding + 1 for padding in paddings if padding is not None), default=0)
    return next((value - unused for value in values if isinstance(value, int) and value > 0), _UNLIMITED)
