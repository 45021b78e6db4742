"""Every output of every command, attacked while it is written; a process of its own, which forks at the first write.

``python -m tests.cli.attacked_outputs WORK SEED ATTEMPTS [COMMAND ...]`` prints one JSON line a command: what was
tried, and what was wrong.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

INPUTS = frozenset(
    "log pilot baseline store ranking accuracy file shards runs sheets include_path plan".split()
)  # fmt: skip
"""Parameters that hold a path and are read; a plan is written too, by the first of several machines."""
FOLDERS = ("out", "figures", "tables", "save_model")
SILENT = ("runs resume", "runs take-over", "runs delete", "runs repair")
"""They write nothing but the store, or what the recorded command writes."""
FEW = "--limit 4"
QUICK = {
    "audit": f"fair embedded {FEW} --orders reverse --no-store",
    "debias": f"fair embedded {FEW} --no-store",
    "replies": "replies.jsonl",
    "export": "s1.parquet --to flat",
    "merge": "s1.parquet s2.parquet",
    "plan": "--half-width 0.05",
    "report": "s1.parquet",
    "study annotation-sheet": "embedded --items 6",
    "study annotation-agreement": "a.csv b.csv",
    "questions check": "q.jsonl",
    "questions build instruction-boundary": "--only mmlu --source mmlu=q.jsonl --scale 0.02",
    "runs export": "RUN --store runs.sqlite3",
    "--install-completion": "--shell bash",
}
SLOW = {
    "leaderboard": f"-m fair -m prefers-a --sets embedded {FEW} --orders reverse --no-store",
    "rerun": "numbers.json --anyway",
    "train": "fair embedded --limit 8 --epochs 1 --no-store",
    "study base-rate": f"fair embedded {FEW} --no-store",
    "study unbiased": f"fair embedded {FEW} --runs 1 --shots 0 --no-store",
    "study contamination": f"fair embedded {FEW} --epochs 1 --runs 1 --shots 0 --no-store",
    "study debias": f"fair embedded {FEW} --methods none,vote --no-store",
    "study judge": "prefers-a --limit 6 --no-store",
    "study probe": f"fair,prefers-a embedded {FEW} --strengths 1 --no-store",
    "study instruction-boundary": "words --settings vanilla --limit 4 --max-tokens 8 --no-store",
    "lm-eval": "bench --include-path tasks --model fair --limit 4 --no-store",
}
COMMANDS = {**QUICK, **SLOW}
WITH_FIGURES = "leaderboard"
OUT_FILES = {
    "export": "flat.json",
    "debias": "answers.jsonl", "replies": "read.jsonl.gz", "report": "report.html", "study annotation-sheet": "s.csv",
    "questions build instruction-boundary": "built.jsonl", "--install-completion": "bash",
}  # fmt: skip
FILES = {"json": "n.json", "html": "r.html", "responses": "t.parquet", "charts": "c.svg", "samples": "s.jsonl"}
FILES |= {"merged": "whole.parquet"}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by name, with its parsed parameters, from the command line's own tree."""
    from unslant.cli import app

    def walk(app: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name in app:
            if name not in ("--help", "-h", "--version"):
                command = app[name]
                if command.default_command is None:
                    yield from walk(command, (*path, name))
                else:
                    yield " ".join((*path, name)), command.assemble_argument_collection()

    yield from walk(app, ())


def outputs(arguments: Any) -> dict[str, str]:
    """Name of each parameter that holds a path and is no known input -> how it is typed."""
    return {
        argument.field_info.name: next((name for name in argument.names if name.startswith("-")), "")
        for argument in arguments
        if _is_path(argument.hint) and argument.field_info.name not in INPUTS
    }


def _is_path(hint: Any) -> bool:
    return hint is Path or any(map(_is_path, typing.get_args(hint)))


def words_of(name: str, arguments: Any) -> list[str]:
    """The command with its outputs, charts only for one: they take seconds; ``out`` is the folder they are in."""
    words, given = name.split(), COMMANDS[name].split()
    for output, option in outputs(arguments).items():
        if output == "figures" and name != WITH_FIGURES:
            continue
        file = OUT_FILES.get(name, output) if output in ("out", "output") else FILES.get(output, output)
        if output == "merged":
            words.append(f"out/{file}")
        else:
            given += [option, f"out/{file}"]
    return [*words, *given]


def prepare(*names: str) -> None:
    """Inputs of these commands, in the working folder."""
    from tests.command_line import unslant

    needed = {Path(word).stem for name in names for word in COMMANDS[name].replace("=", " ").split()}
    questions = [
        {"id": f"q{i}", "question": f"What is {i}?", "options": ["w", "x", "y", "z"], "answer": i % 4, "subject": "s"}
        for i in range(8)
    ]
    Path("q.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions))
    reply = {"id": "1", "options": ["Rome", "Oslo"], "reply": "Answer: A"}
    Path("replies.jsonl").write_text((json.dumps(reply) + "\n") * 50)
    Path("tasks").mkdir()
    shutil.copy("q.jsonl", "tasks/q.jsonl")
    Path("tasks/bench.yaml").write_text(
        "task: bench\ndataset_path: json\ndataset_kwargs: {data_files: {test: tasks/q.jsonl}}\ntest_split: test\n"
        'output_type: multiple_choice\ndoc_to_text: "{{question}}"\ndoc_to_choice: "{{options}}"\n'
        "doc_to_target: answer\n"
    )
    audit = "audit fair embedded --limit 6 --orders reverse --quiet".split()
    unbiased = "embedded --limit 4 --runs 1 --shots 0 --quiet --no-store".split()
    made_by = {
        "s1": [*audit, "--no-store", "--shard", "1/2", "--responses", "s1.parquet"],
        "s2": [*audit, "--no-store", "--shard", "2/2", "--responses", "s2.parquet"],
        "numbers": [*audit, "--no-store", "--json", "numbers.json"],
        "runs": [*audit, "--store", "runs.sqlite3"],
        "u1": ["study", "unbiased", "fair", *unbiased, "--responses", "u1.parquet"],
        "u2": ["study", "unbiased", "prefers-a", *unbiased, "--responses", "u2.parquet"],
        "a": ["study", "annotation-sheet", "embedded", "--items", "4", "--out", "a.csv", "--quiet"],
    }
    # Every process that writes a report first puts the library of charts together, which takes longer than the rest:
    # this one, of which the others are forks, has then done so.
    assert unslant("questions", "check", "q.jsonl", "--quiet", "--html", "warm.html").code == 0
    for name in made_by.keys() & needed:
        ran = unslant(*made_by[name])
        assert ran.code == 0, ran.err
    if "a" in needed:
        sheet = Path("a.csv").read_text("utf-8-sig").splitlines(keepends=True)
        filled = [sheet[0], *(line.rstrip("\r\n") + "yes\r\n" for line in sheet[1:])]
        for name in ("a.csv", "b.csv"):
            Path(name).write_text("".join(filled))
    if "runs" in needed:
        from unslant.store import Store

        with Store(Path("runs.sqlite3"), read_only=True) as store:
            QUICK["runs export"] = COMMANDS["runs export"] = f"{store.runs.all()[0].id} --store runs.sqlite3"


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path("out").rglob("*")) if path.is_file()}


