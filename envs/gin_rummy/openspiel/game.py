"""OpenSpiel's gin rummy, reproduced exactly: `gin_rummy_openspiel`, tested in lockstep with pyspiel 2.0.2.

Cards are OpenSpiel's ids, num_ranks * suit + rank with suits s, c, d, h = 0..3. Actions, 241 for any deck: 0..51 a card
(discard, lay off); 52 draw the upcard; 53 draw from the stock; 54 pass; 55 knock; 56 + m lay meld m (meld_ids.py).

Phases: 0 first upcard, 1 draw, 2 discard, 3 knock (the knocker discards, lays melds, passes), 4 layoff (the defender lays
off cards, passes), 5 melds (the defender lays melds, passes; at once after gin), 6 wall, 7 over.

Observation: OpenSpiel's tensor of 644 numbers, or another one chosen by `observation` (encoding.py).

Quirks of OpenSpiel, all reproduced: the deadwood that decides whether a knock is allowed may exceed the true deadwood
(deadwood_with_draw); equal deadwood scores nothing; a card taken may be discarded at once, and if that happens twice in
a row the round is a tie; taking the 50th upcard, not counting the first offer, ends the round; once two cards are left
in the stock, a pass or a knock with the upcard is allowed.

Where OpenSpiel itself gets stuck: if a knocker has no discard within the knock card, the discards that leave the least
deadwood are legal and that deadwood is the limit; a draw from an empty stock ends the round as a tie.
"""  # noqa: E501

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards, dealing, drawing
from envs.cards import NUM_SUITS
from envs.errors import unknown
from envs.game import CardFeatures, Game
from envs.gin_rummy.core import card_features
from envs.gin_rummy.core.rules import match_rules
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel import determinize, encoding, ids, legal, meld_ids, moves, words
from envs.gin_rummy.openspiel.state import OpenSpielRules, OpenSpielState, OpenSpielView, in_words, select_player
from envs.match_rules import MatchRules
from envs.rules import build_rules


