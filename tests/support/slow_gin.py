"""The game `gin_rummy` in plain Python, written from the rules' text: the oracle of `envs.gin_rummy.event_log.game`.

Actions: 0 draw from the stock, 1 draw the pile's top, 2 pass, 3 + c discard card c, 3 + n + c knock with card c.
Shares no code with the JAX game.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import slow_melds

STOCK, TOP, PASS, FIRST_CARD = 0, 1, 2, 3
FIRST_OFFER, SECOND_OFFER, FORCED_STOCK, DRAW, DISCARD, OVER = range(6)
EVENT_STOCK, EVENT_TOP, EVENT_DISCARD, EVENT_KNOCK, EVENT_PASS = range(5)


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules a game may vary; the defaults are those of `gin_rummy`."""

    num_ranks: int = 13
    num_suits: int = 4
    hand_size: int = 10
    knock_limit: int = 10
    gin_bonus: int = 50
    undercut_bonus: int = 50
    undercut_on_tie: bool = True
    first_offer: bool = True
    stock_floor: int = 2
    max_actions: int = 80

    @property
    def num_cards(self) -> int:
        """Cards in the deck."""
        return self.num_ranks * self.num_suits


class Hand:
    """One hand of gin rummy in play; `play` changes it.

    Attributes:
      hands: the cards each player holds.
      pile, stock: card ids; the pile's top last, the next stock card first.
      taken_cards: cards of each hand that were seen taken from the pile.
      taken: the card taken in this turn, until its discard; None else.
      phase, to_act: as in the rules; nobody acts (-1) once the hand is over.
      events: (actor, type, card) oldest first, the deal's upcard first.
      rewards: what the last action paid.
      ending: "" in play, else "stock", "cap", "knock", "gin", "undercut" or "tie".
    """

    def __init__(self, deck: Sequence[int], rules: Rules = Rules()) -> None:
        """Deals a deck."""
        n, cards = rules.hand_size, [int(card) for card in deck]
        self.rules = rules
        self.deck = slow_melds.FULL if rules.num_cards == 52 else slow_melds.Deck(rules.num_ranks, rules.num_suits)
        self.hands = [set(cards[:n]), set(cards[n : 2 * n])]
        self.pile, self.stock = [cards[2 * n]], cards[2 * n + 1 :]
        self.first_stock = len(self.stock)
        self.taken_cards: list[set[int]] = [set(), set()]
        self.taken: int | None = None
        self.phase = FIRST_OFFER if rules.first_offer else DRAW
        self.to_act = 0
        self.events: list[tuple[int | None, int, int]] = [(None, EVENT_DISCARD, cards[2 * n])]
        self.rewards = (0.0, 0.0)
        self.ending = ""

    def legal(self) -> np.ndarray:
        """Returns bool[actions]."""
        mask = np.zeros(FIRST_CARD + 2 * self.rules.num_cards, bool)
        if self.phase == DISCARD:
            for card, left in self.discards().items():
                mask[FIRST_CARD + card] = True
                mask[FIRST_CARD + self.rules.num_cards + card] = left <= self.rules.knock_limit
        else:
            choices = {FIRST_OFFER: [1, 2], SECOND_OFFER: [1, 2], FORCED_STOCK: [0], DRAW: [0, 1], OVER: []}
            mask[choices[self.phase]] = True
        return mask

    def discards(self) -> dict[int, int]:
        """Maps the cards that may be discarded now to the deadwood they leave."""
        after = self.deck.after_discard(slow_melds.mask_of(self.hands[self.to_act]))
        return {card: left for card, left in after.items() if card != self.taken}

    def play(self, action: int) -> None:
        """Plays a legal action, or does nothing once the hand is over."""
        self.rewards = (0.0, 0.0)
        if self.phase == OVER:
            return
        player = self.to_act
        if action == PASS:
            self.events.append((player, EVENT_PASS, self.pile[-1]))
            self.phase += 1
            self.to_act = 1 - player
        elif action in (STOCK, TOP):
            self._draw(player, action)
        else:
            card = (action - FIRST_CARD) % self.rules.num_cards
            self._discard(player, card, knocks=action >= FIRST_CARD + self.rules.num_cards)
        if self.phase != OVER and len(self.events) > self.rules.max_actions:
            self._end("cap")

    def _draw(self, player: int, action: int) -> None:
        if action == TOP:
            card = self.taken = self.pile.pop()
            self.taken_cards[player].add(card)
        else:
            card = self.stock.pop(0)
        self.hands[player].add(card)
        self.events.append((player, EVENT_TOP if action == TOP else EVENT_STOCK, card))
        self.phase = DISCARD

    def _discard(self, player: int, card: int, *, knocks: bool) -> None:
        self.hands[player].remove(card)
        self.taken_cards[player].discard(card)
        self.pile.append(card)
        self.taken = None
        self.events.append((player, EVENT_KNOCK if knocks else EVENT_DISCARD, card))
        if knocks:
            self._settle(player)
        elif len(self.stock) <= self.rules.stock_floor:
            self._end("stock")
        else:
            self.phase, self.to_act = DRAW, 1 - player

    def _settle(self, knocker: int) -> None:
        mine, theirs = (slow_melds.mask_of(self.hands[p]) for p in (knocker, 1 - knocker))
        own = self.deck.deadwood(mine)
        if own == 0:
            points, ending = self.deck.deadwood(theirs) + self.rules.gin_bonus, "gin"
        else:
            points, ending = self.deck.defence(mine, theirs) - own, "knock"
            if points < 0 or (points == 0 and self.rules.undercut_on_tie):
                ending = "undercut" if points < 0 else "tie"
                points -= self.rules.undercut_bonus
        self._end(ending)
        self.rewards = (points / 100, -points / 100) if knocker == 0 else (-points / 100, points / 100)

    def _end(self, ending: str) -> None:
        self.phase, self.to_act, self.ending = OVER, -1, ending

    def observation(self, player: int) -> np.ndarray:
        """Returns the documented vector of what a player sees: float32."""
        return np.concatenate(
            [self._cards_seen(player), self._events_seen(player).reshape(-1), self._scalars(player)]
        ).astype(np.float32)

    def _cards_seen(self, player: int) -> np.ndarray:
        n, other = self.rules.num_cards, 1 - player
        own, dead, belief = np.zeros((3, n))
        own[list(self.hands[player])] = 1
        dead[self.pile[:-1]] = 1
        known = self.taken_cards[other]
        unknown = [c for c in range(n) if c not in self.hands[player] and c not in self.pile and c not in known]
        if unknown:
            belief[unknown] = (len(self.hands[other]) - len(known)) / len(unknown)
        belief[list(known)] = 1
        return np.concatenate([own, dead, belief])

    def _events_seen(self, player: int) -> np.ndarray:
        rows = np.zeros((self.rules.max_actions, 1 + 5 + self.rules.num_cards + 1))
        for i, (actor, kind, card) in enumerate(self.events[: self.rules.max_actions]):
            rows[i, 0] = actor == player
            rows[i, 1 + kind] = 1
            if kind != EVENT_STOCK or actor == player:
                rows[i, 6 + card] = 1
            rows[i, -1] = i / self.rules.max_actions
        return rows

    def _scalars(self, player: int) -> list[float]:
        acts = self.to_act == player
        left = self.discards().values() if acts and self.phase == DISCARD else [999]
        return [
            len(self.stock) / self.first_stock,
            *(float(self.phase == p) for p in range(6)),
            float(acts),
            self.deadwood(player) / 100,
            float(min(left) <= self.rules.knock_limit),
            float(min(left) == 0),
        ]

    def deadwood(self, player: int) -> int:
        """Returns a player's points outside melds; with a card drawn the least over discarding any one card."""
        hand = slow_melds.mask_of(self.hands[player])
        if len(self.hands[player]) > self.rules.hand_size:
            return min(self.deck.after_discard(hand).values())
        return self.deck.deadwood(hand)
