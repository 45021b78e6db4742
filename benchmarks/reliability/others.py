"""Damaged files of the smaller readers: mixed sets, templates, training logs, and tables of people's scores."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.reliability.damage import damage_bytes, damage_records, text_damage, to_json
from benchmarks.reliability.fuzz import Reader
from benchmarks.reliability.records import Records, records_file
from unslant import Question
from unslant.files import dump_json

BOUNDARY: tuple[Records, ...] = (
    [
        {"part": "choice", "id": "c", "question": "Q?", "options": ["a", "b"], "answer": [0, 1], "context": "",
         "subject": "", "source": "", "pinned": []},
        {"part": "judging", "id": "j", "statement": "S.", "verdict": "True", "context": "", "subject": ""},
        {"part": "disturbing", "id": "d", "question": "Q?", "options": list("abcdef"), "answer": 3, "pinned": [5]},
    ],
    [{"question": "Q?", "options": ["0. a", "1. b"], "answer": i % 2, "context": "Background: x\nOptions:\na"}
     for i in range(4)],
)  # fmt: skip
SCORES: tuple[Records, ...] = (
    [
        {"question_id": f"q{q}", "subject": "s", "kind": "rephrased" if r else "original", "rephraser": r, "judge": j,
         "score": 5}
        for q in range(2) for r in ("", "m", "n") for j in ("m", "n")
    ],
)  # fmt: skip
ACCURACY: tuple[Records, ...] = ([{"model": m, "subject": s, "accuracy": 0.5} for m in "mn" for s in "st"],)
RANKING: tuple[Records, ...] = ([{"model": m, "score": i} for i, m in enumerate("mnop")],)
SHEET: tuple[Records, ...] = (
    [{"item": f"i{i}", "question_id": "q", "interventions": "OS+AR", "shown": "Q?", "expected": "A", "right": "yes"}
     for i in range(5)],
)  # fmt: skip
EPOCHS: Records = [
    {"epoch": e, "n": 5, "pbm": 0.1, "entropy": 0.5, "accuracy": 0.5, "accuracy_n": 5, "accuracy_se": 0.1, "loss": 1.0,
     "train_loss": None}
    for e in range(3)
]  # fmt: skip

TEMPLATE = """
name = "mine"
question = '''
{% if context %}{{ context }}
{% endif %}Question: {{ stem }}
{% for o in options %}{{ o.label }}. {{ o.text }}
{% endfor %}{{ distractor }}{{ hint }}'''
instruction = "Answer with {{ labels | join(', ') }}."
[cloze]
cue = "Answer:"
continuation = " {{ label }}"
"""
JINJA = (
    "{{ 'a' * 10**9 }}", "{{ 9**9**9 }}",
    "{% for i in range(99999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}",
    "{% set x = [x, x] %}" * 50, "{{ stem.__class__ }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{{ 1/0 }}",
    "{% include 'x' %}", "{{ lipsum(9999) }}", "{{ options[99] }}", "{{ options | map('upper') | list }}",
    "{{ '%s' }}",
    "{{ stem | center(10**9) }}", "{{ stem.join(stem) }}", "{{", "{%", "{#", "{% endfor %}", "{% if %}", "{{ ''' }}",
    "\\\\", "{{ '%999999999d' % 1 }}", "{{ stem | replace('', stem) }}", "{{ options | tojson }}", "{{ self }}",
    "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{{ " + "(" * 400,
    "{{ stem | indent(999) }}", "{% raw %}", "{{ '\\\\ud800' }}", "{{ none_label }}", "{{ canary }}", "{{ dict() }}",
)  # fmt: skip


def template_case(rng: random.Random) -> tuple[str, bytes]:
    text = TEMPLATE
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.choice([i for i, c in enumerate(text) if c in "{.:\n="] or [0])
        piece = rng.choice(JINJA) if rng.random() < 0.7 else text_damage(rng)
        text = text[:at] + piece + (text[at:] if rng.random() < 0.8 else "")
    content = text.encode(errors="replace")
    return "damaged.toml", damage_bytes(rng, content) if rng.random() < 0.4 else content


def use_template(path: Path) -> None:
    from unslant.presentations import parse_labels, present
    from unslant.prompts import Cloze, Counterfactual, Writer, load_template

    template = load_template(str(path))
    shown = present(Question("q", "Which?", ("one", "two", "three"), frozenset({0})), alphabet=parse_labels("A"))
    for chat in (False, True):
        for elicitation in (Cloze(Writer(template, chat)), Counterfactual(Writer(template, chat))):
            elicitation.prompts(shown)


def log_case(rng: random.Random) -> tuple[str, bytes]:
    records = damage_records(rng, EPOCHS) if rng.random() < 0.7 else EPOCHS
    content = "".join(to_json(record) + "\n" for record in records).encode()
    return "damaged/log.jsonl", damage_bytes(rng, content) if rng.random() < 0.5 else content


def use_log(path: Path) -> None:
    from unslant.reports.page import text
    from unslant.studies.debias.training import TrainingLog

    text(TrainingLog.read(path.parent).page())


def use_boundary(path: Path) -> None:
    from unslant.studies.instruction_boundary.question_sources import load_boundary

    found = load_boundary(path)
    _ = found.digest, found.lines(), found.balanced(4)


def use_scores(path: Path) -> None:
    from unslant.studies.unbiased.probe.result import load_scores

    table = load_scores(path)
    _ = table.missing, table.changed(0.5)
    table.to_parquet(path.with_name("again.parquet"))
    assert load_scores(path.with_name("again.parquet")).models == table.models
    path.with_name("again.parquet").unlink()


def use_accuracy(path: Path) -> None:
    from unslant.studies.unbiased.probe.result import load_accuracy

    json.loads(dump_json(load_accuracy(path)))


def use_ranking(path: Path) -> None:
    from unslant.experiment.ranking import load_ranking

    json.loads(dump_json(load_ranking(path)))


def use_sheet(path: Path) -> None:
    from unslant.studies.unbiased.annotation import read_sheets

    read_sheets([path])


def _table(name: str, records: tuple[Records, ...], use: Callable[[Path], Any]) -> Reader:
    def case(rng: random.Random) -> tuple[str, bytes]:
        return records_file(rng, "damaged", records, rng.choice(("csv", "tsv", "jsonl", "parquet")))

    return Reader(name, case, use, names_file=use is not use_sheet)


def _mixed(rng: random.Random) -> tuple[str, bytes]:
    return records_file(rng, "damaged", BOUNDARY, rng.choice(("jsonl", "json")))


OTHERS = (
    Reader("mixed sets", _mixed, use_boundary),
    Reader("templates", template_case, use_template),
    Reader("training logs", log_case, use_log),
    _table("score tables", SCORES, use_scores),
    _table("accuracy tables", ACCURACY, use_accuracy),
    _table("rankings", RANKING, use_ranking),
    _table("annotation sheets", SHEET, use_sheet),
)
