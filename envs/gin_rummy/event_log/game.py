"""Gin rummy with 107 actions and an event-log observation of 4,887 numbers: the game `gin_rummy`.

Actions: 0 draw from the stock; 1 draw the pile's top; 2 pass (first offers only); 3 + c discard card c;
55 + c knock, discarding card c. (With n cards in the deck: 3 + c and 3 + n + c.)

Phases: 0 first offer (player 0), 1 second offer (player 1), 2 forced stock draw (player 0), 3 draw, 4 discard, 5 over.

The observation is documented in encoding.py.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards, drawing
from envs.batching import where_needed
from envs.game import CardFeatures, EventLog
from envs.gin_rummy.core import determinize, scene, scoring, table, text
from envs.gin_rummy.core.rules import PAYOFF_RULES, PRESETS, GinRules
from envs.gin_rummy.core.table import Table
from envs.gin_rummy.core.table_game import TableGame
from envs.gin_rummy.event_log import encoding
from envs.gin_rummy.event_log.state import (
    DISCARD,
    DRAW,
    FIRST_OFFER,
    FORCED_STOCK,
    OVER,
    PHASES,
    SECOND_OFFER,
    GinState,
    GinView,
)
from envs.rules import build_rules, chosen_preset

_STOCK, _TAKE, _PASS, _DISCARDS = 0, 1, 2, 3


@dataclasses.dataclass(frozen=True)
class GinRummy(TableGame):
    """Gin rummy with combined knock and discard; the module has the rules, encoding.py the observation."""

    rules: GinRules = PRESETS["dream"]
    name = "gin_rummy"
    version = "1"
    phases = PHASES[:OVER]
    payoff_rules = PAYOFF_RULES

    @property
    def num_actions(self) -> int:
        """Actions: 3 + 2 * cards."""
        return _DISCARDS + 2 * self.rules.num_cards

    @property
    def worst_reward(self) -> float:
        """The highest hand without a meld, and a bonus on top."""
        return -self.rules.worst_points / self.reward_scale

    @property
    def observation_size(self) -> int:
        """Numbers in the observation."""
        return encoding.size(self.rules)

    @property
    def event_log(self) -> EventLog:
        """The observation's dense part, and its events."""
        return encoding.event_log(self.rules)

    @property
    def card_features(self) -> CardFeatures | None:
        """What the observation says of each card; of the full deck and hands of ten only."""
        return encoding.features(self.rules, _DISCARDS)

    def init(self, key: Array) -> GinState:
        """Deals a shuffled deck."""
        return self.from_deck(cards.shuffle(key, self.rules.num_cards))

    def from_deck(self, deck: Array) -> GinState:
        """Deals deck[0:10] to player 0, deck[10:20] to player 1, deck[20] as the upcard; deck[21] is drawn first.

        Args:
          deck: integer[52], a permutation of the card ids.
        """
        first = FIRST_OFFER if self.rules.first_offer else DRAW
        return GinState(
            table=table.deal(self.rules, deck),
            phase=jnp.int32(first),
            current_player=jnp.int32(0),
            knocker=jnp.int32(-1),
            ending=jnp.int32(0),
        )

    def step(self, state: GinState, action: Array) -> tuple[GinState, Array, Array]:
        """Plays an action; rewards are points / 100, zero until the round ends."""
        rules = self.rules
        action = jnp.asarray(action, jnp.int32)
        player = state.current_player
        knocks, discards = action >= _DISCARDS + rules.num_cards, action >= _DISCARDS
        kind = jnp.where(
            discards,
            jnp.where(knocks, table.KNOCK, table.DISCARD),
            jnp.where(action == _PASS, table.PASS, jnp.where(action == _TAKE, table.DRAW_DISCARD, table.DRAW_STOCK)),
        )
        after = table.move(rules, state.table, player, kind, (action - _DISCARDS) % rules.num_cards)
        is_tie = ~knocks & self._is_dead(after, discards)
        passes = action == _PASS
        phase = jnp.where(discards, DRAW, jnp.where(passes, state.phase + 1, DISCARD))
        over = knocks | is_tie
        settled = where_needed(
            knocks & (state.phase != OVER),
            functools.partial(scoring.settle, rules),
            scoring.Settlement(jnp.int32(0), jnp.int32(scoring.TIE)),
            table.hand_of(after, player),
            table.hand_of(after, 1 - player),
            jnp.where(player == 1, after.deadwood[0], after.deadwood[1]),
            (action - _DISCARDS) % rules.num_cards,
        )
        new = dataclasses.replace(
            state,
            table=after,
            phase=jnp.where(over, OVER, phase),
            current_player=jnp.where(over, -1, jnp.where(discards | passes, 1 - player, player)),
            knocker=jnp.where(knocks, player, -1),
            ending=jnp.where(over, settled.ending, 0),
        )
        was_over = state.phase == OVER
        new = jax.tree.map(lambda old, changed: jnp.where(was_over, old, changed), state, new)
        signs = jnp.where(np.arange(2) == player, 1, -1)
        rewards = jnp.where(was_over, 0, signs * settled.points) / np.float32(self.reward_scale)
        return new, rewards, new.phase == OVER

    def _is_dead(self, after: Table, discards: Array) -> Array:
        """Returns whether an action that was no knock ends the round as a tie, from the table after it."""
        out_of_cards = discards & (table.stock_left(self.rules, after) <= self.rules.stock_floor)
        return out_of_cards | (after.actions >= self.rules.max_actions)

    def legal_actions(self, state: GinState) -> Array:
        """Returns bool[107]; a card taken from the pile may not be discarded in the same turn."""
        discards, knocks, _ = self._discards(state)
        phase = state.phase
        draws = jnp.stack(
            [
                (phase == FORCED_STOCK) | (phase == DRAW),
                (phase == FIRST_OFFER) | (phase == SECOND_OFFER) | (phase == DRAW),
                (phase == FIRST_OFFER) | (phase == SECOND_OFFER),
            ]
        )
        return jnp.concatenate([draws, discards, knocks])

    def _discards(self, state: GinState) -> tuple[Array, Array, Array]:
        """Returns which cards may be discarded plainly, with a knock, with gin: bool[52] each."""
        rules, board = self.rules, state.table
        allowed = (np.arange(rules.num_cards) != board.taken) & (state.phase == DISCARD)
        hand = table.hand_of(board, state.current_player).astype(jnp.uint16)
        held = cards.to_cards(hand, rules.num_ranks, rules.num_suits)
        after = board.after[: rules.num_suits, : rules.num_ranks].reshape(-1)
        return held & allowed, (after <= rules.knock_limit) & allowed, (after == 0) & allowed

    def view(self, state: GinState, player: Array) -> GinView:
        """Returns what `player` may know, deadwood and the chance to knock included."""
        rules, board = self.rules, state.table
        player = jnp.asarray(player, jnp.int32)
        hand = table.hand_of(board, player)
        to_act = state.current_player == player
        _, knocks, gins = self._discards(state)
        top = table.top_card(board)
        return GinView(
            hand=hand.astype(jnp.uint16),
            pile=board.pile_cards,
            known=jnp.where(player == 1, board.known[0], board.known[1]),
            log=table.hide_draws(board.log, player),
            length=jnp.minimum(board.actions + 1, rules.max_actions).astype(jnp.uint8),
            seat=player.astype(jnp.uint8),
            top=jnp.where(top < 0, cards.NO_CARD, top).astype(jnp.uint8),
            stock=table.stock_left(rules, board).astype(jnp.uint8),
            opponent_cards=table.count(table.hand_of(board, 1 - player)).astype(jnp.uint8),
            phase=state.phase.astype(jnp.uint8),
            to_act=to_act,
            deadwood=self._deadwood(board, player).astype(jnp.uint8),
            can_knock=jnp.any(knocks) & to_act,
            can_gin=jnp.any(gins) & to_act,
        )

    def determinize(self, view: GinView, key: Array) -> GinState:
        """Deals anew what a player cannot see, uniformly among the deals on which the round looked the same to it."""
        return self._seen_as(view, determinize.sample(self.rules, view, view.phase == DISCARD, key))

    def likely_world(self, view: GinView, key: Array) -> tuple[GinState, Array]:
        """Deals anew what a player cannot see so that the opponent has melded by now, as `sample_likely` says."""
        board, log_weight = determinize.sample_likely(self.rules, view, view.phase == DISCARD, key)
        return self._seen_as(view, board), log_weight

    def _seen_as(self, view: GinView, board: Table) -> GinState:
        seat = view.seat.astype(jnp.int32)
        return dataclasses.replace(
            self.from_deck(board.deck),
            table=board,
            phase=view.phase.astype(jnp.int32),
            current_player=jnp.where(view.to_act, seat, 1 - seat),
        )

    def replay_actions(self, state: GinState) -> tuple[GinState, Array, Array]:
        """Returns the deal, the actions since and how many there are."""
        _, kind, card = table.read(state.table.log)
        draws = jnp.where(kind == table.DRAW_STOCK, _STOCK, jnp.where(kind == table.DRAW_DISCARD, _TAKE, _PASS))
        actions = jnp.where(kind == table.DISCARD, _DISCARDS + card, draws)
        return self.from_deck(state.table.deck), jnp.roll(actions, -1), state.table.actions

    def result(self, state: GinState, player: Array) -> dict[str, Array]:
        """Returns whether this player knocked (gin included), went gin, undercut, and the deadwood kept."""
        return scoring.result(state.knocker, state.ending, self._deadwood(state.table, player), player)

    def encode(self, view: GinView) -> Array:
        """Returns the observation vector: float32[4887], indices as in encoding.py's table."""
        return encoding.encode(self.rules, view)

    def to_dict(self, state: GinState) -> dict[str, Any]:
        """Describes the round: hands, pile oldest first, stock next card first, phase, who acts, how it ended."""
        return text.of_round(self.rules, state, PHASES)

    def action_name(self, action: int) -> str:
        """Returns what an action does, e.g. "discard 7H"."""
        action = self.action_id(action)
        if action < _DISCARDS:
            return ("draw from the stock", "take the top of the pile", "pass")[action]
        knocks, card = divmod(action - _DISCARDS, self.rules.num_cards)
        return f"{'knock, discarding' if knocks else 'discard'} {cards.card_name(card, self.rules.num_ranks)}"

    def scene(self, state: GinState, viewer: int | None = None) -> drawing.Scene:
        """Returns both hands with their melds and deadwood, the stock and the pile."""
        return scene.of_round(self.rules, state, PHASES, viewer, title="Gin rummy")


def make(preset: str = "dream", **rules: Any) -> GinRummy:
    """Builds `gin_rummy`: a preset with the given rules replaced.

    Args:
      preset: one of PRESETS.
      **rules: fields of GinRules.
    """
    return GinRummy(build_rules(GinRules, chosen_preset(preset, PRESETS), rules, ["preset"]))