@dataclasses.dataclass(frozen=True)
class OpenSpielGinRummy(Game):
    """OpenSpiel's gin rummy; rules and encoding as the module says."""

    rules: OpenSpielRules = OpenSpielRules()
    observation: str = "tensor"
    name = "gin_rummy_openspiel"
    version = "1"
    phases = ids.PHASES[: ids.OVER]
    payoff_rules = frozenset({"gin_bonus", "undercut_bonus"})
    num_actions = ids.NUM_ACTIONS

    @property
    def observation_size(self) -> int:
        """Numbers in the observation."""
        return encoding.OBSERVATIONS[self.observation].size

    @property
    def card_planes(self) -> int:
        """Planes of cards the observation begins with."""
        return 0 if self.observation == "tensor" else encoding.NUM_PLANES

    @property
    def card_features(self) -> CardFeatures | None:
        """A card's discard; of the full deck and hands of ten, observed in anything but the tensor."""
        return encoding.FEATURES if self.card_planes and card_features.are_of(self.rules) else None

    @property
    def worst_reward(self) -> float:
        """The highest hand without a meld, and a bonus on top."""
        return -self.rules.worst_points / self.reward_scale

    @property
    def max_length(self) -> int:
        """Two passes, two actions a turn by stock or pile, and the end: a knock, melds and the defender's answer."""
        stock = self.rules.num_cards - self.rules.dealt
        return 2 + 2 * (stock + 1) + 2 * ids.MOST_TAKES + (1 + ids.MOST_MELDS + 1) + (self.rules.hand_size + 2) + 1

    def match_rules(self, preset: str | None = None) -> MatchRules:
        """Returns how rounds make a game: of a preset, by default `eaai`, as OpenSpiel has single rounds only."""
        return match_rules(self.rules, preset)

    def init(self, key: Array) -> OpenSpielState:
        """Deals a shuffled deck; `key` is consumed."""
        return self.from_deck(cards.shuffle(key, self.rules.num_cards))

    def from_deck(self, deck: Array) -> OpenSpielState:
        """Deals a hand to player 0, a hand to player 1, the upcard; what follows is drawn in order.

        Args:
          deck: integer[cards], a permutation of OpenSpiel's card ids.
        """
        rules, size = self.rules, self.rules.hand_size
        deck = jnp.asarray(deck).astype(jnp.uint8)
        place = jnp.zeros(rules.num_cards, jnp.int32).at[deck].set(np.arange(rules.num_cards) // size)
        upcard = deck[2 * size].astype(jnp.int32)
        value = jnp.minimum(upcard % rules.num_ranks + 1, 10)
        nothing = jnp.zeros(NUM_SUITS, jnp.uint16)
        zero, none = jnp.int32(0), jnp.int32(-1)
        return OpenSpielState(
            deck=deck,
            hands=jnp.stack([cards.to_mask(place == player, rules.num_ranks) for player in range(2)]),
            known=jnp.stack([nothing, nothing]),
            discarded=jnp.stack([nothing, nothing]) if self.observation == "recall" else (),
            pile=nothing,
            laid_off=nothing,
            laid=jnp.full((2, ids.MOST_MELDS), ids.NO_MELD, jnp.uint8),
            upcard=upcard,
            previous=none,
            drawn=zero,
            takes=zero,
            passes=zero,
            knock_card=jnp.where(value == 1, 0, value) if rules.oklahoma else jnp.int32(rules.knock_card),
            phase=jnp.int32(ids.FIRST_UPCARD),
            turn=zero,
            current_player=zero,
            knocker=none,
            repeated=jnp.bool_(False),
            can_knock=jnp.bool_(False),
        )

    def step(self, state: OpenSpielState, action: Array) -> tuple[OpenSpielState, Array, Array]:
        """Plays an action; rewards are OpenSpiel's returns / 100, zero until the round ends."""
        action = jnp.asarray(action, jnp.int32)
        move = moves.read(state, action)
        moved = moves.move_cards(self.rules, state, action, move)
        phase, turn = moves.next_phase(self.rules, state, moved, move)
        over = phase == ids.OVER
        at_wall = jnp.where(phase == ids.WALL, cards.card_mask(moved.upcard, self.rules.num_ranks), np.uint16(0))
        eleven = select_player(moved.hands, turn) | at_wall
        eleven = eleven.astype(jnp.int32)
        asked = (phase == ids.WALL) | ((phase == ids.DISCARD) & (move.takes | move.stock))
        deadwood = meld_ids.deadwood_with_draw(eleven, asked, state.knock_card)
        knocker = jnp.where(move.knocks, state.turn, state.knocker)
        new = dataclasses.replace(
            moved,
            phase=phase,
            turn=turn,
            current_player=jnp.where(over, -1, turn),
            knocker=knocker,
            can_knock=asked & (deadwood <= state.knock_card),
        )
        pays = over & (state.phase != ids.OVER) & (knocker >= 0)
        won = jnp.where(pays, self._points(new), 0)
        signs = jnp.where(np.arange(2) == knocker, 1, -1)
        return new, signs * won / np.float32(self.reward_scale), over

    def _points(self, state: OpenSpielState) -> Array:
        """Returns what the knocker wins, from a finished hand: int32 points."""
        left = [melds.over_suits(melds.points(state.hands[player].astype(jnp.int32))) for player in range(2)]
        own = jnp.where(state.knocker == 1, left[1], left[0])
        margin = left[0] + left[1] - 2 * own + jnp.where(own == 0, self.rules.gin_bonus, 0)
        return margin - jnp.where(margin < 0, self.rules.undercut_bonus, 0)

    def legal_actions(self, state: OpenSpielState) -> Array:
        """Returns bool[241], OpenSpiel's legal actions."""
        words = self.legal_words(state)
        bits = (words[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
        return bits.astype(bool).reshape(-1)[: ids.NUM_ACTIONS]

    def legal_words(self, state: OpenSpielState) -> Array:
        """Returns the legal actions packed, action a in bit a % 32 of word a // 32: uint32[8]."""
        return legal.legal_words(self.rules, state)

    def view(self, state: OpenSpielState, player: Array) -> OpenSpielView:
        """Returns what `player` may know."""
        player = jnp.asarray(player, jnp.int32)

        def small(value: Array) -> Array:
            return jnp.where(value < 0, cards.NO_CARD, value).astype(jnp.uint8)

        return OpenSpielView(
            hand=select_player(state.hands, player),
            known=state.hands if self.observation == "open_hands" else state.known,
            discarded=state.discarded,
            pile=state.pile,
            laid_off=state.laid_off,
            laid=state.laid,
            upcard=small(state.upcard),
            previous=small(state.previous),
            stock=small(moves.stock(self.rules, state)),
            takes=small(state.takes),
            passes=small(state.passes),
            knock_card=small(state.knock_card),
            phase=small(state.phase),
            seat=small(player),
            turn=small(state.turn),
            repeated=state.repeated,
        )

    def encode(self, view: OpenSpielView) -> Array:
        """Returns the observation of the kind the game has: float32[observation_size]."""
        return encoding.OBSERVATIONS[self.observation].encode(self.rules, view)

    def determinize(self, view: OpenSpielView, key: Array) -> OpenSpielState:
        """Deals anew what a player cannot see, uniformly among what could be, as `determinize.sample` says."""
        return determinize.sample(self.rules, view, key)

    def likely_world(self, view: OpenSpielView, key: Array) -> tuple[OpenSpielState, Array]:
        """Deals anew what a player cannot see so that the opponent has melded by now, as `sample_likely` says."""
        return determinize.sample_likely(self.rules, view, key)

    def resample_chance(self, state: OpenSpielState, key: Array) -> OpenSpielState:
        """Shuffles the stock."""
        return dataclasses.replace(state, deck=cards.shuffle_from(state.deck, self.rules.dealt + state.drawn, key))

    def potential(self, state: OpenSpielState, player: Array) -> Array:
        """Returns -deadwood / 100 of the hand of `player`, the least over one discard if it has drawn."""
        hand = select_player(state.hands, player).astype(jnp.int32)
        drawn = jnp.sum(lax.population_count(hand)) > self.rules.hand_size
        deadwood = jnp.where(drawn, jnp.min(melds.deadwood_after_discard(hand)), melds.deadwood(hand))
        return -deadwood / np.float32(self.reward_scale)

    def phase(self, state: OpenSpielState) -> Array:
        """Returns the index into `ids.PHASES`."""
        return state.phase

    def result(self, state: OpenSpielState, player: Array) -> dict[str, Array]:
        """Returns whether this player knocked (gin included), went gin, undercut; points left in hand after a knock."""
        points = jax.vmap(lambda hand: melds.over_suits(melds.points(hand.astype(jnp.int32))))(state.hands)
        own, other = select_player(points, player), select_player(points, 1 - player)
        ended, mine = (state.phase == ids.OVER) & (state.knocker >= 0), state.knocker == player
        by_name = {
            "knock_rate": ended & mine,
            "gin_rate": ended & mine & (own == 0),
            "undercut_rate": ended & ~mine & (own < other),
            "deadwood": jnp.where(ended, own, 0),
        }
        return {name: value.astype(jnp.float32) for name, value in by_name.items()}

    def history(self, deal: OpenSpielState, actions: Sequence[int]) -> dict[str, Any]:
        """Adds `history`, OpenSpiel's own: the cards dealt, then the actions, each stock draw followed by its card."""
        deck = np.asarray(deal.deck).tolist()
        entries, stock = deck[: self.rules.dealt], iter(deck[self.rules.dealt :])
        for action in actions:
            entries += [action, *itertools.islice(stock, int(action == ids.STOCK))]
        return {**super().history(deal, actions), "history": entries}

    def to_dict(self, state: OpenSpielState) -> dict[str, Any]:
        """Describes the round in words, cards named as OpenSpiel does ("As" is the ace of spades)."""
        return in_words(self.rules, jax.device_get(state))

    def deal_of(self, state: OpenSpielState) -> tuple[int, ...]:
        """Returns the deck."""
        return dealing.whole_deck(jax.device_get(state.deck), self.rules.num_cards)

    def from_deal(self, deal: Sequence[int | float]) -> OpenSpielState:
        """Deals a deck.

        Raises:
          InputError: it is no permutation of the cards.
        """
        return dealing.dealt(self, dealing.check_deck(deal, self.rules.num_cards))

    def action_name(self, action: int) -> str:
        """Returns what an action does, e.g. "put down 7H", which is a discard or a card laid off."""
        return words.action_name(self.rules, self.action_id(action))

    def describe_action(self, state: OpenSpielState, action: int, viewer: int | None = None) -> str:
        """Returns what an action does in a state, e.g. "discard 7H" or "lay off 7H"."""
        return words.action_in(self.rules, jax.device_get(state), self.action_id(action))

    def scene(self, state: OpenSpielState, viewer: int | None = None) -> drawing.Scene:
        """Returns both hands, the melds laid, the cards laid off, the stock, the upcard and the pile."""
        if viewer is not None and self.observation == "open_hands":
            viewer = None
        return words.scene_of(self.rules, jax.device_get(state), viewer)


def make(observation: str = "tensor", **rules: Any) -> OpenSpielGinRummy:
    """Builds `gin_rummy_openspiel`: OpenSpiel's defaults with the given rules replaced.

    Args:
      observation: one of encoding.OBSERVATIONS.
      **rules: fields of `OpenSpielRules`.
    Raises:
      InputError: an unknown name, or a value out of range.
    """
    if not isinstance(observation, str) or observation not in encoding.OBSERVATIONS:
        raise unknown("observation", observation, encoding.OBSERVATIONS)
    return OpenSpielGinRummy(build_rules(OpenSpielRules, OpenSpielRules(), rules, ["observation"]), observation)
