"""Panels of the base-rate study: the hypotheses, then the tables behind them."""

from __future__ import annotations

from collections.abc import Sequence

from unslant.experiment.page_parts import asked_about, cost_lines, shortcut_panel, spent
from unslant.metrics import Estimate, verdict
from unslant.metrics.base_rate import MATERIAL as UNEVEN
from unslant.reports import Column, Figure, Page, Panel, Tile
from unslant.reports.numbers import Cell, count, number, percent, unsettled, with_interval
from unslant.studies.base_rate.charts import figure_1
from unslant.studies.base_rate.findings import GIVEN, SAME, Findings, Hypothesis, doubts, name
from unslant.studies.base_rate.study import BaseRateResult

TOLERANCE = 0.005
"""Allows for rounding to three digits and a question or two of difference."""


def page(result: BaseRateResult) -> Page:
    """Which labels are favoured before a question is read, the hypotheses, then each elicitation and the shortcuts."""
    first = next(iter(result.found.values()))
    nothing = Estimate.undefined("not asked")
    favoured, without = favourite(first) or ("", nothing)
    chart, *_ = figure_1(first)
    on_screen = [cell for cell in first.cells if cell.presentation in (GIVEN, f"nvr-{favoured}")]
    return Page(
        about=asked_about(result.run, count(len(first.given), "question")),
        headline=headline(result),
        lines=(*_lines(first), spent(result.run)),
        tiles=Tile.row(
            ("accuracy", first.cells[0].accuracy["first"]),
            ("nvr.accuracy", without, f"accuracy where {favoured} is never right"),
            ("base_rates.distance", first.rates["distance"] if first.rates else nothing),
        ),
        panels=(
            Panel(
                "base-rate-favourite",
                "Which labels does the model favour before it reads a question?",
                "Probability of each label after a prompt without content, over all label orders.",
                figures=(chart,) if first.rates else (),
                short="Favourite",
            ),
            _hypotheses_panel(result.hypotheses),
            *(_elicitation_panel(findings, charted=findings is first) for findings in result.found.values()),
            _published_panel(result),
            shortcut_panel(result.shortcuts, "base-rate-shortcuts"),
        ),
        notes=tuple(cost_lines(result.cost)),
        caveats=tuple(filter(None, [doubts(on_screen).strip()])),
    )


def headline(result: BaseRateResult) -> str:
    """The label favoured before a question is read, and whether that changes the score."""
    model, first = result.run.name, next(iter(result.found.values()))
    rates = first.rates
    if rates is None or not rates["label_p"].defined or rates.n_options < 3:
        return f"Whether {model} favours a label before it reads a question was not tested{_effect(first, '; it ')}"
    size = f" with {rates.n_options} options" * (len(first.base_rates) > 1)
    if rates.uneven:
        even = 1 / rates.n_options
        label, share = max(zip(rates.labels, rates.shares, strict=True), key=lambda pair: abs(pair[1] - even))
        does = f"{'favours' if share > even else 'avoids'} {label} before it reads a question{size}"
        shares = f"({percent(share)}{' of the probability' * (not size)}, {percent(even)} if even)"
        return f"{model} {does} {shares}{_effect(first, ', and ', size)}"
    if (distance := rates["distance"].value) < UNEVEN:
        few = f": its probabilities are {percent(distance, 1)} from even"
        none = f"{model} favours no label by more than {percent(UNEVEN)} before it reads a question{size}"
        return f"{none}{_effect(first, ', but ', size) or few}"
    return (
        f"Whether {model} favours a label before it reads a question{size} cannot be determined: its probabilities are "
        f"{percent(distance, 1)} from even, which differences between single label orders could give"
        f"{_effect(first, '; it ', size)}"
    )


def _effect(findings: Findings, joined: str, size: str = "") -> str:
    """By how much the score falls where a label is never right, if that is shown; ``size``: the one just named."""
    reading = next((one for one in findings.nvr.readings if one.kind == "prefers"), None) if findings.nvr else None
    if not (findings.nvr and reading):
        return ""
    gap, among = number(abs(reading.gap.value), 2), findings.nvr.among
    among = " there" if size and among.endswith(size) else among
    return f"{joined}scores {gap} lower{among} when {reading.label}, not another label, is never right"


def favourite(findings: Findings) -> tuple[str, Estimate] | None:
    """The label that Nvr-X finds preferred or avoided, else the favoured one, else that with the lowest Nvr-X accuracy;
    and that accuracy. None without Nvr-X."""
    if findings.nvr is None or not findings.nvr.extremes:
        return None
    label = findings.nvr.extremes[0].label
    if findings.nvr.readings:
        label = findings.nvr.readings[0].label
    elif findings.rates and findings.rates.uneven:
        label = findings.rates.top
    return label, findings.nvr.accuracy[findings.nvr.labels.index(label)]


