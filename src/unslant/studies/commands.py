"""``unslant study ...``: one module per study; each has ``register(group)``."""

from __future__ import annotations

import typer

from unslant.studies.annotation import command as unbiased_extra
from unslant.studies.base_rate import command as base_rate
from unslant.studies.contamination import command as contamination
from unslant.studies.debias import command as debias
from unslant.studies.instruction_boundary import command as instruction_boundary
from unslant.studies.probe import command as probe
from unslant.studies.unbiased import command as unbiased

group = typer.Typer(name="study", help="Run one of the experiments.", no_args_is_help=True)
base_rate.register(group)
unbiased.register(group)
unbiased_extra.register(group)
contamination.register(group)
debias.register(group)
probe.register(group)
instruction_boundary.register(group)
