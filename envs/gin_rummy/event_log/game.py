"""Gin rummy with 107 actions and an event-log observation of 4,887 numbers: the game `gin_rummy`.

Actions: 0 draw from the stock; 1 draw the pile's top; 2 pass (first offers only); 3 + c discard card c;
55 + c knock, discarding card c. (With n cards in the deck: 3 + c and 3 + n + c.)

Phases: 0 first offer (player 0), 1 second offer (player 1), 2 forced stock draw (player 0), 3 draw, 4 discard, 5 over.

Observation, float32, for 52 cards and 80 actions:

| index | content |
|---|---|
| 0:52 | own hand |
| 52:104 | known unplayable: in the discard pile, but not its present top |
| 104:156 | belief that the opponent holds the card: 1 if seen taken from the pile and not discarded since; 0 if in own hand or in the pile; else (opponent's hand size - cards known held) / (cards whose place is unknown to the player) |
| 156 + 59 i | event i, oldest first: actor (1 = the player), type one-hot 5, card one-hot 52, turn fraction i / 80 |
| 4876 | stock left / 31 |
| 4877:4883 | phase one-hot |
| 4883 | 1 if the player is to act |
| 4884 | own deadwood / 100; with eleven cards the least over discarding any one of them |
| 4885, 4886 | can knock, can gin: the player is to act and a legal knock (one leaving deadwood 0) exists |

Event 0 is the deal's upcard, shown as a discard of actor 0. The k-th action is event k; the 80th is never stored. The card
of a stock draw is shown to the drawer only; a pass carries the declined card.
"""  # noqa: E501

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.batching import where_needed
from envs.game import Game, LogSlot, build_rules
from envs.gin_rummy.core import card_features, scoring, table, text
from envs.gin_rummy.core.rules import PRESETS, GinRules
from envs.gin_rummy.core.table import Table
from envs.gin_rummy.event_log import determinize
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

_STOCK, _TAKE, _PASS, _DISCARDS = 0, 1, 2, 3
_TYPES = 5
_SCALARS = 5 + len(PHASES)
_DEADWOOD = 2 + len(PHASES)


