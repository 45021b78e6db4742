"""Methods by name; those that work inside a model are imported when first used, because they import torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from importlib import import_module
from typing import Any

from unslant.debiasing.adaptive import AdaptiveVote
from unslant.debiasing.aoi import AuxiliaryOption
from unslant.debiasing.base import Method
from unslant.debiasing.gray_box import GrayBox
from unslant.debiasing.pride import Pride
from unslant.debiasing.vote import Undebiased, Vote
from unslant.errors import InputError, one_of
from unslant.extras import needed


def _imported(module: str, name: str, **options: Any) -> Method:
    needed("torch", f"{name}, which works inside a model,")
    method: Method = getattr(import_module(f"unslant.debiasing.{module}"), name)(**options)
    return method


def _lora1(adapter: str = "", **options: Any) -> Method:
    needed("torch", "LoRA-1, which works inside a model,")
    from unslant.debiasing.lora1.method import Lora1
    from unslant.debiasing.lora1.settings import TrainSettings

    return Lora1(adapter, TrainSettings(**options))


METHODS: dict[str, Callable[..., Method]] = {
    "none": Undebiased,
    "vote": Vote,
    "vote-hard": partial(Vote, rule="hard"),
    "adaptive": AdaptiveVote,
    "adaptive-fast": partial(AdaptiveVote, risk=0.01),
    "pride": Pride,
    "gray-box": GrayBox,
    "gray-box-calibrated": partial(GrayBox, calibrated=True),
    "bnp": partial(_imported, "bnp", "BiasNodePruning"),
    "aoi": AuxiliaryOption,
    "set-based": partial(_imported, "set_based", "SetBased"),
    "set-based-text": partial(_imported, "set_based", "SetBased", answer="text"),
    "lora-1": _lora1,
}
"""Name -> maker of the method; settings are keyword arguments."""


def method_named(text: str, **more: Any) -> Method:
    """``NAME`` or ``NAME:setting=value:setting=value``, such as ``vote:orders=shared:24`` or ``pride:alpha=0.1``.

    Args:
        more: further settings.

    Raises:
        InputError: on an unknown name or setting, or a value of the wrong type.
    """
    name, _, rest = text.partition(":")
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}: {one_of(name, METHODS)}")
    options: dict[str, str] = {}
    for piece in rest.split(":") if rest else ():
        key, sign, value = piece.partition("=")
        if sign:
            options[key] = value
        elif options:  # the value before it contains a colon, as in orders=shared:24
            options[next(reversed(options))] += f":{piece}"
        else:
            raise InputError(f"method {text!r}: write settings as {name}:setting=value")
    options |= {key: str(value) for key, value in more.items()}
    settings = _settings(METHODS[name]())
    unknown = sorted(set(options) - set(settings))
    if unknown:
        known = one_of(unknown[0], settings) if settings else "it has none"
        raise InputError(f"method {name!r} has no setting {unknown[0]!r}: {known}")
    return METHODS[name](**{key: _as(type(settings[key]), value, text) for key, value in options.items()})


def _settings(method: Any) -> dict[str, Any]:
    """Names and defaults of a method's settings, including those of nested dataclasses."""
    found: dict[str, Any] = {}
    for f in fields(method):
        value = getattr(method, f.name)
        if f.init:
            found |= _settings(value) if is_dataclass(value) else {f.name: value}
    return found


def _as(kind: type, value: str, text: str) -> Any:
    if kind is bool:
        if value.lower() not in ("true", "false"):
            raise InputError(f"method {text!r}: {value!r} is neither true nor false")
        return value.lower() == "true"
    try:
        return kind(value)
    except ValueError:
        raise InputError(f"method {text!r}: {value!r} is not a number") from None
