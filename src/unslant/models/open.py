"""One way to open any model, on the backend that its name selects.

====================================  ============================================  ==============================
name                                  opens                                         can
====================================  ============================================  ==============================
``NAME_OR_FOLDER``                    reference model, folder or Hub id             score, generate, attend, train
``http(s)://HOST/v1#NAME``            OpenAI-compatible server (or ``base_url``)    score, generate
``http(s)://HOST/v1/systemone#NAME``  decision endpoint; also ``/v1/decisions``     score (options, in any order)
``inspect:PROVIDER/NAME``             any model that inspect_ai supports            generate
``reward:NAME``                       reward model (sequence classification)        score (answers, in any order)
====================================  ============================================  ==============================

A new backend is one file with a loader, and one row of :data:`BACKENDS`; a package of its own registers the row as an
entry point of the group ``unslant.backends``, under the scheme of its names::

    [project.entry-points."unslant.backends"]
    mine = "my_package:BACKEND"  # a Backend, for models named mine:NAME
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack
from urllib.parse import urlsplit, urlunsplit

from unslant.errors import InputError, ModelError, load_row, with_plugins
from unslant.flags import long_flag, with_options, without_effect
from unslant.models.base import (
    Model,
    ScoringModel,
    is_pipeline,
    is_whole,
    loaded_by,
    not_a_model,
    of_transformers,
    replies_to_prompts,
)
from unslant.models.options import GenerateOptions, ModelKeywords, ModelOptions, options_for
from unslant.reach import WITHHELD, url_without_secrets

if TYPE_CHECKING:
    from unslant.models.chat import ChatModel

GROUP = "unslant.backends"
"""Entry points of other packages, each a :class:`Backend`."""


@dataclass(frozen=True)
class Backend:
    """One kind of model.

    Attributes:
        what: display name.
        example: a model name of this kind.
        loaders: ``score`` or ``generate`` -> ``module:function`` that loads such a model. The function takes the name
            without its scheme and the whole :class:`ModelOptions`; for ``generate`` also :class:`GenerateOptions`.
        options: names of the :class:`ModelOptions` that apply; any other one is refused.
        instead: option -> the loader for ``score`` when that option is set.
        open_weights: whether its attention can be read and its weights trained.
    """

    what: str
    example: str
    loaders: Mapping[str, str]
    options: frozenset[str] = frozenset()
    instead: Mapping[str, str] = field(default_factory=dict)
    open_weights: bool = False

    @property
    def can(self) -> tuple[str, ...]:
        """What these models can do."""
        return (*self.loaders, *(("attend", "train") if self.open_weights else ()))

    def loader(self, to: str, options: ModelOptions) -> Callable[..., Any]:
        """The function that loads a model that can ``score`` or ``generate``."""
        place = next((self.instead[name] for name in self.instead if name in options.given), self.loaders[to])
        loader: Callable[..., Any] = load_row(place, self.what)
        return loader


class Address(NamedTuple):
    """A model's name taken apart: the scheme, its backend, the name without the scheme, and how the model is run."""

    scheme: str
    backend: Backend
    model: str
    options: ModelOptions


_WEB = ("http://", "https://")
_DECISIONS = ("/systemone", "/decisions")
_ROUTE = re.compile(r"/(?:chat/completions|completions|responses|models|generate)/?$")
BACKENDS: dict[str, Backend] = {
    "": Backend(
        "a local model",
        "NAME_OR_FOLDER",
        {"score": "unslant.models.hf.loading:load_model", "generate": "unslant.models.chat:load_chat"},
        options_for(""),
        instead={
            "ray": "unslant.scale.ray:RayModel",
            "tensor_parallel": "unslant.scale.tensor_parallel:TensorParallelModel",
        },
        open_weights=True,
    ),
    "http": Backend(
        "a served model",
        "http://HOST/v1#NAME",
        {"score": "unslant.models.served:load_served", "generate": "unslant.models.inspect_chat:load_inspect"},
        options_for("http"),
    ),
    "decision": Backend(
        "a decision endpoint",
        "http://HOST/v1/systemone#NAME",
        {"score": "unslant.models.decisions:load_decisions"},
        options_for("decision"),
    ),
    "inspect": Backend(
        "a model behind inspect",
        "inspect:PROVIDER/NAME",
        {"generate": "unslant.models.inspect_chat:load_inspect"},
        options_for("inspect"),
    ),
    "reward": Backend(
        "a reward model",
        "reward:NAME_OR_FOLDER",
        {"score": "unslant.models.hf.reward:load_reward"},
        frozenset({"device", "dtype", "revision", "device_map", "bits", "trust_remote_code", "allow_missing"}),
    ),
}
"""Scheme -> unslant's own backends."""
_NEEDED_FOR = {
    "score": "log-probabilities of labels",
    "generate": "replies",
    "attend": "the model's attention",
    "train": "weights that can be trained",
}


