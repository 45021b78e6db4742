"""Options that say where a model is, how it is run, and how it generates."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypedDict, get_args

from unslant.errors import InputError, one_of
from unslant.flags import CheckedOptions, Flag, out_of_range
from unslant.reach import HEADER_NAME, Reach, may_have_keys, recorded_body, recorded_settings, secrets_in_url, texts_in

_HOW_SENT = frozenset("batch cache cache_prompt extra_headers timeout adaptive_connections stream_idle_timeout".split())
"""Settings of inspect that change no reply, or may hold a key."""
KEY_VARIABLES = ("UNSLANT_API_KEY", "OPENAI_API_KEY")
"""Environment variables that may hold a server's key, in order."""
CONNECTIONS = 8
"""Default number of replies at a time, from a server or in one batch."""
Server = Literal["auto", "vllm", "sglang", "llama.cpp", "ollama", "openai", "tgi"]
"""Kinds of servers; see :mod:`unslant.models.label_scores`."""
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
DEVICES = ("auto", "cpu", "cuda", "mps")
DeviceMap = Literal["auto", "balanced", "balanced_low_0", "sequential"]
_SET_BY_US = frozenset({"model", "prompt", "messages", "logprobs", "top_logprobs", "stream", "n", "echo"})

if TYPE_CHECKING:
    Addresses = tuple[str, ...] | str | None
    Headers = Sequence[str]
    Body = Mapping[str, Any] | str | None
else:  # as flags
    Headers, Body = tuple[str, ...], str | None
    Addresses = Annotated[tuple[str, ...] | None, Reach.ADDRESS, Flag(metavar="URL")]


# Where an option has an effect: schemes of backends (see unslant.models.open.BACKENDS), and "score" if only on scores.
LOCAL, SCORED_LOCALLY = frozenset({""}), frozenset({"", "score"})
SERVED, SCORED_SERVED = frozenset({"http", "decision"}), frozenset({"http", "score"})
REMOTE, ANY = SERVED | {"inspect"}, SERVED | {"inspect", ""}


