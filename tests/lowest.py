"""Requirements for the oldest libraries that pyproject.toml allows, and for the tests: ``make test-lowest``.

Without inspect and lm-eval, which ask for newer ones. Versions that constraints.txt names stay: no other PyTorch can be
installed everywhere.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
USED = ("local", "figures", "excel")
"""The extras whose libraries are taken in their oldest version."""


def requirements() -> list[str]:
    """A line each, as pip reads them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    libraries = [*project["dependencies"], *(one for name in USED for one in extras[name])]
    named = re.findall(r"^[\w.-]+", (ROOT / "constraints.txt").read_text("utf-8"), re.M)
    oldest = [re.sub(r">=.*", "", one) if one.split(">=")[0] in named else one.replace(">=", "==") for one in libraries]
    return [one for one in (*oldest, *extras["test"]) if not one.startswith("unslant[")]


if __name__ == "__main__":
    print(*requirements(), sep="\n")
