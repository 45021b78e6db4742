"""Writes the tables and figures of the papers into their pages, with unslant's number beside the paper's.

    python -m benchmarks.papers [p1 p2 p3 p4 p5]

Needs the recorded data that the tests use, beside the checkout; minutes on one core. What cannot be had from them (the
papers' models, a provider's key) is measured on the reference models, and said to be.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from benchmarks.order_tokens import nodes
from unslant.experiment.result import StudyResult
from unslant.metrics import METRICS, Estimate
from unslant.presentations import ALPHABETS, orders_for, present
from unslant.presentations.shots import ShotChooser
from unslant.prompts import Cloze, Writer, load_template
from unslant.questions import Question, load_questions
from unslant.reports.export import drawing, save_figure
from unslant.reports.style import PAPER

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
IMAGES = ROOT / "docs" / "images"
Blocks = dict[str, str]
"""What stands between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->`` of a page."""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def points(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def change(value: float | Estimate | None) -> str:
    number = value.value if isinstance(value, Estimate) else value
    return "–" if number is None else f"{number:+.3f}".replace("-", "−")


def figure(name: str, result: StudyResult, chart: str, alt: str) -> str:
    """The first chart of a report whose id has ``chart`` in it, as ``docs/images/NAME.svg``."""
    charts = [one for panel in result.page().sections for one in panel.charts]
    found = next((one for one in charts if chart in one.id), None)
    assert found, f"no chart {chart!r} among {[one.id for one in charts]}"
    save_figure(drawing(found, PAPER).spec, IMAGES / f"{name}.svg")
    return f"![{alt}](../images/{name}.svg)"


# --- P1, P2: tokens -------------------------------------------------------------------------------------------------

SAVINGS = {  # question file, template, saving for Phi-2 in table 2 of P1 (TokS)
    "TeleQnA": ("teleqna_subset.jsonl", "teleqna-phi", 0.3596),
    "MedMCQA": ("medmcqa_dev_sample.jsonl", "medmcqa", 0.551),
    "QASC": ("qasc_dev.jsonl", "qasc", 0.543),
    "ARC": ("arc_challenge_test.jsonl", "arc", 0.366),
}


def computed(
    questions: Sequence[Question], template: str, tokenizer: Tokenizer, shots: int = 0
) -> tuple[int, int, int]:
    """Tokens of all orders of 100 questions: each prompt alone, with BaQCKV, and as a tree for each question."""
    writer = Cloze(Writer(load_template(template)))
    pool = [question for question in questions if len(question.answers) == 1 and not question.pinned]
    chooser = ShotChooser(pool, k=shots, seed=0) if shots else None
    plain = cached = tree = 0
    for question in questions[:100]:
        shown = [present(question, order, ALPHABETS["1"]) for order in orders_for(question, "24", seed=0)]
        if chooser:
            shown = [one.with_shots(chooser.of(question)) for one in shown]
        prompts = sorted(tokenizer.encode(writer.prompts(one)[0].as_text()).ids for one in shown)
        alone = sum(map(len, prompts))
        ends = [prompts[0], prompts[-1]]  # sorted: what these two begin with, all do
        first = sum(map(len, ends)) - nodes(ends)
        plain, cached, tree = plain + alone, cached + alone - first * (len(prompts) - 1), tree + nodes(prompts)
    return plain, cached, tree


def savings(shots: int = 0) -> dict[str, tuple[float, float]]:
    """Set -> share of tokens saved by BaQCKV and by the tree, of 100 questions in up to 24 orders."""
    tokenizer = Tokenizer.from_file(str(DATA / "tokenizers" / "phi-2.tokenizer.json"))
    tokenizer.no_truncation()
    found = {}
    for name, (file, template, _) in SAVINGS.items():
        questions = load_questions(DATA / file, limit=150, seed=0, skip_bad=True)
        plain, cached, tree = computed(list(questions), template, tokenizer, shots)
        found[name] = (1 - cached / plain, 1 - tree / plain)
    return found


TABLE_3 = {  # P1, table 3: mean relative changes over three models and four sets
    "lora-1": {
        "pbm": -0.586,
        "rstd": -0.076,
        "ckld_smoothed": 0.928,
        "fr": -0.525,
        "accuracy": 0.200,
        "acc_std": -0.276,
    },
    "gray-box": {"pbm": -0.364, "rstd": -0.045, "accuracy": 0.077, "acc_std": 0.940},
    "bnp": {"pbm": -0.119, "rstd": 0.0, "fr": -0.250, "accuracy": 0.064, "acc_std": -0.131},
    "pride": {"pbm": 1.880, "rstd": -0.240, "fr": -0.137, "accuracy": 0.419, "acc_std": -0.040},
}


def p1() -> Blocks:
    import unslant

    rows = [
        (name, f"{SAVINGS[name][2]:.1%}", f"{cached:.1%}", f"{tree:.1%}") for name, (cached, tree) in savings().items()
    ]
    models, measures = ("prefers-a", "prefers-last", "half-taught"), ("pbm", "rstd", "fr", "accuracy", "acc_std")
    asked = {"methods": list(TABLE_3), "orders": "cyclic", "limit": 120}
    result = unslant.study.debias(models, "embedded", **asked)
    here = {method: {key: one.relative for key, one in row.items()} for method, row in result.average.items()}
    pairs = [
        (method, *(" / ".join(change(found.get(key)) for found in (paper, here[method])) for key in measures))
        for method, paper in TABLE_3.items()
    ]
    alt = "AccStd against PBM of every method on three reference models"
    return {
        "table-2": table(("tokens saved by the vote", "P1", "BaQCKV", "prefix tree"), rows),
        "table-3": table(("P1 / here", *(METRICS[key].label for key in measures)), pairs),
        "figure-1a": figure("p1-figure-1a", result, "scatter", alt),
    }


def p2() -> Blocks:
    found = zip(savings().items(), savings(5).values(), strict=True)
    rows = [(name, *(f"{saved:.1%}" for saved in (*plain, *shots))) for (name, plain), shots in found if name != "ARC"]
    heads = ("tokens saved by the vote", "BaQCKV", "prefix tree", "BaQCKV, 5 shots", "prefix tree, 5 shots")
    return {"table-1": table(heads, rows)}


# --- P3 -------------------------------------------------------------------------------------------------------------

VANILLA = {  # P3, table 3, vanilla, per cent: judging SR and GR; multiple choice SR, GR none, GR several
    "GPT-3.5-turbo": (21.47, 76.03, 62.00, 12.00, 0.00),
    "GPT-4o": (63.49, 27.32, 89.33, 28.67, 0.00),
    "LLaMA-3.1-8B": (17.92, 85.82, 55.33, 4.67, 2.00),
    "Claude-3.7-Sonnet": (40.13, 52.33, 12.67, 7.33, 3.33),
    "Gemini-2.0-Flash": (36.99, 66.62, 84.85, 18.18, 2.94),
}


def harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a and b else 0.0


def robustness(row: Sequence[float]) -> tuple[float, float, float]:
    """RS of judging, of multiple choice, and their mean (P3, eq. 6-7), as the study computes them."""
    judging, choice = harmonic(row[0], row[1]), harmonic(row[2], (row[3] + row[4]) / 2)
    return judging, choice, (judging + choice) / 2


def p3() -> Blocks:
    scores = {name: robustness(row) for name, row in VANILLA.items()}
    ranked = sorted(scores, key=lambda name: -scores[name][2])
    rows = [(name, *(f"{value:.1f}" for value in (*VANILLA[name], *scores[name]))) for name in ranked]
    rates = ("SR", "GR", "SR, choice", "GR none", "GR several")
    return {"figure-6": table(("per cent", *rates, "RS, judging", "RS, choice", "RS"), rows)}


# --- P4 -------------------------------------------------------------------------------------------------------------

TABLE_2 = {  # P4, table 2: vanilla and under interventions, per cent, on ARC-C and MMLU
    "GPT-4o": (94.51, 89.36, 83.51, 68.82),
    "GPT-4-Turbo": (96.48, 89.74, 84.10, 71.81),
    "Gemini-2.0": (95.71, 88.15, 86.20, 73.57),
    "Qwen2.5-72B-Instruct": (94.33, 85.69, 84.07, 69.56),
    "Llama3.1-70B-Instruct": (93.99, 81.23, 80.70, 61.93),
    "Yi1.5-34B-Chat": (93.91, 71.79, 77.72, 56.70),
    "Mistral-Large-2411": (94.85, 81.89, 82.37, 61.63),
}
CONTAMINATED = ((55.6, 96.6), (33.7, 37.1))
"""P4, section 6.2: Llama2-13B before and after training on the test set, as published and under interventions."""


def gain(value: Estimate) -> str:
    return f"{points(100 * value.value)} ({points(100 * value.low)} to {points(100 * value.high)})"


def p4() -> Blocks:
    import unslant

    asked = {"limit": 200, "shots": 0}
    ours = {name: unslant.study.unbiased(name, "embedded", **asked) for name in ("fair", "memorised")}
    scores = [
        (f"{name}, {of}", row[at : at + 2]) for at, of in ((0, "ARC-C"), (2, "MMLU")) for name, row in TABLE_2.items()
    ]
    scores += [
        (f"`{name}`, embedded", (100 * found.metrics.vanilla.value, 100 * found.metrics.ours.value))
        for name, found in ours.items()
    ]
    by_chance = ours["fair"].metrics
    scores.append(("chance, embedded", (100 * by_chance.vanilla_chance.value, 100 * by_chance.ours_chance.value)))
    against = unslant.study.contamination("fair", "embedded", against="memorised", **asked)
    gains = [after - before for before, after in CONTAMINATED]
    checks = [
        ("Llama2-13B trained on MMLU (P4)", points(gains[0]), points(gains[1]), points(gains[0] - gains[1])),
        (
            "`memorised` against `fair`",
            *(gain(value) for value in (against.vanilla_gain, against.ours_gain, against.excess)),
        ),
    ]
    rows = [(name, f"{vanilla:.1f}", f"{under:.1f}", points(under - vanilla)) for name, (vanilla, under) in scores]
    alt = "Accuracy of memorised as published and under each intervention alone, on the same questions"
    return {
        "table-2": table(("per cent", "as published", "under interventions", "change"), rows),
        "contamination": table(("gain", "as published", "under interventions", "excess"), checks),
        "figure-6": figure("p4-figure-6", ours["memorised"], "alone", alt),
    }


# --- P5 -------------------------------------------------------------------------------------------------------------


def p5() -> Blocks:
    from unslant.studies.base_rate.study import base_rate

    rows, apart, medians, figures = [], 0.0, [], []
    for model in ("GPT2", "LLaMa2-7B", "Mistral-7B"):
        result = base_rate(log=DATA / "recorded" / f"mmlu_base_rate_{model}.csv.gz")
        for kind in result.found:
            cells = [cell for cell in result.published if cell.elicitation == kind]
            apart = max(apart, *(abs(cell.difference) for cell in cells))
            rows.append((f"{model}, {kind}", *(f"{cell.published:.3f} / {cell.ours.value:.3f}" for cell in cells)))
        found = [one.by_subject for one in result.found.values()]
        medians.append((model, *(f"{one.median.value:.2f}".replace("-", "−") if one else "–" for one in found)))
        if model != "LLaMa2-7B":
            for part, of in (
                ("base-rates", "base rates"),
                ("gold-labels", "accuracy by the label of the right option"),
            ):
                name = f"p5-figure-1-{model}-{part}"
                figures.append(figure(name, result, f"{part}-cloze", f"{model}, cloze: {of}"))
    told = f"Largest difference of the {5 * len(rows)} cells: {apart:.4f}."
    return {
        "table-3": f"{table(('P5 / here', *(cell.presentation for cell in cells)), rows)}\n\n{told}",
        "figure-1-r": table(("median r within subjects", "cloze", "counterfactual"), medians),
        "figure-1": "\n".join(figures),
    }


PAGES: Mapping[str, Callable[[], Blocks]] = {"p1": p1, "p2": p2, "p3": p3, "p4": p4, "p5": p5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    # In Python 3.11, argparse checks the default of nargs="*" against choices as if it were one of them.
    parser.add_argument("pages", nargs="*", help=f"of {', '.join(PAGES)}; by default all")
    pages = parser.parse_args().pages or list(PAGES)
    if unknown := set(pages) - PAGES.keys():
        parser.error(f"no page of these names: {', '.join(sorted(unknown))}")
    for key in pages:
        page = ROOT / "docs" / "papers" / f"{key}.md"
        blocks, text = PAGES[key](), page.read_text("utf-8")
        for name, block in blocks.items():
            begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
            before, rest = text.split(begin)
            text = f"{before}{begin}\n{block}\n{end}{rest.split(end)[1]}"
        page.write_text(text, "utf-8")
        print(page, flush=True)


if __name__ == "__main__":
    main()