def _lines(findings: Findings) -> tuple[str, ...]:
    """The score, with and without the favoured label, and what Nvr-X leaves open."""
    scores = findings.given
    chances = scores.right.sum(axis=1) / scores.n_options
    guess = float(chances[chances > 0].mean())  # as the score: of questions with a right option
    score = f"It scores {with_interval(findings.cells[0].accuracy['first'], 2)} as given; guessing gives {guess:.2f}."
    favoured = favourite(findings)
    if favoured is None or findings.nvr is None:
        return (score,)
    label, accuracy = favoured
    without = f"Where {label} is never right it scores {with_interval(accuracy, 2)}"
    if findings.nvr.readings:
        moves = "the preference cannot raise"
        if findings.nvr.readings[0].kind == "avoids":
            moves = f"avoiding {label} cannot lower"
        return score, f"{without}: a score that {moves}."
    gaps = [verdict(one.gap, bound=SAME) for one in findings.nvr.extremes]
    if all(one.kind == "equal" for one in gaps):
        return score, f"{without}; no label changes the score{findings.nvr.among} by more than {SAME}."
    widest = max(gaps, key=lambda one: abs(one.estimate.value))
    moves = f"whether a preference moves the score{findings.nvr.among} cannot be determined"
    return score, f"{without}; {moves} {unsettled(widest)}."


def _hypotheses_panel(hypotheses: Sequence[Hypothesis]) -> Panel:
    rows, names = [vars(one) for one in hypotheses], [Column("hypothesis", key="name")]
    verdicts = [Column("claim"), Column("verdict")]
    return Panel(
        "base-rate-hypotheses",
        "Does the preference explain the score?",
        "Hypotheses of the base-rate paper (Moore et al.). Nvr-X is the test set rearranged so that label X is never "
        "right; the cloze scores labels after the question, the counterfactual scores a word after each label.",
        figures=(
            Figure("base-rate-hypotheses-table", "Hypotheses", names, verdicts, rows),
            Figure("base-rate-words", "In words", names, [Column("outcome", key="words")], rows),
        ),
        short="Hypotheses",
    )


def _elicitation_panel(findings: Findings, charted: bool) -> Panel:
    """``charted``: its base rates are drawn above."""
    doubted = [cell for cell in findings.cells if cell.doubt]
    *rates, gold = figure_1(findings)
    return Panel(
        f"base-rate-{findings.elicitation}",
        f"Base rates and accuracy by gold label, {findings.elicitation}",
        "In Nvr-X the right option is never under label X; lower accuracy there means that X is chosen when unsure.",
        figures=(_accuracy(findings), _effects(findings), *([] if charted else rates), _variance(findings), gold),
        notes=tuple(f"Unreliable: {findings.elicitation}, {name(c.presentation)} ({c.doubt})." for c in doubted),
        short=findings.elicitation.capitalize(),
    )


def _accuracy(findings: Findings) -> Figure:
    rows: list[dict[str, Cell]] = [
        {
            **vars(cell),
            **cell.accuracy,
            "questions": name(cell.presentation),
            "by_subject.first": cell.by_subject["first"],
            "trusted": "no" if cell.doubt else "yes",
        }
        for cell in findings.cells
    ]
    if findings.nvr is not None:
        trusted = "no" if any(cell.doubt for cell in findings.cells[1:]) else "yes"
        scores = {"accuracy.first": findings.nvr["score"], "by_subject.first": findings.nvr_by_subject}
        rows.append({"questions": "Nvr-X score", **scores, "trusted": trusted, "n_failed": findings.nvr.left_out})
    return Figure(
        f"base-rate-accuracy-{findings.elicitation}",
        f"Accuracy, {findings.elicitation}",
        ["questions"],
        ["accuracy.first", "accuracy.split", "accuracy.last", "by_subject.first", "tie_rate", "all_tied",
         Column("trusted"), Column("failed", key="n_failed")],
        rows,
        explanation="By tie-breaking rule; the Nvr-X score is the lowest variant within each number of options.",
    )  # fmt: skip


def _effects(findings: Findings) -> Figure:
    pooled, prefix = findings.correlation, "pooled_correlation_own_base_rates"
    values: dict[str, Cell] = {}
    if pooled is not None:
        values = {f"{prefix}.r": pooled.r, "assignment_p": pooled.assignment_p}
    if findings.by_subject is not None:
        values["median"] = findings.by_subject.median
    if findings.nvr is not None:
        values |= findings.nvr.numbers.cells("drop", "guess", "never")
    values["accuracy_by_gold_label.gap"] = findings.gold.gap
    title = f"Effect of labels on the score, {findings.elicitation}"
    return Figure.of_metrics(f"base-rate-effect-{findings.elicitation}", title, {"value": values})


def _variance(findings: Findings) -> Figure:
    return Figure(
        f"base-rate-variance-{findings.elicitation}",
        f"Label and position effects, {findings.elicitation}",
        ["options"],
        ["base_rates.label_part", "base_rates.position_part", "base_rates.distance", "base_rates.position_distance",
         Column.of("base_rates.label_p", "p (label)"), Column.of("base_rates.position_p", "p (position)"),
         Column("label orders", key="n_orders")],
        [{**rates.numbers.cells(), "n_orders": rates.n_orders, "options": f"{n} options"}
         for n, rates in findings.base_rates.items()],
        explanation="Share of the variance that each explains, and share of guesses that each puts out of balance.",
    )  # fmt: skip


def _published_panel(result: BaseRateResult) -> Panel:
    rows = [
        {
            **vars(cell),
            "questions": name(cell.presentation),
            "verdict": "yes" if abs(cell.difference) <= TOLERANCE else "differs",
        }
        for cell in result.published
    ]
    within = Column(f"within {TOLERANCE}", key="verdict")
    columns = [*map(Column.of, ("published.published", "published.ours", "published.difference")), within]
    title = "Comparison with the paper's table 3"
    return Figure("base-rate-published-table", title, ["elicitation", "questions"], columns, rows).panel(
        title, "Unweighted mean over subjects; ties go to the first label.", id="base-rate-published", short="Table 3"
    )
