"""The two ways unslant fails on purpose; the command line turns both into one line and exit code 2."""

import re


class UnslantError(Exception):
    """Something the user can mend. The message says what was wrong, where, what is allowed and what to do."""


class InputError(UnslantError):
    """A question file, template, label set or option value that cannot be used as given."""

    @classmethod
    def at(cls, path: object, reason: str, *, line: int | None = None, field: str | None = None) -> "InputError":
        """An error that names its place: ``FILE, line 17, field "answer": reason``."""
        place = str(path)
        if line is not None:
            place += f", line {line}"
        if field is not None:
            place += f', field "{field}"'
        return cls(f"{place}: {reason}")


class ModelError(UnslantError):
    """A model or tokenizer that cannot be loaded or cannot do what was asked of it."""


def without_user_info(text: str) -> str:
    """A message, or a word of a command, without the user and password that an address in it may hold."""
    return re.sub(r"(\w+://)[^/?#\s]+@", r"\1***@", text)
