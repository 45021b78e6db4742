"""What an audit costs in ordinary runs: the published order alone, whole prompts, the best batch.

    python -m benchmarks.ordinary_runs MODEL TEST DEV --out benchmarks/ORDINARY.md
    python -m benchmarks.ordinary_runs MODEL TEST DEV --timed 0          tokens only; the model is not run
    python -m benchmarks.ordinary_runs MODEL TEST DEV --until 0.02 --dtype bfloat16 --sampled 0 --timed 0 --out ...

TEST and DEV are question files with the same subjects, such as those of MMLU. Zero-shot, and behind the five examples
of the same subject, tokens are counted subject by subject as an audit computes them, controls included, on a sample of
each subject's questions; what all prompts of a subject share counts once in its (up to 500) questions. Then some
questions of one subject are run, interleaved, by the published order alone (batches sorted by length, the best of three
sizes), by lm-evaluation-harness, and in each set of orders. ``--until`` runs that audit on all questions (hours in
float32 on a CPU): what it asks depends on the model's answers. ``--out`` keeps what is not measured anew.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.compare import BATCHES, BUDGETS, CLOCKS, fastest
from benchmarks.contenders import Contender, Library, LmEval, cost_of
from benchmarks.measure import load, machine, measured
from unslant import audit, load_model, open_model
from unslant.arrays import jsonable
from unslant.auditing import WHOLE, AuditSettings, OrderDesign, audit_presentations
from unslant.auditing.study import TokenCounter
from unslant.presentations import control_presentations, parse_labels, present
from unslant.presentations.shots import ShotChooser
from unslant.prompts import Cloze, Prompt, Writer, load_template
from unslant.questions import Question, QuestionSet, load_questions

SETS = ("given", "latin", "given:4", "given:8", "cyclic:8", "balanced:8", "shared:8", "8", "given:12", WHOLE)
TIMED = ("given:8", "balanced:8", WHOLE)
PHASES = ((500, 100), (1_000, 100), (1_000, 200), (5_000, 100), (5_000, 200), (5_000, 500))
"""Questions of an audit in two phases, and how many of them are asked in all orders."""
SHOTS = (0, 5)
MOST = 500
"""Questions of a subject."""
ALPHABET = parse_labels("A")
CLOZE = Cloze(Writer(load_template("plain")))


def by_subject(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """Questions without pinned options by subject, up to :data:`MOST` each."""
    found: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        if not question.pinned and len(found[question.subject]) < MOST:
            found[question.subject].append(question)
    return dict(found)


def counted(
    model: Any, test: Mapping[str, Sequence[Question]], dev: Mapping[str, Sequence[Question]], shots: int, sampled: int
) -> dict[str, int]:
    """Tokens of an ordinary run and of every set of orders, over all subjects."""  # fmt: skip
    total: dict[str, float] = defaultdict(float)
    every = sum(map(len, test.values()))
    controls = [presentation for _, presentation in control_presentations(4, ALPHABET)]
    for subject, questions in test.items():
        chooser = ShotChooser(dev[subject], shots, alphabet=ALPHABET)
        counter = TokenCounter(model, OrderDesign(QuestionSet.of(questions), AuditSettings(), CLOZE, chooser.of))
        sample = questions[:: -(-len(questions) // sampled)]
        total["ordinary run"] += counter.whole(sample) / len(sample) * len(questions)
        each: dict[str, tuple[float, int]] = {}
        for orders in SETS:
            computed, shared = counter.tree(sample, orders)
            each[orders] = (computed - shared) / len(sample), shared
            total[orders] += each[orders][0] * len(questions) + shared
        for n, part in PHASES:
            own, of_part = n * len(questions) / every, part / n
            total[f"{n}: {part}, ordinary run"] += counter.whole(sample) / len(sample) * own
            (square, shared), (whole, _) = each["latin"], each[WHOLE]
            total[f"{n}: {part}"] += ((1 - of_part) * square + of_part * whole) * own + shared
    for orders in (*SETS, *(f"{n}: {part}" for n, part in PHASES)):
        total[orders] += counter.added([], controls)
    return {name: round(tokens) for name, tokens in total.items()}


def prompts_of(questions: Sequence[Question], chooser: ShotChooser, orders: str) -> list[Prompt]:
    """What an audit in these orders asks; of an ordinary run, the published order alone."""
    return [
        prompt
        for question in questions
        for shown in ([present(question)] if orders == "" else audit_presentations(question, orders, ALPHABET))
        for prompt in CLOZE.prompts(shown.with_shots(chooser.of(question)))
    ]


def timed(
    loaded: Any, questions: Sequence[Question], dev: Sequence[Question], shots: int, repeats: int
) -> dict[str, list[dict[str, Any]]]:
    """Interleaved runs by name."""  # fmt: skip
    model, words = loaded.model, loaded.tokenizer
    chooser = ShotChooser(dev, shots, alphabet=ALPHABET)
    alone = prompts_of(questions, chooser, "")
    plain = fastest([Library("plain", model, words, "plain", budget) for budget in BUDGETS], model, alone[:6])
    harness = fastest([LmEval(model, words, batch) for batch in BATCHES], model, alone[:6])
    jobs: dict[str, tuple[Contender, list[Prompt]]] = {"ordinary run": (plain, alone), "lm-eval": (harness, alone)}
    for orders in TIMED:
        jobs[orders] = Library(orders, model, words, "tree"), prompts_of(questions, chooser, orders)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in jobs}
    for repeat in range(repeats):
        for name, (contender, prompts) in list(jobs.items())[:: 1 if repeat % 2 else -1]:
            contender.prepare()
            with measured(model, cost_of(contender)) as run:
                contender.score(prompts)
            runs[name].append(asdict(run))
            print(f"{shots} shots, {name}: {run.cpu_seconds:.1f} s (CPU), {run.tokens:,} tokens", flush=True)
    return runs


def told_of(phase: str, done: int, total: int) -> None:
    """Progress, on one line."""
    print(f"\r{phase} {done:,} of {total:,}", end="" if done < total else "\n", flush=True)


def until(given: argparse.Namespace, test: Mapping[str, Sequence[Question]], shots: int) -> dict[str, Any]:
    """What an audit asked, and what it computed, until it knew its numbers to this half-width."""
    model = open_model(given.model, dtype=given.dtype)
    asked = [question for questions in test.values() for question in questions]
    found = audit(
        model,
        asked,
        shots=shots,
        shots_from=given.dev if shots else None,
        shots_by_subject=shots > 0,
        until=given.until,
        progress=told_of,
    )
    assert found.run.until is not None
    told = {key: value for key, value in jsonable(found.run.until).items() if key != "path"}
    told["reached"] = found.run.until.reached
    mean = found.metrics.means["expected_accuracy"]
    told |= {"ordinary": found.cost.tokens_ordinary, "seconds": found.cost.seconds, "dtype": given.dtype}
    return told | {"mean": mean.value, "low": mean.low, "high": mean.high}


def report(facts: Mapping[str, Any]) -> Iterator[str]:
    """Markdown."""
    yield "# The cost of an audit in ordinary runs"
    yield (
        "Written by `python -m benchmarks.ordinary_runs`; do not edit. An ordinary run is the published order alone, "
        "each prompt whole. Sets of orders are named as `--orders` names them; each is a whole audit, with the given "
        "and the reversed order and all label controls, but for `latin`, which has the published order besides."
    )
    yield "## Tokens"
    yield f"{facts['subjects']} subjects, {facts['questions']:,} questions, at most {MOST} of a subject."
    lines = ["| orders | " + " | ".join(f"{s}-shot: tokens | ordinary runs" for s in facts["tokens"]) + " |"]
    lines.append("|---" * (1 + 2 * len(facts["tokens"])) + "|")
    for name in ("ordinary run", *SETS):
        cells = [f"{own[name]:,} | {own[name] / own['ordinary run']:.2f}" for own in facts["tokens"].values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    yield "\n".join(lines)
    yield "## Two phases"
    yield (
        "What `--orders auto` asks beyond 200 questions: a Latin square and the published order of every question, all "
        "orders and the label controls of a part. The part is 100, or as many as the intervals need. Questions of all "
        "subjects in proportion; the ordinary run is of the same questions."
    )
    lines = [
        "| questions | in all orders | " + " | ".join(f"{s}-shot: tokens | ordinary runs" for s in facts["tokens"])
    ]
    lines[0] += " |"
    lines.append("|---" * (2 + 2 * len(facts["tokens"])) + "|")
    for n, part in PHASES:
        pairs = [(own[f"{n}: {part}"], own[f"{n}: {part}, ordinary run"]) for own in facts["tokens"].values()]
        cells = [f"{tokens:,} | {tokens / ordinary:.2f}" for tokens, ordinary in pairs]
        lines.append(f"| {n:,} | {part} | " + " | ".join(cells) + " |")
    yield "\n".join(lines)
    if facts.get("until"):
        yield "## Until it is known well enough"
        yield (
            "Run, not counted: `--until` asks questions at random until both accuracies, their difference and PBM are "
            f"known to the half-width. {facts['questions']:,} questions in 24 orders would be everything. Every "
            "question asked is shown in the published order, some in a Latin square of orders, the first in all."
        )
        lines = [
            "| shots | half-width | questions asked | in a square | in all orders | tokens | ordinary runs | "
            "mean over orders | reached |"
        ]
        lines.append("|---" * 9 + "|")
        for shots, one in facts["until"].items():
            mean = f"{one['mean']:.3f} ({one['low']:.3f} to {one['high']:.3f})"
            lines.append(
                f"| {shots} | {one['half_width']:g} | {one['questions']:,} | {one['squares']:,} | {one['whole']:,} | "
                f"{one['tokens']:,} | {one['tokens'] / one['ordinary']:.2f} | {mean} | "
                f"{'yes' if one['reached'] else 'no'} |"
            )
        yield "\n".join(lines)
    if not facts["timed"]:
        return
    clock = facts["clock"]
    yield "## Time"
    words = {"seconds": "wall-clock seconds", "cpu_seconds": "CPU seconds of the process"}[clock]
    yield (
        f"Questions of {facts['subject']}; median of {facts['repeats']} interleaved repeats, {words}; in brackets the "
        "range of the ratios. So few questions pay for the examples and for each batch more dearly than a whole "
        "benchmark does."
    )
    yield "\n".join(f"- {key}: {value}" for key, value in facts["machine"].items())
    lines = [
        "| run | shots | questions | seconds | ordinary runs in time | tokens | ordinary runs in tokens |",
        "|---" * 7 + "|",
    ]
    for shots, runs in facts["timed"].items():
        for name, own in runs.items():
            ratios = [a[clock] / b[clock] for a, b in zip(own, runs["ordinary run"], strict=True)]
            seconds, tokens = (float(np.median([run[what] for run in own])) for what in (clock, "tokens"))
            one = float(np.median([run["tokens"] for run in runs["ordinary run"]]))
            spread = f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            lines.append(
                f"| {name} | {shots} | {facts['timed_questions'][shots]} | {seconds:.2f} | {spread} | {tokens:,.0f} | "
                f"{tokens / one:.2f} |"
            )
    yield "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder, GGUF file or Hub id")
    parser.add_argument("test", help="questions with subjects")
    parser.add_argument("dev", help="worked examples of the same subjects")
    parser.add_argument(
        "--sampled",
        type=int,
        default=15,
        help="questions of a subject whose tokens are counted; 0 keeps the counts that --out has",
    )
    parser.add_argument("--timed", type=int, default=24, help="questions that are run; 0 for tokens only")
    parser.add_argument("--subject", default="", help="of which they are; by default the first")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=CLOCKS, default="cpu")
    parser.add_argument("--out", type=Path, help="Markdown file; the numbers go beside it as JSON")
    parser.add_argument("--until", type=float, help="half-width; see above")
    parser.add_argument("--dtype", default="auto", help="of --until")
    parser.add_argument("--shots", type=int, nargs="+", choices=SHOTS, default=SHOTS)
    given = parser.parse_args(arguments)
    earlier = given.out and given.out.with_suffix(".json")
    if given.sampled == 0 and not (earlier and earlier.is_file()):
        parser.error("--sampled 0 needs --out with the counts of a run before")
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(given.threads)
    test, dev = (by_subject(load_questions(path).questions) for path in (given.test, given.dev))
    test = {subject: questions for subject, questions in test.items() if len(dev.get(subject, ())) >= max(SHOTS)}
    loaded = load_model(given.model, dtype="float32")
    subject = given.subject or next(iter(test))
    facts: dict[str, Any] = json.loads(earlier.read_text("utf-8")) if earlier and earlier.is_file() else {}
    facts = {"tokens": {}, "timed": {}, "until": {}} | facts
    facts |= {"subjects": len(test), "questions": sum(map(len, test.values()))}

    def write(told: Callable[[str], object] = lambda text: None) -> None:
        text = "\n\n".join(report(facts)) + "\n"
        told(text)
        if given.out:
            given.out.write_text(text, "utf-8")
            given.out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")

    for shots in given.shots if given.sampled else ():
        facts["tokens"][str(shots)] = counted(loaded, test, dev, shots, given.sampled)
    if given.timed:
        facts |= {"machine": machine(), "clock": CLOCKS[given.clock], "repeats": given.repeats}
        facts |= {"subject": subject, "timed_questions": facts.get("timed_questions", {})}
    for shots in given.shots if given.timed else ():
        facts["timed_questions"][str(shots)] = given.timed
        facts["timed"][str(shots)] = timed(loaded, test[subject][: given.timed], dev[subject], shots, given.repeats)
        write()
    if given.timed:
        facts["machine"]["load"] += f" to {load()}"
    for shots in given.shots if given.until else ():
        facts["until"][str(shots)] = until(given, test, shots)
        write()
    write(print)


if __name__ == "__main__":
    main()
