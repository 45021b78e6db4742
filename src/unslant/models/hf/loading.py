"""Find and load a model: a reference model by name, a folder, or a Hub id."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from unslant.errors import InputError, ModelError

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel
    from unslant.models.options import Address

DTYPES = ("auto", "float32", "bfloat16", "float16")
DEVICES = ("auto", "cpu", "cuda", "mps")


def load_model(
    name: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    adapter: str | None = None,
    engine: str = "auto",
    token_budget: int | None = None,
    trust_remote_code: bool = False,
) -> TransformersModel:
    """Load a causal language model and its tokenizer.

    Args:
        name: a reference model (``fair``, ``prefers-a``, ...), a folder, or a Hub id.
        dtype: ``auto`` is float32 on a CPU, and the type the weights are stored in elsewhere.
        device: ``auto`` is cuda, then mps, then cpu. ``cuda:1`` and the like are allowed.
        adapter: folder or Hub id of a ``peft`` adapter.
        engine, token_budget: see :class:`~unslant.models.hf.model.TransformersModel`.
        trust_remote_code: run model code that comes with the weights. Off unless asked for.

    Raises:
        ModelError: if model, tokenizer or adapter cannot be found or loaded; the message says what to do.
        InputError: on an unknown dtype or device.
    """
    if dtype not in DTYPES:
        raise InputError(f"unknown dtype {dtype!r}: use one of {', '.join(DTYPES)}")
    if device.split(":")[0] not in DEVICES:
        raise InputError(f"unknown device {device!r}: use one of {', '.join(DEVICES)}")
    source = locate(name)

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from unslant.models.hf.model import TransformersModel

    place = _device(device, torch)
    kind = ("float32" if place == "cpu" else "auto") if dtype == "auto" else dtype
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code, **_where(source)}
    tokenizer = _load("tokenizer", name, AutoTokenizer, source, **options)
    model = _load("model", name, AutoModelForCausalLM, source, dtype=kind, **options)
    shown = name
    if adapter:
        model = with_adapter(model, adapter)
        shown = f"{name} + {Path(adapter).name}"  # or reports would show two models of one name
    return TransformersModel(
        model.to(place).eval(), tokenizer, shown, engine=engine, token_budget=token_budget, adapter=adapter or ""
    )


def open_local(address: Address) -> TransformersModel:
    """A local model; see :mod:`unslant.models.open`."""
    options = address.options
    return load_model(
        address.model,
        dtype=options.dtype,
        device=options.device,
        adapter=options.adapter,
        trust_remote_code=options.trust_remote_code,
    )


def locate(name: str) -> str:
    """The folder of a reference model; folders and Hub ids as they are.

    Raises:
        ModelError: if it is neither, or the folder holds no model.
    """
    from unslant.reference import WORDS, reference_names, reference_path

    if name in (WORDS, *reference_names()):
        return str(reference_path(name))
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(f"{folder}: not a model folder, config.json is missing")
        if not any(
            (folder / file).is_file() for file in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")
        ):
            raise ModelError(f"{folder}: no tokenizer in it; save one there with tokenizer.save_pretrained({name!r})")
        return str(folder)
    if folder.exists() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise ModelError(f"{name}: no such model folder; give a folder with config.json, or a Hub id such as org/model")
    return name


def _load(what: str, name: str, auto: Any, source: str, **options: Any) -> Any:
    from unslant.reference import reference_names

    try:
        return auto.from_pretrained(source, **options)
    except Exception as error:  # transformers raises many kinds, and all of them mean that this source is no use
        if Path(source).is_dir():
            raise ModelError(f"{source}: the {what} cannot be loaded: {_first_line(error)}") from error
        raise ModelError(
            f"unknown model {name!r}: no such folder, none of the reference models ({', '.join(reference_names())}), "
            f"and it could not be downloaded from the Hub ({_first_line(error)}); check the name and the network, "
            "or give a folder"
        ) from error


def with_adapter(model: Any, adapter: str) -> Any:
    """``model`` with a peft adapter on it.

    Raises:
        ModelError: if peft is not installed, or the adapter cannot be loaded.
    """
    try:
        from peft import PeftModel
    except ImportError as error:
        raise ModelError("adapters need peft: pip install 'unslant[train]'") from error
    try:
        return PeftModel.from_pretrained(model, adapter, **_where(adapter))
    except Exception as error:  # as above
        raise ModelError(f"{adapter}: the adapter cannot be loaded: {_first_line(error)}") from error


def _where(source: str) -> dict[str, bool]:
    """Where the libraries are to look: not at a Hub that cannot be reached, which they would try for a minute."""
    return {"local_files_only": Path(source).is_dir() or not _hub_reachable()}


def _hub_reachable() -> bool:
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    if urllib.request.getproxies():
        return True  # not ours to try
    hub = urlsplit(constants.ENDPOINT)
    try:
        socket.create_connection((hub.hostname, hub.port or (443 if hub.scheme == "https" else 80)), timeout=5).close()
    except OSError:
        return False
    return True


def _device(wanted: str, torch: Any) -> str:
    if wanted == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    kind = wanted.split(":")[0]
    if kind == "cuda" and not torch.cuda.is_available():
        raise ModelError("no CUDA device here: use --device cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ModelError("no MPS device here: use --device cpu")
    return wanted


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
