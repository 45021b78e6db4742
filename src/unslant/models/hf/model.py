"""A causal language model of the transformers library, scored through the prefix tree."""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from unslant.arrays import Floats
from unslant.errors import ModelError, QuestionError, first_line
from unslant.models.base import Ability, Cost, Encoded, Ids, Journal, ModelInfo, ResumableModel, Scored
from unslant.models.hf import other_costs
from unslant.models.hf.engine import ALONE, Engine, PlainEngine, TreeEngine, is_cut, plain_scores, train
from unslant.models.hf.identity import PROMPTS, Identifier, spread
from unslant.models.hf.tokenization import Encoder
from unslant.prompts import Prompt
from unslant.responses.provenance import SpecialTokens
from unslant.store import digest

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4, torch.bfloat16: 6e-2, torch.float16: 1e-2}
"""How far tree and plain log-probabilities may differ in the self-check, relative to the largest one if over 1."""
INT8_TOLERANCE = 1e-1
"""The same where activations are rounded to 8 bits: which of them are outliers depends on the batch (LLM.int8())."""
_CAUSAL = 1e-3
"""How far the score of three tokens may differ from the sum of theirs, relative likewise, unless more is tolerated."""

_MIN_BUDGET = 16
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
        self.limit = _context_limit(model.config)
        self._rotary_switch = _rotary_switch(model.config)
        budget = token_budget or (16_384 if self.device.type == "cuda" else 2_048)
        self._engine: Engine = PlainEngine(model, budget)
        if engine != "plain":
            tree = TreeEngine(model, budget)
            reason = self._why_not(tree)
            if not reason:
                self._engine = tree
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
        ``special_tokens``: how those that prompts spelled were read (``text`` or ``allow``, see
        :class:`~unslant.models.hf.tokenization.Encoder`), and the ids of the questions.
        """
        facts: dict[str, object] = {"incomplete": self.incomplete} if self.incomplete else {}
        if revision := getattr(self.model.config, "_commit_hash", None):
            facts["revision"] = str(revision)
        if getattr(self.model, "is_quantized", False):
            facts["quantization"] = _packing(self.model.config.quantization_config)
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
        (:class:`~unslant.responses.provenance.Agreement`) with itself in float32 on a few of the prompts asked.
        """
        facts = dict(self.info.facts)
        if self.model.dtype in (torch.bfloat16, torch.float16) and self.sample:
            from unslant.models.hf.precision import agreement

            facts["half_precision"] = agreement(self.model, self.sample)
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
        return bool(apart <= self._tolerance * max(_SCALE, *(float(np.abs(scores).max()) for scores in known)))

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
        yield self._engine, [i for i, item in enumerate(encoded) if item.longest <= self._rotary_switch]
        # One at a time: LongRoPE's frequencies follow the longest prompt of a batch.
        yield PlainEngine(self.model, 1), [i for i, item in enumerate(encoded) if item.longest > self._rotary_switch]

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
                if not _out_of_memory(error):
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
        rows, too_long = int(self.model.get_input_embeddings().weight.shape[0]), dict[str, int]()
        for prompt, item in zip(prompts, encoded, strict=True):
            if (largest := max(int(ids.max(initial=0)) for ids in (item.context, *item.candidates))) >= rows:
                raise ModelError(
                    f"question {prompt.group!r}: the tokenizer gives token {largest}, the model has {rows:,}; they do "
                    "not belong together"
                )
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

    def _shrink(self, engine: Engine, error: BaseException) -> None:
        if is_cut(self.model):  # the other processes may have had enough memory, and cannot go back a batch
            raise ModelError(
                f"{self.name}: out of memory: split it across more GPUs, or give a smaller --dtype"
            ) from error
        budget = engine.token_budget // 2
        if budget < _MIN_BUDGET:
            raise ModelError(
                f"{self.name}: out of memory even with {_MIN_BUDGET} tokens per batch; "
                "use a smaller --dtype or another --device"
            ) from error
        engine.token_budget = budget
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _why_not(self, tree: Engine) -> str:
        """Why the tree cannot serve this model, or an empty string.

        Raises:
            ModelError: if no engine can, as a pass fails, or as the score of a token depends on the tokens after it.
        """
        probe = _probe(int(self.model.get_input_embeddings().weight.shape[0]), min(self.limit, self._rotary_switch, 64))
        context, (*_, tokens) = probe[-1].context, probe[-1].candidates
        steps = [Encoded(np.concatenate([context, tokens[:n]]), (tokens[n : n + 1],)) for n in range(len(tokens))]
        try:
            *plain, one, two, three = plain_scores(self.model, [*probe, *steps], tree.token_budget)
        except Exception as error:  # code of all kinds of models runs here
            if _out_of_memory(error):
                raise
            raise ModelError(f"{self.name}: a pass through the model fails: {first_line(error)}") from error
        scale = max(1.0, max(float(np.abs(scores).max()) for scores in plain))
        if abs(plain[-1][-1] - (one + two + three)[0]) > max(self._tolerance, _CAUSAL) * scale:
            raise ModelError(
                f"{self.name}: its score of a token depends on the tokens after it, as in BERT; give a causal language "
                "model, which reads from left to right"
            )
        # A small budget, so that the check also covers root paths handed from batch to batch.
        scratch = TreeEngine(self.model, max(_MIN_BUDGET, sum(len(e.context) for e in probe) // 4))
        try:
            packed = dict(scratch.score(probe, Cost()))
        except NotImplementedError as error:
            return str(error)
        except Exception as error:  # the tree asks more of a model's code than most callers do: any kind can come
            if isinstance(error, RuntimeError) and _out_of_memory(error):
                raise
            return f"{type(error).__name__}: {error}".split("\n")[0]
        worst = max(float(np.abs(packed[i] - scores).max()) for i, scores in enumerate(plain))
        # Turned round, so that a difference that is not a number fails too.
        if not worst <= self._tolerance * scale:
            return f"log-probabilities differ by {worst:.2g} from whole prompts"
        return ""

    @property
    def _tolerance(self) -> float:
        tolerance = TOLERANCE.get(self.dtype, 6e-2)
        return max(tolerance, INT8_TOLERANCE) if getattr(self.model, "is_loaded_in_8bit", False) else tolerance


def _packing(config: Any) -> str:
    """``bitsandbytes, 4 bits``, say; the method alone where its bits are unknown."""
    fields = config if isinstance(config, dict) else config.to_dict()
    bits = 4 if fields.get("load_in_4bit") else 8 if fields.get("load_in_8bit") else fields.get("bits")
    method = getattr(fields.get("quant_method"), "value", fields.get("quant_method"))
    return f"{method}, {bits} bits" if bits else str(method)


def _probe(vocabulary: int, longest: int) -> list[Encoded]:
    """Random token sequences that branch early, late and often, for the self-check."""
    rng = np.random.default_rng(0)

    def draw(n: int) -> Ids:
        return rng.integers(0, vocabulary, n).astype(np.int32)

    start = draw(longest // 2)
    branches = [np.concatenate([start[: longest // 3 + 3 * (i % 2)], draw(longest // 8)]) for i in range(3)]
    contexts = [np.concatenate([branch, draw(longest // 8)]) for branch in branches for _ in range(3)]
    contexts.append(draw(longest // 2))
    return [Encoded(context, (draw(1), draw(1), draw(3))) for context in contexts]


def _rotary_switch(config: Any) -> int:
    """Length beyond which the rotary frequencies of a whole batch change (LongRoPE); huge where they never do."""
    rotary = getattr(config.get_text_config(), "rope_parameters", None) or {}
    kinds = [rotary, *(value for value in rotary.values() if isinstance(value, dict))]
    switches = [kind["original_max_position_embeddings"] for kind in kinds if kind.get("rope_type") == "longrope"]
    return min(switches, default=_UNLIMITED)


def _context_limit(config: Any) -> int:
    names = ("max_position_embeddings", "n_positions", "max_seq_len")
    values = (getattr(config.get_text_config(), name, None) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), _UNLIMITED)


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or any(
        words in str(error) for words in ("out of memory", "can't allocate memory", "not enough memory")
    )
