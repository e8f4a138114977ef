"""Actions of small poker games, packed into integers: action + 1 in bits 2 i and 2 i + 1 for action i of a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import drawing
from envs.game import Game

CODE_BITS = 2


def unpacked(bets: Array, slots: int) -> tuple[Array, Array]:
    """Returns (the actions of all rounds in their order int32[R * slots], how many there are int32).

    Args:
      bets: integer[R], one packed round each.
      slots: actions a round has room for.
    """
    codes = (bets.astype(jnp.int32)[:, None] >> CODE_BITS * np.arange(slots)) & (2**CODE_BITS - 1)
    codes = codes.reshape(-1)
    places = jnp.nonzero(codes > 0, size=codes.size, fill_value=0)[0]
    return codes[places] - 1, jnp.sum(codes > 0)


def named(bets: int, names: Sequence[str]) -> list[str]:
    """Returns the actions of a packed round by name (host side)."""
    codes = [bets >> shift & (2**CODE_BITS - 1) for shift in range(0, bets.bit_length(), CODE_BITS)]
    return [names[code - 1] for code in codes]


def in_words(bets: int, names: Sequence[str]) -> str:
    """Returns a packed round in words, "first" where nobody has acted (host side)."""
    return " ".join(named(bets, names)) or "first"


def played(game: Game, start: Any, actions: Array, count: Array) -> Any:
    """Returns the state that the first `count` of some actions lead to."""

    def body(t: Array, state: Any) -> Any:
        after = game.step(state, actions[t])[0]
        return jax.tree.map(lambda new, old: jnp.where(t < count, new, old), after, state)

    return lax.fori_loop(0, actions.shape[0], body, start)


def another(key: Array, cards: int, held: Array) -> Array:
    """Returns a card drawn uniformly among those not held: int32; `held` integer[n], some of which may be no cards."""
    free = ~(np.arange(cards) == held.astype(jnp.int32)[:, None]).any(axis=0)
    return jnp.argmax(jnp.where(free, jax.random.uniform(key, (cards,)), -1.0)).astype(jnp.int32)


def scene(title: str, words: dict[str, Any], viewer: int | None, board: tuple[drawing.Row, ...] = ()) -> drawing.Scene:
    """Returns what there is to see of a hand of poker (host side).

    Args:
      title: name of the game.
      words: the state as `to_dict` has it: hands, chips, actions and current_player.
      viewer: a seat, None for all cards open.
      board: rows of what lies on the table.
    """
    current = words["current_player"]

    def hand(player: int) -> drawing.Row:
        open_card = viewer is None or viewer == player
        held = drawing.spread([words["hands"][player]]) if open_card else drawing.face_down(1)
        chips = words["chips"][player]
        note = f"{chips} chip{'' if chips == 1 else 's'} in the pot"
        return drawing.Row(f"player {player}", (held,), note, current == player)

    rounds = [", ".join(of_round if isinstance(of_round, list) else [of_round]) for of_round in words["actions"]]
    played = (" / " if board else ", ").join(text for text in rounds if text) or "none yet"
    above, below = (0, 1) if viewer == 1 else (1, 0)
    standing = "over" if current < 0 else f"player {current} to act"
    rows = (hand(above), *board, hand(below), drawing.Row("actions", note=played))
    return drawing.Scene(f"{title}: {standing}", rows)
