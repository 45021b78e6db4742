"""Write 50 examples of every intervention, to be read by a person: ``python -m tests...render_examples``.

They come from MMLU and GSM8K (both MIT licence). The page is a snapshot: a test renders it anew and compares.
"""

from __future__ import annotations

import random
from pathlib import Path

from tests.conftest import SHARED_DATA
from unslant.presentations.interventions import NAMES, Composed, Pool, apply, pool_of
from unslant.prompts import load_template
from unslant.questions import MathQuestion, Question, load_math, load_questions

PAGE = Path(__file__).resolve().parents[3] / "docs" / "intervention-examples.md"
N = 50
LONGEST_STEM = 350
SEED = 8
WANTED = {
    "DH": ("DH",), "DQ": ("DQ",), "AR": ("DH", "AR"), "OS": ("OS",), "LR": ("LR",), "BT": ("BT",),
    "QJ": ("QJ",), "AJ": ("AJ",),
}  # fmt: skip
HEAD = f"""# Interventions, rendered

{N} examples of every atomic intervention of the [unbiased evaluator](unbiased-evaluator.md), drawn at random from
MMLU and GSM8K (stems of at most {LONGEST_STEM} characters), in the `plain` template without worked examples.
Written by `python -m tests.presentations.interventions.render_examples`; do not edit.
"""


def load(folder: Path) -> dict[str, list[Question] | list[MathQuestion]]:
    return {
        "choice": list(load_questions(folder / "mmlu_test.jsonl.gz")),
        "maths": list(load_math(folder / "gsm8k_test.jsonl")),
    }


def page(folder: Path) -> str:
    loaded = load(folder)
    pools = {kind: pool_of(questions) for kind, questions in loaded.items()}
    parts = [HEAD]
    for code, codes in WANTED.items():
        kind = "maths" if code in ("QJ", "AJ") else "choice"
        parts.append(f"## {NAMES[code].capitalize()} ({code})\n")
        parts.append(_examples(code, codes, loaded[kind], pools[kind]))
    return "\n".join(parts)


def _examples(code: str, codes: tuple[str, ...], questions: list[Question] | list[MathQuestion], pool: Pool) -> str:
    order = random.Random(f"{SEED}/{code}").sample(range(len(questions)), len(questions))
    instruction = ""
    shown: list[str] = []
    for question in (questions[i] for i in order):
        if len(shown) == N:
            break
        if len(question.stem) > LONGEST_STEM:
            continue
        result = apply(question, codes, pool, SEED)
        if isinstance(result, Composed):
            instruction = result.items[0][1].instruction
            shown.append(_example(question, result))
    return f"Instruction: {instruction}\n\n" + "\n".join(shown)


def _example(question: Question | MathQuestion, result: Composed) -> str:
    template = load_template("plain")
    if len(result.items) > 1:
        lines = [f"Question: {question.stem}"]
        for item, presentation in result.items:
            proposed = item.stem.removeprefix(question.stem).strip()
            lines.append(f"    {proposed}  ->  {presentation.right_labels[0]}")
        return f"`{question.id}`\n\n```\n" + "\n".join(lines) + "\n```\n"
    ((_, presentation),) = result.items
    right = ", ".join(presentation.right_labels)
    return f"`{question.id}`\n\n```\n{template.render_question(presentation).strip()}\nAnswer: {right}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(SHARED_DATA), "utf-8")
