"""``unslant --install-completion``."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cyclopts.completion.detect import ShellDetectionError, detect_shell
from cyclopts.completion.install import create_install_completion_command, get_default_completion_path

from unslant.cli import app
from unslant.errors import InputError
from unslant.writing import make_folder, unwritable, write_atomically


def _written(shell: Literal["zsh", "bash", "fish", "powershell"] | None, output: Path | None, **_: object) -> Path:
    """Write the script; startup files are left as they are, the library's command says what to add to them.

    Raises:
        InputError: if the shell is neither given nor known.
        OutputError: if the script cannot be written.
    """
    try:
        shell = shell or detect_shell()
        path = (output or get_default_completion_path(shell, app.name[0])).absolute()
    except ShellDetectionError:
        raise InputError("the shell is not known; name it with --shell bash, zsh, fish or powershell") from None
    except OSError as error:
        raise unwritable(error.filename, error) from error
    make_folder(path.parent)
    write_atomically(path, app.generate_completion(shell=shell))
    return path


install = create_install_completion_command(_written, add_to_startup=False)