def backend_of(scheme: str) -> Backend | None:
    """The backend for names with this scheme, unslant's own or another package's; None if there is none.

    Raises:
        ModelError: if the other package cannot be imported, or registers something else.
    """
    if scheme in BACKENDS:
        return BACKENDS[scheme]
    if not (home := with_plugins({}, GROUP).get(scheme)):
        return None
    row = load_row(home, f"the backend {scheme}")
    if not isinstance(row, Backend):
        raise ModelError(
            f"the backend {scheme}: {home} is not an unslant.models.open.Backend; report it to its package"
        )
    return row


def all_backends() -> dict[str, Backend]:
    """Scheme -> backend: unslant's own, then those of other packages that can be loaded."""
    backends = dict(BACKENDS)
    for scheme in with_plugins({}, GROUP):
        with suppress(ModelError):
            if row := backend_of(scheme):
                backends[scheme] = row
    return backends


def address_of(name: str, options: ModelOptions | None = None, needs: Sequence[str] = ()) -> Address:
    """Parse a name and check that the model can do what is needed, without loading anything.

    Raises:
        InputError: on a name without a model, options that do not apply to this kind of model, or a need that it cannot
            meet; the message says what would.
    """
    options = options or ModelOptions()
    scheme, backend, model = _split(name, options)
    if scheme in ("http", "decision") and not options.base_url:
        base_url, _, model = name.partition("#")
        if not model:
            url = url_without_secrets(name)
            raise InputError(f"{url}: name the model behind the server, as in {url.rstrip('/')}#NAME")
        options = replace(options, base_url=base_url)
    _check_urls(options, needs)
    if not model:
        raise InputError(f"{name!r}: the model's name is missing; write it as {backend.example}")
    applies = backend.options - (options_for("score") if tuple(needs) == ("generate",) else frozenset())
    if backend.open_weights and needs and "generate" not in needs:
        applies -= {"connections"}  # the engine fills its batches by tokens
    if useless := options.given - applies:
        raise without_effect(f"{name} is {backend.what}", [*map(long_flag, sorted(useless))])
    flag = "--ray" if options.ray is not None else "--tensor-parallel" if options.tensor_parallel is not None else ""
    if flag and (local := [need for need in needs if need in ("attend", "train")]):
        raise InputError(f"{flag}: this needs {_NEEDED_FOR[local[0]]}, in this process: leave out {flag}")
    if options.bits and "train" in needs:
        raise InputError("quantised weights cannot be trained; leave out --bits")
    for need in needs:
        if need not in backend.can:
            others = [other.example for other in all_backends().values() if need in other.can]
            raise InputError(
                f"{name} is {backend.what}, which can {' and '.join(backend.can)} only; this needs "
                f"{_NEEDED_FOR[need]}: give {' or '.join(others)}"
            )
    return Address(scheme, backend, model, options)


def _check_urls(options: ModelOptions, needs: Sequence[str]) -> None:
    for url in options.addresses:
        if not _is_address(url):
            raise InputError(
                f"--base-url {WITHHELD if set(url) & set('@?#') else url}: is not a URL; write it with its "
                "scheme and host, such as http://127.0.0.1:8080/v1, and any of @ / ? # in a password as %40, %2F, "
                "%3F, %23"
            )
        if route := _ROUTE.search(urlsplit(url).path):
            before = urlunsplit(urlsplit(url)._replace(path=urlsplit(url).path[: route.start()]))
            raise InputError(
                f"--base-url {url_without_secrets(url)}: ends in the route {route[0]}; give the address before it: "
                f"{url_without_secrets(before)}"
            )
    if len(options.addresses) > 1 and ("generate" in needs or len({*map(_speaks, options.addresses)}) > 1):
        raise InputError(
            "--base-url is given several times: several servers can share only the scoring of labels; for replies, "
            "give one"
        )


def gives_replies(model: object, options: ModelOptions | None = None) -> bool:
    """Whether a model, named or loaded, gives replies and no log-probabilities.

    Raises:
        InputError: see :func:`address_of`.
    """
    if isinstance(model, str):
        return "score" not in address_of(model, options).backend.can
    return replies_to_prompts(model) or (isinstance(model, Model) and is_whole(model) and "score" not in model.info.can)


def options_of_each(models: Sequence[Any], options: ModelOptions, needs: Sequence[str] = ()) -> list[ModelOptions]:
    """For each of several models, named or loaded, the options that apply to it; the rest keep their defaults.

    Raises:
        InputError: on an option that applies to none of them; see also :func:`address_of`.
    """
    names = [model for model in models if isinstance(model, str)]
    if options.given and not names:
        raise without_effect("the model is already loaded", [*map(long_flag, sorted(options.given))])
    useful = [_split(model, options)[1].options if isinstance(model, str) else frozenset[str]() for model in models]
    options_of = []
    for model, names_of_options in zip(models, useful, strict=True):
        of_others = frozenset().union(*useful) - names_of_options
        defaults: dict[str, Any] = {f.name: f.default for f in fields(options) if f.name in of_others}
        options_of.append(replace(options, **defaults))
        if isinstance(model, str):
            address_of(model, options_of[-1], needs)
    return options_of


