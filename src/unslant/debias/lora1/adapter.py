"""Putting an adapter into a loaded model, and taking it out again."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from unslant.debias.lora1.settings import TrainSettings
from unslant.errors import ModelError
from unslant.models.hf.loading import with_adapter

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel


def attention_projections(model: Any) -> list[str]:
    """Endings of the names of a model's attention projections, such as ``self_attn.q_proj`` or ``attn.c_attn``.

    They are the linear layers (and GPT-2's ``Conv1D``) directly inside modules whose class is called an attention.

    Raises:
        ModelError: if there are none.
    """
    from transformers.pytorch_utils import Conv1D

    found = {
        f"{name.rpartition('.')[2]}.{child}"
        for name, module in model.named_modules()
        if "Attention" in type(module).__name__
        for child, layer in module.named_children()
        if isinstance(layer, torch.nn.Linear | Conv1D)
    }
    if not found:
        raise ModelError(
            f"{type(model).__name__}: no attention projections found; name the modules to adapt with --targets"
        )
    return sorted(found)


def require_peft() -> Any:
    """The peft library.

    Raises:
        ModelError: saying how to install it.
    """
    try:
        import peft
    except ImportError as error:
        raise ModelError("LoRA-1 needs peft: pip install 'unslant[train]'") from error
    return peft


class Adapted:
    """A loaded model with a LoRA adapter inside it, until :meth:`close`.

    The model's own weights are not touched; closing puts its own layers back.

    Attributes:
        peft_model: the wrapper; ``save_pretrained`` writes an ordinary adapter folder.
    """

    def __init__(self, model: TransformersModel, wrapped: Any) -> None:
        self.model = model
        self.peft_model = wrapped
        # peft leaves its mark on the wrapped model, by which other code would take that for the wrapper.
        if "peft_config" in vars(model.model):
            del model.model.peft_config

    @classmethod
    def new(cls, model: TransformersModel, settings: TrainSettings) -> Adapted:
        """A fresh adapter, initialised by the seed: it changes nothing until trained."""
        from transformers.pytorch_utils import Conv1D

        peft = require_peft()
        _refuse_adapted(model)
        targets = [t.strip() for t in settings.targets.split(",") if t.strip()] or attention_projections(model.model)
        adapted_layers = [m for n, m in model.model.named_modules() if n.endswith(tuple(f".{t}" for t in targets))]
        if not adapted_layers:
            raise ModelError(f"{model.name}: no module of the model is called {' or '.join(targets)}; mend --targets")
        config = peft.LoraConfig(
            r=settings.rank,
            lora_alpha=settings.alpha,
            lora_dropout=settings.dropout,
            target_modules=targets,
            fan_in_fan_out=all(isinstance(layer, Conv1D) for layer in adapted_layers),
            bias="none",
            task_type="CAUSAL_LM",
        )
        states = {name: p.requires_grad for name, p in model.model.named_parameters()}
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft and transformers about each other
            torch.manual_seed(settings.seed)
            wrapped = peft.get_peft_model(model.model, config, autocast_adapter_dtype=True)
        adapted = cls(model, wrapped)
        adapted._requires_grad = states
        return adapted

    @classmethod
    def load(cls, model: TransformersModel, folder: str | Path) -> Adapted:
        """An adapter from its folder.

        Raises:
            ModelError: if it cannot be loaded onto this model.
        """
        require_peft()
        _refuse_adapted(model)
        states = {name: p.requires_grad for name, p in model.model.named_parameters()}
        wrapped, _ = with_adapter(model.model, str(folder))
        adapted = cls(model, wrapped)
        adapted._requires_grad = states
        adapted.peft_model.eval()
        return adapted

    _requires_grad: dict[str, bool] | None = None

    def trainable(self) -> list[Any]:
        """The adapter's parameters."""
        return [p for p in self.peft_model.parameters() if p.requires_grad]

    def train_mode(self, on: bool) -> None:
        """Switch the adapter's own dropout; the model's stay off, so that orders differ by nothing else."""
        self.peft_model.eval()
        if on:
            for name, module in self.peft_model.named_modules():
                if name.endswith("lora_dropout"):
                    module.train()

    def state(self) -> dict[str, Any]:
        """The adapter's weights, detached copies."""
        return {name: p.detach().cpu().clone() for name, p in self.peft_model.named_parameters() if p.requires_grad}

    def load_state(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state`."""
        own = {name: p for name, p in self.peft_model.named_parameters() if p.requires_grad}
        with torch.no_grad():
            for name, value in state.items():
                own[name].copy_(value)

    def close(self) -> None:
        """Put the model's own layers back. Closing twice does nothing."""
        if self.peft_model is None:
            return
        self.peft_model.unload()
        self.peft_model = None
        for name, p in self.model.model.named_parameters():
            p.requires_grad = (self._requires_grad or {}).get(name, p.requires_grad)
        self.model.model.eval()


def _refuse_adapted(model: TransformersModel) -> None:
    if hasattr(model.model, "peft_config"):
        raise ModelError(f"{model.name}: the model already carries an adapter; load it without --adapter")
