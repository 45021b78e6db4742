"""The attack on unslant, repeated: ``python -m benchmarks.reliability``.

Every part tries one class of trouble many times and tells, per class, how often it tried and how often unslant failed:
a foreign exception, a wrong number, a lost file, too much time or memory. ``PARTS`` names the modules; each has a
function ``rows(options)`` that yields a :class:`Row` a class of trouble.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""Folder of the project, where processes of parts begin: other parts change the working folder meanwhile."""
PARTS = tuple(
    "numbers served store places methods switches long_replies readers writers outputs hostile ambiguous scale".split()
)
"""Modules of this package."""
APART = ("readers", "scale")
"""Those that work in processes of their own, and so at the same time as the others; they end the table."""


@dataclass(frozen=True)
class Options:
    """What the command line says.

    Attributes:
        cases: damaged files per reader, and the scale of every other part's default.
        seed: of every random choice.
        only: parts, or ``part/class``, to run; empty runs all.
    """

    cases: int = 10_000
    seed: int = 0
    only: Sequence[str] = ()

    def wants(self, part: str, name: str) -> bool:
        """Whether a class of a part was asked for."""
        return not self.only or part in self.only or f"{part}/{name}" in self.only


@dataclass
class Row:
    """One line of the table.

    Attributes:
        part, name: the class of trouble.
        attempts, failures: how often it was tried, and how often unslant failed.
        note: what else was measured.
        examples: the first failures, each enough to repeat it.
    """

    part: str
    name: str
    attempts: int = 0
    failures: int = 0
    note: str = ""
    examples: list[str] = field(default_factory=list)

    def fail(self, example: str) -> None:
        """Count a failure and keep the first few."""
        self.failures += 1
        if len(self.examples) < 20:
            self.examples.append(example)
