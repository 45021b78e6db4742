"""``inspect eval`` in a process of its own, with no network but 127.0.0.1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

INSPECT = Path(sys.executable).with_name("inspect")


def clean_environment(tmp_path, url):
    """No settings of the user's, no cache, and every way out to the network closed."""
    keep = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "PYTHONPATH") if name in os.environ}
    return keep | {
        "HOME": str(tmp_path / "home"),
        "LOCAL_API_KEY": "sk-none-at-all",
        "LOCAL_BASE_URL": url,
        "HF_HUB_OFFLINE": "1",
        "https_proxy": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
        "no_proxy": "127.0.0.1",
        "OMP_NUM_THREADS": "1",
    }


def inspect_eval(tmp_path, url, *arguments):
    return run_inspect(tmp_path, url, "unslant/instruction_boundary", *arguments)


def run_inspect(tmp_path, url, *arguments, inspect=INSPECT):
    """``inspect eval`` of a task, with a model behind ``url``; its logs are in the folder ``logs``."""
    (tmp_path / "home").mkdir(exist_ok=True)
    command = [str(inspect), "eval", *arguments[:1], "--model", "openai-api/local/words"]
    command += ["--log-dir", str(tmp_path / "logs"), "--display", "plain", *arguments[1:]]
    return subprocess.run(
        command, env=clean_environment(tmp_path, url), cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
