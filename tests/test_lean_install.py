"""Without extras: logs, results, reports and served audits work, and what is missing is one line that names it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.reports.results import audited
from tests.serving import Fault, FaultServer
from unslant.errors import EXTRAS

THEIRS = ("tqdm",)
"""What only libraries of extras bring along."""

LEAN = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout

blocked = set(json.loads(sys.argv[1]))

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from unslant.cli import main

found = []
for words in json.loads(sys.argv[2]):
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["unslant", *words]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code or 0
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps([found, sorted(blocked & {name.partition(".")[0] for name in sys.modules})]))
"""


def lean(*commands: tuple[object, ...], folder: Path) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of commands in a process that has none of the extras."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", LEAN, json.dumps([*EXTRAS, *THEIRS]), words],
        cwd=folder, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    found, imported = json.loads(done.stdout)
    assert not imported
    return [tuple(one) for one in found]


def answers(request: dict[str, Any]) -> Fault:
    top = {" A": -0.7, " B": -1.2, " C": -2.0, "x": -9.0}
    return Fault(body={"choices": [{"logprobs": {"top_logprobs": [top]}}]})


WORK = (
    ("--help",),
    ("audit", "--log", "a.parquet", "--json", "a.json"),
    ("debias", "--log", "a.parquet", "--method", "vote", "--out", "voted.jsonl"),
    ("report", "a.parquet", "--out", "a.html"),
    ("audit", "m", "q.jsonl", "--base-url", "SERVER", "--retries", 0, "--json", "served.json"),
)
MISSING = (
    ("local", ("audit", "fair", "embedded"), "fair, a local model, needs torch"),
    (
        "local",
        ("debias", "fair", "q.jsonl", "--method", "lora-1:adapter=a", "--out", "o.jsonl"),
        "the method lora-1 needs torch",
    ),
    ("local", ("audit", "m", "mmlu", "--base-url", "http://127.0.0.1:9/v1"), "a data set of the Hub, needs datasets"),
    ("figures", ("report", "a.parquet", "--figures", "figures"), "drawing figures needs vl_convert"),
    ("local", ("train", "fair", "embedded", "--out", "adapter"), "training an adapter needs peft"),
    (
        "inspect",
        ("study", "unbiased", "inspect:openai/x", "q.jsonl", "--shots", 0),
        "asked for replies, needs inspect_ai",
    ),
    ("excel", ("questions", "check", "q.xlsx"), "q.xlsx, an Excel file, needs openpyxl"),
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, str, str]]]:
    """What the commands of ``WORK`` and ``MISSING`` left behind."""
    folder = tmp_path_factory.mktemp("lean")
    audited().to_parquet(folder / "a.parquet")
    questions = [
        {"id": str(i), "question": f"Is it {i}?", "options": ["x", "y", "z"], "answer": i % 3} for i in range(4)
    ]
    (folder / "q.jsonl").write_text("".join(json.dumps(question) + "\n" for question in questions))
    with zipfile.ZipFile(folder / "q.xlsx", "w") as workbook:
        workbook.writestr("xl/workbook.xml", "")
    with pytest.MonkeyPatch.context() as patch, FaultServer(answers).running() as server:
        patch.setenv("UNSLANT_HOME", str(folder / "home"))
        work = [tuple(server.url if word == "SERVER" else word for word in command) for command in WORK]
        return folder, lean(*work, *(command for _, command, _ in MISSING), folder=folder)


@pytest.mark.thorough
def test_logs_results_reports_and_served_audits(ran: tuple[Path, list[tuple[int, str, str]]]) -> None:
    folder, found = ran
    assert [code for code, *_ in found[: len(WORK)]] == [0] * len(WORK), found
    numbers = json.loads((folder / "a.json").read_text("utf-8"))
    assert numbers["metrics"] == audited().to_dict()["metrics"]
    page = (folder / "a.html").read_text("utf-8")
    assert "Charts are left out" in page
    assert 'class="chart"' not in page
    assert 'id="browser-data"' in page
    served = json.loads((folder / "served.json").read_text("utf-8"))
    assert served["metrics"]["means"]["accuracy"]["n"] == 4
    assert set(served["provenance"]["versions"]) == {"numpy", "python", "unslant"}


def test_a_missing_extra_is_one_line(ran: tuple[Path, list[tuple[int, str, str]]]) -> None:
    folder, found = ran
    for (extra, _, words), (code, _, err) in zip(MISSING, found[len(WORK) :], strict=True):
        assert code == 2
        assert words in err
        assert err == f"{err.splitlines()[0]}\n"
        assert err.endswith(f"pip install 'unslant[{extra}]'\n")
    assert not {"figures", "adapter", "o.jsonl"} & {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["pandas", "vl_convert"])
def test_a_broken_library_is_named_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import unslant

    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises((unslant.InputError, unslant.ModelError), match=f"needs {name}.*pip install"):
        audited().to_pandas() if name == "pandas" else unslant.Report.of([audited()]).save_figures(tmp_path / "figures")
    assert not list(tmp_path.iterdir())
