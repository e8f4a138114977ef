"""What a run says while it measures its policies."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import envs
from dream.evaluation.statistics import Interval
from dream.game_tree.exact import ExactValues
from dream.training import loop, measuring
from dream.training.measuring import Measurements


@pytest.mark.parametrize("infosets", [12, 5_990_669])
@pytest.mark.parametrize("tabular", [False, True])
def test_exact_values_that_take_long_are_announced(
    infosets: int, tabular: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once in a run, and each policy that is asked says how far it is; a small game says nothing."""

    def tabulate(policy: Any, progress: Callable[[int, int], None] = lambda done, all_of_them: None) -> None:
        progress(infosets, infosets)

    form = SimpleNamespace(
        num_infosets=infosets, tabulate=tabulate, values=lambda table: ExactValues((0.0, 0.0), (0.5, 0.5))
    )
    monkeypatch.setattr(measuring, "exact_form", lambda game, find_tree: form)
    game = envs.make("kuhn_poker")
    policies = {"current": envs.make_bot("random", game)}
    tables = (lambda state: dict.fromkeys(policies)) if tabular else None
    algorithm = SimpleNamespace(tables=tables, policies=lambda state: policies)
    config = SimpleNamespace(eval=SimpleNamespace(exact=True))
    parts = SimpleNamespace(config=config, game=game, algorithm=algorithm, opponents={}, trained={})
    measurements = Measurements(parts)
    for iteration in (1, 1, 2):
        assert measurements.exact(None, iteration)["current"]["nash_conv"] == 1.0
    asked = [] if tabular else ["policy current: 5,990,669/5,990,669 information sets"] * 2
    expected = ["exact values of 5,990,669 information sets", *asked] if infosets > 12 else []
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize(("names", "chosen"), [(["current", "average"], "average"), (["current", "target"], "current")])
def test_the_last_table_names_the_policy(
    names: list[str], chosen: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one that played the final matches."""
    game = envs.make("kuhn_poker")
    policies = dict.fromkeys(names, envs.make_bot("random", game))
    algorithm = SimpleNamespace(policies=lambda state: policies)
    config = SimpleNamespace(eval=SimpleNamespace(exact=False))
    measurements = Measurements(
        SimpleNamespace(config=config, game=game, algorithm=algorithm, opponents={}, trained={})
    )
    tracker = SimpleNamespace(summarise=lambda reports: None, log_pictures=lambda pictures: None)
    monkeypatch.setattr(loop, "_draw", lambda run: {})
    run = SimpleNamespace(iteration=7, state=None, measurements=measurements)
    loop._report(run, {"random": {"n": 4, "n_pairs": 2, "points_per_hand": Interval(0.5, 0.4, 0.6)}}, tracker)
    assert capsys.readouterr().out.startswith(f"iteration 7 ({chosen}) against random")
