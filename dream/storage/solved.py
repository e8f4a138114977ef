"""The player `solved`: CFR+ on a game's whole tree, run when it is first asked for and kept in memory."""

from __future__ import annotations

import functools

import jax

from dream import algorithms
from dream.algorithms.types import Resources
from dream.compiled.bounded import whole
from dream.game_tree.exact import has_exploitability
from dream.storage.tree_cache import stored_tree
from envs import EnumerableGame, Game, Policy
from envs.source_key import source_key

NAME = "solved"
MODULES = (__name__, "dream.algorithms.tabular.cfr")
"""By which a game is solved."""
_MOST_HISTORIES = 300_000
"""Of a game that is solved while somebody waits: that takes some five seconds once tree and programs are stored."""
_UPDATES = 500
"""Exploitability is then 0.0002 chips in Kuhn and 0.001 in Leduc."""
_CFR_PLUS = {"name": "cfr_plus", "plus": True, "average_power": 1.0}


def plays(game: Game) -> bool:
    """Returns whether a game is solved while one waits: it has an exploitability, and its tree is known to be small."""
    known = game.num_histories if isinstance(game, EnumerableGame) else None
    return has_exploitability(game) and known is not None and known <= _MOST_HISTORIES


def make(game: Game) -> Policy:
    """Solves a game, unless one that does the same was solved before, and returns the average policy.

    Args:
      game: one that `plays`.
    """
    return _solution(game, source_key(game))


@functools.lru_cache(maxsize=4)
def _solution(game: Game, source: str) -> Policy:
    learner = algorithms.make(_CFR_PLUS, None, game, Resources(find_tree=stored_tree))
    assert learner.several is not None
    state, _ = whole(learner.several(learner.init(jax.random.key(0)), _UPDATES))
    return learner.policies(state)["average"]
