"""The game `gin_rummy_mdp` in plain Python, written from the rules' text: the oracle of `envs.gin_rummy.mdp.game`.

Actions: 0 draw from the stock, 1 draw the pile's top, 2 + k discard slot k of the hand in ascending id, 13 play on,
14 knock, 15 gin. Shares no code with the JAX game. Run as a script it writes tests/golden/gin_rummy_mdp.json anew.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pathlib
import random
from collections.abc import Callable, Sequence

import gin_golden
import numpy as np
import slow_melds

DRAW, DISCARD, KNOCK, OVER = range(4)
STOCK, TOP, FIRST_SLOT, ON, KNOCKS, GIN = 0, 1, 2, 13, 14, 15
TYPICAL = (52, 52, 44, 38, 32, 28, 25, 23, 22, 21, 20, 18, 17, 16)
DECK = slow_melds.FULL


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules a game may vary; the defaults are those of `gin_rummy_mdp`."""

    knock_limit: int = 10
    gin_bonus: int = 25
    undercut_bonus: int = 25
    undercut_on_tie: bool = True
    stock_floor: int = 2
    max_actions: int = 240
    layoff: str = "melds_first"
    reward: str = "points"


def melds_first(knocker: int, defender: int) -> int:
    """Returns the least a defender is left with who lays off only cards outside melds of least deadwood."""
    unions = DECK.unions(defender)
    most, laid = max(unions.values()), DECK.laid(knocker)
    return min(DECK.least_after_layoffs(laid, defender & ~used) for used, points in unions.items() if points == most)


class Hand:
    """One hand in play; `play` changes it."""

    def __init__(self, deck: Sequence[int], rules: Rules = Rules()) -> None:
        """Deals a deck."""
        cards = [int(card) for card in deck]
        self.rules, self.hands = rules, [set(cards[:10]), set(cards[10:20])]
        self.pile, self.stock = [cards[20]], cards[21:]
        self.kept: list[set[int]] = [set(), set()]
        self.picked: list[list[int]] = [[], []]
        self.declined: list[set[int]] = [set(), set()]
        self.taken: int | None = None
        self.phase, self.to_act, self.actions = DRAW, 0, 0
        self.discards = [0, 0]
        self.knocker, self.ending, self.points = -1, "", 0
        self.rewards = (0.0, 0.0)

    def slots(self, player: int) -> list[int]:
        """Lists a player's cards, ascending."""
        return sorted(self.hands[player])

    def legal(self) -> np.ndarray:
        """Returns bool[16]."""
        mask = np.zeros(16, bool)
        if self.phase == DRAW:
            mask[STOCK], mask[TOP] = len(self.stock) > self.rules.stock_floor, bool(self.pile)
        elif self.phase == DISCARD:
            for slot, card in enumerate(self.slots(self.to_act)):
                mask[FIRST_SLOT + slot] = card != self.taken
        elif self.phase == KNOCK:
            gin = self.deadwood(self.to_act) == 0
            mask[ON], mask[KNOCKS], mask[GIN] = True, not gin, gin
        return mask

    def play(self, action: int) -> None:
        """Plays a legal action, or does nothing once the hand is over."""
        self.rewards = (0.0, 0.0)
        if self.phase == OVER:
            return
        player, self.actions = self.to_act, self.actions + 1
        if action in (STOCK, TOP):
            self._draw(player, action)
        elif action in (KNOCKS, GIN):
            self._settle(player)
        else:
            if action != ON:
                card = self.slots(player)[action - FIRST_SLOT]
                self.hands[player].remove(card)
                self.kept[player].discard(card)
                self.pile.append(card)
                self.taken = None
                self.discards[player] += 1
            if action != ON and self.deadwood(player) <= self.rules.knock_limit:
                self.phase = KNOCK
            elif len(self.stock) <= self.rules.stock_floor:
                self._end("stock")
            else:
                self.phase, self.to_act = DRAW, 1 - player
        if self.phase != OVER and self.actions >= self.rules.max_actions:
            self._end("cap")

    def _draw(self, player: int, action: int) -> None:
        if action == TOP:
            card = self.taken = self.pile.pop()
            self.kept[player].add(card)
            self.picked[player].append(card)
        else:
            self.declined[player].add(self.pile[-1])
            card = self.stock.pop(0)
        self.hands[player].add(card)
        self.phase = DISCARD

    def _settle(self, knocker: int) -> None:
        mine, theirs = (slow_melds.mask_of(self.hands[p]) for p in (knocker, 1 - knocker))
        own, rules = DECK.deadwood(mine), self.rules
        if own == 0:
            points, ending = DECK.deadwood(theirs) + rules.gin_bonus, "gin"
        else:
            answer = melds_first if rules.layoff == "melds_first" else DECK.defence
            points, ending = answer(mine, theirs) - own, "knock"
            if points < 0 or (points == 0 and rules.undercut_on_tie):
                points, ending = points - rules.undercut_bonus, "undercut"
        self._end(ending)
        self.knocker, self.points = knocker, points
        pay = (points / 100, -points / 100) if rules.reward == "points" else categorical(points, ending)
        self.rewards = pay if knocker == 0 else pay[::-1]

    def _end(self, ending: str) -> None:
        self.phase, self.to_act, self.ending = OVER, -1, ending

    def deadwood(self, player: int) -> int:
        """Returns a player's points outside melds; with eleven cards the least over discarding any one card."""
        hand = slow_melds.mask_of(self.hands[player])
        return DECK.deadwood(hand) if len(self.hands[player]) == 10 else min(DECK.after_discard(hand).values())

    def observation(self, player: int) -> np.ndarray:
        """Returns the documented vector of what a player sees: float32[342]."""
        return np.concatenate([np.atleast_1d(part) for part in _parts(self, player)]).astype(np.float32)


