"""What a server offers: who reviews, and what players are called."""

from __future__ import annotations

from pathlib import Path

import pytest

import dream
import envs
from dream.page.catalogue import Catalogue, Trained
from envs import registry


def test_a_trained_opponent_reviews_and_a_search_does_not() -> None:
    """The first trained one of this game; else the advisor of hints."""
    kuhn, catalogue = envs.make("kuhn_poker"), Catalogue(runs=None)
    catalogue.trained = [
        Trained("deep", "search:random:8", kuhn),
        Trained("other", "random", envs.make("leduc_poker")),
        Trained("mine", "random", kuhn),
    ]
    assert catalogue.reviewer(kuhn, ["random", "other", "deep", "mine"]) == "mine"
    assert catalogue.reviewer(kuhn, ["random", "deep"]) == catalogue.advisor(kuhn)


def test_players_of_one_name_are_numbered_by_the_whole_of_it() -> None:
    """A number in the place of the player's name would be worlds of a search."""
    games = ("gin_rummy", "gin_rummy_mdp", "gin_rummy_openspiel")
    catalogue = Catalogue([f"search:{game}/points:64" for game in games], runs=None)
    assert [one.label for one in catalogue.trained[:3]] == [f"search 64 points{n}" for n in ("", " 2", " 3")]
    assert [one.label for one in catalogue.trained if one.reference.endswith("points")] == [
        "points",
        "points 2",
        "points 3",
    ]


def test_a_game_that_cannot_be_made_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A game from outside that has to be given rules, or whose package is broken: the page is of all others."""
    monkeypatch.setattr(registry, "_registered", {"coin": lambda *, sides: None, "dime": "no_such_module:make"})
    offered = [one["game"] for one in Catalogue(runs=None).games()]
    assert offered == [name for name in envs.names() if name not in ("coin", "dime")]


def test_a_player_is_offered_once(tmp_path: Path) -> None:
    """A run that is given and found too, a player of the package that is given; sweeps hide none."""
    settings = ["env=kuhn_poker", "algo=cfr", "iterations=1", "eval.final_games=4", "tracking.mode=disabled"]
    run = dream.train([*settings, f"run_dir={tmp_path / 'first'}"], quiet=True)
    for n in range(50):
        (tmp_path / f"sweep{n}").mkdir()
    for given in ([str(run), "gin_rummy/points"], []):
        labels = [one.label for one in Catalogue(given, runs=tmp_path).trained]
        assert (labels.count("first"), labels.count("points 3"), "points 4" in labels) == (1, 1, False)
        assert "first 2" not in labels
