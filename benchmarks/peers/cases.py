"""What a case is, and the ways to compare that several tools share."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import unslant

GGUF = Path(".real/SmolLM2-135M-Instruct.Q4_1.gguf")
SCRIPTS = Path(__file__).parent / "scripts"
MODEL = "prefers-a"
SAME = 1e-3
"""Log-probabilities may differ by so much between two pieces of software in float32."""
_SHOWN = 160


@dataclass(frozen=True)
class Case:
    """The outcome of one case; ``difference`` is the largest one, where numbers were compared."""

    name: str
    result: str
    difference: float | None = None
    green: bool = True


@dataclass(frozen=True)
class Peer:
    """A tool.

    Attributes:
        requires: what pip installs; nothing for a tool that is among unslant's own test dependencies.
        distribution: whose version is shown.
        cases: from the tool's environment and an empty folder.
        without: what the tool requires, cannot be used with PyTorch's builds for CPUs, and does not need here.
    """

    requires: tuple[str, ...]
    distribution: str
    cases: Callable[[Path, Path], Iterator[Case]]
    without: tuple[str, ...] = field(default=())


def questions(n: int = 12) -> list[dict[str, Any]]:
    """Embedded questions with four options, as plain records."""
    four = (one for one in unslant.load_questions("embedded") if len(one.options) == 4)
    rows = [
        {"id": one.id, "question": one.stem, "options": list(one.options), "answer": min(one.answers)} for one in four
    ]
    return rows[:n]


def run(command: Iterable[object], folder: Path, *, seconds: float = 900, **env: str) -> str:
    """What a command prints; RuntimeError with the end of its output if it fails."""
    words = [*map(str, command)]
    offline = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        words, cwd=folder, env=os.environ | offline | env, capture_output=True, text=True, timeout=seconds
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {(done.stdout + done.stderr)[-1500:]}")
    return done.stdout


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def refused(name: str, ask: Callable[[], object], words: str) -> Case:
    """A case that unslant must refuse, with these words in one line."""
    try:
        ask()
    except unslant.UnslantError as error:
        line = re.sub(rf"{re.escape(tempfile.gettempdir())}\S*/", "", str(error))
        shown = f"refused: “{line[:_SHOWN]}{'…' * (len(line) > _SHOWN)}”"
        return Case(name, shown, None, words in line and "\n" not in line)
    return Case(name, "accepted", None, False)


def logged(name: str, path: Path, accuracy: float, scores: str = "") -> Case:
    """A log: the tool's accuracy must be the one read as logged, or counted here; what differs must be said.

    Args:
        scores: what the log must be read as holding (``labels``, ``texts``, ``listed``, ``words``); any if empty.
    """
    result = unslant.audit(log=[path])
    ours, facts = result.metrics.means["accuracy"], result.run.logged
    (reported,) = facts.reported or (None,)
    difference = abs((reported.value if reported else ours.value) - accuracy)
    outcome = f"accuracy {accuracy:.3f} there and here, {ours.n} questions"
    said = True
    if reported and reported.parted:
        outcome = (
            f"accuracy {accuracy:.3f} read as logged ({reported.metric}); {reported.parted} of {reported.n} rows "
            f"read differently here: {ours.value:.3f}, which the first screen says"
        )
        said = f"The log reports {accuracy:.3f}" in " ".join(result.summary().split())
    if scores:
        outcome += f"; read as {scores}"
        said = said and facts.scores == scores and (scores == "texts") == ("order plays no part" in result.summary())
    return Case(name, outcome, difference, difference < 1e-6 and said)


def same_scores(name: str, ours: Iterable[Any], theirs: Iterable[Any], outcome: str, most: float = SAME) -> Case:
    """Label scores of two runs, page by page."""
    pairs = [*zip(ours, theirs, strict=True)]
    apart = max(float(np.abs(np.subtract(a, b)).max()) for a, b in pairs)
    return Case(name, outcome.format(n=len(pairs)), apart, apart < most)