@dataclass(frozen=True, kw_only=True)
class ModelOptions(CheckedOptions):
    """Where a model is found and how it is run."""

    LEAST: ClassVar = {"connections": 1, "retries": 0, "timeout": 1, "top": 1, "max_completion_tokens": 1,
                       "ray_actors": 1, "ray_gpus": 0, "tensor_parallel": 2}  # fmt: skip

    # A new option is a field here, with its default, help and where it applies, and a line in the keywords below:
    # editors cannot derive keywords from a dataclass. A test compares the two.

    base_url: Annotated[Addresses, SERVED] = None
    """OpenAI-compatible server of MODEL, as http://HOST:8080/v1 (key: UNSLANT_API_KEY); repeat to share scoring."""
    adapter: Annotated[str | None, Reach.PLACE, LOCAL] = None
    """peft adapter to put on the model: folder or Hub id."""
    device: Annotated[str, LOCAL] = "auto"
    """auto, cpu, cuda or mps."""
    dtype: Annotated[Dtype, LOCAL] = "auto"
    """Number type of the weights."""
    revision: Annotated[str | None, LOCAL] = None
    """Branch, tag or commit of a model on the Hub."""
    device_map: Annotated[DeviceMap | None, LOCAL] = None
    """Spread a model over the GPUs of a machine, as in transformers."""
    tensor_parallel: Annotated[int | None, SCORED_LOCALLY] = None
    """Split every layer across N GPUs of this machine."""
    bits: Annotated[int | None, LOCAL] = None
    """Quantise the weights to 4 or 8 bits as they are loaded, with bitsandbytes."""
    trust_remote_code: Annotated[bool, Reach.CODE, LOCAL] = False
    """Run model code that comes with the weights."""
    allow_missing: Annotated[bool, LOCAL] = False
    """Load a checkpoint even if weights are missing, with random numbers in their place."""
    ray: Annotated[str | None, Reach.ADDRESS, SCORED_LOCALLY] = None
    """Score with replicas of a local model on the Ray cluster at this address; auto: a running one, or a new one."""
    ray_actors: Annotated[int | None, SCORED_LOCALLY] = None
    """Model replicas; default: one per GPU, or one per machine without GPUs."""
    ray_gpus: Annotated[float | None, SCORED_LOCALLY] = None
    """GPUs per replica; by default 1, or none if the cluster has none."""
    server: Annotated[Server, SCORED_SERVED] = "auto"
    """Kind of server, for scores; by default detected."""
    top: Annotated[int | None, SCORED_SERVED] = None
    """Number of most probable tokens to request; by default as many as the labels need."""
    header: Annotated[Headers, Reach.HEADER, SERVED] = ()
    """Header of every request, as 'NAME: VALUE', or 'NAME: $VARIABLE' to read it from the environment."""
    extra_body: Annotated[Body, Reach.BODY, SERVED] = None
    """JSON object to add to every request, such as {"chat_template_kwargs":{"enable_thinking":false}}."""
    max_completion_tokens: Annotated[int | None, SCORED_SERVED] = None
    """When scoring labels in a chat, send this instead of max_tokens 1."""
    connections: Annotated[int | None, ANY] = None
    """Concurrent requests to a server: for scores up to 32; for replies 8 (locally: the batch size)."""
    retries: Annotated[int, REMOTE] = 5
    """Retries of a request that failed temporarily."""
    timeout: Annotated[int | None, REMOTE] = None
    """Seconds to wait for one reply; by default 60 for scores, and the provider's own limit for text."""

    def __post_init__(self) -> None:
        for name in ("device", "dtype"):  # also a torch.device or torch.dtype
            object.__setattr__(self, name, str(getattr(self, name) or "auto").removeprefix("torch."))
        if isinstance(self.extra_body, Mapping):
            object.__setattr__(self, "extra_body", json.dumps(self.extra_body, default=str))
        super().__post_init__()
        urls = tuple(dict.fromkeys(self.addresses))
        object.__setattr__(self, "base_url", urls if len(urls) > 1 else next(iter(urls), None))
        if self.ray is None and (self.ray_actors is not None or self.ray_gpus is not None):
            raise InputError("--ray-actors and --ray-gpus need --ray")
        if self.ray and self.ray.startswith("ray://"):
            raise InputError(
                f"--ray {self.ray}: Ray's client cannot stream results; run the command on a machine of the cluster "
                "(ray job submit does), with --ray=auto"
            )
        if re.sub(r"^(cpu|cuda|mps):\d+$", r"\1", self.device) not in DEVICES:
            raise InputError(f"unknown device {self.device!r}: {one_of(self.device, DEVICES)}")
        if self.device_map is not None and self.device != "auto":
            raise InputError(
                f"--device-map {self.device_map} spreads a model over all GPUs: leave out --device={self.device}"
            )
        for name in ("device", "adapter", "device_map", "bits", "ray") if self.tensor_parallel is not None else ():
            if name in self.given:
                raise InputError(f"--tensor-parallel and --{name.replace('_', '-')} are incompatible")
        if self.bits not in (None, 4, 8):
            raise out_of_range("bits", self.bits, "4 or 8")
        if self.ray_gpus is not None and self.ray_gpus > 1 and self.device_map is None:
            raise InputError(f"--ray-gpus {self.ray_gpus:g}: a model uses one, unless --device-map spreads it")
        if self.header:
            self.headers()
        if ours := sorted(self.body().keys() & _SET_BY_US):
            raise InputError(f"--extra-body: {ours[0]!r} is set by unslant; leave it out")

    @property
    def given(self) -> frozenset[str]:
        """Names of the options that differ from their defaults."""
        return frozenset(f.name for f in fields(self) if getattr(self, f.name) != f.default)

    @property
    def addresses(self) -> tuple[str, ...]:
        """``base_url`` as a tuple."""
        return (self.base_url,) if isinstance(self.base_url, str) else tuple(self.base_url or ())

    def headers(self) -> dict[str, str]:
        """Name -> value of every header, variables filled in.

        Raises:
            InputError: on a header that no request can carry, or whose variable may not be sent to the address
                (:func:`~unslant.reach.may_have_keys`). No message repeats what may be a secret.
        """
        headers = {}
        for text in self.header:
            name, colon, value = (part.strip() for part in text.partition(":"))
            if not colon or not HEADER_NAME.fullmatch(name) or not value:
                raise InputError("--header: write it as 'NAME: VALUE', in quotes, with a name of letters and dashes")
            if value.startswith("$"):
                if not all(map(may_have_keys, self.addresses)):
                    raise InputError(f"--header {name}: its variable is sent only to an address that you type")
                value = os.environ.get(value[1:], "").strip()
                if not value:
                    raise InputError(f"--header {name}: the variable that it names is not set")
            if not (value.isascii() and value.isprintable()):
                raise InputError(f"--header {name}: its value contains characters that a header cannot contain")
            headers[name] = value
        return headers

    def body(self) -> dict[str, Any]:
        """``extra_body``, parsed; InputError if it is not a JSON object, or no request can carry it."""
        from unslant.files import parse_json  # loads pydantic, for which --help has no time

        body, reason = None, ""
        try:
            body = parse_json(str(self.extra_body or "{}"))
            json.dumps(body, allow_nan=False)
        except ValueError as error:
            reason = f" ({error})"
        if reason or not isinstance(body, dict):
            raise InputError(f"--extra-body: is not a JSON object, such as '{{\"top_k\": 1}}'{reason}")
        return body

    def secrets(self) -> set[str]:
        """Parts of addresses, headers and body that no message and no record may hold."""
        in_urls = [secret for url in self.addresses for secret in secrets_in_url(url)]
        return {*in_urls, *self.headers().values(), *texts_in(self.body())}

    @property
    def identity(self) -> dict[str, str]:
        """Entries of a model's identity that come from the options."""
        return {"extra_body": recorded_body(self.body())} if self.body() else {}


