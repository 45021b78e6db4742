"""The self-check of a loaded model: its tree against its plain path, and its plain path against every prompt alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from unslant.errors import ModelError, first_line
from unslant.models.base import Cost, Encoded, Ids
from unslant.models.hf.engine import TreeEngine, plain_scores

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4, torch.bfloat16: 6e-2, torch.float16: 1e-2}
"""How far tree and plain log-probabilities may differ, relative to the largest one if over 1."""
INT8_TOLERANCE = 1e-1
"""The same where activations are rounded to 8 bits: which of them are outliers depends on the batch (LLM.int8())."""
_CAUSAL = 1e-3
"""How far the score of three tokens may differ from the sum of theirs, relative likewise, unless more is tolerated."""
_DRAWN = 3
"""Tokens of the longest continuation that is scored."""
MIN_BUDGET = 16
"""Fewest tokens of a batch."""


def tolerance_of(model: Any) -> float:
    """The tolerance for a model's number type and packing."""
    tolerance = TOLERANCE.get(model.dtype, 6e-2)
    return max(tolerance, INT8_TOLERANCE) if getattr(model, "is_loaded_in_8bit", False) else tolerance


def random_probe(model: Any, longest: int) -> list[Encoded]:
    """Random token sequences of at most ``longest`` tokens that branch early, late and often."""
    draw = _Draw(model)
    start = draw(longest // 2)
    branches = [np.concatenate([start[: longest // 3 + 3 * (i % 2)], draw(longest // 8)]) for i in range(3)]
    contexts = [np.concatenate([branch, draw(longest // 8)]) for branch in branches for _ in range(3)]
    return _continued([*contexts, draw(longest // 2)], draw)


def probe_after(model: Any, contexts: Sequence[Ids], longest: int) -> list[Encoded]:
    """Random tokens after given contexts, which are cut where they would exceed ``longest`` tokens with them."""
    return _continued([context[: longest - _DRAWN + 1] for context in contexts], _Draw(model))


class _Draw:
    """Draws tokens of a model's vocabulary, the same in every process."""

    def __init__(self, model: Any) -> None:
        self._rng = np.random.default_rng(0)
        self._vocabulary = known_tokens(model)

    def __call__(self, n: int) -> Ids:
        return self._rng.integers(0, self._vocabulary, n).astype(np.int32)


def _continued(contexts: Sequence[Ids], draw: _Draw) -> list[Encoded]:
    return [Encoded(context, (draw(1), draw(1), draw(_DRAWN))) for context in contexts]


def why_not(model: Any, name: str, probe: Sequence[Encoded], budget: int, *, tree: bool) -> str:
    """Why the tree cannot serve a model, or an empty string.

    Args:
        name: the model's, for messages.
        probe: prompts to compare; some should share their beginning. The last is also run token by token.
        budget: tokens per forward pass.
        tree: compare the tree too; without, the string is empty.

    Raises:
        ModelError: if no engine can, as a pass fails, or as the score of a token depends on more than those before it.
    """
    context, (*_, tokens) = probe[-1].context, probe[-1].candidates
    steps = [Encoded(np.concatenate([context, tokens[:n]]), (tokens[n : n + 1],)) for n in range(len(tokens))]
    tolerance = tolerance_of(model)
    try:
        # Each step alone and without padding, so that an effect of padding shows too. In half precision in one batch:
        # rounding differs between batches, and can send a token to other experts.
        if tolerance > _CAUSAL:
            scores = plain_scores(model, [*probe, *steps], budget)
        else:
            scores = [*plain_scores(model, probe, budget), *plain_scores(model, steps, 1)]
    except Exception as error:  # code of all kinds of models runs here
        if out_of_memory(error):
            raise
        raise ModelError(
            f"{name}: a pass through the model fails, with {probe[-1].longest} tokens: {first_line(error)}"
        ) from error
    plain, single = scores[: len(probe)], np.concatenate(scores[len(probe) :])
    scale = max(1.0, max(float(np.abs(each).max()) for each in plain))
    if abs(plain[-1][-1] - single.sum()) > max(tolerance, _CAUSAL) * scale:
        raise ModelError(
            f"{name}: its score of a token depends on the tokens after it, as in BERT, or on padding, or on chance "
            f"(in a prompt of {probe[-1].longest} tokens); give a causal language model, which reads from left to right"
        )
    if not tree:
        return ""
    # A small budget, so that the check also covers root paths handed from batch to batch.
    scratch = TreeEngine(model, max(MIN_BUDGET, sum(len(item.context) for item in probe) // 4))
    try:
        packed = dict(scratch.score(probe, Cost()))
    except NotImplementedError as error:
        return str(error)
    except Exception as error:  # the tree asks more of a model's code than most callers do: any kind can come
        if out_of_memory(error):
            raise
        return f"its code fails on the tree: {type(error).__name__}: {first_line(error)}"
    worst = max(float(np.abs(packed[i] - each).max()) for i, each in enumerate(plain))
    # Turned round, so that a difference that is not a number fails too.
    if not worst <= tolerance * scale:
        return f"log-probabilities differ by {worst:.2g} from whole prompts"
    return ""


def known_tokens(model: Any) -> int:
    """Number of tokens that a model both reads and predicts; some have embeddings of tokens that they never predict."""
    embeddings = (model.get_input_embeddings(), model.get_output_embeddings())
    return min(int(layer.weight.shape[0]) for layer in embeddings if layer is not None)


def out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch says that memory ran out."""
    return isinstance(error, torch.OutOfMemoryError) or any(
        words in str(error) for words in ("out of memory", "can't allocate memory", "not enough memory")
    )
