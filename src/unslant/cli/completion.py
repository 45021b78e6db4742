"""``unslant --install-completion``."""

from __future__ import annotations

from cyclopts.completion.install import create_install_completion_command

from unslant.cli import app

install = create_install_completion_command(app.install_completion, add_to_startup=True)