class LocalKeywords(TypedDict, total=False):
    """The fields of :class:`ModelOptions` that say how a local model is loaded in this process."""

    adapter: str | None
    device: str
    dtype: Dtype
    revision: str | None
    device_map: DeviceMap | None
    bits: int | None
    trust_remote_code: bool
    allow_missing: bool


class ModelKeywords(LocalKeywords, total=False):
    """All fields of :class:`ModelOptions` as keywords."""

    base_url: tuple[str, ...] | str | None
    tensor_parallel: int | None
    ray: str | None
    ray_actors: int | None
    ray_gpus: float | None
    server: Server
    top: int | None
    header: str | Sequence[str]
    extra_body: str | Mapping[str, Any] | None
    max_completion_tokens: int | None
    connections: int | None
    retries: int
    timeout: int | None


@cache
def options_for(scheme: str) -> frozenset[str]:
    """Names of the options that apply to one of unslant's own backends; of ``score``, only where labels are scored."""
    applies = {f.name: one for f in fields(ModelOptions) for one in get_args(f.type) if isinstance(one, frozenset)}
    return frozenset(name for name, where in applies.items() if scheme in where)


@dataclass(frozen=True, kw_only=True)
class LengthOptions(CheckedOptions):
    """How long replies may be, and settings of inspect."""

    LEAST: ClassVar = {"max_tokens": 1}

    max_tokens: int | None = None
    """Longest reply in tokens; by default 1000 (instruction-boundary 2048)."""
    inspect: Annotated[tuple[str, ...], Reach.SETTING] = ()
    """Setting of inspect's GenerateConfig, such as reasoning_effort=low or batch=true; repeatable."""


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(LengthOptions):
    """How replies are generated."""

    temperature: float | None = None
    """Sampling temperature, 0 to 2; by default 0 (instruction-boundary 0.5)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise out_of_range("temperature", self.temperature, "0 to 2")

    @property
    def identity(self) -> dict[str, str]:
        """Entries of a model's identity that come from the options."""
        numbers = {"max_tokens": self.max_tokens, "temperature": self.temperature}
        settings = [text for text in self.inspect if text.partition("=")[0] not in _HOW_SENT]
        entries = {name: str(value) for name, value in numbers.items() if value is not None}
        return entries | ({"inspect": recorded_settings(settings)} if settings else {})

    def filled(self, temperature: float = 0.0, max_tokens: int = 1000) -> "GenerateOptions":
        """The same options, with these values for those not set."""
        return replace(
            self,
            temperature=temperature if self.temperature is None else float(self.temperature),
            max_tokens=max_tokens if self.max_tokens is None else self.max_tokens,
        )
