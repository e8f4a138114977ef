"""Kuhn poker, two players: the game `kuhn_poker`, with the default rules and the encoding of OpenSpiel.

Three cards, 0 lowest; each player antes one chip and is dealt one card. Actions: 0 pass (check or fold), 1 bet (bet or
call). Two passes in a row lead to a showdown for the antes, a call to one for two chips each; a pass after a bet folds.

Observation, float32[11], OpenSpiel's information-state tensor:

| index | content |
|---|---|
| 0:2 | the player, one-hot |
| 2:5 | own card, one-hot |
| 5 + 2 i | action i, one-hot: pass, bet; zero where not yet taken |
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import betting, cards, dealing, drawing
from envs.betting import CODE_BITS
from envs.game import EnumerableGame
from envs.rules import build_rules

PASS, BET = range(2)
_NUM_CARDS, _MAX_ACTIONS = 3, 3
_DEALS = np.array(list(itertools.permutations(range(_NUM_CARDS), 2)), np.int32)
_NAMES = "JQK"
_ACTIONS = ("pass", "bet")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class KuhnState:
    """A hand in play.

    Attributes:
      hands: int32[2], each player's card.
      chips: int32[2], what each player has put in.
      bets: int32, the actions so far: action + 1 in bits 2 i and 2 i + 1 for action i.
      turn: int32, actions taken.
      current_player: int32, -1 once the round is over.
    """

    hands: Array
    chips: Array
    bets: Array
    turn: Array
    current_player: Array


class KuhnView(NamedTuple):
    """What a player may know: 3 bytes.

    Attributes:
      seat: uint8, the player.
      card: uint8, the own card.
      bets: uint8, the actions so far, packed as in KuhnState.
    """

    seat: Array
    card: Array
    bets: Array


@dataclasses.dataclass(frozen=True)
class KuhnPoker(EnumerableGame):
    """Kuhn poker; the module's docstring has rules and encoding."""

    name = "kuhn_poker"
    version = "1"
    num_actions = 2
    observation_size = 2 + _NUM_CARDS + 2 * _MAX_ACTIONS
    max_length = _MAX_ACTIONS
    num_histories = 54
    unit = "chips"
    reward_scale = 1.0
    worst_reward = -2.0

    def init(self, key: Array) -> KuhnState:
        """Deals a shuffled deck."""
        return self.from_deck(cards.shuffle(key, _NUM_CARDS))

    def from_deck(self, deck: Array) -> KuhnState:
        """Deals deck[0] to player 0 and deck[1] to player 1.

        Args:
          deck: integer[3], a permutation of the card ids.
        """
        return KuhnState(
            hands=jnp.asarray(deck, jnp.int32)[:2],
            chips=jnp.ones(2, jnp.int32),
            bets=jnp.int32(0),
            turn=jnp.int32(0),
            current_player=jnp.int32(0),
        )

    def determinize(self, view: KuhnView, key: Array) -> KuhnState:
        """Deals the other player one of the two other cards."""
        other = betting.another(key, _NUM_CARDS, view.card[None])
        hands = jnp.where(np.arange(2) == view.seat, view.card.astype(jnp.int32), other)
        return betting.played(self, self.from_deck(hands), *betting.unpacked(view.bets[None], _MAX_ACTIONS))

    def replay_actions(self, state: KuhnState) -> tuple[KuhnState, Array, Array]:
        """Returns the deal, the actions since and how many there are."""
        return self.from_deck(state.hands), *betting.unpacked(state.bets[None], _MAX_ACTIONS)

    def initial_outcomes(self) -> tuple[KuhnState, Array]:
        """Returns the 6 deals, each of probability 1/6."""
        return jax.vmap(self.from_deck)(_DEALS), jnp.full(len(_DEALS), 1 / len(_DEALS), jnp.float32)

    def step(self, state: KuhnState, action: Array) -> tuple[KuhnState, Array, Array]:
        """Plays an action; rewards are chips, zero until the round ends."""
        action = jnp.asarray(action, jnp.int32)
        player, was_over = state.current_player, state.current_player < 0
        facing = state.chips[0] != state.chips[1]
        over = facing | ((state.turn == 1) & (action == PASS))
        new = KuhnState(
            hands=state.hands,
            chips=state.chips + ((np.arange(2) == player) & (action == BET)),
            bets=state.bets | (action + 1) << CODE_BITS * state.turn,
            turn=state.turn + 1,
            current_player=jnp.where(over, -1, 1 - player),
        )
        new = jax.tree.map(lambda old, changed: jnp.where(was_over, old, changed), state, new)
        showdown = jnp.where(state.hands[0] > state.hands[1], 0, 1)
        winner = jnp.where(facing & (action == PASS), 1 - player, showdown)
        won = jnp.where(np.arange(2) == winner, 1, -1) * jnp.min(new.chips)
        rewards = jnp.where(over & ~was_over, won, 0).astype(jnp.float32)
        return new, rewards, new.current_player < 0

    def legal_actions(self, state: KuhnState) -> Array:
        """Returns bool[2]: both, while the hand is in play."""
        return jnp.broadcast_to(state.current_player >= 0, (self.num_actions,))

    def view(self, state: KuhnState, player: Array) -> KuhnView:
        """Returns the own card and all actions."""
        player = jnp.asarray(player, jnp.int32)
        return KuhnView(
            seat=player.astype(jnp.uint8),
            card=jnp.where(player == 1, state.hands[1], state.hands[0]).astype(jnp.uint8),
            bets=state.bets.astype(jnp.uint8),
        )

    def encode(self, view: KuhnView) -> Array:
        """Returns the observation vector: float32[11], indices as in the module's table."""
        codes = (view.bets >> np.arange(0, CODE_BITS * _MAX_ACTIONS, CODE_BITS, dtype=np.uint8)) & 3
        bets = codes[:, None] == np.arange(1, 3)
        parts = [view.seat == np.arange(2), view.card == np.arange(_NUM_CARDS), bets.reshape(-1)]
        return jnp.concatenate(parts).astype(jnp.float32)

    def to_dict(self, state: KuhnState) -> dict[str, Any]:
        """Describes the round in words: cards, chips put in, actions, who acts."""
        state = jax.device_get(state)
        return {
            "hands": [_NAMES[card] for card in state.hands],
            "chips": state.chips.tolist(),
            "actions": betting.named(int(state.bets), _ACTIONS),
            "current_player": int(state.current_player),
        }

    def deal_of(self, state: KuhnState) -> tuple[int, ...]:
        """Returns the deck."""
        return dealing.whole_deck(jax.device_get(state.hands), _NUM_CARDS)

    def from_deal(self, deal: Sequence[int | float]) -> KuhnState:
        """Deals a deck.

        Raises:
          InputError: it is no permutation of the cards.
        """
        return dealing.dealt(self, dealing.check_deck(deal, _NUM_CARDS))

    def action_name(self, action: int) -> str:
        """Returns "pass" or "bet"."""
        return _ACTIONS[self.action_id(action)]

    def situation(self, view: KuhnView) -> tuple[str, str]:
        """Returns the actions so far, and the card held."""
        return f"{view.seat}: {betting.in_words(int(view.bets), _ACTIONS)}", _NAMES[int(view.card)]

    def scene(self, state: KuhnState, viewer: int | None = None) -> drawing.Scene:
        """Returns both cards, the chips put in and the actions."""
        return betting.scene("Kuhn poker", self.to_dict(state), viewer)


def make(**rules: Any) -> KuhnPoker:
    """Builds `kuhn_poker`, which has no rules to set."""
    return build_rules(KuhnPoker, KuhnPoker(), rules)
