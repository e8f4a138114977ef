"""Rules by which rounds make a game to a target score: the dealer of the next round, and bonuses at the end."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from envs.errors import unknown
from envs.rules import check_bounds

DEALERS = ("alternate", "winner", "loser", "fixed")
SHUTOUTS = ("none", "double", "bonus")


@dataclasses.dataclass(frozen=True)
class MatchRules:
    """Rules of a two-player game that consists of several rounds.

    Attributes:
      target: the score that ends the game.
      dealer: who deals the round after a scored one: "alternate", the other player; "winner" or "loser" of that round;
        "fixed", the same player in all rounds. After a tied round the same player always deals again. The player who
        does not deal acts first.
      game_bonus: points for the winner of the game.
      box_bonus: points for each round won.
      boxes_count: whether boxes are added to the score as they are won, and so count towards the target; else they are
        added when the game is over.
      shutout: what the winner gets if the loser never scored: "none"; "double", all points of the game once more; or
        "bonus", `shutout_bonus` points.
      shutout_bonus: points.
    """

    target: int = 100
    dealer: str = "alternate"
    game_bonus: int = 0
    box_bonus: int = 0
    boxes_count: bool = False
    shutout: str = "none"
    shutout_bonus: int = 0

    def __post_init__(self) -> None:
        """Checks names and ranges.

        Raises:
          InputError: a rule out of range.
        """
        for name, options in (("dealer", DEALERS), ("shutout", SHUTOUTS)):
            if getattr(self, name) not in options:
                raise unknown(f"rule {name}", getattr(self, name), options)
        bonuses = dict.fromkeys(("game_bonus", "box_bonus", "shutout_bonus"), (0, 1000))
        check_bounds(self, {"target": (1, 10000), **bonuses})

    @property
    def running_box(self) -> int:
        """Bonus points that a won round adds to the score, in addition to the points of the round."""
        return self.box_bonus if self.boxes_count else 0

    def next_first(self, first: int, winner: int) -> int:
        """Returns who acts first after a scored round, from who did in it and who won it."""
        by_rule = {"alternate": 1 - first, "winner": 1 - winner, "loser": winner, "fixed": first}
        return by_rule[self.dealer]


class Standing(NamedTuple):
    """The state of a game between two rounds.

    Attributes:
      first: the player who acts first in the next round.
      scores: of each player, boxes included where they count.
      boxes: rounds each player has won.
      rounds: rounds played, tied ones included.
    """

    first: int
    scores: tuple[int, int] = (0, 0)
    boxes: tuple[int, int] = (0, 0)
    rounds: int = 0


def after_round(rules: MatchRules, standing: Standing, points: int) -> Standing:
    """Returns the state of a game after one more round.

    Args:
      rules: of the game.
      standing: before it; the game is not over.
      points: what player 0 won in it; negative where player 1 did, 0 for a tie.
    """
    if points == 0:
        return standing._replace(rounds=standing.rounds + 1)
    winner = 0 if points > 0 else 1
    scores, boxes = list(standing.scores), list(standing.boxes)
    scores[winner] += abs(points) + rules.running_box
    boxes[winner] += 1
    first = rules.next_first(standing.first, winner)
    return Standing(first, (scores[0], scores[1]), (boxes[0], boxes[1]), standing.rounds + 1)


def winner_of(rules: MatchRules, standing: Standing) -> int | None:
    """Returns the player who has reached the target; None while the game continues."""
    return next((player for player in (0, 1) if standing.scores[player] >= rules.target), None)


def is_shutout(rules: MatchRules, standing: Standing) -> bool:
    """Returns whether the game is over and its loser never scored."""
    winner = winner_of(rules, standing)
    return winner is not None and standing.boxes[1 - winner] == 0


def final_points(rules: MatchRules, standing: Standing) -> tuple[int, int]:
    """Returns each player's points for a finished game: score, boxes, game bonus and shutout."""
    winner = winner_of(rules, standing)
    if winner is None:
        raise ValueError(f"the game is not over at {standing.scores}")
    added = 0 if rules.boxes_count else rules.box_bonus
    totals = [score + added * boxes for score, boxes in zip(standing.scores, standing.boxes, strict=True)]
    totals[winner] += rules.game_bonus
    if is_shutout(rules, standing):
        totals[winner] += {"none": 0, "double": totals[winner], "bonus": rules.shutout_bonus}[rules.shutout]
    return totals[0], totals[1]