def restore(files: dict[str, bytes]) -> None:
    shutil.rmtree("out")
    Path("out").mkdir()
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)


def earlier(new: dict[str, bytes]) -> dict[str, bytes]:
    """Files in the place of the new ones; numbers are of the same command, as those of another would be refused."""
    return {path: content + b"\n" if path.endswith(".json") else b"old\n" for path, content in new.items()}


def is_new(name: str, content: bytes, new: dict[str, bytes]) -> bool:
    """Whether a file is what the command writes when nothing goes wrong; seconds in it may differ."""
    if content == new[name]:
        return True
    timed = name.endswith((".json", ".html", ".svg", ".pdf", ".pt", ".csv", ".tex"))
    if not timed or abs(len(content) - len(new[name])) > 200 or content[-6:] != new[name][-6:]:
        return False
    return not name.endswith(".json") or bool(json.loads(content))


class Attack:
    """One command, forked at its first write, as often as is wanted: run whole first, then killed or out of space."""

    def __init__(self, name: str, words: list[str], rng: random.Random, attempts: int) -> None:
        self.name, self.words, self.rng, self.attempts = name, words, rng, attempts
        self.tried, self.wrong = 0, list[str]()
        self.answer: int | None = None
        self.armed = False

    def run(self) -> None:
        from tests.command_line import unslant

        restore({})
        full = self.standard_output() if self.name not in SLOW or self.attempts > 1 else None  # it takes a whole run
        restore({})
        sys.addaudithook(self._hook)
        self.armed = True
        ran = unslant(*self.words)
        self.armed = False
        if self.answer is not None:  # one of those that were forked off
            with os.fdopen(self.answer, "w") as stream:
                json.dump([ran.code, ran.err], stream)
            os._exit(0)
        if not self.tried:
            self.wrong.append(f"no write was noticed: exit {ran.code}, {ran.err[-400:]!r}")
        elif full:
            # merge, which writes its table first, refuses the folder in which a process forked off then put old files
            refused = self.words[0] == "merge" and "give another folder" in ran.err
            self._check_standard_output(*full, speaks=bool(ran.out) or refused)

    def _hook(self, event: str, values: tuple[Any, ...]) -> None:
        if not self.armed:
            return
        opened = event == "open" and isinstance(values[1], str) and set(values[1]) & set("wxa+")
        if opened or event == "os.mkdir":
            path = os.path.abspath(os.fsdecode(values[0])) if isinstance(values[0], str | bytes | Path) else ""
            if path.startswith(os.path.abspath("out")):
                self.armed = False
                self._fork_all()

    def _fork_all(self) -> None:
        answer, _ = self._forked(None, False)
        if self.answer is not None:
            return
        self.new = contents()
        if not answer or json.loads(answer)[0]:
            self.wrong.append(f"it fails: {answer}")
            return
        self.old = {} if self.words[0] == "train" else earlier(self.new)
        largest = max(map(len, self.new.values()))
        for attempt in range(self.attempts):
            for killed in (True, False):
                limit = 0 if attempt == 0 and not killed else self.rng.randrange(largest)
                restore(self.old)
                answer, status = self._forked(limit, killed)
                if self.answer is not None:
                    return
                self._check(killed, limit, answer, status)

    def _forked(self, limit: int | None, killed: bool) -> tuple[str, int]:
        """Go on in a process whose files end at a limit; what it answers, and how it ended (here, not in the fork)."""
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ours)
            self.answer = theirs
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(120)
            return "", 0
        os.close(theirs)
        with os.fdopen(ours) as stream:
            answer = stream.read()
        return answer, os.waitpid(child, 0)[1]

    def _check(self, killed: bool, limit: int, answer: str, status: int) -> None:
        self.tried += 1
        what = f"{'killed' if killed else 'no space'} after {limit:,} bytes"
        found = contents()
        litter = {name for name in found if "/.unslant-" in name}
        for name in self.new | found:
            if name in litter:
                continue
            content = found.get(name)
            if content != self.old.get(name) and not (name in self.new and content and is_new(name, content, self.new)):
                self.wrong.append(f"{what}: {name} is neither the old nor the new one ({len(content or b'')} bytes)")
        if killed:
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
                self.wrong.append(f"{what}: hangs")
            return
        code, err = json.loads(answer) if answer else (None, "")
        errors = [line for line in err.splitlines() if "Traceback" in line or line.startswith("error: ")]
        if code != 5 or len(errors) != 1 or "cannot be written" not in errors[0]:
            self.wrong.append(f"{what}: exit {code}, {err[-400:]!r}")
        if litter:
            self.wrong.append(f"{what}: left {sorted(litter)}")
        if self.words[0] not in ("train", "merge"):  # whose other outputs are made of the first
            for name, content in self.new.items():
                if len(content) + 200 < limit and found.get(name) == self.old[name] and "save_model" not in name:
                    self.wrong.append(f"{what}: {name} of {len(content):,} bytes was not written")

    def standard_output(self) -> tuple[int, list[str], set[str]]:
        """Exit code, last error and files of a run while the disk behind standard output is full."""
        errors = Path("errors")
        child = os.fork()
        if child == 0:
            from unslant import cli

            os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
            sys.argv = ["unslant", *self.words]
            code: Any = 0
            try:
                cli.main()
            except SystemExit as stopped:
                code = stopped.code
            except BaseException:
                code = 99
            os._exit(int(code or 0))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return code, errors.read_text().splitlines()[-1:], set(contents())

    def _check_standard_output(self, code: int, last: list[str], files: set[str], speaks: bool) -> None:
        self.tried += 1
        message = ["error: standard output: cannot be written: no space left on device"]
        if (code, last) != ((5, message) if speaks else (0, [])):
            self.wrong.append(f"full standard output: exit {code}, {last}")
        if missing := self.new.keys() - files:
            self.wrong.append(f"full standard output: {sorted(missing)} not written")


