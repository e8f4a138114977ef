"""Rummy 500 in plain Python, straight from the rules: an oracle for the vectorised game, and its peer in speed.

Action ids are those of the game: 0 stock; 1 + c take; 53 + 5 r + v set; 118 + 12 s + i run; 166 + c on a set; 218 + c
low end; 270 + c high end; 322 + c discard. Cards are 13 * suit + rank.
"""

from __future__ import annotations

from collections.abc import Sequence


class SlowRummy500:
    """A round in play; `legal()` and `step(action)` as the game's."""

    def __init__(
        self,
        deck: Sequence[int],
        num_players: int = 3,
        hand_size: int = 7,
        ace_in_runs: str = "both",
        take_needs_hand_card: bool = False,
        max_turns: int = 200,
    ) -> None:
        """Deals each hand in turn, the upcard, and the stock."""
        cut = num_players * hand_size
        self.hands = [set(deck[p * hand_size : (p + 1) * hand_size]) for p in range(num_players)]
        self.pile, self.stock = [deck[cut]], list(deck[cut + 1 :])
        self.sets: dict[int, set[int]] = {}
        self.runs: list[dict[int, int]] = []  # place 0 to 13 -> card, one suit each
        self.points = [0] * num_players
        self.player, self.drew, self.over, self.turns, self.went_out = 0, False, False, 0, -1
        self.fresh: set[int] = set()
        self.duty: int | None = None
        self.laid_duty_from: tuple[int, int] | None = None  # (place, direction) once the card taken is laid unbacked
        self.laid: set[int] = set()  # cards that were in hand before, laid on runs while the card taken waits
        self.ace, self.strict, self.max_turns = ace_in_runs, take_needs_hand_card, max_turns

    def legal(self) -> set[int]:
        """Returns the legal actions."""
        if self.over:
            return set()
        hand = self.hands[self.player]
        if not self.drew:
            takes = {
                1 + card
                for index, card in enumerate(self.pile)
                if self._duty_plays(card, hand | set(self.pile[index:]), set(self.pile[index:]))
            }
            return {0} | takes
        if self.duty is not None:
            if self.laid_duty_from:
                place, direction = self.laid_duty_from
                card = 13 * (self.duty // 13) + (place + direction) % 13
                return {(270 if direction > 0 else 218) + card}
            return self._duty_plays(self.duty, hand, self.fresh)
        found = self._melds(hand, self.fresh) | {322 + card for card in hand}
        if len(hand) >= 2:
            found |= {166 + card for card in hand if card % 13 in self.sets}
            for run in self.runs:
                found |= {action for _, action in self._steps(run, hand)}
        return found

    def _places(self, card: int) -> list[int]:
        if card % 13:
            return [card % 13]
        return [place for place, barred in ((0, "high"), (13, "low")) if self.ace != barred]

    def _steps(self, run: dict[int, int], hand: set[int]) -> list[tuple[int, int]]:
        """Returns (direction, action) for each card that fits an end of a run."""
        suit = next(iter(run.values())) // 13
        found = []
        for card in hand:
            if card // 13 == suit:
                found += [(-1, 218 + card)] * (min(run) - 1 in self._places(card))
                found += [(1, 270 + card)] * (max(run) + 1 in self._places(card))
        return found

    def _melds(self, hand: set[int], fresh: set[int], must: int | None = None) -> set[int]:
        """Returns the new melds of a hand, with the card `must` if one is given."""
        found = {}
        for rank in range(13):
            for variant in range(5):
                found[53 + 5 * rank + variant] = {13 * suit + rank for suit in range(4) if suit != variant}
        for suit in range(4):
            for start in range(12):
                if (start == 0 and self.ace == "high") or (start == 11 and self.ace == "low"):
                    continue
                found[118 + 12 * suit + start] = {13 * suit + (start + i) % 13 for i in range(3)}
        return {
            action
            for action, cards in found.items()
            if cards <= hand
            and (must is None or must in cards)
            and len(hand) - len(cards) >= 1
            and (not cards <= fresh or (len(hand) - len(cards) >= 2 and not self.strict))
        }

    def _duty_plays(self, must: int, hand: set[int], fresh: set[int]) -> set[int]:
        """Returns the plays that begin a way to play the card taken: a new meld, or a backed extension of a run."""
        found = self._melds(hand, fresh, must)
        for run in self.runs:
            suit = next(iter(run.values())) // 13
            for direction, end in ((-1, min(run)), (1, max(run))):
                cards: list[int] = []
                place = end + direction
                while 0 <= place <= 13:
                    card = 13 * suit + place % 13
                    if card not in hand or place not in self._places(card) or card in cards:
                        break
                    cards.append(card)
                    beyond = [one for one in self.runs if one.get(place + direction, -1) // 13 == suit]
                    joined = [run, *(beyond if card == must else [])]
                    has_backing = any(map(self._backs, joined)) or any(c not in fresh for c in cards)
                    if must in cards and has_backing and len(hand) - len(cards) >= 1:
                        found.add((270 if direction > 0 else 218) + cards[0])
                    place += direction
        return found

    def _backs(self, run: dict[int, int]) -> bool:
        """Returns whether a card of a run was in hand before and laid while the card taken waits."""
        return not self.laid.isdisjoint(run.values())

    def step(self, action: int) -> None:
        """Plays a legal action."""
        hand = self.hands[self.player]
        if action == 0:
            self.drew = True
            if not self.stock:
                self.over = True
            else:
                hand.add(self.stock.pop(0))
        elif action < 53:
            index = self.pile.index(action - 1)
            self.fresh, self.pile, self.duty = set(self.pile[index:]), self.pile[:index], action - 1
            hand |= self.fresh
            self.drew, self.laid, self.laid_duty_from = True, set(), None
        elif action >= 322:
            self._discard(action - 322)
        elif action >= 218:
            self._extend((action - 218) % 52, 1 if action >= 270 else -1)
        elif action >= 166:
            card = action - 166
            self.sets[card % 13].add(card)
            self._score([card], 15)
        else:
            self._meld(action)

    def _score(self, cards: list[int], ace: int) -> None:
        self.hands[self.player] -= set(cards)
        self.points[self.player] += sum(min(card % 13 + 1, 10) if card % 13 else ace for card in cards)

    def _meld(self, action: int) -> None:
        if action < 118:
            rank, variant = divmod(action - 53, 5)
            cards = [13 * suit + rank for suit in range(4) if suit != variant]
            self.sets[rank] = set(cards)
            self._score(cards, 15)
        else:
            suit, start = divmod(action - 118, 12)
            run = {start + i: 13 * suit + (start + i) % 13 for i in range(3)}
            self._score(list(run.values()), 15 if start == 11 else 1)
            self._join(run)
        self.duty = None

    def _extend(self, card: int, direction: int) -> None:
        run = next(
            run
            for run in self.runs
            if next(iter(run.values())) // 13 == card // 13
            and (max(run) + 1 if direction > 0 else min(run) - 1) in self._places(card)
        )
        place = max(run) + 1 if direction > 0 else min(run) - 1
        self._score([card], 15 if place == 13 else 1)
        self.runs.remove(run)
        self._join({**run, place: card})
        if self.duty is None:
            return
        if card not in self.fresh:
            self.laid.add(card)
        if card == self.duty or self.laid_duty_from:
            if self._backs(next(one for one in self.runs if one.get(place) == card)):
                self.duty, self.laid_duty_from = None, None
            else:
                self.laid_duty_from = (place, direction)

    def _join(self, run: dict[int, int]) -> None:
        """Adds a run, one with those it touches."""
        suit = next(iter(run.values())) // 13
        for other in list(self.runs):
            same = next(iter(other.values())) // 13 == suit
            if same and (max(other) + 1 == min(run) or max(run) + 1 == min(other)):
                self.runs.remove(other)
                run = {**run, **other}
        self.runs.append(run)

    def _discard(self, card: int) -> None:
        self.hands[self.player].remove(card)
        self.pile.append(card)
        self.drew, self.fresh, self.laid = False, set(), set()
        self.turns += 1
        if not self.hands[self.player]:
            self.over, self.went_out = True, self.player
        self.over = self.over or self.turns >= self.max_turns
        self.player = (self.player + 1) % len(self.hands)

    def scores(self) -> list[int]:
        """Returns points laid less those in hand."""
        worth = [sum(min(card % 13 + 1, 10) if card % 13 else 15 for card in hand) for hand in self.hands]
        return [points - left for points, left in zip(self.points, worth, strict=True)]