@dataclasses.dataclass(frozen=True)
class GinRummy(Game):
    """Gin rummy with combined knock and discard; rules and encoding as the module tells."""

    rules: GinRules = PRESETS["dream"]
    name = "gin_rummy"
    version = "1"
    phases = PHASES[:OVER]
    log_growth = 3

    @property
    def log_slots(self) -> int:
        """Events an observation has room for."""
        return self.rules.max_actions

    @property
    def num_actions(self) -> int:
        """Actions: 3 + 2 * cards."""
        return _DISCARDS + 2 * self.rules.num_cards

    @property
    def worst_reward(self) -> float:
        """The dearest hand without a meld, and a bonus on top."""
        rules = self.rules
        most = cards.most_points(rules.hand_size, rules.num_ranks, rules.num_suits)
        return -(most + max(rules.gin_bonus, rules.undercut_bonus)) / self.reward_scale

    @property
    def max_length(self) -> int:
        """Actions after which a hand is over."""
        return self.rules.max_actions

    @property
    def log_width(self) -> int:
        """Numbers that tell one event: actor, type, card, turn fraction."""
        return 1 + _TYPES + self.rules.num_cards + 1

    @property
    def log_offset(self) -> int:
        """Where the events start: after three facts a card."""
        return 3 * self.rules.num_cards

    @property
    def _scalar_offset(self) -> int:
        return self.log_offset + self.rules.max_actions * self.log_width

    @property
    def observation_size(self) -> int:
        """Numbers in the observation: cards, events and scalars."""
        return self._scalar_offset + _SCALARS

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
        """Plays an action; rewards are points / 100, zero until the hand ends."""
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
        drawn_hand = ~knocks & self._is_dead(after, discards)
        passes = action == _PASS
        phase = jnp.where(discards, DRAW, jnp.where(passes, state.phase + 1, DISCARD))
        over = knocks | drawn_hand
        settled = where_needed(
            knocks & (state.phase != OVER),
            functools.partial(scoring.settle, rules),
            scoring.Settlement(jnp.int32(0), jnp.int32(scoring.DRAW)),
            table.hand_of(after, player),
            table.hand_of(after, 1 - player),
            jnp.where(player == 1, after.deadwood[0], after.deadwood[1]),
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
        """Returns whether an action that was no knock ends the hand as a draw, from the table after it."""
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
            top=jnp.where(top < 0, 255, top).astype(jnp.uint8),
            stock=table.stock_left(rules, board).astype(jnp.uint8),
            opponent_cards=table.count(table.hand_of(board, 1 - player)).astype(jnp.uint8),
            phase=state.phase.astype(jnp.uint8),
            to_act=to_act,
            deadwood=self._deadwood(board, player).astype(jnp.uint8),
            can_knock=jnp.any(knocks) & to_act,
            can_gin=jnp.any(gins) & to_act,
        )

    def determinize(self, view: GinView, key: Array) -> GinState:
        """Deals anew what a player cannot see, uniformly among the deals on which the hand looked the same to it."""
        drawn = view.phase == DISCARD
        board = determinize.sample(self.rules, view, drawn, key)
        seat = view.seat.astype(jnp.int32)
        return dataclasses.replace(
            self.from_deck(board.deck),
            table=board,
            phase=view.phase.astype(jnp.int32),
            current_player=jnp.where(view.to_act, seat, 1 - seat),
        )

    def resample_chance(self, state: GinState, key: Array) -> GinState:
        """Shuffles the stock."""
        return dataclasses.replace(state, table=table.resample_chance(self.rules, state.table, key))

    def replay_actions(self, state: GinState) -> tuple[GinState, Array, Array]:
        """Returns the deal, the actions since and how many there are."""
        _, kind, card = table.read(state.table.log)
        draws = jnp.where(kind == table.DRAW_STOCK, _STOCK, jnp.where(kind == table.DRAW_DISCARD, _TAKE, _PASS))
        actions = jnp.where(kind == table.DISCARD, _DISCARDS + card, draws)
        return self.from_deck(state.table.deck), jnp.roll(actions, -1), state.table.actions

    @property
    def slot_choices(self) -> int:
        """Two: a card is discarded, or the hand knocked with it; only the full deck has slots."""
        return 2 if self.rules.num_cards == cards.NUM_CARDS else 0

    def slot_inputs(self, observation: Array) -> tuple[Array, Array, Array]:
        """Tells of the hand, float32[56], and of each card (core/card_features.py); the scalars come first."""
        if not self.slot_choices:
            return super().slot_inputs(observation)
        hand, pile, belief = (observation[n * cards.NUM_CARDS : (n + 1) * cards.NUM_CARDS] for n in range(3))
        scalars = observation[self._scalar_offset :]
        known = (belief == 1).astype(jnp.float32)
        top = (belief == 0) * (1.0 - hand - pile)
        slots = card_features.told(card_features.Seen(hand, pile, top, known, 100.0 * scalars[_DEADWOOD]))
        first = np.array([_DISCARDS, _DISCARDS + cards.NUM_CARDS])
        actions = jnp.where(slots.cards[:, None] >= 0, slots.cards[:, None] + first, -1)
        return jnp.concatenate([jnp.delete(scalars, _DEADWOOD), slots.whole]), slots.each, actions

    def _deadwood(self, board: Table, player: Array) -> Array:
        """Returns a player's deadwood, the least over one discard if a card has been drawn: int32 points."""
        return jnp.where(player == 1, board.deadwood[1], board.deadwood[0])

    def potential(self, state: GinState, player: Array) -> Array:
        """Returns -deadwood / 100 of the hand of `player`."""
        left = self._deadwood(state.table, player)
        return -left / np.float32(self.reward_scale)

    def phase(self, state: GinState) -> Array:
        """Returns the index into PHASES."""
        return state.phase

    def result(self, state: GinState, player: Array) -> dict[str, Array]:
        """Returns whether this player knocked (gin included), went gin, undercut, and the deadwood kept."""
        return scoring.told(state.knocker, state.ending, self._deadwood(state.table, player), player)

    def encode(self, view: GinView) -> Array:
        """Returns the observation vector: float32[4887], indices as in the module's table."""
        dense = self.dense(view)
        log = self._events(view).reshape(-1)
        return jnp.concatenate([dense[: self.log_offset], log, dense[self.log_offset :]])

    def dense(self, view: GinView) -> Array:
        """Returns the observation without its events: float32[167]."""
        rules = self.rules
        hand, pile, known = (
            cards.to_cards(mask, rules.num_ranks, rules.num_suits) for mask in (view.hand, view.pile, view.known)
        )
        ids = np.arange(rules.num_cards)
        unknown = ~(hand | pile | known)
        hidden = view.opponent_cards - table.count(view.known)
        chance = hidden / jnp.maximum(jnp.sum(unknown), 1)
        belief = jnp.where(known, 1.0, jnp.where(unknown, chance, 0.0))
        scalars = [
            view.stock / np.float32(rules.num_cards - rules.dealt),
            *(view.phase == p for p in range(len(PHASES))),
            view.to_act,
            view.deadwood / np.float32(100),
            view.can_knock,
            view.can_gin,
        ]
        parts = [hand, pile & (ids != view.top), belief, jnp.stack([jnp.float32(x) for x in scalars])]
        return jnp.concatenate([part.astype(jnp.float32) for part in parts])

    def _events(self, view: GinView) -> Array:
        """Returns the event block: float32[80, 59], zero beyond the log's length."""
        actor, kind, card = (x[:, None] for x in table.read(view.log))
        present = kind > 0
        slots = np.arange(self.rules.max_actions)[:, None]
        column = np.arange(self.log_width)
        is_one = (
            ((column == 0) & present & (actor == view.seat))
            | ((column == kind) & present)
            | ((column == card + 1 + _TYPES) & (card >= 0))
        )
        turn = jnp.where(present, slots / np.float32(self.rules.max_actions), 0)
        return jnp.where(column == self.log_width - 1, turn, is_one.astype(jnp.float32))

    @property
    def dense_indices(self) -> np.ndarray:
        """The observation's indices outside the event block."""
        return np.r_[0 : self.log_offset, self._scalar_offset : self.observation_size]

    def log_length(self, view: GinView) -> Array:
        """Returns the number of events: int32."""
        return view.length.astype(jnp.int32)

    def log_slot(self, view: GinView, slot: Array) -> LogSlot:
        """Returns the up to four non-zero entries of event `slot`: actor, type, card and turn fraction."""
        actor, kind, card = table.read(view.log[slot])
        first = self.log_offset + self.log_width * slot
        present = kind > 0
        values = [
            present & (actor == view.seat),
            present,
            present & (card >= 0),
            jnp.where(present, slot / np.float32(self.rules.max_actions), 0),
        ]
        rows = [first, first + kind, first + 1 + _TYPES + card, first + self.log_width - 1]
        values = jnp.stack([jnp.asarray(value, jnp.float32) for value in values])
        return LogSlot(jnp.where(values != 0, jnp.stack(rows), 0), values)

    def to_dict(self, state: GinState) -> dict[str, Any]:
        """Tells the hand in words: hands, pile oldest first, stock next card first, phase, who acts, how it ended."""
        return text.of_hand(self.rules, state, PHASES)


def make(**rules: Any) -> GinRummy:
    """Builds `gin_rummy`: the preset `dream` with the given rules replaced."""
    return GinRummy(build_rules(GinRules, PRESETS["dream"], rules))
