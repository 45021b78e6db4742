"""``unslant study ...``: one module per study; each has ``register(group)``."""

from __future__ import annotations

import typer

from unslant.cli.study import base_rate, contamination, debias, instruction_boundary, probe, unbiased, unbiased_extra

group = typer.Typer(name="study", help="Run one of the experiments.", no_args_is_help=True)
base_rate.register(group)
unbiased.register(group)
unbiased_extra.register(group)
contamination.register(group)
debias.register(group)
probe.register(group)
instruction_boundary.register(group)
