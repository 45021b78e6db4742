"""Find and load a model: a reference model by name, a folder, a GGUF file, or a Hub id."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from unslant.errors import InputError, ModelError, first_line, for_the_caller, hub_refusal, needed, one_of
from unslant.models.hf.sanity import (
    check_config,
    check_size,
    class_for,
    forget_gguf,
    gguf_reader,
    holes,
    incomplete_weights,
    is_gguf,
    locate,
)
from unslant.models.options import LocalKeywords, ModelOptions
from unslant.reference import reference_names
from unslant.store import default_path

if TYPE_CHECKING:
    from unslant.models.hf.model import TransformersModel

LARGE = 50_000_000
"""Weights from which the number type decides how long scoring takes."""


def load_model(
    name: str,
    options: ModelOptions | None = None,
    *,
    engine: str = "auto",
    token_budget: int | None = None,
    **changes: Unpack[LocalKeywords],
) -> TransformersModel:
    """Load a causal language model and its tokenizer, in this process.

    Args:
        name: a reference model (``fair``, ``prefers-a``, ...), a folder, a GGUF file or a folder with one (its weights
            are dequantized), or a Hub id.
        options: how it is loaded; any of them can be given as a keyword instead (``device="cpu"``). ``dtype`` ``auto``
            is float32 on a CPU, and the type the weights are stored in elsewhere. ``device`` ``auto`` is cuda, then
            mps, then cpu; ``cuda:1`` and the like are allowed. With ``tensor_parallel`` this process loads its part,
            and torch's process group must be set up (:mod:`unslant.scale.tensor_parallel` does it all).
        engine, token_budget: see :class:`~unslant.models.hf.model.TransformersModel`.

    Raises:
        ModelError: if model, tokenizer or adapter cannot be found or loaded, weights are missing or left over, or do
            not fit on the GPUs; the message says what to do.
        InputError: on an unknown dtype or device, or incompatible options.

    Examples:
        >>> unslant.load_model("fair", device="cpu").name
        'fair'
    """
    if unknown := sorted(changes.keys() - LocalKeywords.__annotations__.keys()):
        raise InputError(f"load_model has no option {unknown[0]}: {one_of(unknown[0], LocalKeywords.__annotations__)}")
    if not isinstance(name, str | PathLike):
        raise InputError(f"name {name!r}: give the name or the folder of a model")
    name, how = str(name), replace(options or ModelOptions(), **changes)
    model, tokenizer, incomplete = pretrained(name, how, "AutoModelForCausalLM")
    from unslant.models.hf.model import TransformersModel  # after it is known that torch is there

    display_name = name
    if how.adapter:
        model, of_adapter = with_adapter(model, how.adapter, allow_missing=how.allow_missing)
        incomplete.append(of_adapter)
        display_name = f"{name} + {Path(how.adapter).name}"  # or reports would show two models of one name
    return TransformersModel(
        model.eval(),
        tokenizer,
        display_name,
        engine=engine,
        token_budget=token_budget,
        adapter=how.adapter or "",
        incomplete="; ".join(filter(None, incomplete)),
    )


def pretrained(name: str, how: ModelOptions, auto: str) -> tuple[Any, Any, list[str]]:
    """A model on its device; its tokenizer; and what is wrong with its weights, where that is allowed.

    Args:
        auto: class of transformers that loads it, such as ``AutoModelForCausalLM``.

    Raises:
        InputError, ModelError: see :func:`load_model`.
    """
    source = _prepared(name, how)
    if how.bits is not None:
        needed("bitsandbytes", f"--bits {how.bits}")
    if how.device_map is not None:
        needed("accelerate", "--device-map")

    import torch
    import transformers

    place = place_of(how)
    dtype = ("float32" if place == "cpu" else "auto") if how.dtype == "auto" else how.dtype
    where = _where_to_look(source, how)
    with quiet_loading(source):
        model_class, zeros = _checked(name, source, how, where, auto)
        tokenizer = _load("tokenizer", name, transformers.AutoTokenizer, source, where)
        form = {"dtype": dtype, "output_loading_info": True, **where, **_form(source, how, dtype, place)}
        model, report = _load("model", name, model_class, source, form)
    if offloaded := sorted(key for key, tensor in model.named_parameters() if tensor.is_meta):
        raise ModelError(
            f"{name}: {len(offloaded):,} of its weights do not fit on the GPUs, and would be fetched again for every "
            "pass: use more GPUs, --bits=8, --bits=4 or --dtype=bfloat16"
        )
    if is_gguf(source) and getattr(model, "hf_quantizer", None):
        # Unpacked by now: without its quantizer it can be saved and trained like any other model.
        model.hf_quantizer.remove_quantization_config(model)
    lacking = incomplete_weights(source, report["missing_keys"], report["unexpected_keys"], how.allow_missing)
    if how.dtype == "auto" and place == "cpu" and model.num_parameters() >= LARGE:
        has: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # not in every torch
        if any(has.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16")):
            _suggest_bfloat16()
    if not (how.device_map or how.bits or how.tensor_parallel):
        model = model.to(place)
    return model, tokenizer, [zeros, lacking]


def _prepared(name: str, how: ModelOptions) -> str:
    """Where the model is, after checking that its libraries are installed and that its adapter is one."""
    source = locate(name)
    if how.bits is not None and is_gguf(source):
        raise InputError(f"--bits {how.bits}: the weights of a GGUF file are unpacked; give the original checkpoint")
    with warnings.catch_warnings():
        # Both libraries import tqdm.auto, whose warning would open every notebook without ipywidgets.
        warnings.filterwarnings("ignore", message="IProgress not found")
        if not os.path.exists(source):
            needed("huggingface_hub", f"{name}, a local model,")
            _check_hub(name, source, how)  # before the seconds that importing torch takes
        for library in ("torch", "transformers"):
            needed(library, f"{name}, a local model,")
    if how.adapter:
        adapter_base(how.adapter)  # fails before anything large is loaded
    return source


def _check_hub(name: str, source: str, how: ModelOptions) -> None:
    from huggingface_hub import try_to_load_from_cache

    in_cache = any(
        isinstance(try_to_load_from_cache(source, file, revision=how.revision), str)
        for file in ("config.json", "adapter_config.json")
    )
    if not in_cache and (reason := hub_refusal()):
        raise _unknown(name, f"the Hub cannot be reached: {reason}")


def _form(source: str, how: ModelOptions, dtype: str, place: str) -> dict[str, Any]:
    """Arguments of transformers for the form of the weights: unpacked, quantised, spread or cut into parts."""
    import transformers

    arguments: dict[str, Any] = {}
    if how.device_map or how.bits:
        arguments["device_map"] = how.device_map or {"": place}
    if how.bits:
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it logs every layer's number type
        computed = {} if dtype == "auto" else {"bnb_4bit_compute_dtype": dtype}
        four = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", **computed}
        packing = {"load_in_8bit": True} if how.bits == 8 else four
        arguments["quantization_config"] = transformers.BitsAndBytesConfig(**packing)
    elif is_gguf(source):
        # Packed blocks could be neither trained nor scored in batches exactly.
        arguments["quantization_config"] = transformers.GgufConfig(dequantize=True)
    if how.tensor_parallel:
        from transformers.distributed import DistributedConfig

        arguments["distributed_config"] = DistributedConfig(tp_size=how.tensor_parallel)
    return arguments


@cache
def _suggest_bfloat16() -> None:
    """Say once per machine what bfloat16 saves; ``auto`` stays with float32, whose scores need no caveat."""
    note = default_path().with_name("bfloat16-suggested")
    if os.path.exists(note):
        return
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()
    warnings.warn(
        for_the_caller("scoring in float32; on this processor --dtype=bfloat16 takes half the time, to within 0.01"),
        stacklevel=3,
    )


def check_loads(name: str, options: ModelOptions) -> None:
    """Check that a local model can be loaded, by the names and shapes of its weights; a GGUF file only has to exist.

    Raises:
        ModelError: see :func:`load_model`.
    """
    source = _prepared(name, options)
    if is_gguf(source):
        return
    with quiet_loading(source):
        where = _where_to_look(source, options)
        model_class, _ = _checked(source, source, options, where, "AutoModelForCausalLM")
        form = {"device_map": "meta", "output_loading_info": True, **where}
        _, report = _load("model", source, model_class, source, form)
        incomplete_weights(source, report["missing_keys"], report["unexpected_keys"], options.allow_missing)


def _load(what: str, name: str, auto: Any, source: str, options: dict[str, Any]) -> Any:
    path = Path(source)
    if is_gguf(path):
        for package in ("gguf", "accelerate"):
            needed(package, f"{name}, a GGUF file,")
        source, options = str(path.parent), options | {"gguf_file": path.name}
    try:
        return auto.from_pretrained(source, **options)
    except Exception as error:  # transformers raises many kinds, and all of them mean that this source is useless
        if is_gguf(path) or os.path.isdir(path):
            raise ModelError(f"{path}: the {what} cannot be loaded: {first_line(error)}") from error
        raise _unknown(name, first_line(error)) from error


def _unknown(name: str, reason: str) -> ModelError:
    return ModelError(
        f"unknown model {name!r}: it is neither a folder nor a reference model ({one_of(name, reference_names())}), "
        f"and it could not be downloaded from the Hub ({reason}); check the name and the network, or give a folder"
    )


def _checked(name: str, source: str, how: ModelOptions, where: dict[str, Any], auto: str) -> tuple[Any, str]:
    """Check what a checkpoint asks for before anything is built; see :mod:`unslant.models.hf.sanity` for its errors.

    Returns:
        The class of transformers that loads it; and its stretches of zeros, if they are allowed.
    """
    import transformers

    if not is_gguf(source):
        config = _config(name, source, where)
        model_class = class_for(name, config, auto)
        check_size(source, config, model_class, trust_remote_code=how.trust_remote_code)
        return model_class, ""
    needed("gguf", f"{name}, a GGUF file,")
    check_config(source)
    zeros = holes(Path(source))
    problem = f"{source}: zeros instead of weights ({zeros})" if zeros else ""
    if problem and not how.allow_missing:
        raise ModelError(
            f"{problem}: the file is damaged or incomplete. Download it again, or override with --allow-missing"
        )
    return getattr(transformers, auto), problem


def tokenizer_of(name: str, options: ModelOptions) -> Any:
    """The tokenizer of a local model; nothing else of it is loaded.

    Raises:
        InputError, ModelError: see :func:`load_model`.
    """
    from transformers import AutoTokenizer

    source = _prepared(name, options)
    with quiet_loading(source):
        return _load("tokenizer", name, AutoTokenizer, source, _where_to_look(source, options))


def config_of(name: str, options: ModelOptions) -> Any:
    """The configuration of a local model, checked; nothing else of it is loaded."""
    source = locate(name)
    with quiet_loading(source):
        return _config(name, source, _where_to_look(source, options))


def _config(name: str, source: str, where: dict[str, Any]) -> Any:
    from transformers import AutoConfig

    check_config(source, {key: value for key, value in where.items() if key != "trust_remote_code"})
    return _load("configuration", name, AutoConfig, source, where)


def adapter_base(adapter: str) -> str:
    """The model that an adapter was made for; empty if it does not say.

    Raises:
        ModelError: if peft is missing, or this is not an adapter.
    """
    needed("peft", f"{adapter}, an adapter,")
    from peft import PeftConfig

    try:
        return str(PeftConfig.from_pretrained(adapter, **_here(adapter)).base_model_name_or_path or "")
    except Exception as error:  # as above
        raise ModelError(f"{adapter}: the adapter cannot be loaded: {first_line(error)}") from error


def with_adapter(model: Any, adapter: str, *, allow_missing: bool = False) -> tuple[Any, str]:
    """A model with an adapter, and the missing and unexpected weights of the adapter's file, if they are allowed.

    Raises:
        ModelError: if peft is missing, or the adapter cannot be loaded or does not belong on this model.
    """
    target, base = str(model.config._name_or_path), adapter_base(adapter)
    from peft import PeftModel

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found missing adapter keys")  # an error below
            model = PeftModel.from_pretrained(model, adapter, **_here(adapter))
            # Again, for its report, which from_pretrained drops.
            report = model.load_adapter(adapter, "default", **_here(adapter))
    except Exception as error:  # as above
        made_for = f" onto {target}, for it was made for {base}" if base else f" onto {target}"
        lines = [line.strip() for line in str(error).splitlines()]
        reason = next((line for line in lines if line.startswith("size mismatch")), first_line(error))
        raise ModelError(f"{adapter}: the adapter cannot be loaded{made_for}: {reason}") from error
    if base and Path(base).name != Path(target).name:
        warnings.warn(f"{adapter} was made for {base}, and is put on {target}", stacklevel=2)
    return model, incomplete_weights(adapter, report.missing_keys, report.unexpected_keys, allow_missing)


@contextmanager
def quiet_loading(source: str) -> Iterator[None]:
    """Show no progress bars of transformers while the block runs, and let it read the header of a GGUF file once."""
    from transformers.utils.logging import disable_progress_bar, enable_progress_bar, is_progress_bar_enabled

    enabled = is_progress_bar_enabled()
    disable_progress_bar()
    with ExitStack() as undo:
        if enabled:
            undo.callback(enable_progress_bar)
        if is_gguf(source) and find_spec("gguf"):
            import gguf

            unpacking = import_module("transformers.modeling_gguf_pytorch_utils")
            for module, name, ours in (
                (unpacking, "tqdm", lambda tensors, **_: tensors),  # ignores the switch above
                (gguf, "GGUFReader", gguf_reader),
                (gguf, "get_tensor_name_map", cache(gguf.get_tensor_name_map)),  # asked for by every module
            ):
                undo.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, ours)
            undo.callback(forget_gguf)
        yield


def _where_to_look(source: str, how: ModelOptions) -> dict[str, Any]:
    """Where the libraries look, and whether code there may run; InputError on a revision of something local."""
    if how.revision is not None and os.path.exists(source):
        raise InputError(f"--revision {how.revision}: {source} is here, and has one only; it is for models of the Hub")
    revision = {"revision": how.revision} if how.revision else {}
    return {"trust_remote_code": how.trust_remote_code, **_here(source), **revision}


def _here(source: str) -> dict[str, bool]:
    """Keep the libraries from a Hub that cannot be reached, which they would try for a minute."""
    return {"local_files_only": os.path.exists(source) or bool(hub_refusal())}


def place_of(how: ModelOptions) -> str:
    """The device to load a model on; ModelError if it is not here."""
    import torch

    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if how.device == "auto":
        return next((kind for kind, here in available.items() if here), "cpu")
    kind, _, number = how.device.partition(":")
    if not available.get(kind, True):
        raise ModelError(f"no {kind.upper()} device here: use --device=cpu")
    if kind == "cuda" and int(number or 0) >= (count := torch.cuda.device_count()):
        raise ModelError(f"--device={how.device}: the GPUs of this machine are cuda:0 to cuda:{count - 1}")
    return how.device
