"""OpenSpiel's gin rummy, exactly: the game `gin_rummy_openspiel`, in lockstep with pyspiel 2.0.2, quirks included.

Cards are OpenSpiel's ids, num_ranks * suit + rank with suits s, c, d, h = 0..3. Actions, 241 for any deck: 0..51 a card
(discard, lay off); 52 draw the upcard; 53 draw from the stock; 54 pass; 55 knock; 56 + m lay meld m (meld_ids.py).

Phases: 0 first upcard, 1 draw, 2 discard, 3 knock (the knocker discards, lays melds, passes), 4 layoff (the defender lays
off cards, passes), 5 melds (the defender lays melds, passes; at once after gin), 6 wall, 7 over.

Observation: OpenSpiel's own tensor of 644 numbers, or others by `observation` (encoding.py).

Quirks: the deadwood that allows a knock may exceed the true one (deadwood_with_draw); a tie scores nothing; a card taken
may be discarded at once, and when that happens twice in a row the hand is a draw; the 50th upcard taken, the first offer
apart, ends it; a hand that has come to two stock cards allows a pass or a knock with the upcard.

Where OpenSpiel itself gets stuck: if a knocker has no discard within the knock card, the ones that leave least are legal
and what they leave is its limit; a draw from an empty stock ends the hand as a draw.
"""  # noqa: E501

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards
from envs.batching import lanes_last, where_needed
from envs.cards import NUM_SUITS
from envs.errors import unknown
from envs.game import Game, build_rules
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel import encoding, knock_phase, meld_ids
from envs.gin_rummy.openspiel.meld_ids import MELD_MASKS, NUM_MELDS
from envs.gin_rummy.openspiel.state import (
    DISCARD,
    DRAW,
    FIRST_UPCARD,
    KNOCK,
    KNOCKS,
    LAYOFF,
    LAYS,
    MELDS,
    MOST_MELDS,
    MOST_TAKES,
    NO_CARD,
    NUM_ACTIONS,
    NUM_WORDS,
    OVER,
    PASS,
    PHASES,
    STOCK,
    TAKE,
    WALL,
    WALL_STOCK,
    OpenSpielRules,
    OpenSpielState,
    OpenSpielView,
    in_words,
    of,
)


class _Move(NamedTuple):
    """What kind of action is taken; bool each, all False once the hand is over."""

    offered: Array
    takes: Array
    capped: Array
    stock: Array
    passes: Array
    knocks: Array
    lays: Array
    discards: Array
    knock_discards: Array
    lays_off: Array


