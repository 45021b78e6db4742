"""How to correct the answer: one method a file or folder, one contract (:mod:`unslant.debiasing.base`).

The table of methods is here. It refers to them by strings, so that a command imports only the method that it uses (some
need torch). Another package adds a method with the same kind of row, an entry point in the group ``unslant.methods``::

    [project.entry-points."unslant.methods"]
    reversed = "their_package.reversing:Reversed"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from unslant.errors import InputError, load_row, naming_flags, one_of, with_plugins
from unslant.flags import check_least

if TYPE_CHECKING:
    from unslant.debiasing.base import Method

METHODS: dict[str, str] = {
    "none": "unslant.debiasing.vote:Undebiased",
    "vote": "unslant.debiasing.vote:Vote",
    "vote-hard": "unslant.debiasing.vote:vote_hard",
    "adaptive": "unslant.debiasing.adaptive:AdaptiveVote",
    "adaptive-fast": "unslant.debiasing.adaptive:adaptive_fast",
    "pride": "unslant.debiasing.pride:Pride",
    "gray-box": "unslant.debiasing.gray_box:GrayBox",
    "gray-box-calibrated": "unslant.debiasing.gray_box:gray_box_calibrated",
    "bnp": "unslant.debiasing.bnp:BiasNodePruning",
    "aoi": "unslant.debiasing.aoi:AuxiliaryOption",
    "set-based": "unslant.debiasing.set_based:SetBased",
    "set-based-text": "unslant.debiasing.set_based:set_based_text",
    "lora-1": "unslant.debiasing.lora1.training:Lora1",
}
"""Name -> ``module:maker``: a :class:`~unslant.debiasing.base.Method`, or a function that makes one of its settings."""
GROUP = "unslant.methods"
"""Entry points that add rows to :data:`METHODS`."""


def method_named(text: str, settings: Mapping[str, object] | None = None, keywords: Iterable[str] = ()) -> Method:
    """``NAME`` or ``NAME:setting=value:setting=value``, such as ``vote:orders=shared:24`` or ``pride:alpha=0.1``.

    Args:
        settings: further settings, by name.
        keywords: what else the caller takes by name, for the message on an unknown setting.

    Raises:
        InputError: on an unknown name or setting, or a value that cannot be used.
        ModelError: if the method needs a package that is not installed.

    Example::

        method_named("adaptive-fast:risk=0.001").risk  # 0.001
    """
    name, _, rest = text.partition(":")
    rows = with_plugins(METHODS, GROUP)
    if name not in rows:
        raise InputError(f"unknown method {name!r}: {one_of(name, rows)}")
    maker: Callable[..., Method] = load_row(rows[name], f"the method {name}")
    values: dict[str, str] = {}
    for piece in rest.split(":") if rest else ():
        key, sign, value = piece.partition("=")
        if sign:
            values[key] = value
        elif values:  # the value before it contains a colon, as in orders=shared:24
            values[next(reversed(values))] += f":{piece}"
        else:
            raise InputError(f"method {text!r}: write settings as {name}:setting=value")
    values |= {key: str(value) for key, value in (settings or {}).items()}
    default = maker()
    defaults = {f.name: getattr(default, f.name) for f in fields(cast(Any, default)) if f.init}
    if unknown := sorted(values.keys() - defaults.keys()):
        known = [*defaults, *keywords]
        allowed = one_of(unknown[0], known) if known else "it has none"
        raise InputError(f"method {name!r} has no setting {unknown[0]!r}: {allowed}")
    typed = {key: _converted(type(defaults[key]), value, text) for key, value in values.items()}
    try:
        with naming_flags(False):  # its settings are no options of a command
            method = maker(**typed)
            check_least(method, {"seed": 0} if "seed" in defaults else {})
            return method
    except InputError as error:
        raise InputError(f"method {text!r}: {error}") from None


def _converted(kind: type, value: str, text: str) -> Any:
    if kind is bool:
        if value.lower() not in ("true", "false"):
            raise InputError(f"method {text!r}: {value!r} is neither true nor false")
        return value.lower() == "true"
    try:
        return kind(value)
    except ValueError:
        raise InputError(f"method {text!r}: {value!r} is not a number") from None
