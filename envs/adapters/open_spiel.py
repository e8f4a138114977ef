"""OpenSpiel: our games as pyspiel games, our policies as its policies and bots.

A game that can be enumerated becomes one with explicit chance nodes, its views as information states, so that
OpenSpiel's algorithms run on it. Any other game gets one chance node, the deal, with `deals` equally likely outcomes,
outcome n being `init(key(n))`; it provides observations only.

Policies and bots play on these games, and those for `gin_rummy_openspiel` on pyspiel's own gin_rummy too.
pyspiel is imported when a function is called.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import Array, lax

from envs.adapters.open_spiel_game import DEALS, game_class
from envs.errors import InputError, refuse_name, shown, whole_number
from envs.game import Game, Policy
from envs.players import check_plays

NATIVE = {"gin_rummy_openspiel": "gin_rummy"}
"""Our games that are pyspiel's to the bit."""


def game(game: Game, deals: int = DEALS) -> Any:
    """Returns a game as a pyspiel game.

    Args:
      game: with two players or more.
      deals: for a game that cannot be enumerated, the number of deals its chance node offers.
    Raises:
      InputError: no deals, or a name in the place of a game.
      ImportError: open_spiel is not installed.
    """
    refuse_name(game, "game")
    deals = whole_number("deals", deals, "1 or more")
    if deals < 1:
        raise InputError(f"deals={deals} is not valid; it must be at least 1")
    return game_class(game, deals)()


def policy(policy: Policy, game: Game) -> Any:
    """Returns a policy as an OpenSpiel Python policy.

    Args:
      policy: of the game.
      game: what it plays; the policy answers for states of `game(game)`, and of pyspiel's game where that is the same.
    Raises:
      InputError: a policy of another game.
    """
    import pyspiel  # noqa: F401  # says at once what is missing
    from open_spiel.python import policy as base

    choose = _chooser(policy, game)

    class _Policy(base.Policy):
        def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
            return choose(state)

    return _Policy(game_class(game, DEALS)(), list(range(game.num_players)))


def bot(policy: Policy, game: Game, player: int, seed: int = 0) -> Any:
    """Returns a policy as a pyspiel bot, for `pyspiel.evaluate_bots` and the like.

    Args:
      policy: of the game.
      game: what it plays; as for `policy`.
      player: its seat.
      seed: of the choice among its actions.
    Raises:
      InputError: a policy of another game, no such seat, or a seed below 0.
    """
    import pyspiel

    refuse_name(game, "game")
    player = whole_number("player", player, f"0 to {game.num_players - 1}")
    if not 0 <= player < game.num_players:
        raise InputError(f"player={player} is not valid; {game.name} has seats 0 to {game.num_players - 1}")
    if (number := whole_number("seed", seed, "0 or more")) < 0:
        raise InputError(f"seed={number} is not valid; it must be 0 or more")
    choose = _chooser(policy, game)

    class _Bot(pyspiel.Bot):
        def __init__(self) -> None:
            pyspiel.Bot.__init__(self)
            self._rng = np.random.default_rng(number)

        def player_id(self) -> int:
            return player

        def provides_policy(self) -> bool:
            return True

        def get_policy(self, state: Any) -> list[tuple[int, float]]:
            return list(choose(state).items())

        def step_with_policy(self, state: Any) -> tuple[list[tuple[int, float]], int]:
            probs = self.get_policy(state)
            weights = np.array([chance for _, chance in probs])
            return probs, probs[self._rng.choice(len(probs), p=weights / weights.sum())][0]

        def step(self, state: Any) -> int:
            return self.step_with_policy(state)[1]

        def restart(self) -> None:
            pass

        def restart_at(self, state: Any) -> None:
            pass

    return _Bot()


def state_of(game: Game, state: Any) -> Any:
    """Returns our state of a pyspiel state that is a player's to act on.

    Args:
      game: our game.
      state: of `game(game)`, or of the same game of pyspiel.
    Raises:
      InputError: a state of another game, or one in which chance is to act.
    """
    refuse_name(game, "game")
    if not hasattr(state, "get_game"):
        raise InputError(f"{shown(repr(state))} is not a state of OpenSpiel; give one, as game.new_initial_state()")
    if hasattr(state, "kept") and state.ours == game:
        _check_turn(state)
        return state.kept.value
    name = state.get_game().get_type().short_name
    if name != NATIVE.get(game.name):
        raise InputError(f"a state of OpenSpiel's {name} is not one of {game.name}")
    _check_parameters(game, state.get_game().get_parameters())
    _check_turn(state)
    return replayed(game, *_history(game, state))


def _check_turn(state: Any) -> None:
    """Raises InputError where chance is to act in a state of OpenSpiel."""
    if state.is_chance_node():
        raise InputError(f"chance is to act in state {shown(repr(state.history_str()))}; it must be a player's turn")


def _check_parameters(game: Game, given: dict[str, Any]) -> None:
    """Raises InputError unless pyspiel's game has our rules; those of payoffs alone may differ."""
    decisive = {name: value for name, value in vars(game.rules).items() if name not in game.payoff_rules}
    other = [f"{name}={given[name]}, not {value}" for name, value in decisive.items() if given[name] != value]
    if other:
        raise InputError(
            f"a state of OpenSpiel's {NATIVE[game.name]} with {'; '.join(other)} is not one of {game.name}"
        )


def replayed(game: Game, deck: Sequence[int], actions: Sequence[int]) -> Any:
    """Returns the state after actions were played on a deck."""
    padded = np.zeros(game.max_length, np.int32)
    padded[: len(actions)] = actions
    return _replay(game, np.asarray(deck), padded, len(actions))


@functools.partial(jax.jit, static_argnums=0)
def _replay(game: Any, deck: Array, actions: Array, count: Array) -> Any:
    return lax.fori_loop(0, count, lambda n, state: game.step(state, actions[n])[0], game.from_deck(deck))


def _history(game: Any, state: Any) -> tuple[list[int], list[int]]:
    """Takes a pyspiel history apart: the deck, what nobody has drawn last, and the players' actions."""
    deck, actions = [], []
    for entry in state.full_history():
        (deck if entry.player < 0 else actions).append(entry.action)
    return deck + sorted(set(range(game.rules.num_cards)) - set(deck)), actions


def _chooser(policy: Policy, game: Game) -> Any:
    """Returns the function pyspiel state -> {action: probability}."""
    check_plays(policy, game)

    @jax.jit
    def probabilities(params: Any, state: Any) -> tuple[Array, Array]:
        legal = game.legal_actions(state)
        return policy.apply(params, game.view(state, state.current_player), legal), legal

    def compute(state: Any) -> dict[int, float]:
        probs, legal = jax.device_get(probabilities(policy.params, state_of(game, state)))
        return {int(action): float(probs[action]) for action in np.flatnonzero(legal)}

    def choose(state: Any) -> dict[int, float]:
        if hasattr(state, "kept"):
            _check_turn(state)  # what a chance node keeps is the state before it
            return dict(state.kept.once(probabilities, lambda: compute(state)))
        return compute(state)

    return choose
