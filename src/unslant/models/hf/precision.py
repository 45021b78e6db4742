"""How far scores may be trusted: the tree against whole prompts, these against prompts alone, and half precision
against float32."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unslant.errors import ModelError, first_line
from unslant.models.base import Cost, Encoded, Ids
from unslant.models.hf.engine import TreeEngine, inference, is_cut, padded, plain_scores
from unslant.responses.provenance import Agreement

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4, torch.bfloat16: 6e-2, torch.float16: 1e-2}
"""How far tree and plain log-probabilities may differ in the self-check, relative to the largest one if over 1."""
INT8_TOLERANCE = 1e-1
"""The same where activations are rounded to 8 bits: which of them are outliers depends on the batch (LLM.int8())."""
MIN_BUDGET = 16
"""Fewest tokens of a batch."""
_CAUSAL = 1e-3
"""How far the score of three tokens may differ from the sum of theirs, relative likewise, unless more is tolerated."""


def tolerance_of(model: Any) -> float:
    """The tolerance of the self-check for a model's number type and packing."""
    tolerance = TOLERANCE.get(model.dtype, 6e-2)
    return max(tolerance, INT8_TOLERANCE) if getattr(model, "is_loaded_in_8bit", False) else tolerance


def probe(model: Any, longest: int, contexts: Sequence[Ids] = ()) -> list[Encoded]:
    """Random tokens after contexts, of at most ``longest`` tokens together, for the self-check.

    The contexts are random too if none are given, and branch early, late and often. After given ones, which may be
    long, there are few tokens, since every continuation costs a pass.
    """
    rng = np.random.default_rng(0)
    # Some models have embeddings of tokens that they never predict.
    layers = (model.get_input_embeddings(), model.get_output_embeddings())
    vocabulary = min(len(layer.weight) for layer in layers if hasattr(layer, "weight"))

    def draw(n: int) -> Ids:
        return rng.integers(0, vocabulary, n).astype(np.int32)

    sizes = (2,) if contexts else (1, 1, 3)
    if not contexts:
        start = draw(longest // 2)
        branches = [np.concatenate([start[: longest // 3 + 3 * (i % 2)], draw(longest // 8)]) for i in range(3)]
        contexts = [np.concatenate([branch, draw(longest // 8)]) for branch in branches for _ in range(3)]
        contexts.append(draw(longest // 2))
    return [Encoded(context[: longest - sizes[-1] + 1], tuple(map(draw, sizes))) for context in contexts]


def out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch says that memory ran out."""
    return isinstance(error, torch.OutOfMemoryError) or any(
        words in str(error) for words in ("out of memory", "can't allocate memory", "not enough memory")
    )


def why_not(model: Any, name: str, prompts: Sequence[Encoded], budget: int, *, tree: bool) -> str:
    """Why the tree cannot serve a model, or an empty string: the self-check on some prompts.

    Args:
        prompts: some should share their beginning. The last is also run token by token.
        budget: tokens per forward pass of whole prompts.
        tree: compare the tree; else only whole prompts are checked.

    Raises:
        ModelError: if no engine can, as a pass fails, or as the score of a token depends on more than those before it.
        RuntimeError: if memory runs out (:func:`out_of_memory`).
    """
    context, (*_, tokens) = prompts[-1].context, prompts[-1].candidates
    steps = [Encoded(np.concatenate([context, tokens[:n]]), (tokens[n : n + 1],)) for n in range(len(tokens))]
    length, tolerance = prompts[-1].longest, tolerance_of(model)
    try:
        if tolerance > _CAUSAL:  # rounding differs between batches, and can send a token to other experts
            scores = plain_scores(model, [*prompts, *steps], budget)
        else:  # each step alone and without padding, whose effect would show
            scores = [*plain_scores(model, prompts, budget), *plain_scores(model, steps, 1)]
    except Exception as error:  # code of all kinds of models runs here
        if out_of_memory(error):
            raise
        reason = f"{first_line(error)} ({length} tokens)"
        raise ModelError(f"{name}: a pass through the model fails: {reason}") from error
    plain, single = scores[: len(prompts)], np.concatenate(scores[len(prompts) :])
    scale = max(1.0, max(float(np.abs(each).max()) for each in plain))
    if abs(plain[-1][-1] - single.sum()) > max(tolerance, _CAUSAL) * scale:
        raise ModelError(
            f"{name}: its score of a token depends on the tokens after it, as in BERT, or on padding, or on chance (in "
            f"a prompt of {length} tokens); give a causal language model, which reads from left to right"
        )
    if not tree:
        return ""
    # A small budget, so that the check also covers root paths handed from batch to batch.
    scratch = TreeEngine(model, max(MIN_BUDGET, sum(len(item.context) for item in prompts) // 4))
    try:
        packed = dict(scratch.score(prompts, Cost()))
    except NotImplementedError as error:
        return str(error)
    except Exception as error:  # the tree asks more of a model's code than most callers do: any kind can come
        if out_of_memory(error):
            raise
        return f"its code fails on the tree: {type(error).__name__}: {first_line(error)}"
    worst = max(float(np.abs(packed[i] - each).max()) for i, each in enumerate(plain))
    # Turned round, so that a difference that is not a number fails too.
    return "" if worst <= tolerance * scale else f"log-probabilities differ by {worst:.2g} from whole prompts"


def agreement(model: Any, encoded: Sequence[Encoded]) -> Agreement:
    """Compare a model in half precision with a copy of it in float32, both on whole prompts.

    Returns:
        An agreement on no prompts if a float32 copy does not fit into free memory, or the model is quantised or cut.
    """
    needed = 4 * sum(parameter.numel() for parameter in model.parameters())
    on_gpu = model.device.type == "cuda"
    large = 1.1 * needed >= torch.cuda.mem_get_info(model.device)[0] if on_gpu else 2 * needed >= _free_memory()
    if large or getattr(model, "is_quantized", False) or is_cut(model):
        return Agreement()
    try:
        wide = copy.deepcopy(model).float()
        half, exact = plain_scores(model, encoded), plain_scores(wide, encoded)
    except torch.OutOfMemoryError:
        return Agreement()
    apart = np.abs(np.concatenate(half) - np.concatenate(exact))
    same = [one.argmax() == other.argmax() for one, other in zip(half, exact, strict=True) if len(one) > 1]
    return Agreement(
        prompts=len(encoded),
        argmax=float(np.mean(same)) if same else None,
        largest=float(apart.max()),
        mean=float(apart.mean()),
    )


def next_token(model: Any, context: Ids) -> int:
    """The most probable token after a context."""
    ids, mask = padded([context], model.device)
    with inference(model):
        return int(model(input_ids=ids, attention_mask=mask).logits[0, -1].argmax())


def _free_memory() -> int:
    """Bytes that this process may still take, on Linux; 0 where nothing says so."""
    limits = []
    with suppress(OSError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        limits.append(1024 * int(lines["MemAvailable"].split()[0]))
    with suppress(OSError, ValueError):  # in a container, /proc/meminfo is the whole machine's
        limit, used = (int((Path("/sys/fs/cgroup") / f"memory.{name}").read_text()) for name in ("max", "current"))
        limits.append(limit - used)
    return min(limits, default=0)
