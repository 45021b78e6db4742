"""``unslant study ...``."""

from __future__ import annotations

from cyclopts import App

from unslant.cli.commands import register
from unslant.studies.readers import BY_HAND, STUDIES, TOP

group = App(name="study", help="Run one of the experiments.")
register(group, {name: home for name, home in (STUDIES | BY_HAND).items() if name not in TOP})
