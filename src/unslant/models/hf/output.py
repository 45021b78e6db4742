"""The output layer in float32, whatever the model's own number type.

In bfloat16 logits near 20 come in steps of 0.125, so labels that a model tells apart end up tied. The hidden states
keep the model's type; only their product with the output layer is exact to float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

_ELEMENTS = 1 << 24
"""Weights converted at once: 64 MiB in float32."""
_HALF = (torch.float16, torch.bfloat16)


@contextmanager
def float32_output(model: Any) -> Iterator[None]:
    """While the block runs, the model's output layer takes and gives float32. Does nothing to a wider layer.

    Layers in packed integers (quantised ones) multiply as they do.
    """
    head = model.get_output_embeddings()
    if head is None or not {p.dtype for p in head.parameters()} & set(_HALF):
        yield
    elif type(head) is torch.nn.Linear and "forward" not in vars(head):
        vars(head)["forward"] = lambda hidden: _product(hidden.float(), head.weight, head.bias)
        try:
            yield
        finally:
            del vars(head)["forward"]
    else:  # an adapter's layer, or one of the model's own making
        halves = [(m, name, p) for m in head.modules() for name, p in m._parameters.items() if p is not None]
        halves = [(m, name, p) for m, name, p in halves if p.dtype in _HALF]
        hook = head.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(), *inputs[1:]))
        try:
            for module, name, parameter in halves:
                module._parameters[name] = parameter.float()
            yield
        finally:
            hook.remove()
            for module, name, parameter in halves:
                module._parameters[name] = parameter


def _product(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    rows = max(1, _ELEMENTS // weight.shape[1])
    parts = [linear(hidden, some.float()) for some in torch.split(weight, rows)]
    logits = torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]
    return logits if bias is None else logits + bias.float()