def categorical(points: int, ending: str) -> tuple[float, float]:
    """Returns what knocker and defender get."""
    share = min(abs(points), 50) / 50
    if ending == "gin":
        return 1.0, -0.85
    if ending == "undercut":
        return -0.7, 0.25 + 0.45 * share
    return (0.25 + 0.45 * share, -0.15 - 0.45 * share) if points else (0.0, 0.0)


def _one_hot(cards: Sequence[int] | set[int], size: int = 52) -> np.ndarray:
    out = np.zeros(size)
    out[list(cards)] = 1
    return out


def _parts(hand: Hand, player: int) -> list[np.ndarray | float]:
    """Lists an observation's parts in their order."""
    other, own = 1 - player, hand.slots(player)
    mask = slow_melds.mask_of(own)
    dead, whole = hand.deadwood(player), DECK.deadwood(mask)
    after = DECK.after_discard(mask)
    unseen = [c for c in range(52) if c not in own and c not in hand.pile and c not in hand.kept[other]]
    left = [min(after[c] / 100, 1) for c in own] + [1.0] * (11 - len(own))
    melded = [float(after[c] > whole) for c in own] + [0.0] * (11 - len(own))
    safety = [1 - min(_pairs(c, unseen, hand.kept[other]), 6) / 6 for c in own] + [0.0] * (11 - len(own))
    links = [sum(_melds_with(c, x, own) for x in unseen) / 6 for c in own] + [0.0] * (11 - len(own))
    estimate = _estimate(hand, player, unseen)
    risk = 1 / (1 + math.exp((estimate - dead) / 6)) if 0 < dead <= hand.rules.knock_limit else 0.0
    with_top = 1.0
    if len(own) == 10 and hand.pile:
        options = DECK.after_discard(mask | 1 << hand.pile[-1])
        with_top = min(points for card, points in options.items() if card != hand.pile[-1]) / 100
    return [
        _one_hot(own), _one_hot(hand.pile), _one_hot(hand.pile[-1:]), dead / 100, _one_hot([hand.phase], 4),
        len(own) / 11, len(hand.pile) / 52, len(hand.stock) / 31, min(sum(hand.discards) / 35, 1),
        float(dead <= hand.rules.knock_limit), np.array(left), with_top, _one_hot(hand.picked[other]),
        _one_hot(hand.declined[other]), min(estimate / 100, 1), np.array(safety), risk, np.array(melded),
        np.array(links), min(sum(melded) / 10, 1), min((len(own) - sum(melded)) / 10, 1), 1 - len(hand.stock) / 31,
        float(np.clip((estimate - dead) / 50, -1, 1)), min(len(hand.picked[other]) / 5, 1), np.zeros(20),
    ]  # fmt: skip


def _estimate(hand: Hand, player: int, unseen: list[int]) -> float:
    decided = hand.phase == KNOCK and hand.to_act == player
    turn = hand.discards[player] + (0 if decided else 1)
    hidden = len(hand.hands[1 - player]) - len(hand.kept[1 - player])
    value = sum(DECK.values[c] for c in unseen) / max(len(unseen), 1)
    return TYPICAL[min(turn, 13)] / (10 * sum(DECK.values) / 52) * hidden * value


