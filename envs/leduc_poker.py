"""Leduc poker, two players: the game `leduc_poker`, with the default rules and the encoding of OpenSpiel.

Six cards, two of each of three ranks (card // 2, 0 lowest); each player antes one chip and is dealt one card. Actions:
0 fold, 1 call (or check), 2 raise. There are two betting rounds, player 0 first in both, with raises of 2 chips in the
first and 4 in the second, at most two per round; between the rounds the public card is revealed. A player who pairs it
wins, otherwise the higher rank; equal ranks split the pot.

Observation, float32[30], OpenSpiel's information-state tensor:

| index | content |
|---|---|
| 0:2 | the player, one-hot |
| 2:8 | own card, one-hot |
| 8:14 | public card, one-hot; zero in the first round |
| 14 + 8 r + 2 i | action i of round r, one-hot: call, raise; zero for a fold and where not yet taken |
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

FOLD, CALL, RAISE = range(3)
_NUM_CARDS, _NUM_RANKS = 6, 3
_ROUNDS, _ROUND_ACTIONS = 2, 4
_RAISES = 2
"""Raises allowed in a round, of both players together."""
_RAISE_SIZES = 2, 4
"""Chips, by round."""
_ACTIONS = ("fold", "call", "raise")
_DEALS = np.array(list(itertools.permutations(range(_NUM_CARDS), 2)), np.int32)
_LEFT = _NUM_CARDS - 2


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class LeducState:
    """A hand in play.

    Attributes:
      hands: int32[2], each player's card.
      public: int32, the public card, face down in the first round; -1 where chance has not decided it.
      chips: int32[2], what each player has put in.
      bets: int32[2], the actions of each round: action + 1 in bits 2 i and 2 i + 1 for action i.
      round: int32, 0 or 1.
      turn: int32, actions taken in this round.
      raises: int32, raises in this round.
      current_player: int32, -1 once the round is over.
    """

    hands: Array
    public: Array
    chips: Array
    bets: Array
    round: Array
    turn: Array
    raises: Array
    current_player: Array


class LeducView(NamedTuple):
    """What a player may know: 5 bytes.

    Attributes:
      seat: uint8, the player.
      card: uint8, the own card.
      public: uint8, the public card, 255 in the first round.
      bets: uint8[2], the actions of each round, packed as in LeducState.
    """

    seat: Array
    card: Array
    public: Array
    bets: Array


@dataclasses.dataclass(frozen=True)
class LeducPoker(EnumerableGame):
    """Leduc poker; the module's docstring has rules and encoding."""

    name = "leduc_poker"
    version = "1"
    num_actions = 3
    observation_size = 2 + 2 * _NUM_CARDS + 2 * _ROUNDS * _ROUND_ACTIONS
    max_length = _ROUNDS * _ROUND_ACTIONS
    num_histories = 9_300
    unit = "chips"
    reward_scale = 1.0
    worst_reward = -13.0
    phases = ("first_round", "second_round")

    def init(self, key: Array) -> LeducState:
        """Deals a shuffled deck."""
        return self.from_deck(cards.shuffle(key, _NUM_CARDS))

    def from_deck(self, deck: Array) -> LeducState:
        """Deals deck[0] to player 0, deck[1] to player 1 and deck[2] face down as the public card.

        Args:
          deck: integer[6], a permutation of the card ids.
        """
        deck = jnp.asarray(deck, jnp.int32)
        return self._dealt(deck[:2], deck[2])

    def _dealt(self, hands: Array, public: Array) -> LeducState:
        return LeducState(
            hands=jnp.asarray(hands, jnp.int32),
            public=public,
            chips=jnp.ones(2, jnp.int32),
            bets=jnp.zeros(_ROUNDS, jnp.int32),
            round=jnp.int32(0),
            turn=jnp.int32(0),
            raises=jnp.int32(0),
            current_player=jnp.int32(0),
        )

    def resample_chance(self, state: LeducState, key: Array) -> LeducState:
        """Deals the public card again until it is turned."""
        other = betting.another(key, _NUM_CARDS, state.hands)
        return dataclasses.replace(state, public=jnp.where(state.round == 0, other, state.public))

    def determinize(self, view: LeducView, key: Array) -> LeducState:
        """Deals the other player's card anew, and the public one until it is turned."""
        hand_key, public_key = jax.random.split(key)
        own, seen = view.card.astype(jnp.int32), view.public.astype(jnp.int32)
        other = betting.another(hand_key, _NUM_CARDS, jnp.stack([own, seen]))
        drawn = betting.another(public_key, _NUM_CARDS, jnp.stack([own, other]))
        hands = jnp.where(np.arange(2) == view.seat, own, other)
        start = self._dealt(hands, jnp.where(seen == cards.NO_CARD, drawn, seen))
        return betting.played(self, start, *betting.unpacked(view.bets, _ROUND_ACTIONS))

    def replay_actions(self, state: LeducState) -> tuple[LeducState, Array, Array]:
        """Returns the deal, the actions since and how many there are."""
        return self._dealt(state.hands, state.public), *betting.unpacked(state.bets, _ROUND_ACTIONS)

    def initial_outcomes(self) -> tuple[LeducState, Array]:
        """Returns the 30 deals of two cards, each of probability 1/30, the public card undecided."""
        states = jax.vmap(lambda hands: self._dealt(hands, jnp.int32(-1)))(_DEALS)
        return states, jnp.full(len(_DEALS), 1 / len(_DEALS), jnp.float32)

    def step(self, state: LeducState, action: Array) -> tuple[LeducState, Array, Array]:
        """Plays an action; rewards are chips, zero until the round ends."""
        action = jnp.asarray(action, jnp.int32)
        player, was_over = state.current_player, state.current_player < 0
        folds, raises = action == FOLD, action == RAISE
        closes = (action == CALL) & (state.turn > 0)
        over = folds | (closes & (state.round == _ROUNDS - 1))
        turns = closes & ~over
        level = jnp.max(state.chips) + jnp.where(raises, jnp.where(state.round == 0, *_RAISE_SIZES), 0)
        code = (action + 1) << CODE_BITS * state.turn
        new = LeducState(
            hands=state.hands,
            public=state.public,
            chips=jnp.where((np.arange(2) == player) & ~folds, level, state.chips),
            bets=state.bets | jnp.where(np.arange(_ROUNDS) == state.round, code, 0),
            round=state.round + turns,
            turn=jnp.where(turns, 0, state.turn + 1),
            raises=jnp.where(turns, 0, state.raises + raises),
            current_player=jnp.where(over, -1, jnp.where(turns, 0, 1 - player)),
        )
        new = jax.tree.map(lambda old, changed: jnp.where(was_over, old, changed), state, new)
        ranks = state.hands // 2
        strength = ranks + _NUM_RANKS * (ranks == state.public // 2)
        winner = jnp.where(folds, jnp.where(player == 0, -1, 1), jnp.sign(strength[0] - strength[1]))
        won = winner * np.array([1, -1], np.int32) * jnp.min(new.chips)
        rewards = jnp.where(over & ~was_over, won, 0).astype(jnp.float32)
        return new, rewards, new.current_player < 0

    def outcomes(self, state: LeducState, action: Array) -> tuple[LeducState, Array, Array, Array]:
        """Returns what an action leads to: 4 public cards where it ends the first round, else one and padding."""
        after, rewards, done = self.step(state, action)
        turned = after.round > state.round
        left = np.arange(_LEFT, dtype=np.int32)
        left = left + (left >= jnp.min(state.hands))
        left = left + (left >= jnp.max(state.hands))
        states, rewards, done = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (_LEFT, *jnp.shape(x))), (after, rewards, done)
        )
        states = dataclasses.replace(states, public=jnp.where(turned, left, after.public))
        probs = jnp.where(turned, 1 / _LEFT, np.arange(_LEFT) == 0).astype(jnp.float32)
        return states, probs, rewards, done

    def legal_actions(self, state: LeducState) -> Array:
        """Returns bool[3]: fold where there is something to call, call, raise up to twice a round."""
        legal = jnp.stack([state.chips[0] != state.chips[1], jnp.bool_(True), state.raises < _RAISES])
        return legal & (state.current_player >= 0)

    def view(self, state: LeducState, player: Array) -> LeducView:
        """Returns the own card, the public card once it is turned, and all actions."""
        player = jnp.asarray(player, jnp.int32)
        return LeducView(
            seat=player.astype(jnp.uint8),
            card=jnp.where(player == 1, state.hands[1], state.hands[0]).astype(jnp.uint8),
            public=jnp.where(state.round > 0, state.public, cards.NO_CARD).astype(jnp.uint8),
            bets=state.bets.astype(jnp.uint8),
        )

    def phase(self, state: LeducState) -> Array:
        """Returns the betting round."""
        return state.round

    def encode(self, view: LeducView) -> Array:
        """Returns the observation vector: float32[30], indices as in the module's table."""
        shifts = np.arange(0, CODE_BITS * _ROUND_ACTIONS, CODE_BITS, dtype=np.uint8)
        codes = (view.bets[:, None] >> shifts) & 3
        bets = codes[:, :, None] == np.array([CALL + 1, RAISE + 1])
        ids = np.arange(_NUM_CARDS)
        parts = [view.seat == np.arange(2), view.card == ids, view.public == ids, bets.reshape(-1)]
        return jnp.concatenate(parts).astype(jnp.float32)

    def to_dict(self, state: LeducState) -> dict[str, Any]:
        """Describes the round in words: cards, the public one even face down, chips put in, actions, who acts."""
        state = jax.device_get(state)
        return {
            "hands": [_card_name(card) for card in state.hands],
            "public": _card_name(state.public) if state.public >= 0 else None,
            "phase": self.phases[int(state.round)],
            "chips": state.chips.tolist(),
            "actions": [betting.named(int(bets), _ACTIONS) for bets in state.bets],
            "current_player": int(state.current_player),
        }

    def deal_of(self, state: LeducState) -> tuple[int, ...]:
        """Returns the deck."""
        return dealing.whole_deck([*jax.device_get(state.hands), int(state.public)], _NUM_CARDS)

    def from_deal(self, deal: Sequence[int | float]) -> LeducState:
        """Deals a deck.

        Raises:
          InputError: it is no permutation of the cards.
        """
        return dealing.dealt(self, dealing.check_deck(deal, _NUM_CARDS))

    def action_name(self, action: int) -> str:
        """Returns "fold", "call" (or check) or "raise"."""
        return _ACTIONS[self.action_id(action)]

    def situation(self, view: LeducView) -> tuple[str, str]:
        """Returns the actions so far, and the ranks held and turned."""
        first, second = (betting.in_words(int(bets), _ACTIONS) for bets in view.bets)
        held = "JQK"[int(view.card) // 2]
        if view.public == cards.NO_CARD:
            return f"{view.seat}: {first}", held
        return f"{view.seat}: {first} / {second}", f"{held} with {'JQK'[int(view.public) // 2]}"

    def scene(self, state: LeducState, viewer: int | None = None) -> drawing.Scene:
        """Returns both cards, the public one, the chips put in and the actions."""
        words = self.to_dict(state)
        shown = words["public"] is not None and (viewer is None or int(state.round) > 0)
        public = drawing.spread([words["public"]]) if shown else drawing.face_down(1)
        unturned = "never turned" if int(state.current_player) < 0 else "not turned yet"
        row = drawing.Row("public", (public,), "turned" if int(state.round) else unturned)
        return betting.scene("Leduc poker", words, viewer, (row,))


def _card_name(card: int) -> str:
    return "JQK"[card // 2] + "SH"[card % 2]


def make(**rules: Any) -> LeducPoker:
    """Builds `leduc_poker`, which has no rules to set."""
    return build_rules(LeducPoker, LeducPoker(), rules)
