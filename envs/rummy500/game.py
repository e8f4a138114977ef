"""Rummy 500 with 374 actions, for two to six players: the game `rummy500`.

A turn is a draw, any number of plays, and a discard; each is an action, and the same player acts until the discard.
`envs.rummy500.actions` lists the actions, `envs.rummy500.rules` the rules that can be set.

Observation, float32, for P players, with seats relative to the observing player:

| size | content |
|---|---|
| 52 | own hand |
| 52 | in the pile |
| 52 | recency in the pile, (index + 1) / cards in it |
| 52 | on the table in a set |
| 56 | on the table in a run, 14 positions per suit, with the ace low and high |
| 52 P | who laid the card, the observing player first |
| 52 (P - 1) | cards that the other players openly took from the pile and still hold |
| 52 | the card that must be played before the turn ends |
| 52 | cards taken from the pile in the current turn |
| P | cards in hand / 10 |
| P | points laid / 100 |
| P | the player to act, one-hot |
| P | the observing player's seat, one-hot |
| 6 | stock / 52; to draw; to play; that card's chain goes up, down, is backed |
| 1 | turns / max_turns |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards, dealing, drawing
from envs.batching import where_needed
from envs.errors import InputError
from envs.game import Game
from envs.rummy500 import actions, determinize, plays, words
from envs.rummy500.rules import HAND_VALUES, RummyRules
from envs.rummy500.state import (
    HAND,
    IN_RUN,
    IN_SET,
    PILE,
    STOCK,
    RummyState,
    RummyView,
    melds_of,
    reshuffled,
    run_places,
    sizes,
    table_of,
    view_of,
)

DRAW, PLAY = range(2)
_CARDS = cards.NUM_CARDS
_IDS = np.arange(_CARDS)
POINTS = np.float32(100)
"""Of score in a potential of 1, whatever a reward of 1 is worth."""


@dataclasses.dataclass(frozen=True)
class Rummy500(Game):
    """Rummy 500; rules and encoding as the module says."""

    rules: RummyRules = RummyRules()
    name = "rummy500"
    version = "2"
    payoff_rules = frozenset({"rewards"})
    num_actions = actions.NUM_ACTIONS
    phases = ("draw", "play")

    @property
    def num_players(self) -> int:
        """Players at the table."""
        return self.rules.num_players

    @property
    def observation_size(self) -> int:
        """Numbers in the observation."""
        players = self.num_players
        return 6 * _CARDS + 56 + _CARDS * (2 * players - 1) + 4 * players + 7

    @property
    def max_length(self) -> int:
        """Actions after which a round is over: a draw and a discard a turn, and no more plays than cards."""
        return 2 * self.rules.max_turns + _CARDS

    @property
    def worst_reward(self) -> float:
        """No reward is less: the points of the whole deck, in one hand."""
        return -float(HAND_VALUES.sum()) / self.reward_scale

    @property
    def zero_sum(self) -> bool:
        """Where the own score less the mean of the others' is paid."""
        return self.rules.rewards == "zero_sum"

    def init(self, key: Array) -> RummyState:
        """Deals a shuffled deck; the first player is drawn by lot where the rules say so."""
        deal_key, first_key = jax.random.split(key)
        dealt = self.from_deck(cards.shuffle(deal_key))
        if not self.rules.random_first:
            return dealt
        first = jax.random.randint(first_key, (), 0, self.num_players, jnp.int32)
        return dataclasses.replace(dealt, current_player=first)

    @property
    def begun_by(self) -> Callable[[RummyState, Array], RummyState] | None:
        """How another player is to act first, where the rules draw it by lot."""
        return self._begun_by if self.rules.random_first else None

    def _begun_by(self, deal: RummyState, player: Array) -> RummyState:
        return dataclasses.replace(deal, current_player=jnp.asarray(player, jnp.int32))

    def from_deck(self, deck: Array) -> RummyState:
        """Deals each hand in turn, then the upcard; the stock follows, its top first. Player 0 acts first.

        Args:
          deck: integer[52], a permutation of the card ids.
        """
        rules = self.rules
        deck = jnp.asarray(deck, jnp.uint8)
        zones = np.full(_CARDS, STOCK, np.int8)
        zones[: rules.dealt - 1] = HAND + np.arange(rules.dealt - 1) // rules.hand_size
        zones[rules.dealt - 1] = PILE
        return RummyState(
            zone=jnp.zeros(_CARDS, jnp.int8).at[deck].set(zones),
            owner=jnp.full(_CARDS, -1, jnp.int8),
            position=jnp.where(deck[rules.dealt - 1] == _IDS, 0, -1).astype(jnp.int8),
            seen=jnp.zeros(_CARDS, bool),
            fresh=jnp.zeros(_CARDS, bool),
            deck=deck,
            drawn=jnp.int32(rules.dealt),
            ace_high=jnp.zeros(4, bool),
            points=jnp.zeros(self.num_players, jnp.int16),
            duty=jnp.int32(-1),
            duty_direction=jnp.int32(0),
            duty_backed=jnp.zeros(2, bool),
            drew=jnp.bool_(False),
            turns=jnp.int32(0),
            current_player=jnp.int32(0),
            went_out=jnp.int32(-1),
        )

    def step(self, state: RummyState, action: Array) -> tuple[RummyState, Array, Array]:
        """Plays an action; rewards are paid when the round ends."""
        action = jnp.asarray(action, jnp.int32)
        is_draw, is_discard = action < actions.SET, action >= actions.DISCARD
        drawn, played, discarded = self._draw(state, action), self._play(state, action), self._discard(state, action)
        new = jax.tree.map(lambda a, b, c: jnp.where(is_draw, a, jnp.where(is_discard, c, b)), drawn, played, discarded)
        was_over = state.current_player < 0
        new = jax.tree.map(lambda old, changed: jnp.where(was_over, old, changed), state, new)
        done = new.current_player < 0
        rewards = jnp.where(done & ~was_over, self._rewards(new), 0).astype(jnp.float32)
        return new, rewards, done

    def _draw(self, state: RummyState, action: Array) -> RummyState:
        """Draws from the stock, or takes from the pile; a stock that stays empty ends the round."""
        player = state.current_player
        from_stock = action == actions.STOCK
        if self.rules.reshuffle:
            due = from_stock & (state.drawn >= _CARDS) & (jnp.sum(state.zone == PILE) > 1)
            state = where_needed(due, reshuffled, state, state)
        empty = state.drawn >= _CARDS
        top = state.deck[jnp.minimum(state.drawn, _CARDS - 1)]
        card = action - actions.TAKE
        first = state.position[jnp.maximum(card, 0)]
        taken = (state.zone == PILE) & (state.position >= first) & ~from_stock
        gained = taken | (from_stock & ~empty & (top == _IDS))
        return dataclasses.replace(
            state,
            zone=jnp.where(gained, HAND + player, state.zone).astype(jnp.int8),
            position=jnp.where(taken, -1, state.position).astype(jnp.int8),
            seen=state.seen | taken,
            fresh=taken,
            drawn=state.drawn + (from_stock & ~empty),
            duty=jnp.where(from_stock, -1, card),
            drew=jnp.bool_(True),
            current_player=jnp.where(from_stock & empty, -1, player),
        )

    def _play(self, state: RummyState, action: Array) -> RummyState:
        """Lays a meld or one card."""
        player = state.current_player
        laid = jnp.asarray(actions.LAID)[action]
        is_set = (action < actions.RUN) | ((action >= actions.ON_SET) & (action < actions.LOW_END))
        suit = jnp.asarray(actions.ACE_HIGH_SUIT)[action]
        scored = jnp.asarray(actions.POINTS)[action]
        duty = self._next_duty(state, action)
        return dataclasses.replace(
            state,
            zone=jnp.where(laid, jnp.where(is_set, IN_SET, IN_RUN), state.zone).astype(jnp.int8),
            owner=jnp.where(laid, player, state.owner).astype(jnp.int8),
            seen=state.seen & ~laid,
            ace_high=state.ace_high | (np.arange(4) == suit),
            points=state.points + jnp.where(np.arange(self.num_players) == player, scored, 0),
            duty=duty.card,
            duty_direction=duty.direction,
            duty_backed=duty.backed,
        )

    def _next_duty(self, state: RummyState, action: Array) -> plays.Duty:
        """Returns what must still be played: nothing, the same card, or the next link beyond it."""
        at_end = action >= actions.LOW_END
        goes_up = action >= actions.HIGH_END
        card = (action - actions.LOW_END) % _CARDS
        suit, rank = card // 13, card % 13
        from_below = goes_up == np.array([True, False])
        backed = state.duty_backed | (from_below & ~state.fresh[card])
        runs = plays.pack(table_of(state).runs)[suit]
        at_place = jnp.stack(plays.backed_at(backed, runs, jnp.where(goes_up & (rank == 0), 13, rank)))
        is_card = card == state.duty
        met = ~at_end | (is_card & jnp.any(at_place & from_below)) | (state.duty < 0)
        direction = jnp.where(goes_up, 1, -1)
        following = 13 * suit + (rank + direction) % 13
        moves_on = ~met & is_card
        return plays.Duty(
            card=jnp.where(met, -1, jnp.where(moves_on, following, state.duty)),
            direction=jnp.where(met, 0, jnp.where(moves_on, direction, state.duty_direction)),
            backed=~met & backed,
        )

    def _discard(self, state: RummyState, action: Array) -> RummyState:
        """Discards and passes the turn; an empty hand or the last turn ends the round."""
        player, rules = state.current_player, self.rules
        dropped = action - actions.DISCARD == _IDS
        size = jnp.sum(state.zone == PILE)
        zone = jnp.where(dropped, PILE, state.zone).astype(jnp.int8)
        out = ~jnp.any(zone == HAND + player)
        turns = state.turns + 1
        return dataclasses.replace(
            state,
            zone=zone,
            position=jnp.where(dropped, size, state.position).astype(jnp.int8),
            seen=state.seen & ~dropped,
            fresh=jnp.zeros(_CARDS, bool),
            drew=jnp.bool_(False),
            turns=turns,
            current_player=jnp.where(out | (turns >= rules.max_turns), -1, (player + 1) % rules.num_players),
            went_out=jnp.where(out, player, -1),
        )

    def scores(self, state: RummyState) -> Array:
        """Returns each player's points laid less those in hand, if the round ended now: int32[P]."""
        held = state.zone == HAND + np.arange(self.num_players)[:, None]
        return state.points - jnp.sum(jnp.where(held, HAND_VALUES, 0), axis=1, dtype=jnp.int32)

    def _rewards(self, state: RummyState) -> Array:
        scores = self.scores(state) / np.float32(self.reward_scale)
        if self.rules.rewards == "points":
            return scores
        others = (jnp.sum(scores) - scores) / (self.num_players - 1)
        return scores - others

    def legal_actions(self, state: RummyState) -> Array:
        """Returns bool[374]; a card of the pile may be taken only if it can be played and a card kept to discard."""
        table = table_of(state)
        take = plays.takeable(
            self.rules,
            table._replace(hand=table.hand | table.fresh),
            state.position.reshape(4, 13).astype(jnp.int32),
            jnp.sum(state.zone == PILE),
        )
        duty = plays.Duty(state.duty, state.duty_direction, state.duty_backed)
        lay = plays.plays(self.rules, table, duty)
        draw = jnp.concatenate([jnp.ones(1, bool), take])
        in_play = state.current_player >= 0
        return jnp.concatenate([draw & ~state.drew, lay & state.drew]) & in_play

    def view(self, state: RummyState, player: Array) -> RummyView:
        """Returns the own hand, the table, the pile in order, and whatever all saw."""
        return view_of(state, player, self.num_players)

    def determinize(self, view: RummyView, key: Array) -> RummyState:
        """Deals anew what a player cannot see, as `determinize.sample` says.

        Raises:
          InputError: where the pile is made a new stock; who saw it remembers more than the view.
        """
        if self.rules.reshuffle:
            raise InputError(f"{self.name} with reshuffle cannot redeal what a view does not show")
        return determinize.sample(self.num_players, view, key, self.rules)

    def resample_chance(self, state: RummyState, key: Array) -> RummyState:
        """Shuffles the stock; a new one made of the pile follows from the whole deck, so from this too."""
        return dataclasses.replace(state, deck=cards.shuffle_from(state.deck, state.drawn, key))

    def encode(self, view: RummyView) -> Array:
        """Returns the observation vector, as in the module's table."""
        players = np.arange(self.num_players)
        in_pile = view.position != 255
        runs = cards.to_cards(view.runs).reshape(4, 13)
        parts = [
            cards.to_cards(view.hand),
            in_pile,
            jnp.where(in_pile, (view.position + 1.0) / jnp.maximum(jnp.sum(in_pile), 1), 0),
            cards.to_cards(view.sets),
            run_places(runs, view.ace_high),
            view.owner == players[:, None],
            view.holder == players[1:, None],
            view.duty == _IDS,
            cards.to_cards(view.fresh),
            view.sizes / np.float32(10),
            view.points / np.float32(100),
            view.to_act == players,
            view.seat == players,
            jnp.stack([view.stock / np.float32(_CARDS), *(jnp.float32(flag) for flag in self._flags(view))]),
            view.turns[None] / np.float32(self.rules.max_turns),
        ]
        return jnp.concatenate([part.astype(jnp.float32).reshape(-1) for part in parts])

    def _flags(self, view: RummyView) -> list[Array]:
        in_play = view.to_act != 255
        direction = view.duty_direction
        return [in_play & ~view.drew, in_play & view.drew, direction == 1, direction == 2, jnp.any(view.duty_backed)]

    def potential(self, state: RummyState, player: Array) -> Array:
        """Returns the own score if the round ended now, / 100."""
        return self.scores(state)[player] / POINTS

    def phase(self, state: RummyState) -> Array:
        """Returns the index in `phases`."""
        return jnp.where(state.drew, PLAY, DRAW).astype(jnp.int32)

    def result(self, state: RummyState, player: Array) -> dict[str, Array]:
        """Returns the share of the win (the highest score wins, ties share), whether the player went out, its score."""
        scores = self.scores(state)
        best = scores == jnp.max(scores)
        by_name = {
            "shared_win_rate": best[player] / jnp.sum(best),
            "went_out_rate": state.went_out == player,
            "score": scores[player],
            "cards_left": sizes(state, self.num_players)[player],
        }
        return {name: value.astype(jnp.float32) for name, value in by_name.items()}

    def to_dict(self, state: RummyState) -> dict[str, Any]:
        """Describes the round in card names: hands, pile (oldest first), melds, points, stock (top first), who acts."""
        state = jax.device_get(state)
        zone, position = np.asarray(state.zone), np.asarray(state.position)
        pile = sorted(np.flatnonzero(zone == PILE), key=lambda card: position[card])
        hands = [np.flatnonzero(zone == HAND + player) for player in range(self.num_players)]
        return {
            "hands": [cards.card_names(hand) for hand in hands],
            "pile": cards.card_names(pile),
            "melds": [cards.card_names(meld) for meld in melds_of(state)],
            "points": state.points.tolist(),
            "stock": cards.card_names(state.deck[int(state.drawn) :]),
            "current_player": int(state.current_player),
            "must_play": None if state.duty < 0 else cards.card_name(state.duty),
            "phase": self.phases[int(state.drew)],
            "scores": np.asarray(self.scores(state)).tolist(),
            "went_out": int(state.went_out),
            "turns": int(state.turns),
        }

    def deal_of(self, state: RummyState) -> tuple[int, ...]:
        """Returns the deck and who acts first."""
        return (*jax.device_get(state.deck).tolist(), int(state.current_player))

    def from_deal(self, deal: Sequence[int | float]) -> RummyState:
        """Deals a deck; a number after it is the player who acts first, else player 0.

        Raises:
          InputError: no permutation of the cards, or no such player.
        """
        state = dealing.dealt(self, dealing.check_deck(deal[:_CARDS], _CARDS))
        first = [*deal[_CARDS:], 0]
        if len(first) > 2 or first[0] not in range(self.num_players):
            raise InputError(f"the deal names no player who acts first; there are 0 to {self.num_players - 1}")
        return self._begun_by(state, first[0])

    def action_name(self, action: int) -> str:
        """Returns what an action does, e.g. "lay 4C at the high end"."""
        return actions.action_name(self.action_id(action))

    def describe_action(self, state: RummyState, action: int, viewer: int | None = None) -> str:
        """Returns an action's name; of a draw that ends the round, that it does."""
        stock, pile = _CARDS - int(state.drawn), int(np.sum(np.asarray(state.zone) == PILE))
        if action == actions.STOCK and self.rules.draw_ends(stock, pile):
            return "end the round (the stock is empty)"
        return self.action_name(action)

    def scene(self, state: RummyState, viewer: int | None = None) -> drawing.Scene:
        """Returns the hands, the melds on the table, the pile and the stock."""
        return words.scene_of(self.num_players, jax.device_get(state), viewer)