def _is_meld(cards: set[int]) -> bool:
    suits, ranks = {c // 13 for c in cards}, sorted(c % 13 for c in cards)
    in_a_row = ranks == list(range(ranks[0], ranks[0] + 3))
    return len(cards) == 3 and (len(set(ranks)) == 1 or (len(suits) == 1 and in_a_row))


@functools.cache
def _near(card: int) -> tuple[int, ...]:
    return tuple(
        x for x in range(52) if x != card and (x % 13 == card % 13 or (x // 13 == card // 13 and abs(x - card) < 3))
    )


def _pairs(card: int, unseen: list[int], known: set[int]) -> float:
    weight = {**dict.fromkeys(unseen, 1.0), **dict.fromkeys(known, 2.0)}
    near = [x for x in _near(card) if x in weight]
    return sum(weight[x] * weight[y] for x in near for y in near if x < y and _is_meld({card, x, y}))


def _melds_with(card: int, new: int, own: list[int]) -> bool:
    return new in _near(card) and any(_is_meld({card, new, x}) for x in own)


Player = Callable[[Hand, random.Random], int]
"""Chooses a legal action of the player to act."""


def at_random(hand: Hand, rng: random.Random) -> int:
    """Chooses uniformly."""
    return rng.choice(hand.legal().nonzero()[0].tolist())


def _greedy(hand: Hand, rng: random.Random, limit: int) -> int:
    own = slow_melds.mask_of(hand.hands[hand.to_act])
    if hand.phase == DRAW:
        after = DECK.after_discard(own | 1 << hand.pile[-1])
        after.pop(hand.pile[-1])
        return TOP if min(after.values()) < DECK.deadwood(own) else STOCK
    if hand.phase == DISCARD:
        after = {c: left for c, left in DECK.after_discard(own).items() if c != hand.taken}
        return FIRST_SLOT + hand.slots(hand.to_act).index(min(after, key=lambda c: (after[c], -DECK.values[c], c)))
    dead = hand.deadwood(hand.to_act)
    return GIN if dead == 0 else KNOCKS if dead <= limit else ON


def greedy(hand: Hand, rng: random.Random) -> int:
    """Takes what lowers its deadwood, discards for least, knocks at once."""
    return _greedy(hand, rng, 10)


def patient(hand: Hand, rng: random.Random) -> int:
    """Plays like `greedy` but knocks with gin only."""
    return _greedy(hand, rng, 0)


def hasty(hand: Hand, rng: random.Random) -> int:
    """Plays like `greedy`, but of the discards that allow a knock it makes the one that keeps most: often undercut."""
    if hand.phase == DISCARD:
        after = DECK.after_discard(slow_melds.mask_of(hand.hands[hand.to_act]))
        knocks = {c: left for c, left in after.items() if c != hand.taken and left <= hand.rules.knock_limit}
        if knocks:
            return FIRST_SLOT + hand.slots(hand.to_act).index(max(knocks, key=lambda c: (knocks[c], c)))
    return greedy(hand, rng)


def taker(hand: Hand, rng: random.Random) -> int:
    """Always takes the pile's top, discards at random and never knocks: two of them play until the action limit."""
    return TOP if hand.phase == DRAW else ON if hand.phase == KNOCK else at_random(hand, rng)


def drawer(hand: Hand, rng: random.Random) -> int:
    """Never takes the pile's top and plays like `patient` otherwise: hands that end with the stock."""
    return STOCK if hand.phase == DRAW else ON if hand.phase == KNOCK else patient(hand, rng)


PAIRINGS = (
    (greedy, greedy), (hasty, patient), (patient, patient), (at_random, greedy), (taker, taker), (drawer, drawer),
    (taker, drawer), (patient, hasty), (hasty, greedy), (at_random, at_random),
)  # fmt: skip


def sample(rules: Rules, count: int, seed: int) -> tuple[np.ndarray, list[list[int]]]:
    """Deals decks, int[N, 52], and plays them with all kinds of players: decks and actions."""
    rng = random.Random(seed)
    decks = [rng.sample(range(52), 52) for _ in range(count)]
    actions = []
    for n, deck in enumerate(decks):
        hand, played, players = Hand(deck, rules), [], PAIRINGS[n % len(PAIRINGS)]
        while hand.phase != OVER:
            played.append(players[hand.to_act](hand, rng))
            hand.play(played[-1])
        actions.append(played)
    return np.array(decks), actions


FILE = pathlib.Path(__file__).resolve().parent.parent / "golden" / "gin_rummy_mdp.json"
WANTED = ("stock", "cap", "knock", "gin", "undercut")
"""One stored hand for each ending."""


def write_golden() -> None:
    """Plays until there is a hand for each ending, and stores what it shows: the golden file anew."""
    found: dict[str, dict] = {}
    for seed in range(1_000):
        decks, actions = sample(Rules(), len(PAIRINGS), seed)
        for deck, played in zip(decks.tolist(), actions, strict=True):
            hand, legal, checks = Hand(deck), [], []
            for action in (*played, None):
                legal.append(np.flatnonzero(hand.legal()).tolist())
                checks.append([round(gin_golden.checksum(hand.observation(player)), 5) for player in range(2)])
                if action is not None:
                    hand.play(action)
            reported = {"deck": deck, "actions": played, "rewards": list(hand.rewards), "legal": legal}
            found.setdefault(hand.ending, {"ending": hand.ending, **reported, "observation_checksums": checks})
        if len(found) == len(WANTED):
            break
    rows = ",\n".join(" " + json.dumps(found[ending]) for ending in WANTED)
    FILE.write_text('{"game": "gin_rummy_mdp", "version": "1", "hands": [\n' + rows + "\n]}\n")


if __name__ == "__main__":
    write_golden()
