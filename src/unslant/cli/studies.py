"""``unslant study ...``: every study of the table, and those that installed packages add."""

from __future__ import annotations

from cyclopts import App

from unslant.cli.commands import HELP_OF, register
from unslant.studies import BY_HAND, TOP, studies

group = App(name="study", help_epilogue=HELP_OF.format("study "))
register(group, {name: home for name, home in (studies() | BY_HAND).items() if name not in TOP})
