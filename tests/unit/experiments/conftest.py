"""What the tests of scripts share: the scripts can be imported."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from command_support import REPO


@pytest.fixture(scope="module", autouse=True)
def scripts_can_be_imported() -> Iterator[None]:
    """Puts the scripts on the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPO / "experiments")
        yield
