"""The page of an audit: its first screen at once; panels, questions and notes when they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from unslant.auditing.first_screen import caveats, headline, lines, one_order, presented, tiles
from unslant.experiment.page_parts import asked_about, shortcut_panel
from unslant.reports import Later, Page
from unslant.reports.numbers import count

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult
    from unslant.reports import Panel, QuestionBrowser


def page(result: AuditResult) -> Page:
    """Every panel this audit has data for."""
    return Page(
        about=asked_about(result.run, count(len(result.scores), "question"), presented(result)),
        headline=headline(result),
        lines=lines(result),
        tiles=tiles(result),
        panels=Later(partial(_panels, result)),
        notes=Later(partial(_notes, result)),
        caveats=tuple(caveats(result)),
        example=result.run.example_prompt,
        questions=partial(_questions, result),
        name=result.name,
    )


def _panels(result: AuditResult) -> Iterator[Panel]:
    # only here: text needs no panels unless all details are wanted
    from unslant.auditing import panels_labels, panels_orders, panels_scores

    yield panels_scores.score_panel({result.name: result})
    yield panels_orders.until_panel(result)
    yield panels_orders.phases_panel(result)
    yield panels_labels.harness_panel(result)
    yield panels_labels.published_panel(result)
    yield panels_labels.length_panel(result)
    yield panels_orders.orders_panel(result)
    yield panels_orders.variance_panel(result)
    yield panels_orders.order_curve_panel(result)
    if not one_order(result):
        yield panels_labels.labels_panel({result.name: result})
    yield panels_labels.priors_panel(result)
    yield panels_labels.replies_panel(result)
    yield panels_scores.corrections_panel(result)
    yield panels_scores.subjects_panel(result)
    yield shortcut_panel(result.shortcuts, "shortcuts")
    yield panels_scores.numbers_panel({result.name: result})


def _notes(result: AuditResult) -> Iterable[str]:
    from unslant.auditing.notes import notes

    return notes(result)


def _questions(result: AuditResult) -> QuestionBrowser:
    from unslant.auditing.browser import browser

    return browser({result.name: result})
