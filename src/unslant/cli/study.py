"""``unslant study ...``."""

from __future__ import annotations

from cyclopts import App

from unslant.cli.commands import register
from unslant.studies.readers import STUDIES, TOP

group = App(name="study", help="Run one of the experiments.")
for name, study in STUDIES.items():
    if name not in TOP:
        register(group, study.homes())
