"""One way to open any model, whatever backend its name stands for.

====================================  ============================================  ==============================
name                                  opens                                         can
====================================  ============================================  ==============================
``NAME_OR_FOLDER``                    reference model, folder or Hub id             score, generate, attend, train
``http(s)://HOST/v1#NAME``            OpenAI-compatible server (or ``base_url``)    score, generate
``http(s)://HOST/v1/systemone#NAME``  decision endpoint; also ``/v1/decisions``     score (options, in any order)
``inspect:PROVIDER/NAME``             any model that inspect_ai supports            generate
====================================  ============================================  ==============================

``score``: log-probabilities of labels. ``generate``: replies. ``attend``: its attention and hidden states can be read
and changed. ``train``: its weights can be trained. A new backend is one file with the two functions of a
:class:`Backend`, and one row of :data:`BACKENDS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from unslant.errors import InputError
from unslant.models.base import is_remote
from unslant.models.options import Address, GenerateOptions, ModelOptions
from unslant.reach import WITHHELD, url_without_secrets

if TYPE_CHECKING:
    from unslant.models.base import ScoringModel
    from unslant.models.chat import ChatModel


@dataclass(frozen=True)
class Backend:
    """One kind of model.

    Attributes:
        what: its name for people.
        example: a model name of this kind.
        openers: what it can do -> ``module:function`` that opens an :class:`Address` for it; the function for
            ``generate`` takes :class:`GenerateOptions` as its second argument.
        options: names of the :class:`ModelOptions` that apply.
        copies: ``module:function`` that opens one to ``score`` in several copies, where ``ModelOptions.ray`` is given.
        parts: the same for one cut across GPUs, where ``ModelOptions.tensor_parallel`` is given.
        open_weights: whether its attention can be read and its weights trained.
    """

    what: str
    example: str
    openers: dict[str, str]
    options: frozenset[str]
    copies: str = ""
    parts: str = ""
    open_weights: bool = False

    @property
    def can(self) -> tuple[str, ...]:
        """What these models can do."""
        return (*self.openers, *(("attend", "train") if self.open_weights else ()))

    def open(self, to: str, address: Address, *arguments: Any) -> Any:
        """A model that can ``score`` or ``generate``."""
        place = self.openers[to]
        if address.options.ray is not None:
            place = self.copies
        elif address.options.tensor_parallel is not None:
            place = self.parts
        module, _, function = place.partition(":")
        return getattr(import_module(module), function)(address, *arguments)


_WEB = ("http://", "https://")
_DECISIONS = ("/systemone", "/decisions")
_REMOTE = frozenset({"connections", "retries", "timeout"})
_LOADED = frozenset({"adapter", "allow_missing", "device", "dtype", "trust_remote_code"})
_LARGE = frozenset({"revision", "device_map", "bits"})
_IN_PARTS = frozenset({"tensor_parallel"})
_RAY = frozenset({"ray", "ray_actors", "ray_gpus"})
_OF_SCORES = frozenset({"server", "top", "max_completion_tokens"}) | _RAY | _IN_PARTS
BACKENDS: dict[str, Backend] = {
    "": Backend(
        "a local model",
        "NAME_OR_FOLDER",
        {"score": "unslant.models.hf.loading:open_local", "generate": "unslant.models.chat:open_local"},
        _LOADED | _LARGE | _RAY | _IN_PARTS | {"connections"},
        copies="unslant.scale.ray:open_ray",
        parts="unslant.scale.tensor_parallel:open_tensor_parallel",
        open_weights=True,
    ),
    "http": Backend(
        "a served model",
        "http://HOST/v1#NAME",
        {"score": "unslant.models.served:open_served", "generate": "unslant.models.inspect_chat:open_inspect"},
        _REMOTE | (_OF_SCORES - _RAY - _IN_PARTS) | {"base_url", "header", "extra_body"},
    ),
    "decision": Backend(
        "a decision endpoint",
        "http://HOST/v1/systemone#NAME",
        {"score": "unslant.models.decisions:open_decisions"},
        _REMOTE | {"base_url", "header", "extra_body"},
    ),
    "inspect": Backend(
        "a model behind inspect",
        "inspect:PROVIDER/NAME",
        {"generate": "unslant.models.inspect_chat:open_inspect"},
        _REMOTE,
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
    """Parse a name and check that the model can do what is needed, without loading anything.

    Raises:
        InputError: on a name without a model, options that do not apply to this kind of model, or a need that it cannot
            meet; the message says what would.
    """
    options = options or ModelOptions()
    scheme, model = _split(name, options)
    if scheme in ("http", "decision") and not options.base_url:
        base_url, _, model = name.partition("#")
        if not model:
            shown = url_without_secrets(name)
            raise InputError(f"{shown}: name the model behind the server, as in {shown.rstrip('/')}#NAME")
        options = replace(options, base_url=base_url)
    for url in options.addresses:
        if not _is_address(url):
            raise InputError(
                f"--base-url {WITHHELD if set(url) & set('@?#') else url}: is not a web address; write it with its "
                "scheme and host, such as http://127.0.0.1:8080/v1, and any of @ / ? # in a password as %40, %2F, "
                "%3F, %23"
            )
    if len(options.addresses) > 1 and ("generate" in needs or len({*map(_speaks, options.addresses)}) > 1):
        raise InputError(
            "--base-url is given several times: servers can share the scoring of labels, all in the same way; replies "
            "are asked of one"
        )
    backend = BACKENDS[scheme]
    if not model:
        raise InputError(f"{name!r}: no model is named; write it as {backend.example}")
    given = [f.name for f in fields(options) if getattr(options, f.name) != f.default]
    applies = backend.options - (_OF_SCORES if tuple(needs) == ("generate",) else frozenset())
    if backend.open_weights and needs and "generate" not in needs:
        applies -= {"connections"}  # the engine fills its batches by tokens
    useless = [f"--{option.replace('_', '-')}" for option in given if option not in applies]
    if useless:
        raise InputError(f"{name} is {backend.what}: leave out {' and '.join(useless)}, which would have no effect")
    elsewhere = "--ray" * (options.ray is not None) or "--tensor-parallel" * (options.tensor_parallel is not None)
    if elsewhere and (inside := [need for need in needs if need in ("attend", "train")]):
        raise InputError(f"{elsewhere}: this needs {_NEEDED_FOR[inside[0]]}, in this process: leave out {elsewhere}")
    if options.bits and "train" in needs:
        raise InputError(f"--bits {options.bits}: weights in so few bits cannot be trained: leave it out")
    for need in needs:
        if need not in backend.can:
            others = [other.example for other in BACKENDS.values() if need in other.can]
            raise InputError(
                f"{name} is {backend.what}, which can {' and '.join(backend.can)} only; this needs "
                f"{_NEEDED_FOR[need]}: give {' or '.join(others)}"
            )
    return Address(scheme, model, options)


def gives_replies(model: object, options: ModelOptions | None = None) -> bool:
    """Whether a name or a loaded model stands for one that gives replies and no log-probabilities.

    Raises:
        InputError: see :func:`address_of`.
    """
    if isinstance(model, str):
        return "score" not in BACKENDS[address_of(model, options).scheme].can
    return hasattr(type(model), "generate") and not hasattr(type(model), "score")


def options_of_each(names: Sequence[str], options: ModelOptions, needs: Sequence[str] = ()) -> list[ModelOptions]:
    """For each of several models, the options that apply to it; the others keep their defaults.

    Raises:
        InputError: on an option that applies to none of them; see also :func:`address_of`.
    """
    useful = [BACKENDS[_split(name, options)[0]].options for name in names]
    found = []
    for name, own in zip(names, useful, strict=True):
        for_others = {option: getattr(ModelOptions, option) for option in frozenset().union(*useful) - own}
        found.append(replace(options, **for_others))
        address_of(name, found[-1], needs)
    return found


def _split(name: str, options: ModelOptions) -> tuple[str, str]:
    if options.base_url or name.startswith(_WEB):
        address = next(iter(options.addresses), name.partition("#")[0])
        return _speaks(address), name if options.base_url else ""
    scheme, colon, rest = name.partition(":")
    return (scheme, rest) if colon and scheme in BACKENDS else ("", name)


def _is_address(url: str) -> bool:
    """Whether this is the URL of a server, with nothing in a place where a part of a password may have gone."""
    try:
        at = urlsplit(url)
        whole = url.startswith(_WEB) and url.isprintable() and " " not in url and "@" not in at.path + at.query
        return whole and bool(at.hostname) and at.port != 0 and not at.fragment
    except ValueError:
        return False


def _speaks(url: str) -> str:
    return "decision" if url.partition("?")[0].rstrip("/").endswith(_DECISIONS) else "http"


def open_model(
    name: Any,
    options: ModelOptions | None = None,
    needs: Sequence[str] = ("score",),
    *,
    tokenizer: Any = None,
    **changes: Any,
) -> ScoringModel:
    """Open a model that gives log-probabilities of labels.

    Args:
        name: see the table at the top of this module; or a loaded causal language model of transformers, given with its
            ``tokenizer`` (it stays where it is, as it is).
        options: how it is run; any of them can be given as a keyword instead (``device="cpu"``).
        needs: what it must be able to do.

    Raises:
        InputError: see :func:`address_of`.
        ModelError: if the model cannot be loaded.
    """
    model: ScoringModel
    if not isinstance(name, str):
        if options or changes:
            raise InputError("the model is loaded already: leave out options that say how to load it")
        if tokenizer is None or not _of_transformers(name):
            raise InputError(_not_a_model(name))
        from unslant.models.hf.model import TransformersModel

        return TransformersModel(name, tokenizer, name.config.name_or_path or type(name).__name__)
    if tokenizer is not None:
        raise InputError(f"{name!r} is opened with its own tokenizer: give tokenizer= with a loaded model only")
    address = address_of(name, replace(options or ModelOptions(), **changes), ("score", *needs))
    model = BACKENDS[address.scheme].open("score", address)
    return model


def open_chat(name: str, options: ModelOptions | None = None, generate: GenerateOptions | None = None) -> ChatModel:
    """Open a model that generates replies; see :func:`open_model`."""
    address = address_of(name, options, ("generate",))
    model: ChatModel = BACKENDS[address.scheme].open("generate", address, (generate or GenerateOptions()).filled())
    return model


def check_opens(name: str, options: ModelOptions | None = None, needs: Sequence[str] = ("score",)) -> None:
    """Look whether a model can be opened, without its weights: the files of a local one are there, a server answers.

    Raises:
        InputError: see :func:`address_of`.
        ModelError: if it cannot be opened.
    """
    address = address_of(name, options, needs)
    if BACKENDS[address.scheme].open_weights:
        from unslant.models.hf.loading import check_loads

        check_loads(address)
    elif "score" in needs:
        model = open_model(name, options)
        if is_remote(model):
            model.ask_identity()
    else:
        open_chat(name, options)


def opened(model: Any, needs: Sequence[str] = ("score",)) -> Any:
    """The model given to a study: a name, a model that can ``score`` or ``generate``, or a function that loads one.

    Raises:
        InputError: if it is none of these.
    """
    if isinstance(model, str):
        return open_model(model, needs=needs) if "score" in needs else open_chat(model)
    if callable(model) and not _of_transformers(model) and not hasattr(model, needs[0]):
        model = model()
    wanted = (needs[0], *_PROTOCOL.get(needs[0], ()))
    lacking = [name for name in wanted if not hasattr(type(model), name) and name not in getattr(model, "__dict__", ())]
    if lacking or _of_transformers(model):
        raise InputError(_not_a_model(model, lacking))
    return model


_PROTOCOL = {"score": ("name", "identity", "cost")}
"""What a model must have beside the method, see :class:`unslant.models.base.ScoringModel`."""


def _of_transformers(model: object) -> bool:
    return hasattr(model, "get_input_embeddings") and hasattr(model, "config")


def _not_a_model(model: object, lacking: Sequence[str] = ()) -> str:
    kind = type(model).__name__
    if _of_transformers(model) or (isinstance(model, tuple) and model and _of_transformers(model[0])):
        return (
            f"{kind}: give a model of transformers with its tokenizer: unslant.open_model(model, tokenizer=tokenizer)"
        )
    return (
        f"{kind} is not a model{': it has no ' * bool(lacking)}{', '.join(lacking)}; give a name, what "
        "unslant.open_model returns, or an object as unslant.models.ScoringModel describes"
    )
