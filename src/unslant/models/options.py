"""How models are found, run and made to generate: what a user may choose."""

from dataclasses import dataclass, fields, replace

from unslant.errors import InputError

_HOW_SENT = (
    "batch",
    "cache",
    "cache_prompt",
    "extra_headers",
    "timeout",
    "adaptive_connections",
    "stream_idle_timeout",
)
"""Settings of inspect that change no reply, or may hold a key."""
KEY_VARIABLES = ("UNSLANT_API_KEY", "OPENAI_API_KEY")
"""Where a server's key is looked for."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Where a model is found and how it is run."""

    base_url: str | None = None
    """OpenAI-compatible server that knows MODEL, such as http://127.0.0.1:8080/v1 (key: UNSLANT_API_KEY)."""
    adapter: str | None = None
    """peft adapter to put on the model: folder or Hub id."""
    device: str = "auto"
    """auto, cpu, cuda or mps."""
    dtype: str = "auto"
    """auto, float32, bfloat16 or float16."""
    trust_remote_code: bool = False
    """Run model code that comes with the weights."""
    allow_missing: bool = False
    """Load a checkpoint that lacks weights, with random numbers in their place. Every result says so."""
    connections: int = 8
    """Requests to a server at a time; prompts in one batch where a local model generates."""
    retries: int = 5
    """Repetitions of a request that failed for the time being."""
    timeout: int | None = None
    """Seconds to wait for one reply; by default 60 for scores, and the provider's own limit for text."""

    def __post_init__(self) -> None:
        for name, least in (("connections", 1), ("retries", 0), ("timeout", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name} {value}: give {least} or more")


@dataclass(frozen=True, kw_only=True)
class LengthOptions:
    """How long replies may be."""

    max_tokens: int | None = None
    """Longest reply in tokens; by default the paper's (instruction-boundary 2048, others 1000)."""

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InputError(f"max_tokens {self.max_tokens}: give 1 or more")


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(LengthOptions):
    """How replies are generated."""

    temperature: float | None = None
    """Sampling temperature, 0 to 2; by default the paper's (instruction-boundary 0.5, others 0)."""
    inspect: tuple[str, ...] = ()
    """Setting of inspect's GenerateConfig, such as reasoning_effort=low or batch=true; may be given several times."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise InputError(f"temperature {self.temperature}: give 0 to 2")

    @property
    def identity(self) -> dict[str, str]:
        """The part of a model's identity that they are."""
        found = {f.name: str(value) for f in fields(self) if (value := getattr(self, f.name)) not in (None, ())}
        told = [text for text in self.inspect if text.partition("=")[0] not in _HOW_SENT]
        return {name: value for name, value in found.items() if name != "inspect"} | (
            {"inspect": " ".join(sorted(told))} if told else {}
        )

    def filled(self, temperature: float = 0.0, max_tokens: int = 1000) -> "GenerateOptions":
        """The same with these values where none was given."""
        return replace(
            self,
            temperature=temperature if self.temperature is None else float(self.temperature),
            max_tokens=max_tokens if self.max_tokens is None else self.max_tokens,
        )


@dataclass(frozen=True)
class Address:
    """A model's name taken apart, see :mod:`unslant.models.open`.

    Attributes:
        scheme: kind of model.
        model: the name without its scheme.
        options: how it is run.
    """

    scheme: str
    model: str
    options: ModelOptions
