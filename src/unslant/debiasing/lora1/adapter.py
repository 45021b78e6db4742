"""Insert an adapter into a loaded model, and remove it again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers.pytorch_utils import Conv1D

from unslant.debiasing.lora1 import TrainSettings
from unslant.errors import ModelError, needed
from unslant.models.hf.loading import with_adapter
from unslant.models.hf.model import TransformersModel


def attention_projections(model: Any) -> list[str]:
    """Endings of the names of a model's attention projections, such as ``self_attn.q_proj`` or ``attn.c_attn``.

    They are the linear layers (and GPT-2's ``Conv1D``) directly inside modules whose class name contains "Attention".

    Raises:
        ModelError: if there are none.
    """
    projections = {
        f"{name.rpartition('.')[2]}.{child}"
        for name, module in model.named_modules()
        if "Attention" in type(module).__name__
        for child, layer in module.named_children()
        if isinstance(layer, torch.nn.Linear | Conv1D)
    }
    if not projections:
        raise ModelError(f"{type(model).__name__}: no attention projections; name the modules to adapt with --targets")
    return sorted(projections)


class Adapted:
    """A loaded model with a LoRA adapter in it, until :meth:`close`; the model's own weights do not change.

    Args:
        wrap: puts the adapter into the model's module and returns peft's wrapper.

    Attributes:
        peft_model: peft's wrapper; ``save_pretrained`` writes an ordinary adapter folder.
    """

    def __init__(self, model: TransformersModel, wrap: Callable[[Any], Any]) -> None:
        if hasattr(model.model, "peft_config"):
            raise ModelError(f"{model.name}: the model already carries an adapter; load it without --adapter")
        self.model = model
        self._requires_grad = {name: p.requires_grad for name, p in model.model.named_parameters()}
        self.peft_model = wrap(model.model)
        # peft also marks the wrapped model, which other code would then take for the wrapper.
        vars(model.model).pop("peft_config", None)

    @classmethod
    def new(cls, model: TransformersModel, settings: TrainSettings) -> Adapted:
        """A new adapter, initialised by the seed: it changes nothing until trained."""
        peft = needed("peft", "LoRA-1")

        def wrap(module: Any) -> Any:
            targets = [t.strip() for t in settings.targets.split(",") if t.strip()] or attention_projections(module)
            layers = [m for n, m in module.named_modules() if n.endswith(tuple(f".{t}" for t in targets))]
            if not layers:
                raise ModelError(f"{model.name}: the model has no module {' or '.join(targets)}; correct --targets")
            config = peft.LoraConfig(
                r=settings.rank,
                lora_alpha=settings.alpha,
                lora_dropout=settings.dropout,
                target_modules=targets,
                fan_in_fan_out=all(isinstance(layer, Conv1D) for layer in layers),
                bias="none",
                task_type="CAUSAL_LM",
            )
            with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # peft and transformers warn about each other
                torch.manual_seed(settings.seed)
                return peft.get_peft_model(module, config, autocast_adapter_dtype=True)

        return cls(model, wrap)

    @classmethod
    def load(cls, model: TransformersModel, folder: str | Path) -> Adapted:
        """An adapter from its folder; ModelError if it cannot be loaded onto this model."""
        needed("peft", "LoRA-1")
        return cls(model, lambda module: with_adapter(module, str(folder))[0].eval())

    def trainable(self) -> dict[str, Any]:
        """The adapter's parameters by name."""
        return {name: p for name, p in self.peft_model.named_parameters() if p.requires_grad}

    def train_mode(self, on: bool) -> None:
        """Switch the adapter's dropout; the model's stays off, so that orders differ in nothing else."""
        self.peft_model.eval()
        if on:
            for name, module in self.peft_model.named_modules():
                if name.endswith("lora_dropout"):
                    module.train()

    def state(self) -> dict[str, Any]:
        """The adapter's weights, detached copies."""
        return {name: p.detach().cpu().clone() for name, p in self.trainable().items()}

    def load_state(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state`."""
        with torch.no_grad():
            for name, parameter in self.trainable().items():
                parameter.copy_(state[name])

    def close(self) -> None:
        """Restore the model's own layers. Closing twice does nothing."""
        if self.peft_model is None:
            return
        self.peft_model.unload()
        self.peft_model = None
        for name, p in self.model.model.named_parameters():
            p.requires_grad = self._requires_grad[name]
        self.model.model.eval()