@dataclasses.dataclass(frozen=True)
class OpenSpielGinRummy(Game):
    """OpenSpiel's gin rummy; rules and encoding as the module tells."""

    rules: OpenSpielRules = OpenSpielRules()
    observation: str = "tensor"
    name = "gin_rummy_openspiel"
    version = "1"
    phases = PHASES[:OVER]
    num_actions = NUM_ACTIONS

    @property
    def observation_size(self) -> int:
        """Numbers in the observation."""
        return encoding.SIZES[self.observation]

    @property
    def card_planes(self) -> int:
        """Planes of cards the observation begins with."""
        return 0 if self.observation == "tensor" else encoding.NUM_PLANES

    @property
    def slot_choices(self) -> int:
        """One, a card's discard: of the full deck, observed in anything but the tensor."""
        return int(self.card_planes > 0 and self.rules.num_cards == cards.NUM_CARDS)

    def slot_inputs(self, observation: Array) -> tuple[Array, Array, Array]:
        """Tells of the hand and of each card; encoding.py says what."""
        return encoding.slot_inputs(observation) if self.slot_choices else super().slot_inputs(observation)

    @property
    def worst_reward(self) -> float:
        """The dearest hand without a meld, and a bonus on top."""
        rules = self.rules
        most = cards.most_points(rules.hand_size, rules.num_ranks, rules.num_suits)
        return -(most + max(rules.gin_bonus, rules.undercut_bonus)) / self.reward_scale

    @property
    def max_length(self) -> int:
        """Two passes, two actions a turn by stock or pile, and the end: a knock, melds and the defender's answer."""
        stock = self.rules.num_cards - self.rules.dealt
        return 2 + 2 * (stock + 1) + 2 * MOST_TAKES + (1 + MOST_MELDS + 1) + (self.rules.hand_size + 2) + 1

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
            shed=jnp.stack([nothing, nothing]) if self.observation == "recall" else (),
            pile=nothing,
            laid_off=nothing,
            laid=jnp.full((2, MOST_MELDS), NO_CARD, jnp.uint8),
            upcard=upcard,
            previous=none,
            drawn=zero,
            takes=zero,
            passes=zero,
            knock_card=jnp.where(value == 1, 0, value) if rules.oklahoma else jnp.int32(rules.knock_card),
            phase=jnp.int32(FIRST_UPCARD),
            turn=zero,
            current_player=zero,
            knocker=none,
            repeated=jnp.bool_(False),
            can_knock=jnp.bool_(False),
        )

    def _read(self, state: OpenSpielState, action: Array) -> _Move:
        phase, card = state.phase, action < TAKE
        offered = phase == FIRST_UPCARD
        takes = (action == TAKE) & (offered | (phase == DRAW))
        counted = takes & ~offered
        return _Move(
            offered=offered,
            takes=takes,
            capped=counted & (state.takes + 1 == MOST_TAKES),
            stock=(action == STOCK) & (offered | (phase == DRAW)),
            passes=(action == PASS) & (phase != OVER),
            knocks=(action == KNOCKS) & ((phase == DISCARD) | (phase == WALL)),
            lays=(action >= LAYS) & ((phase == KNOCK) | (phase == MELDS)),
            discards=card & (phase == DISCARD),
            knock_discards=card & (phase == KNOCK),
            lays_off=card & (phase == LAYOFF),
        )

    def step(self, state: OpenSpielState, action: Array) -> tuple[OpenSpielState, Array, Array]:
        """Plays an action; rewards are OpenSpiel's returns / 100, zero until the hand ends."""
        action = jnp.asarray(action, jnp.int32)
        move = self._read(state, action)
        moved = self._move_cards(state, action, move)
        phase, turn = self._next(state, moved, action, move)
        over = phase == OVER
        eleven = of(moved.hands, turn) | jnp.where(phase == WALL, self._bit(moved.upcard), np.uint16(0))
        eleven = eleven.astype(jnp.int32)
        asked = (phase == WALL) | ((phase == DISCARD) & (move.takes | move.stock))
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
        pays = over & (state.phase != OVER) & (knocker >= 0)
        won = jnp.where(pays, self._points(new), 0)
        signs = jnp.where(np.arange(2) == knocker, 1, -1)
        return new, signs * won / np.float32(self.reward_scale), over

    def _bit(self, card: Array) -> Array:
        return cards.card_mask(card, self.rules.num_ranks)

    def _move_cards(self, state: OpenSpielState, action: Array, move: _Move) -> OpenSpielState:
        """Returns the state with the cards where the action puts them; whose turn it is is left as it was."""
        rules = self.rules
        nothing = np.uint16(0)
        draws = move.stock & (state.drawn < rules.num_cards - rules.dealt)
        picks = (move.takes & ~move.capped) | (move.knocks & (state.phase == WALL))
        top = state.deck[jnp.minimum(rules.dealt + state.drawn, rules.num_cards - 1)].astype(jnp.int32)
        gone = move.discards | move.knock_discards | move.lays_off
        upcard, card = self._bit(state.upcard), self._bit(jnp.where(gone, action, -1))
        meld = jnp.asarray(MELD_MASKS)[jnp.clip(action - LAYS, 0, NUM_MELDS - 1)]
        lost = card | jnp.where(move.lays, meld, nothing)
        picked = jnp.where(picks, upcard, nothing)
        own = (np.arange(2) == state.turn)[:, None]
        filled = jnp.sum(state.laid != NO_CARD, axis=1, keepdims=True)
        lays = own & move.lays & (np.arange(MOST_MELDS) == filled)
        piled = jnp.where(move.stock, upcard, nothing) | jnp.where(move.knock_discards, card, nothing)
        gained = picked | jnp.where(draws, self._bit(top), nothing)
        return dataclasses.replace(
            state,
            hands=jnp.where(own, (state.hands | gained) & ~lost, state.hands),
            known=jnp.where(own, (state.known | picked) & ~lost, state.known),
            shed=jax.tree.map(lambda shed: shed | jnp.where(own & move.discards, card, nothing), state.shed),
            pile=state.pile | piled,
            laid_off=state.laid_off | jnp.where(move.lays_off, card, nothing),
            laid=jnp.where(lays, (action - LAYS).astype(jnp.uint8), state.laid),
            upcard=jnp.where(move.discards, action, jnp.where(picks | move.stock, -1, state.upcard)),
            previous=jnp.where(move.takes | move.stock, state.upcard, state.previous),
            drawn=state.drawn + draws,
            takes=state.takes + (move.takes & ~move.offered),
            passes=state.passes + (move.passes & move.offered),
            repeated=jnp.where(move.discards, action == state.previous, state.repeated),
        )

    def _next(self, state: OpenSpielState, moved: OpenSpielState, action: Array, move: _Move) -> tuple[Array, Array]:
        """Returns phase and turn after an action, from the states before it and after its cards were moved."""
        stuck = move.discards & moved.repeated & state.repeated
        empty = move.stock & (moved.drawn == state.drawn)
        at_wall = self._stock(moved) == WALL_STOCK
        gin = jnp.all(of(moved.hands, state.turn) == 0)
        after_pass = jnp.where(
            state.phase == KNOCK, jnp.where(gin, MELDS, LAYOFF), jnp.where(state.phase == LAYOFF, MELDS, OVER)
        )
        phase = jnp.where(move.takes | move.stock, DISCARD, state.phase)
        phase = jnp.where(move.discards, jnp.where(at_wall, WALL, DRAW), phase)
        phase = jnp.where(move.knocks, KNOCK, phase)
        phase = jnp.where(move.passes & ~move.offered, after_pass, phase)
        phase = jnp.where(stuck | empty | move.capped, OVER, phase)
        swaps = move.discards | (move.passes & (move.offered | (state.phase == KNOCK)))
        return phase, jnp.where(swaps, 1 - state.turn, state.turn)

    def _points(self, state: OpenSpielState) -> Array:
        """Returns what the knocker wins, from a finished hand: int32 points."""
        left = [melds.over_suits(melds.points(state.hands[player].astype(jnp.int32))) for player in range(2)]
        own = jnp.where(state.knocker == 1, left[1], left[0])
        margin = left[0] + left[1] - 2 * own + jnp.where(own == 0, self.rules.gin_bonus, 0)
        return margin - jnp.where(margin < 0, self.rules.undercut_bonus, 0)

    def _stock(self, state: OpenSpielState) -> Array:
        return self.rules.num_cards - self.rules.dealt - state.drawn

    def legal_actions(self, state: OpenSpielState) -> Array:
        """Returns bool[241], OpenSpiel's legal actions."""
        words = self.legal_words(state)
        bits = (words[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
        return bits.astype(bool).reshape(-1)[:NUM_ACTIONS]

    def legal_words(self, state: OpenSpielState) -> Array:
        """Returns the legal actions packed, action a in bit a % 32 of word a // 32: uint32[8]."""
        phase = state.phase
        hand = of(state.hands, state.turn)
        lays = (phase == KNOCK) | (phase == LAYOFF) | (phase == MELDS)
        offered, wall = phase == FIRST_UPCARD, phase == WALL
        chooses = offered & (state.passes < 2)
        flags = [
            chooses | (phase == DRAW),
            (offered & ~chooses) | (phase == DRAW),
            chooses | wall,
            state.can_knock & ((phase == DISCARD) | wall),
        ]
        first = knock_phase.pack(self.rules, jnp.where(phase == DISCARD, hand, np.uint16(0)), flags)
        words = jnp.stack([*first, *[jnp.uint32(0)] * (NUM_WORDS - 2)])
        held, ids = hand.astype(jnp.int32), of(state.laid, state.knocker)
        now = held, ids, state.laid_off, phase, state.knock_card
        words = where_needed(lays, self._laying_words, words, *now)
        return where_needed((phase == KNOCK) & melds.has_conflict(held), self._knocker_words, words, *now)

    def _laying_words(self, hand: Array, laid: Array, laid_off: Array, phase: Array, knock_card: Array) -> Array:
        """Returns the legal actions after a knock, but for a knocker whose hand has a conflict, packed: uint32[8]."""
        masks = jnp.where((laid != NO_CARD)[:, None], jnp.asarray(MELD_MASKS)[jnp.minimum(laid, NUM_MELDS - 1)], 0)
        words = lanes_last(functools.partial(knock_phase.simple_words, self.rules))
        return words(hand, masks.astype(jnp.int32), laid_off.astype(jnp.int32), phase, knock_card)

    def _knocker_words(self, hand: Array, laid: Array, laid_off: Array, phase: Array, knock_card: Array) -> Array:
        """Returns the legal actions of a knocker, packed: uint32[8]."""
        return lanes_last(functools.partial(knock_phase.knocker_words, self.rules))(hand, phase, knock_card)

    def view(self, state: OpenSpielState, player: Array) -> OpenSpielView:
        """Returns what `player` may know."""
        player = jnp.asarray(player, jnp.int32)

        def small(value: Array) -> Array:
            return jnp.where(value < 0, NO_CARD, value).astype(jnp.uint8)

        return OpenSpielView(
            hand=of(state.hands, player),
            known=state.hands if self.observation == "open_hands" else state.known,
            shed=state.shed,
            pile=state.pile,
            laid_off=state.laid_off,
            laid=state.laid,
            upcard=small(state.upcard),
            previous=small(state.previous),
            stock=small(self._stock(state)),
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
        return getattr(encoding, self.observation)(self.rules, view)

    def potential(self, state: OpenSpielState, player: Array) -> Array:
        """Returns -deadwood / 100 of the hand of `player`, the least over one discard if it has drawn."""
        hand = of(state.hands, player).astype(jnp.int32)
        drawn = jnp.sum(lax.population_count(hand)) > self.rules.hand_size
        deadwood = jnp.where(drawn, jnp.min(melds.deadwood_after_discard(hand)), melds.deadwood(hand))
        return -deadwood / np.float32(self.reward_scale)

    def phase(self, state: OpenSpielState) -> Array:
        """Returns the index into PHASES."""
        return state.phase

    def result(self, state: OpenSpielState, player: Array) -> dict[str, Array]:
        """Returns whether this player knocked (gin included), went gin, undercut, and the deadwood kept."""
        points = jax.vmap(lambda hand: melds.over_suits(melds.points(hand.astype(jnp.int32))))(state.hands)
        own, other = of(points, player), of(points, 1 - player)
        ended, mine = (state.phase == OVER) & (state.knocker >= 0), state.knocker == player
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
        told, stock = deck[: self.rules.dealt], iter(deck[self.rules.dealt :])
        for action in actions:
            told += [action, *itertools.islice(stock, int(action == STOCK))]
        return {**super().history(deal, actions), "history": told}

    def to_dict(self, state: OpenSpielState) -> dict[str, Any]:
        """Tells the hand in words, cards named as OpenSpiel does ("As" is the ace of spades)."""
        return in_words(self.rules, jax.device_get(state))


def make(observation: str = "tensor", **rules: Any) -> OpenSpielGinRummy:
    """Builds `gin_rummy_openspiel`: OpenSpiel's defaults with the given rules replaced.

    Args:
      observation: one of encoding.SIZES.
      **rules: fields of `OpenSpielRules`.
    Raises:
      InputError: an unknown name, or a value out of range.
    """
    if observation not in encoding.SIZES:
        raise unknown("observation", observation, encoding.SIZES)
    return OpenSpielGinRummy(build_rules(OpenSpielRules, OpenSpielRules(), rules), observation)
