"""Installs tools, runs their cases and writes the page; see :mod:`benchmarks.peers`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import unslant
from benchmarks.peers import __doc__ as what
from benchmarks.peers.cases import Peer, run
from benchmarks.peers.harnesses import helm, inspect, lighteval, lm_eval, opencompass
from benchmarks.peers.models import litellm, llama_cpp, ray, transformers

HOME = Path(".peers")
CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
_TORCH = "torch==2.13.0"
PEERS = {
    "lm-eval": Peer((_TORCH, "lm_eval[hf]"), "lm_eval", lm_eval),
    "inspect": Peer(("inspect-ai", "openai"), "inspect_ai", inspect),
    "opencompass": Peer((_TORCH, "opencompass", "pyarrow<21"), "opencompass", opencompass),
    "helm": Peer((_TORCH, "crfm-helm"), "crfm-helm", helm, without=("torchvision",)),
    "lighteval": Peer((_TORCH, "lighteval", "xxhash<4", "huggingface_hub<2"), "lighteval", lighteval),
    "litellm": Peer(("litellm[proxy]",), "litellm", litellm),
    "llama.cpp": Peer((), "xllamacpp", llama_cpp),
    "transformers": Peer((), "transformers", transformers),
    "ray": Peer(("-e", ".[ray]"), "ray", ray),
}
NOT_RUN = {
    "vLLM, SGLang": "need a GPU; checked against simulations written from their documentation ([servers](servers.md))",
}
_ABOUT = (
    "Everything is a real run of the tool named: its own command, its own writers or its own server. The model is a "
    "reference model of unslant, or a GGUF file for llama.cpp and the tools that ask it. A case is green where the "
    "numbers are equal within what is printed, or where unslant refuses with the line that is shown. Tasks in `code` "
    "are lm-eval's own, with other questions as their data."
)


def install(name: str) -> None:
    """Install a tool into an environment of its own, unless the same requirements are installed there.

    The environment is made again where an install failed halfway, or where what it is to hold has changed.
    """
    home, peer = HOME / name, PEERS[name]
    stamp = home / "installed.txt"
    wanted = "\n".join([*peer.requires, *peer.without, CONSTRAINTS.read_text()])
    if not peer.requires or (stamp.exists() and stamp.read_text() == wanted):
        return
    venv.create(home, with_pip=True, clear=True)
    pip = home.resolve() / "bin" / "pip"
    run([pip, "install", "--quiet", "-c", CONSTRAINTS, *peer.requires], Path.cwd(), seconds=3600)
    if peer.without:
        run([pip, "uninstall", "--quiet", "--yes", *peer.without], Path.cwd())
    stamp.write_text(wanted)


def version(name: str) -> str:
    """The version of a tool, in its environment."""
    peer = PEERS[name]
    python = HOME.resolve() / name / "bin" / "python" if peer.requires else sys.executable
    code = f"from importlib.metadata import version; print(version({peer.distribution!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=what.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines, red = [], 0
    for name in given.only:
        install(name)
        number = version(name)
        with tempfile.TemporaryDirectory() as folder:
            for case in PEERS[name].cases((HOME / name).resolve(), Path(folder)):
                apart = "" if case.difference is None else f"{case.difference:.1e}" if case.difference else "0"
                red += not case.green
                mark = "✓" if case.green else "✗"
                lines.append(f"| {name} | {number} | {case.name} | {mark} {case.result} | {apart} |")
                print(lines[-1], flush=True)
    if given.out:
        given.out.write_text(page(lines), "utf-8")
    if red:
        sys.exit(f"{red} cases are not green")


def page(lines: list[str]) -> str:
    """The page of the documentation."""
    rows = "\n".join(lines)
    left = "\n".join(f"| {name} | {why} |" for name, why in NOT_RUN.items())
    return (
        "# Compatibility\n\nWritten by `make test-peers` from real runs, with unslant "
        f"{unslant.__version__}, on {time.strftime('%Y-%m-%d')}. {_ABOUT}\n\n"
        "| tool | version | case | result | largest difference |\n|---|---|---|---|---:|\n"
        f"{rows}\n\n## Not run by it\n\n| tool | how it is checked |\n|---|---|\n{left}\n"
    )


if __name__ == "__main__":
    main()
