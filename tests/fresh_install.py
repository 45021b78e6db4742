"""Installs a wheel into an empty environment and follows the quick start there, word for word (RELEASING.md).

    python -m tests.fresh_install dist/unslant-VERSION-py3-none-any.whl [PYTHON ...]

once for each interpreter PYTHON, by default this one. Ends with code 1 where anything differs from the page.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from docs.conftest import BLOCK, NOTE, commands_of, printed_alike

ROOT = Path(__file__).parents[1]
QUICKSTART = ROOT / "docs" / "quickstart.md"
INSTALL = "unslant[local]"


def follow(folder: Path, path: str) -> list[str]:
    """What went otherwise than the quick start shows, in ``folder``, with the commands of ``path``."""
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "UNSLANT_HOME": str(folder / "home")}
    wrong, printed = [], ""

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            wrong.append(f"{command[-1]}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    for block in BLOCK.finditer(QUICKSTART.read_text("utf-8")):
        notes, language, source = dict(NOTE.findall(block["notes"])), block["language"], block["source"]
        if name := notes.get("file"):
            (folder / name).write_text(source, "utf-8")
        elif language == "python":
            printed = run("python", "-c", source)
        elif language == "output":
            if not printed_alike(source, printed):
                wrong.append(f"shown:\n{source}\nprinted:\n{printed}")
        elif language in ("bash", "console") and "skip" not in notes:  # installing is done before
            for command, shown in commands_of(source, language == "console"):
                out = run("bash", "-ec", command)
                if language == "console" and not printed_alike(shown, out):
                    wrong.append(f"{command}\nshown:\n{shown}\nprinted:\n{out}")
    return wrong


def main(arguments: Sequence[str]) -> int:
    wheel, *pythons = arguments
    assert f"pip install '{INSTALL}'" in QUICKSTART.read_text("utf-8")
    failed = False
    for python in pythons or [sys.executable]:
        with tempfile.TemporaryDirectory(prefix="fresh-") as folder:
            at = Path(folder)
            subprocess.run([python, "-m", "venv", at / "venv"], check=True)
            bin_ = at / "venv" / "bin"
            wanted = INSTALL.replace("unslant", str(Path(wheel).resolve()))
            pip = [bin_ / "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wanted]
            subprocess.run(pip, check=True)
            version = subprocess.run([bin_ / "python", "--version"], capture_output=True, text=True, check=True)
            (at / "empty").mkdir()
            wrong = follow(at / "empty", f"{bin_}{os.pathsep}{os.environ['PATH']}")
            print(
                f"{version.stdout.strip()}: {'as shown' if not wrong else 'not as shown'}", *wrong, sep="\n", flush=True
            )
            failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
