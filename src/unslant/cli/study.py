"""``unslant study ...``."""

from __future__ import annotations

from cyclopts import App

from unslant.studies.commands import STUDIES, register

group = App(name="study", help="Run one of the experiments.")
register(group, STUDIES)
