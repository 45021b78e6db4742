"""``unslant study ...``: every study of the table, and those that installed packages add."""

from __future__ import annotations

from cyclopts import App

from unslant.cli.commands import register
from unslant.studies import BY_HAND, TOP, studies

group = App(name="study", help="Run one of the experiments of the papers.", help_epilogue="")
register(group, {name: home for name, home in (studies() | BY_HAND).items() if name not in TOP})
