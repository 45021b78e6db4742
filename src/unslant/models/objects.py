"""Objects given as models: which can be asked, and what is said of the others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from unslant.errors import InputError
from unslant.models.base import Model


def loaded_by(function: Callable[..., Any]) -> Any:
    """What a function without arguments returns; InputError for any other function."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        raise InputError(f"{not_a_model(function)}; a function that loads a model takes no arguments") from None
    except ValueError:  # some built-in functions have no signature
        raise InputError(not_a_model(function)) from None
    return function()


def of_transformers(model: object) -> bool:
    """Whether this is a causal language model of transformers, or wraps one."""
    # By its shape: the library need not be installed, and models of peft and of others wrap those of transformers.
    return hasattr(model, "get_input_embeddings") and hasattr(getattr(model, "config", None), "name_or_path")


def is_pipeline(model: object) -> bool:
    """Whether this is a pipeline of transformers with such a model."""
    has_both = of_transformers(getattr(model, "model", None)) and hasattr(model, "tokenizer")
    return has_both and not isinstance(model, Model)  # which may hold the same two


def is_whole(model: Model) -> bool:
    """Whether a model of a user's own class has called the constructor of its base class."""
    return hasattr(model, "_info")


_ELSEWHERE = {
    "vllm": "start `vllm serve NAME` and give http://127.0.0.1:8000/v1#NAME",
    "sglang": "start `python -m sglang.launch_server --model-path NAME` and give http://127.0.0.1:30000/v1#NAME",
    "llama_cpp": "give its .gguf file by name, or the address of llama-server, as http://127.0.0.1:8080/v1#NAME",
    "xllamacpp": "give its .gguf file by name, or the address of its server, as http://127.0.0.1:8080/v1#NAME",
    "inspect_ai": "give its name, as inspect:PROVIDER/NAME",
    "openai": "give the address that it asks and the model, as https://HOST/v1#NAME",
}
"""Package of a model in memory that cannot be asked in this process -> how the same model is given."""


def not_a_model(model: object) -> str:
    """Why an object cannot be asked, and what to give instead."""
    kind = type(model).__name__
    if of_transformers(model) or (isinstance(model, tuple) and model and of_transformers(model[0])):
        return (
            f"{kind}: give a model of transformers with its tokenizer: unslant.open_model(model, tokenizer=tokenizer)"
        )
    if is_pipeline(model):
        return f"{kind}: a pipeline in memory is asked for the scores of labels; for replies give the model's name"
    if isinstance(model, Model) and not is_whole(model):
        return f"{kind} has no info: call super().__init__(ModelInfo(name=...)) in its __init__"
    if isinstance(model, Model):
        return f"{model.name} can {' and '.join(sorted(model.info.can))} only"
    if how := _ELSEWHERE.get(type(model).__module__.partition(".")[0]):
        return f"{kind} is a model in memory that unslant cannot ask directly: {how}"
    what = "ChatModel, with its replies in _replies" if hasattr(model, "generate") else "ScoringModel"
    return (
        f"{kind} is not a model; give a name, what unslant.open_model returns, or an object whose class is a subclass "
        f"of unslant.models.{what}"
    )
