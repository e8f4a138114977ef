"""Liar's dice, two players with one die each: the game `liars_dice`, default rules and encoding of OpenSpiel.

Actions: 0 to 11 bid that at least quantity = action // 6 + 1 of the two dice show face = action % 6 + 1, where sixes
count as every face; each bid must be higher than the last. 12 challenges the last bid. If that bid is false the
challenger wins a point, else the bidder does.

Observation, float32[21], OpenSpiel's information-state tensor:

| index | content |
|---|---|
| 0:2 | the player, one-hot |
| 2:8 | own die, one-hot |
| 8:21 | actions taken by either player; bids only increase, so the set determines their order |
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import drawing
from envs.errors import InputError
from envs.game import EnumerableGame
from envs.rules import build_rules

_SIDES, _DICE = 6, 2
_NUM_BIDS = _SIDES * _DICE
LIAR = _NUM_BIDS
_ROLLS = np.array(list(itertools.product(range(1, _SIDES + 1), repeat=_DICE)), np.int32)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class LiarsState:
    """A game in play.

    Attributes:
      dice: int32[2], the face each player's die shows, 1 to 6.
      actions: int32, bit a set where action a has been taken.
      last_bid: int32, -1 before the first.
      current_player: int32, -1 once the game is over.
    """

    dice: Array
    actions: Array
    last_bid: Array
    current_player: Array


class LiarsView(NamedTuple):
    """What a player may know: 4 bytes.

    Attributes:
      seat: uint8, the player.
      die: uint8, the face of the own die, 1 to 6.
      actions: uint16, bit a set where action a has been taken.
    """

    seat: Array
    die: Array
    actions: Array


@dataclasses.dataclass(frozen=True)
class LiarsDice(EnumerableGame):
    """Liar's dice; the module's docstring has rules and encoding."""

    name = "liars_dice"
    version = "1"
    num_actions = _NUM_BIDS + 1
    observation_size = 2 + _SIDES + _NUM_BIDS + 1
    max_length = _NUM_BIDS + 1
    num_histories = 294_876
    unit = "points"
    reward_scale = 1.0
    worst_reward = -1.0

    def init(self, key: Array) -> LiarsState:
        """Rolls the dice."""
        return self._rolled(jax.random.randint(key, (_DICE,), 1, _SIDES + 1))

    def _rolled(self, dice: Array) -> LiarsState:
        return LiarsState(
            dice=jnp.asarray(dice, jnp.int32),
            actions=jnp.int32(0),
            last_bid=jnp.int32(-1),
            current_player=jnp.int32(0),
        )

    def initial_outcomes(self) -> tuple[LiarsState, Array]:
        """Returns the 36 rolls, each of probability 1/36."""
        return jax.vmap(self._rolled)(_ROLLS), jnp.full(len(_ROLLS), 1 / len(_ROLLS), jnp.float32)

    def step(self, state: LiarsState, action: Array) -> tuple[LiarsState, Array, Array]:
        """Plays an action; rewards are 1 and -1 when a bid is called, zero until then."""
        action = jnp.asarray(action, jnp.int32)
        player, was_over = state.current_player, state.current_player < 0
        calls = action == LIAR
        new = LiarsState(
            dice=state.dice,
            actions=state.actions | jnp.left_shift(1, action),
            last_bid=jnp.where(calls, state.last_bid, action),
            current_player=jnp.where(calls, -1, 1 - player),
        )
        new = jax.tree.map(lambda old, changed: jnp.where(was_over, old, changed), state, new)
        quantity, face = state.last_bid // _SIDES + 1, state.last_bid % _SIDES + 1
        shown = jnp.sum((state.dice == face) | (state.dice == _SIDES))
        winner = jnp.where(shown >= quantity, 1 - player, player)
        won = jnp.where(np.arange(2) == winner, 1, -1)
        rewards = jnp.where(calls & ~was_over, won, 0).astype(jnp.float32)
        return new, rewards, new.current_player < 0

    def legal_actions(self, state: LiarsState) -> Array:
        """Returns bool[13]: the higher bids, and to call a bid that stands."""
        ids = np.arange(self.num_actions)
        legal = (ids > state.last_bid) & ((ids != LIAR) | (state.last_bid >= 0))
        return legal & (state.current_player >= 0)

    def view(self, state: LiarsState, player: Array) -> LiarsView:
        """Returns the own die and all actions."""
        player = jnp.asarray(player, jnp.int32)
        return LiarsView(
            seat=player.astype(jnp.uint8),
            die=jnp.where(player == 1, state.dice[1], state.dice[0]).astype(jnp.uint8),
            actions=state.actions.astype(jnp.uint16),
        )

    def determinize(self, view: LiarsView, key: Array) -> LiarsState:
        """Rolls the other's die anew."""
        seat, actions = view.seat.astype(jnp.int32), view.actions.astype(jnp.int32)
        other = jax.random.randint(key, (), 1, _SIDES + 1, jnp.int32)
        return LiarsState(
            dice=jnp.where(np.arange(_DICE) == seat, view.die.astype(jnp.int32), other),
            actions=actions,
            last_bid=31 - lax.clz(actions),
            current_player=lax.population_count(actions) % _DICE,
        )

    def replay_actions(self, state: LiarsState) -> tuple[LiarsState, Array, Array]:
        """Returns the roll, the bids since and how many there are."""
        taken = (state.actions >> np.arange(self.max_length)) & 1
        bids = jnp.nonzero(taken, size=self.max_length, fill_value=0)[0].astype(jnp.int32)
        return self._rolled(state.dice), bids, jnp.sum(taken)

    def encode(self, view: LiarsView) -> Array:
        """Returns the observation vector: float32[21], indices as in the module's table."""
        taken = (view.actions >> np.arange(self.num_actions, dtype=np.uint16)) & 1
        parts = [view.seat == np.arange(2), view.die == np.arange(1, _SIDES + 1), taken]
        return jnp.concatenate([part.astype(jnp.float32) for part in parts])

    def to_dict(self, state: LiarsState) -> dict[str, Any]:
        """Describes the game in words: dice, bids as quantity-face, whether the last was called a lie, who acts."""
        state = jax.device_get(state)
        taken = [action for action in range(_NUM_BIDS) if int(state.actions) >> action & 1]
        return {
            "dice": state.dice.tolist(),
            "bids": [_bid(bid) for bid in taken],
            "called": bool(int(state.actions) >> LIAR),
            "current_player": int(state.current_player),
        }

    def deal_of(self, state: LiarsState) -> tuple[int, ...]:
        """Returns the faces of the dice."""
        return tuple(jax.device_get(state.dice).tolist())

    def from_deal(self, deal: Sequence[int | float]) -> LiarsState:
        """Rolls these faces.

        Raises:
          InputError: they are no roll.
        """
        if len(deal) != _DICE or not all(face in range(1, _SIDES + 1) for face in deal):
            raise InputError(f"the deal is no roll of {_DICE} dice with faces 1 to {_SIDES}")
        return self._rolled(np.array(deal, np.int32))

    def action_name(self, action: int) -> str:
        """Returns e.g. "bid 2-5", at least two dice showing a five or a six, or "call liar"."""
        action = self.action_id(action)
        return "call liar" if action == LIAR else f"bid {_bid(action)}"

    def scene(self, state: LiarsState, viewer: int | None = None) -> drawing.Scene:
        """Returns the dice, those of others hidden from a viewer, and the bids."""
        words = self.to_dict(state)
        current = words["current_player"]
        dice = [
            drawing.Row(
                f"player {seat}",
                (drawing.Group((drawing.Die(face if viewer in (None, seat) else 0),)),),
                active=current == seat,
            )
            for seat, face in enumerate(words["dice"])
        ]
        bids = [*words["bids"], *(["called"] if words["called"] else [])]
        standing = "over" if current < 0 else f"player {current} to act"
        rows = drawing.Row("bids", note=", ".join(bids) or "none yet")
        above, below = (0, 1) if viewer == 1 else (1, 0)
        return drawing.Scene(f"Liar's dice: {standing}", (dice[above], rows, dice[below]))


def _bid(action: int) -> str:
    """Returns a bid as quantity-face."""
    return f"{int(action) // _SIDES + 1}-{int(action) % _SIDES + 1}"


def make(**rules: Any) -> LiarsDice:
    """Builds `liars_dice`, which has no rules to set."""
    return build_rules(LiarsDice, LiarsDice(), rules)