def attacked(names: list[str], work: Path, seed: int, attempts: int) -> list[dict[str, Any]]:
    """Attack some commands in a process of its own; a line a command: ``command``, ``tried`` and ``wrong``."""
    return in_own_process("tests.cli.attacked_outputs", names, work, seed, attempts)


def in_own_process(module: str, names: list[str], work: Path, seed: int, attempts: int) -> list[dict[str, Any]]:
    """What a module prints about some commands, a line each."""
    command = [sys.executable, "-m", module, str(work), str(seed), str(attempts), *names]
    home = {"UNSLANT_HOME": str(work / "home"), "HOME": str(work), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    root = Path(__file__).parents[2]
    ran = subprocess.run(command, cwd=root, env={**os.environ, **home}, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode or len(found) != len(names):
        raise AssertionError(f"exit {ran.returncode}, {len(found)} lines: {ran.stdout[-500:]}{ran.stderr[-2000:]}")
    return found


def main(work: str, seed: str, attempts: str, *names: str) -> None:
    os.chdir(work)
    prepare(*names)
    known: dict[str, Any] = dict(commands())
    say: Callable[[str], int] = sys.__stdout__.write  # type: ignore[union-attr]
    for name in names:
        # This process has drawn charts, and the drawing library has threads that a fork does not: once, the run that is
        # not attacked hung there. The attacked ones have limits of their own, and count as wrong.
        for _ in range(2):
            Path("out").mkdir(exist_ok=True)
            attack = Attack(name, words_of(name, known[name]), random.Random(f"{seed} {name}"), int(attempts))
            if (child := os.fork()) == 0:
                signal.alarm(250)
                attack.run()
                say(json.dumps({"command": name, "tried": attack.tried, "wrong": attack.wrong}) + "\n")
                sys.__stdout__.flush()  # type: ignore[union-attr]
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM):
                break


if __name__ == "__main__":
    main(*sys.argv[1:])
