"""The audit: every question in many orders, and what the score is worth. This file holds its options."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from unslant.errors import InputError
from unslant.experiment import ChooseShotsOptions, ElicitOptions, OutputOptions, ScoredLabelOptions
from unslant.flags import check_unused
from unslant.responses.provenance import money

_OF_REPLIES = ("reasoning", "repeats", "repeat_sample", "adaptive", "calibrate", "in_all_orders", "ask_again")
"""Fields that say nothing where labels are scored."""


@dataclass(frozen=True, kw_only=True)
class AuditSettings(ChooseShotsOptions, ScoredLabelOptions, ElicitOptions):
    """How the questions are asked; see :func:`unslant.audit`."""

    LEAST: ClassVar = {"repeats": 1, "repeat_sample": 1, "calibrate": 0}

    orders: str = "auto"
    """auto (all, up to 24; beyond 200 questions, a Latin square for each and all for some; 6 for replies), all, latin,
    cyclic, reverse, given, or how many to sample."""
    until: float | None = None
    """Stop early, once scores are known to within this half-width, such as 0.02."""
    repeats: int = 1
    """Replies: ask some questions N times in the same order, to see how often sampling alone changes answers."""
    repeat_sample: int = 50
    """Replies: how many questions --repeats asks again, drawn at random."""
    adaptive: bool = False
    """Replies: ask in all orders only if the answers in the given and the reversed order differ; see --calibrate."""
    calibrate: float = 0.1
    """Replies: share of the agreeing questions that --adaptive still asks in all orders, at least ten."""
    in_all_orders: float = 1.0
    """Replies: ask this share of the questions, drawn at random, in all orders, and the others only as published."""
    ask_again: bool = False
    """Replies: if one is unparsed or conflicts, ask once which label it chose; reported separately."""

    across_subjects: bool = False
    """Give intervals for other subjects like these, which are wider, not for further questions on the same subjects."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.calibrate > 1:
            raise InputError(f"calibrate {self.calibrate}: give 0 to 1")
        if not 0 < self.in_all_orders <= 1:
            raise InputError(f"--in-all-orders={self.in_all_orders:g}: give a share above 0, up to 1")
        if self.adaptive and self.in_all_orders < 1:
            raise InputError("--adaptive chooses the questions itself and cannot be combined with --in-all-orders")
        if self.repeats == 1:
            check_unused("no question is asked again (--repeats=3 asks three times)", self, only=("repeat_sample",))
        if not self.adaptive:
            check_unused("all questions are asked in all orders (--adaptive asks fewer)", self, only=("calibrate",))
        if self.until is not None and not 0 < self.until < 0.5:
            raise InputError(f"until {self.until:g}: give a half-width above 0 and below 0.5, such as 0.02")
        if self.until is not None and self.orders != "auto":
            raise InputError("--until chooses the orders itself and cannot be combined with --orders")

    def resolved(self, generate: bool) -> Self:
        """See :meth:`ElicitOptions.resolved`."""
        useless = ["repeats"] * (self.repeats > 1) + ["adaptive"] * self.adaptive
        useless += ["ask-again"] * self.ask_again + ["in-all-orders"] * (self.in_all_orders < 1)
        if useless and not generate:
            raise InputError(f"--{useless[0]} applies only to generated replies; add --elicit=generate")
        if generate and self.until is not None:
            raise InputError("--until needs label scores, but this run reads replies; use --adaptive")
        return super().resolved(generate)

    def recorded(self, *left_out: str) -> dict[str, Any]:
        """See :meth:`Options.recorded`; only what applies to this way of asking."""
        others = ["to_end"] if self.elicit == "generate" else ["elicit", *_OF_REPLIES]
        others += ["until"] * (self.until is None) + ["across_subjects"] * (not self.across_subjects)
        return super().recorded(*others, *left_out) | {"template": self.template or "plain"}


@dataclass(frozen=True, kw_only=True)
class AuditOutputs(OutputOptions):
    """What is written."""

    dry_run: bool = False
    """Print the cost (prompts, tokens, time; money with --price) and stop."""
    price: float | None = None
    """Price of a million tokens."""
    output_price: float | None = None
    """Price of a million tokens of replies, if it differs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.dry_run:
            check_unused("only --dry-run counts money", self, only=("price", "output_price"))
        for name in ("price", "output_price"):
            if (value := getattr(self, name)) is not None and not value >= 0:
                raise InputError(f"{name} {value:g}: give 0 or more")
        if self.output_price is not None and self.price is None:
            raise InputError("--output-price needs --price, that of the prompts")

    def money(self, tokens: float, replies: float = 0) -> str:
        """The price of tokens in and out, as the end of a sentence; empty where none is given."""
        spent = money(tokens, replies, self.price, self.output_price)
        return f", {spent:,.2f} at this price" if spent == spent else ""
