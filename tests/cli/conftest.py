from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import command_line
from tests.command_line import Ran


@pytest.fixture
def unslant() -> Callable[..., Ran]:
    return command_line.unslant
