"""How a task of lm-eval is run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, TypedDict

from unslant.experiment.options import Options, check_unused
from unslant.reach import Reach


@dataclass(frozen=True, kw_only=True)
class LmEvalSettings(Options):
    """How a task is run; names and defaults are those of lm-eval where it has the same option."""

    LEAST: ClassVar = {"num_fewshot": 0, "limit": 1}

    orders: str = "auto"
    """auto (24 or fewer), all, cyclic, reverse, given (as published), or how many to sample."""
    include_path: Annotated[Path | None, Reach.CODE] = None
    """Folder with your own task files, in addition to those of lm-eval."""
    num_fewshot: int | None = None
    """Worked examples before each question; by default the task's own number."""
    limit: int | None = None
    """Only the first N documents of each task, as lm-eval does."""
    apply_chat_template: bool = False
    """Write prompts with the tokenizer's chat template."""
    no_fewshot_as_multiturn: bool = False
    """In a chat, all worked examples in one turn, not one each."""
    system_instruction: str = ""
    """System message, or what begins the prompt."""
    fewshot_seed: int = 1234
    """Seed of the worked examples' draw; lm-eval's own default."""
    seed: int = 0
    """Seed of sampled orders."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.apply_chat_template:
            check_unused("there is no chat (--apply-chat-template)", self, only=("no_fewshot_as_multiturn",))


class LmEvalKeywords(TypedDict, total=False):
    """The fields of :class:`LmEvalSettings` as keywords."""

    orders: str
    include_path: Path | None
    num_fewshot: int | None
    limit: int | None
    apply_chat_template: bool
    no_fewshot_as_multiturn: bool
    system_instruction: str
    fewshot_seed: int
    seed: int
