"""What a result says first: caveats, headline and lines as one text."""

from __future__ import annotations

from unslant.experiment.result import StudyResult


def said(result: StudyResult) -> str:
    page = result.page()
    return " ".join((*page.caveats, page.headline, *page.lines)).replace("\xa0", " ")