def _split(name: str, options: ModelOptions) -> tuple[str, Backend, str]:
    """Scheme, its backend, and the rest of the name, which is empty where the server's address is in the name."""
    if options.base_url or name.startswith(_WEB):
        scheme = _speaks(next(iter(options.addresses), name.partition("#")[0]))
        return scheme, BACKENDS[scheme], name if options.base_url else ""
    scheme, colon, rest = name.partition(":")
    backend = backend_of(scheme) if colon else None  # names of files may hold a colon too
    return (scheme, backend, rest) if backend else ("", BACKENDS[""], name)


def _is_address(url: str) -> bool:
    """Whether this is the URL of a server, and nothing in it looks like part of an unescaped password."""
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
    **changes: Unpack[ModelKeywords],
) -> ScoringModel:
    """Open a model that gives log-probabilities of labels.

    Args:
        name: see the table at the top of this module; or a text-generation pipeline of transformers, or a loaded causal
            language model of transformers with its ``tokenizer`` (both are used as they are, where they are).
        options: how it is run; any of them can be given as a keyword instead (``device="cpu"``).
        needs: what it must be able to do.

    Raises:
        InputError: see :func:`address_of`; on an unknown keyword.
        ModelError: if the model cannot be loaded.

    Examples:
        >>> model = unslant.open_model("fair", device="cpu")
        >>> model.info.name
        'fair'
    """
    if not isinstance(name, str):
        if options or changes:
            raise InputError("the model is already loaded: leave out loading options")
        if tokenizer is None and is_pipeline(name):
            name, tokenizer = name.model, name.tokenizer
        if tokenizer is None or not of_transformers(name):
            raise InputError(not_a_model(name))
        if name.get_output_embeddings() is None:
            raise InputError(
                f"{type(name).__name__} has no output over the vocabulary; load the model with "
                "AutoModelForCausalLM, or name a reward model: reward:NAME_OR_FOLDER"
            )
        from unslant.models.hf.model import TransformersModel

        return TransformersModel(name, tokenizer, name.config.name_or_path or type(name).__name__)
    if tokenizer is not None:
        raise InputError(f"{name!r} is opened with its own tokenizer: give tokenizer= with a loaded model only")
    model: ScoringModel = _load("score", name, with_options(ModelOptions, options, changes), ("score", *needs))
    return model


def open_chat(name: str, options: ModelOptions | None = None, generate: GenerateOptions | None = None) -> ChatModel:
    """Open a model that generates replies; see :func:`open_model`."""
    model: ChatModel = _load("generate", name, options, ("generate",), (generate or GenerateOptions()).filled())
    return model


def _load(to: str, name: str, options: ModelOptions | None, needs: Sequence[str], *more: GenerateOptions) -> Any:
    address = address_of(name, options, needs)
    model = address.backend.loader(to, address.options)(address.model, address.options, *more)
    if not isinstance(model, Model) or not is_whole(model):
        raise ModelError(f"{name}: the backend {address.scheme} loads something else: {not_a_model(model)}")
    return model


def check_opens(name: str, options: ModelOptions | None = None, needs: Sequence[str] = ("score",)) -> None:
    """Check that a model can be opened, without its weights: that a local one's files are there, a server answers.

    Raises:
        InputError: see :func:`address_of`.
        ModelError: if it cannot be opened.
    """
    address = address_of(name, options, needs)
    if not address.scheme:
        from unslant.models.hf.loading import check_loads

        check_loads(address.model, address.options)
    elif "score" in needs:
        open_model(name, options).identify()
    else:
        open_chat(name, options)


def opened(
    model: Any,
    needs: Sequence[str] = ("score",),
    options: ModelOptions | None = None,
    generate: GenerateOptions | None = None,
) -> Any:
    """Open what a study gets as its model: a name, a model that can ``score`` or ``generate``, a text-generation
    pipeline of transformers, a function that loads one of these, or one that replies to a prompt.

    Args:
        options, generate: how a named model is run.

    Raises:
        InputError: if it is none of these, or how others reply is given.
    """
    if isinstance(model, str):
        return open_model(model, options, needs) if "score" in needs else open_chat(model, options, generate)
    if generate and (given := [f.name for f in fields(generate) if getattr(generate, f.name) != f.default]):
        raise without_effect("the model is already loaded", [*map(long_flag, sorted(given))])
    if replies_to_prompts(model):
        from unslant.models.chat import FunctionChat

        model = FunctionChat(model)
    if callable(model) and not isinstance(model, Model) and not of_transformers(model) and not is_pipeline(model):
        model = loaded_by(model)
    if is_pipeline(model) and "score" in needs:
        model = open_model(model)
    if not isinstance(model, Model) or not is_whole(model) or needs[0] not in model.info.can:
        raise InputError(not_a_model(model))
    return model
