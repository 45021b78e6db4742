"""One way to open any model, whatever stands behind its name.

=========================  ================================================  ============================
name                       what is opened                                    can
=========================  ================================================  ============================
``NAME_OR_FOLDER``         reference model, folder or Hub id (transformers)  score, generate, attend, train
``http(s)://HOST/v1#NAME``  an OpenAI-compatible server (or ``base_url``)     score, generate
``inspect:PROVIDER/NAME``  any model that inspect_ai reaches                 generate
=========================  ================================================  ============================

``score``: log-probabilities of labels. ``generate``: replies. ``attend``: its attention and hidden states can be read
and changed. ``train``: its weights can be trained. A new backend is one file with the two functions of a
:class:`Backend`, and one row of :data:`BACKENDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError
from unslant.models.options import Address, GenerateOptions, ModelOptions

if TYPE_CHECKING:
    from unslant.models.base import ScoringModel
    from unslant.models.chat import ChatModel


@dataclass(frozen=True)
class Backend:
    """One kind of model.

    Attributes:
        what: how people call it.
        example: a name that opens one.
        scores: ``module:function`` that opens an :class:`Address` to score; empty if that is not possible.
        chats: the same to generate, with :class:`GenerateOptions` as second argument.
        options: names of the :class:`ModelOptions` that mean something here.
        open_weights: its attention can be read and its weights trained.
    """

    what: str
    example: str
    scores: str
    chats: str
    options: frozenset[str]
    open_weights: bool = False

    @property
    def can(self) -> tuple[str, ...]:
        """What these models can do."""
        return (
            *(("score",) if self.scores else ()),
            *(("generate",) if self.chats else ()),
            *(("attend", "train") if self.open_weights else ()),
        )


_REMOTE = frozenset({"connections", "retries", "timeout"})
BACKENDS: dict[str, Backend] = {
    "": Backend(
        "a local model",
        "NAME_OR_FOLDER",
        "unslant.models.hf.loading:open_local",
        "unslant.models.chat:open_local",
        frozenset({"adapter", "allow_missing", "device", "dtype", "trust_remote_code", "connections"}),
        open_weights=True,
    ),
    "http": Backend(
        "a served model",
        "http://HOST/v1#NAME",
        "unslant.models.served:open_served",
        "unslant.models.chat:open_inspect",
        _REMOTE | {"base_url"},
    ),
    "inspect": Backend(
        "a model behind inspect", "inspect:PROVIDER/NAME", "", "unslant.models.chat:open_inspect", _REMOTE
    ),
}
"""Scheme -> backend."""
_NEEDED_FOR = {
    "score": "log-probabilities of labels",
    "generate": "replies",
    "attend": "the model's attention",
    "train": "weights that can be trained",
}


def address_of(name: str, options: ModelOptions | None = None, needs: Sequence[str] = ()) -> Address:
    """Take a name apart and check that the model can do what is needed, without loading anything.

    Raises:
        InputError: on a name without a model, options that mean nothing for this kind of model, or a need that it
            cannot meet; the message names what would.
    """
    options = options or ModelOptions()
    scheme, model = _split(name, options)
    if scheme == "http" and not options.base_url:
        base_url, _, model = name.partition("#")
        if not model:
            raise InputError(f"{name}: name the model behind the server, as in {name.rstrip('/')}#NAME")
        options = replace(options, base_url=base_url)
    if not model:
        raise InputError(f"{name!r}: no model is named; write it as {BACKENDS[scheme].example}")
    backend = BACKENDS[scheme]
    given = [f.name for f in fields(options) if getattr(options, f.name) != f.default]
    useless = [f"--{option.replace('_', '-')}" for option in given if option not in backend.options]
    if useless:
        raise InputError(
            f"{name} is {backend.what}: leave out {' and '.join(useless)}, which would change nothing there"
        )
    for need in needs:
        if need not in backend.can:
            others = [other.example for other in BACKENDS.values() if need in other.can]
            raise InputError(
                f"{name} is {backend.what}, which can {' and '.join(backend.can)} only; this needs "
                f"{_NEEDED_FOR[need]}: give {' or '.join(others)}"
            )
    return Address(scheme, model, options)


def options_of_each(names: Sequence[str], options: ModelOptions, needs: Sequence[str] = ()) -> list[ModelOptions]:
    """Options for each of several models, of which some may be local and others not.

    Raises:
        InputError: on an option that means nothing for any of them, or see :func:`address_of`.
    """
    useful = [BACKENDS[_split(name, options)[0]].options for name in names]
    found = []
    for name, own in zip(names, useful, strict=True):
        for_others = {option: getattr(ModelOptions, option) for option in frozenset().union(*useful) - own}
        found.append(replace(options, **for_others))
        address_of(name, found[-1], needs)
    return found


def _split(name: str, options: ModelOptions) -> tuple[str, str]:
    if options.base_url:
        return "http", name
    if name.startswith(("http://", "https://")):
        return "http", ""
    scheme, colon, rest = name.partition(":")
    return (scheme, rest) if colon and scheme in BACKENDS else ("", name)


def open_model(
    name: str, options: ModelOptions | None = None, needs: Sequence[str] = ("score",), **changes: Any
) -> ScoringModel:
    """Open a model that gives log-probabilities of labels.

    Args:
        name: see the table at the top of this module.
        options: how it is run; any of them may be given as a keyword instead (``device="cpu"``).
        needs: what it must be able to do.

    Raises:
        InputError: see :func:`address_of`.
        ModelError: if the model cannot be loaded.
    """
    address = address_of(name, replace(options or ModelOptions(), **changes), ("score", *needs))
    model: ScoringModel = _function(BACKENDS[address.scheme].scores)(address)
    return model


def open_chat(
    name: str, options: ModelOptions | None = None, generate: GenerateOptions | None = None, **changes: Any
) -> ChatModel:
    """Open a model that generates replies; see :func:`open_model`."""
    address = address_of(name, replace(options or ModelOptions(), **changes), ("generate",))
    model: ChatModel = _function(BACKENDS[address.scheme].chats)(address, (generate or GenerateOptions()).filled())
    return model


def opened(model: str | Any | Callable[[], Any], needs: Sequence[str] = ("score",)) -> Any:
    """The model that a study was given: by name, loaded already, or as a function that loads it."""
    if isinstance(model, str):
        return open_model(model, needs=needs) if "score" in needs else open_chat(model)
    return model() if callable(model) else model


def _function(home: str) -> Any:
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)
