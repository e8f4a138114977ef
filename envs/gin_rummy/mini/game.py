"""Gin rummy with a reduced deck, small enough to enumerate its whole tree: the game `mini_gin_rummy`.

The rules, actions, phases and observation of `gin_rummy` (event_log/) with fewer ranks, suits and cards in hand; gin
and undercut pay 25, equal deadwood pays nothing. A turn is a draw with its discard or knock, and the round is a tie
after `max_turns` turns; passes do not count. With n cards in the deck:

| action | meaning |
|---|---|
| 0, 1, 2 | draw from the stock; draw the pile's top; pass (first offers only) |
| 3 + c | discard card c, unless it was taken from the pile in this turn |
| 3 + n + c | with `knock_form="each_discard"`: knock, discarding card c, with the same restriction |
| 3 + n | with `"best_discard"`: knock, discarding the card that leaves the least deadwood; in a tie the lowest id |

The best discard may be the card just taken: the restriction does not apply to it, as in the engine with which the
sizes and values of the presets were measured.

Observation, float32, as gin_rummy's with m = 2 * max_turns + 2 actions at most and events of w = n + 7 numbers: 0:n own
hand, n:2n cards known to be out of play, 2n:3n belief, 3n + w i event i, 3n + w m the eleven scalars; the turn fraction
is i / m, and the stock is given as a fraction of its size after the deal. A view holds the player's hand and all
events, with the player's own draws shown: it has perfect recall.

With `suit_symmetry` each player names the suits by its own deal (suits.py), in its views and in its actions. A policy
of that game represents a policy of the original game that plays identically in situations that differ by a permutation
of suits; value, best responses and NashConv are the same, on a tree smaller by up to the number of permutations of the
suits. The preset 3x4 needs it: 6 million histories instead of 75.

In enumerated states the order of the stock is undecided (UNDECIDED in the deck).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards, dealing, drawing
from envs.errors import InputError
from envs.game import CardFeatures, EnumerableGame
from envs.gin_rummy.core import scene, table
from envs.gin_rummy.core.rules import MINI_PRESETS, MiniRules
from envs.gin_rummy.core.table import Table
from envs.gin_rummy.event_log.game import GinRummy
from envs.gin_rummy.event_log.state import PHASES, GinState, GinView
from envs.gin_rummy.mini import suits
from envs.rules import build_rules, chosen_preset

UNDECIDED = 255
"""Stands in the deck where chance has not decided the card."""
_STOCK, _DISCARDS = 0, 3
_MOST_DEALS = 1 << 20


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class MiniState(GinState):
    """A round in play.

    Attributes:
      labels: uint8[2, 4], what each player calls each suit; 0, 1, 2, 3 without suit symmetry.
    """

    labels: Array


_HISTORIES = {MINI_PRESETS["4x2"]: 88_800, MINI_PRESETS["5x2"]: 735_300, MINI_PRESETS["3x3"]: 1_161_360}


@dataclasses.dataclass(frozen=True)
class MiniGinRummy(GinRummy, EnumerableGame):
    """Gin rummy on a reduced deck; rules and encoding as the module says."""

    rules: MiniRules = MINI_PRESETS["4x2"]
    name = "mini_gin_rummy"
    version = "1"

    @property
    def num_histories(self) -> int | None:
        """Histories of the tree, for the presets that were counted."""
        return _HISTORIES.get(self.rules)

    @property
    def _one_knock(self) -> bool:
        return self.rules.knock_form == "best_discard"

    @property
    def num_actions(self) -> int:
        """Actions: 3 + 2 * cards, or 4 + cards where the best discard is chosen for the knocker."""
        return _DISCARDS + self.rules.num_cards + (1 if self._one_knock else self.rules.num_cards)

    @property
    def card_features(self) -> CardFeatures | None:
        """As in the full game; None where one knock is for all cards."""
        return None if self._one_knock else super().card_features

    def init(self, key: Array) -> MiniState:
        """Deals a shuffled deck; with suit symmetry alike suits are named at random."""
        if not self.rules.suit_symmetry:
            return self.from_deck(cards.shuffle(key, self.rules.num_cards))
        deck_key, *name_keys = jax.random.split(key, 3)
        orders = [suits.random_order(name_key, self.rules.num_suits) for name_key in name_keys]
        return self._dealt(cards.shuffle(deck_key, self.rules.num_cards), jnp.stack(orders))

    def from_deck(self, deck: Array) -> MiniState:
        """Deals the first cards to player 0, as many to player 1, then the upcard; the next is drawn first.

        With suit symmetry both players name alike suits in their own order, which `init` makes random.

        Args:
          deck: integer[cards], a permutation of the card ids.
        """
        return self._dealt(deck, jnp.tile(np.arange(cards.NUM_SUITS, dtype=np.int32), (2, 1)))

    def _dealt(self, deck: Array, orders: Array) -> MiniState:
        """Deals a deck; `orders` int32[2, 4] is each player's order of alike suits."""
        state, labels = super().from_deck(deck), orders.astype(jnp.uint8)
        if self.rules.suit_symmetry:
            board, ranks = state.table, self.rules.num_ranks
            names = [suits.labels_of(board.hands[p], board.pile_cards, ranks, orders[p]) for p in range(2)]
            labels = jnp.stack(names)
        return MiniState(**{f.name: getattr(state, f.name) for f in dataclasses.fields(state)}, labels=labels)

    def initial_outcomes(self) -> tuple[MiniState, Array]:
        """Returns every deal of two hands and an upcard; with suit symmetry one of those that look alike to player 0.

        Raises:
          InputError: too many deals to be listed.
        """
        decks, labels, weights = (np.array(column) for column in zip(*self._deals(), strict=True))
        states = jax.vmap(self.from_deck)(decks.astype(np.uint8))
        undecided = np.tile(np.arange(self.rules.num_cards) >= self.rules.dealt, (len(decks), 1))
        deck = jnp.where(undecided, np.uint8(UNDECIDED), states.table.deck)
        states = dataclasses.replace(
            states, table=dataclasses.replace(states.table, deck=deck), labels=jnp.asarray(labels, jnp.uint8)
        )
        return states, jnp.asarray(weights / weights.sum(), jnp.float32)

    def _deals(self) -> Iterator[tuple[list[int], tuple[tuple[int, ...], ...], float]]:
        """Yields decks, what each player calls the suits, and how often that occurs."""
        rules, size = self.rules, self.rules.hand_size
        shape, plain = (rules.num_ranks, rules.num_suits), tuple(range(cards.NUM_SUITS))
        deck = set(range(rules.num_cards))
        count = math.comb(len(deck), size) * math.comb(len(deck) - size, size) * (len(deck) - 2 * size)
        if count > _MOST_DEALS:
            raise InputError(f"{self.name} is too large to be listed: {count:,} deals, more than {_MOST_DEALS:,}")
        for first, upcard in itertools.product(itertools.combinations(sorted(deck), size), deck):
            alike = 0 if upcard in first else suits.orbit(first, upcard, *shape) if rules.suit_symmetry else 1
            left = sorted(deck - {*first, upcard})
            for second in itertools.combinations(left, size) if alike else ():
                names = list(suits.all_labels(second, upcard, *shape)) if rules.suit_symmetry else [plain]
                for name in names:
                    yield [*first, *second, upcard, *sorted(set(left) - set(second))], (plain, name), alike / len(names)

    def outcomes(self, state: MiniState, action: Array) -> tuple[MiniState, Array, Array, Array]:
        """Returns what an action leads to: a stock draw to one outcome for each card left, others to one and padding.

        The order of the stock beyond is undecided in all of them, however `state` holds it.
        """
        rules, board = self.rules, state.table
        most = rules.num_cards - rules.dealt
        place, count = rules.dealt + board.drawn, table.stock_left(rules, board)
        seen = cards.to_cards(board.hands[0] | board.hands[1] | board.pile_cards, rules.num_ranks, rules.num_suits)
        left = jnp.nonzero(~seen, size=most, fill_value=0)[0].astype(jnp.uint8)
        draws = jnp.asarray(action, jnp.int32) == _STOCK
        ids = np.arange(rules.num_cards)
        open_deck = jnp.where(ids >= place, np.uint8(UNDECIDED), board.deck)

        def with_card(card: Array) -> tuple[MiniState, Array, Array]:
            deck = jnp.where((ids == place) & draws, card, open_deck)
            return self.step(dataclasses.replace(state, table=dataclasses.replace(board, deck=deck)), action)

        states, rewards, done = lax.map(with_card, left)
        each = np.arange(most)
        probs = jnp.where(draws, (each < count) / jnp.maximum(count, 1), each == 0)
        return states, probs.astype(jnp.float32), rewards, done

    def step(self, state: MiniState, action: Array) -> tuple[MiniState, Array, Array]:
        """Plays an action; rewards are points / 100, zero until the round ends."""
        return super().step(state, self._as_in_gin_rummy(state, jnp.asarray(action, jnp.int32)))

    def _as_in_gin_rummy(self, state: MiniState, action: Array) -> Array:
        """Returns the action with a knock for each discard and in the table's own suits: int32."""
        rules, num_cards = self.rules, self.rules.num_cards
        card = action - _DISCARDS
        knocks, card = card >= num_cards, card % num_cards
        if rules.suit_symmetry:
            suit_called = suits.inverse(self._labels(state, state.current_player))
            card = suits.rename_card(card, suit_called, rules.num_ranks)
        if self._one_knock:
            after = state.table.after[: rules.num_suits, : rules.num_ranks].reshape(-1)
            card = jnp.where(knocks, jnp.argmin(after).astype(jnp.int32), card)
        return jnp.where(action < _DISCARDS, action, _DISCARDS + card + jnp.where(knocks, num_cards, 0))

    def _is_dead(self, after: Table, discards: Array) -> Array:
        """Returns whether a plain discard has used up the stock or the turns."""
        passes = jnp.sum(table.read(after.log).type == table.PASS)
        turns = (after.actions - passes) // 2
        out = table.stock_left(self.rules, after) <= self.rules.stock_floor
        return discards & (out | (turns >= self.rules.max_turns))

    def legal_actions(self, state: MiniState) -> Array:
        """Returns bool[A], cards in the names of the player to act."""
        legal = super().legal_actions(state)
        draws, discards, knocks = jnp.split(legal, [_DISCARDS, _DISCARDS + self.rules.num_cards])
        if self._one_knock:
            knocks = jnp.any(knocks, keepdims=True)
        if self.rules.suit_symmetry:
            labels, ranks = self._labels(state, state.current_player), self.rules.num_ranks
            discards = suits.rename_flags(discards, labels, ranks)
            knocks = knocks if self._one_knock else suits.rename_flags(knocks, labels, ranks)
        return jnp.concatenate([draws, discards, knocks])

    def _discards(self, state: MiniState) -> tuple[Array, Array, Array]:
        """Returns which cards may be discarded plainly, with a knock, with gin: bool[cards] each."""
        plain, knocks, gins = super()._discards(state)
        if self._one_knock:
            untaken = dataclasses.replace(state, table=dataclasses.replace(state.table, taken=jnp.int32(-1)))
            _, knocks, gins = super()._discards(untaken)
        return plain, knocks, gins

    def _labels(self, state: MiniState, player: Array) -> Array:
        return jnp.where(player == 1, state.labels[1], state.labels[0])

    def view(self, state: MiniState, player: Array) -> GinView:
        """Returns what `player` may know, in its names of the suits."""
        view = super().view(state, player)
        if not self.rules.suit_symmetry:
            return view
        labels, ranks = self._labels(state, player), self.rules.num_ranks
        entries = table.read(view.log)
        top = suits.rename_card(view.top.astype(jnp.int32), labels, ranks)
        return view._replace(
            hand=suits.rename_masks(view.hand, labels),
            pile=suits.rename_masks(view.pile, labels),
            known=suits.rename_masks(view.known, labels),
            log=table.entry(entries.actor, entries.type, suits.rename_card(entries.card, labels, ranks)),
            top=jnp.where(view.top == UNDECIDED, view.top, top.astype(jnp.uint8)),
        )

    def determinize(self, view: GinView, key: Array) -> MiniState:
        """Deals anew what a player cannot see.

        Raises:
          InputError: with suit symmetry, where a view does not show what the opponent calls the suits.
        """
        self._check_deals_anew()
        return super().determinize(view, key)

    def likely_world(self, view: GinView, key: Array) -> tuple[MiniState, Array]:
        """Deals anew what a player cannot see so that the opponent has melded by now.

        Raises:
          InputError: as `determinize` does.
        """
        self._check_deals_anew()
        return super().likely_world(view, key)

    def _check_deals_anew(self) -> None:
        if self.rules.suit_symmetry:
            raise InputError(f"{self.name} with suit_symmetry cannot redeal what a view does not show")

    def replay_actions(self, state: MiniState) -> tuple[MiniState, Array, Array]:
        """Returns the deal, the actions since and how many there are, cards in the names of who acted."""
        deal, actions, count = super().replay_actions(state)
        if not self.rules.suit_symmetry:
            return deal, actions, count
        actor = jnp.roll(table.read(state.table.log).actor, -1)[:, None]
        labels, ranks = jnp.where(actor == 1, state.labels[1], state.labels[0]), self.rules.num_ranks
        named = jax.vmap(lambda card, names: suits.rename_card(card, names, ranks))(actions - _DISCARDS, labels)
        actions = jnp.where(actions < _DISCARDS, actions, _DISCARDS + named)
        return dataclasses.replace(deal, labels=state.labels), actions, count

    def to_dict(self, state: MiniState) -> dict[str, Any]:
        """Describes the round in words, as gin_rummy; a stock without order by ascending id, and the players' suits."""
        board = jax.device_get(state.table)
        place, ids = self.rules.dealt + int(board.drawn), range(self.rules.num_cards)
        undecided = any(card == UNDECIDED for card in board.deck[place:])
        if undecided:
            seen = cards.cards_in(board.hands[0] | board.hands[1] | board.pile_cards, self.rules.num_ranks)
            deck = [*board.deck[:place], *sorted(set(ids) - set(seen))]
            board = dataclasses.replace(board, deck=np.array(deck, np.uint8))
        words = super().to_dict(dataclasses.replace(state, table=board)) | {"stock_in_order": not undecided}
        if self.rules.suit_symmetry:
            words["suits"] = ["".join(cards.SUITS[s] for s in np.argsort(labels)) for labels in state.labels]
        return words

    def deal_of(self, state: MiniState) -> tuple[int, ...]:
        """Returns the deck; with suit symmetry also what both players call the suits."""
        deck = super().deal_of(state)
        return (*deck, *jax.device_get(state.labels).reshape(-1).tolist()) if self.rules.suit_symmetry else deck

    def from_deal(self, deal: Sequence[int | float]) -> MiniState:
        """Deals a deck, the players naming the suits as the deal says.

        Raises:
          InputError: it is no permutation of the cards, or the names do not follow from the hands.
        """
        if not self.rules.suit_symmetry:
            return super().from_deal(deal)
        size, both = self.rules.num_cards, 2 * cards.NUM_SUITS
        deck = dealing.check_deck(deal[:size], size)
        labels = [x if type(x) is int and 0 <= x < cards.NUM_SUITS else 0 for x in deal[size:]]
        if len(labels) == both:
            state = _dealt(self, deck, np.array(labels, np.int32).reshape(2, -1))
            if np.asarray(state.labels).reshape(-1).tolist() == list(deal[size:]):
                return state
        raise InputError("the deal's names of the suits are not those that follow from the hands")

    def action_name(self, action: int) -> str:
        """Returns what an action does, e.g. "discard 3H", cards as the player to act names them."""
        if self._one_knock and action == _DISCARDS + self.rules.num_cards:
            return "knock with the best discard"
        return super().action_name(action)

    def describe_action(self, state: MiniState, action: int, viewer: int | None = None) -> str:
        """Returns what an action does, its card as the viewer names it, or as the table does."""
        action = self.action_id(action)
        if action < _DISCARDS or not self.rules.suit_symmetry:
            return self.action_name(action)
        actor, *_ = names = jax.device_get((state.labels[state.current_player], state.labels))
        knocks, card = divmod(action - _DISCARDS, self.rules.num_cards)
        suit, rank = divmod(card, self.rules.num_ranks)
        suit = int(np.argsort(actor)[suit])
        named = (suit if viewer is None else int(names[1][viewer][suit])) * self.rules.num_ranks + rank
        if knocks and self._one_knock:
            return self.action_name(action)
        return self.action_name(_DISCARDS + knocks * self.rules.num_cards + named)

    def scene(self, state: MiniState, viewer: int | None = None) -> drawing.Scene:
        """Returns both hands, the stock and the pile; a viewer sees the suits by its own names."""
        letters = cards.SUITS
        if viewer is not None and self.rules.suit_symmetry:
            letters = "".join(cards.SUITS[int(label)] for label in jax.device_get(state.labels[viewer]))
        return scene.of_round(self.rules, state, PHASES, viewer, title="Mini gin rummy", suits=letters)


@functools.partial(jax.jit, static_argnums=0)
def _dealt(game: MiniGinRummy, deck: Array, orders: Array) -> MiniState:
    return game._dealt(deck, orders)


def make(preset: str = "4x2", **rules: Any) -> MiniGinRummy:
    """Builds `mini_gin_rummy`: a preset with the given rules replaced.

    Args:
      preset: "4x2", "3x3", "5x2" or "3x4".
      **rules: fields of MiniRules.
    """
    return MiniGinRummy(build_rules(MiniRules, chosen_preset(preset, MINI_PRESETS), rules, ["preset"]))
