"""What a learned best response is chosen and measured on; how well it does is tested in tests/learning."""

from __future__ import annotations

import types
from typing import Any

import jax
import numpy as np
import pytest

import envs
from dream.algorithms.types import Value
from dream.evaluation import best_response
from dream.evaluation.best_response import BestResponseConfig, learn_best_response
from envs import InputError, Policy

EARNS = {"frozen": 0.0, 0: 1.0, 1: 3.0, "other": 2.0}


def _player(name: Any) -> Policy:
    """Returns a player that is never asked."""
    return Policy(lambda params, view, legal: legal, name)


def test_choice_and_measurements_are_on_deals_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """All answers meet the same deals in the choice; its winner is measured on others, and so by control variates."""
    played: list[tuple[str, Any, Any, int, tuple[int, ...]]] = []

    def match(game: Any, player: Policy, opponent: Policy, *values: Value, games: int, seed: jax.Array) -> Any:
        deals = tuple(np.asarray(jax.random.key_data(seed)).tolist())
        played.append(("controlled" if values else "plain", player.params, opponent.params, games, deals))
        return {"points_per_hand": types.SimpleNamespace(mean=EARNS[player.params])}

    learner = types.SimpleNamespace(
        with_share=None,
        init=lambda key: int(jax.random.key_data(key)[-1]),
        iterate=lambda state: (state, {"loss": 0.0, "learner_reward": 0.0}),
        policies=lambda state: {"current": _player(state)},
        value=lambda state: Value(lambda params, view: 0.0, state),
    )
    monkeypatch.setattr(best_response, "match", match)
    monkeypatch.setattr(best_response, "controlled_match", match)
    monkeypatch.setattr(best_response, "make_learner", lambda *_: learner)
    config = BestResponseConfig(iterations=1, seeds=(0, 1), start=None, choice_games=6, games=8, control_games=10)
    game, frozen = envs.make("kuhn_poker"), _player("frozen")
    learned = learn_best_response(game, frozen, config, {"other": _player("other")})
    assert (learned.chosen, learned.earned) == ("seed 1", {"other": 2.0, "seed 0": 1.0, "seed 1": 3.0})
    (check, *choice, final, control), deals = played, [one[4] for one in played]
    assert check[:3] == ("plain", "frozen", "frozen")
    assert [one[:4] for one in choice] == [("plain", name, "frozen", 6) for name in ("other", 0, 1)]
    assert final[:4] == ("plain", 1, "frozen", 8)
    assert control[:4] == ("controlled", 1, "frozen", 10)
    assert deals[1] == deals[2] == deals[3], "one answer is chosen on other deals than another"
    assert len(set(deals)) == 4, "what it is measured on is what it was chosen on"


@pytest.mark.parametrize(
    "given", [{"name": "mmd"}, {"opponents": ["random"]}, {"opponent_id_prob": 0.5}, {"average_tau": 0.1}], ids=str
)
def test_settings_that_would_decide_nothing_are_refused(given: dict[str, Any]) -> None:
    """The response was PPO's against the fixed policy whatever they said, and the report repeated them."""
    game = envs.make("kuhn_poker")
    with pytest.raises(InputError, match=f"best_response.algo.{next(iter(given))}=.* has no effect"):
        best_response.make_learner(game, envs.make_bot("random", game), BestResponseConfig(algo=given))
