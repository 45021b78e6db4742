"""``python -m unslant`` is ``unslant``."""

from unslant.cli import main

main()
