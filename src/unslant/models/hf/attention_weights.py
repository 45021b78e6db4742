"""What the last token of a prompt attends to: whole prompts, one by one, through eager attention."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from unslant.arrays import Floats
from unslant.errors import ModelError
from unslant.models.hf.engine import using
from unslant.models.hf.model import TransformersModel
from unslant.prompts.prompt import Prompt


def last_token_attention(
    model: TransformersModel, prompts: Sequence[Prompt], layer: int = -1
) -> list[tuple[list[str], Floats]]:
    """Tokens of each prompt, and (heads, tokens) attention weights of its last token in one layer; a head's sum to 1.

    Raises:
        ModelError: if the model gives no attention weights (state-space layers, attention of its own making).
    """
    found = []
    try:
        with using(model.model, "eager"), torch.inference_mode():
            for item in model.encode(prompts):
                ids = torch.from_numpy(item.context).to(model.device, torch.long)[None]
                weights = model.model(input_ids=ids, output_attentions=True, use_cache=False).attentions
                if not weights or weights[layer] is None:
                    raise NotImplementedError("it returns no attention weights")
                tokens = [model.tokenizer.decode([token]) for token in item.context.tolist()]
                found.append((tokens, weights[layer][0, :, -1].double().cpu().numpy()))
    except (NotImplementedError, ValueError) as error:  # of the library: a class without eager attention
        raise ModelError(f"{model.name}: no attention to show ({error})") from error
    return found
