"""Do the model's seconds follow from the measured parts?"""

from __future__ import annotations

import importlib

import pytest
from command_support import REPO


def test_seconds_of_machines_like_the_measured_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is what was measured; four play and fit in a quarter, and exchange at the link's rate."""
    monkeypatch.syspath_prepend(REPO / "experiments")
    model = importlib.import_module("cost_model")
    sizes = {"parameters": 10, "record_rows": 8, "row_bytes": 5, "batch_size": 4, "gradient_steps": 3, "passes": 3}
    measured = {"seconds_generate": 2.0, "seconds_fit": 6.0}
    alone, four = (model.seconds(measured, model.costs(sizes, n), n) for n in (1, 4))
    assert alone == {"play_seconds": 2.0, "fit_seconds": 6.0, "exchange_seconds": 0.0}
    moved = 0.75 * (8 * 5 + 8 * 10 * 3)
    assert four == {"play_seconds": 0.5, "fit_seconds": 1.5, "exchange_seconds": pytest.approx(moved / model.LINK)}
