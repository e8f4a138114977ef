"""What a server offers: who reviews."""

from __future__ import annotations

import envs
from dream.page.catalogue import Catalogue, Trained


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
