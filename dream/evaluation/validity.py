"""Whether policies give probabilities and games pay numbers: looked at in every match, so that no result is of less.

And whether a game is one whose results say what a ladder or a bound needs.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

import envs
from dream.equations.distributions import TOLERANCE
from envs import Game, records
from envs.errors import InputError

POINTS, SCORE = "points_per_hand", "score"
"""Names in `Game.result` of what a player won, and of its own score, where rewards say something else."""
_MENDED = (("rewards", "zero_sum"), ("reward", "score"), ("reward", "points"))
"""Values of rules that make a game zero-sum, where it has such a rule."""

_FAULTS = (
    "probabilities that are not finite",
    "negative probabilities",
    f"probabilities that do not sum to 1 within {TOLERANCE:g}",
    "a probability to actions that are not legal",
)


def refuse_faults(
    found: np.ndarray, names: tuple[str, ...] = ("the first player's policy", "the opponent's policy")
) -> None:
    """Raises InputError where a policy gave no probabilities.

    Args:
      found: bool[players, 4], as `distributions.faults` returns it.
      names: of the players.
    """
    lines = [
        f"{name} gives {' and '.join(text for text, wrong in zip(_FAULTS, row, strict=True) if wrong)}"
        for name, row in zip(names, np.asarray(found), strict=True)
        if row.any()
    ]
    if lines:
        raise InputError("; ".join(lines) + ": it must give a distribution over the legal actions")


def refuse_rewards(game: Game, earned: np.ndarray) -> None:
    """Raises InputError where what rounds earned is not finite."""
    wrong = ~np.isfinite(earned)
    if wrong.any():
        raise InputError(
            f"game {game.name!r}: step: a reward is not finite; "
            f"{int(wrong.sum())} of {wrong.size} results of rounds are not numbers"
        )


def refuse_results(game: Game, rounds: Mapping[str, np.ndarray]) -> None:
    """Raises InputError where what rounds came to, by name, is not finite, or a share not within 0 and 1."""
    refuse_rewards(game, rounds[POINTS])
    for name in sorted(result_names(game) & rounds.keys()):
        found, is_share = rounds[name], name.endswith("_rate")
        wrong = ~np.isfinite(found) | (is_share & (np.abs(found - 0.5) > 0.5 + TOLERANCE))
        if wrong.any():
            rule = "a name that ends in _rate is that of a share, 0 to 1" if is_share else "it must be finite"
            raise InputError(f"game {game.name!r}: result: {name} is {found[wrong][0]:g}; {rule}")


@functools.cache
def result_names(game: Game) -> frozenset[str]:
    """Returns the names in what a game's `result` reports."""
    return frozenset(jax.eval_shape(lambda key: game.result(game.init(key), jnp.int32(0)), jax.random.key(0)))


def has_opposite_points(game: Game) -> bool:
    """Returns whether what one of two players wins is what the other loses: in rewards or in reported points."""
    return game.zero_sum or POINTS in result_names(game)


def reward_unit(game: Game) -> str:
    """Returns what sums of rewards are in: the game's unit, or "of reward" where its results are something else."""
    return game.unit if game.zero_sum else "of reward"


def paid_in_points(game: Game) -> Game:
    """Returns the game with the points that it reports as rewards; itself where they are, or no rule makes them so."""
    if game.zero_sum or not has_opposite_points(game):
        return game
    changes, found = _mended(game)
    same = type(found) is type(game) and {name for name, _ in changes} <= game.payoff_rules
    return found if same else game


def refuse_unopposed(game: Game, what: str) -> None:
    """Raises InputError unless a game is for two players whose points are opposite.

    Args:
      game: what is to be played.
      what: needs that, with its article.
    """
    if game.num_players != 2:
        raise InputError(f"env={game.name} has {game.num_players} players; {what} needs a two-player zero-sum game")
    if not has_opposite_points(game):
        raise InputError(
            f"env={game.name} is not zero-sum with these rules; {what} needs a two-player zero-sum game{_mend(game)}"
        )


def _mend(game: Game) -> str:
    """Returns which rules would make a game zero-sum, in words; nothing where none is known."""
    changes, _ = _mended(game)
    return ": set " + " ".join(f"env.rules.{name}={value}" for name, value in changes) if changes else ""


def _mended(game: Game) -> tuple[tuple[tuple[str, str], ...], Game]:
    """Returns the rules that make a game zero-sum, and the game by these; none and the game itself without such."""
    rules = records.rules_of(game)
    for changes in (c for size in (1, 2) for c in itertools.combinations(_MENDED, size)):
        try:
            found = envs.make(game.name, **{**rules, **dict(changes)})
        except InputError:
            continue
        if found.zero_sum:
            return changes, found
    return (), game
