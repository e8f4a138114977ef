"""Games to a target, composed of mirrored rounds.

Players that do not see the score play every round as if it stood alone, so a game can be put together from rounds that
were played before it began. Deals come in a stream, each played from both seats; a pair of games, in one of which the
policy acts first and in the other its opponent, takes deals from the stream until both games are over, each game every
deal, in the seat that its dealer rule says. Pairs share no deal: they are independent, and are the sample.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from dream.evaluation.matches import CHUNK, hands_report, match_key, play_hands
from dream.evaluation.statistics import mean_interval, rate_interval, ratio_interval
from envs import Game, HostPlayer, InputError, MatchRules, Policy
from envs.errors import whole_number
from envs.match_rules import Standing, after_round, final_points, is_shutout, winner_of

_DEALS_PER_PAIR = 12
"""Deals played at first for each pair of games; a pair to 100 takes about ten."""
_FEWEST_DEALS = 16
POLICY, OPPONENT = 0, 1
"""Players of a Standing."""


class Round(NamedTuple):
    """One round of a game.

    Attributes:
      deal: its number in the stream.
      seat: of the policy.
      game: the game's number; 2 k and 2 k + 1 are a pair.
      number: of the round in its game, from 0.
      before, after: scores of policy and opponent.
    """

    deal: int
    seat: int
    game: int
    number: int
    before: tuple[int, int]
    after: tuple[int, int]


@dataclasses.dataclass
class Composer:
    """Makes pairs of games of a stream of deals.

    Attributes:
      rules: of the games.
      finished: the two games of every pair that is over.
      deals: taken from the stream so far.
    """

    rules: MatchRules
    finished: list[tuple[Standing, Standing]] = dataclasses.field(default_factory=list)
    deals: int = 0

    def __post_init__(self) -> None:
        """Begins the first pair."""
        self._pair = [Standing(POLICY), Standing(OPPONENT)]

    def take(self, points: np.ndarray) -> Iterator[Round]:
        """Plays a deal in the games that are not over.

        Args:
          points: int[2], what the policy won in seat 0 and in seat 1.
        Yields:
          The rounds that this deal is in these games.
        """
        for side, standing in enumerate(self._pair):
            if winner_of(self.rules, standing) is None:
                seat = 0 if standing.first == POLICY else 1
                after = after_round(self.rules, standing, int(points[seat]))
                self._pair[side] = after
                game = 2 * len(self.finished) + side
                yield Round(self.deals, seat, game, standing.rounds, standing.scores, after.scores)
        self.deals += 1
        if all(winner_of(self.rules, standing) is not None for standing in self._pair):
            self.finished.append((self._pair[0], self._pair[1]))
            self._pair = [Standing(POLICY), Standing(OPPONENT)]


def match_games(
    game: Game,
    policy: Policy,
    opponent: Policy | HostPlayer,
    *,
    rules: MatchRules,
    games: int,
    seed: int | jax.Array = 0,
    progress: Callable[[int], None] = lambda played: None,
    on_hand: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Plays games to a target and reports them from the first player's side.

    Args:
      game, policy, opponent, seed: as of `play_hands`.
      rules: how rounds make a game.
      games: to be played, an even number, 4 at least.
      progress: called with the number of games that are over.
      on_hand: called with every round of a game, as by `play_hands`, and besides: `game`, its number, `round`, the
        round's number in it, `scores_before` and `scores_after` of policy and opponent, with boxes where they count.
    Returns:
      What `match` reports of all rounds played, and what `games_report` does of the games.
    Raises:
      InputError: as `play_hands`; a wrong number of games; points that are no whole numbers; or players that tie so
        often that games do not end.
    """
    games = check_pairs(game, games)
    composer, pairs, parts = Composer(rules), games // 2, []
    deals = min(CHUNK, max(_FEWEST_DEALS, _DEALS_PER_PAIR * pairs))
    while len(composer.finished) < pairs:
        number = len(parts)
        if number * deals > 100 * _DEALS_PER_PAIR * max(pairs, 10):
            raise InputError(
                f"after {number * deals} deals {len(composer.finished)} of {pairs} pairs of games are over: nearly all "
                f"rounds are ties; choose a target below {rules.target}, or other players"
            )
        key = jax.random.fold_in(match_key(seed), number)
        records: dict[tuple[int, int], dict[str, Any]] = {}

        def keep(record: dict[str, Any], records: dict = records) -> None:
            records[record["pair"], record["seat"]] = record

        hands = play_hands(game, policy, opponent, games=2 * deals, seed=key, on_hand=keep if on_hand else None)
        parts.append(hands)
        for offset, points in enumerate(whole_points(hands["points_per_hand"])):
            if len(composer.finished) == pairs:
                break
            for played in composer.take(points):
                if on_hand is not None:
                    on_hand(_record(records[offset, played.seat], played))
        progress(2 * len(composer.finished))
    values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return hands_report(values) | games_report(rules, composer.finished)


def game_rules(game: Game, target: int | None, scoring: str | None) -> MatchRules | None:
    """Returns how rounds make a game to a target; None where no target is given.

    Args:
      game: of the rounds.
      target: points.
      scoring: name of the preset; None: the game's own.
    Raises:
      InputError: a game of single rounds, an unknown preset, or a preset without a target.
    """
    if target is None:
        if scoring is not None:
            raise InputError(f"scoring={scoring} is for games to a target; give target=100 too")
        return None
    return dataclasses.replace(game.match_rules(scoring), target=target)


def check_pairs(game: Game, games: int) -> int:
    """Returns a number of games as an int; raises InputError unless they are pairs, two at least, of a game for two."""
    if game.num_players != 2:
        raise InputError(f"{game.name} has {game.num_players} players; games to a target need two")
    games = whole_number("games", games, "even and at least 4")
    if games < 4 or games % 2:
        raise InputError(f"games={games} is not valid; it must be even, at least 4: games to a target come in pairs")
    return games


def whole_points(points: np.ndarray) -> np.ndarray:
    """Returns points as whole numbers, int64; raises InputError where they are none."""
    rounded = np.rint(points)
    if not np.all(np.abs(points - rounded) <= 1e-3):
        raise InputError("rounds are not paid in whole points; games to a target need that")
    return rounded.astype(np.int64)


def _record(record: dict[str, Any], played: Round) -> dict[str, Any]:
    place = {"hand": 2 * played.deal + played.seat, "pair": played.deal}
    scores = {"scores_before": list(played.before), "scores_after": list(played.after)}
    return record | place | {"game": played.game, "round": played.number} | scores


def games_report(rules: MatchRules, finished: list[tuple[Standing, Standing]]) -> dict[str, Any]:
    """Reports games from the first player's side; the pair is the sample.

    Args:
      rules: of the games.
      finished: pairs, two at least.
    Returns:
      `games`, `game_pairs`, and an Interval for each of `game_win_rate`, `points_per_game` (the own final points less
      the opponent's, boxes and bonuses included), `shutout_rate` (games won by shutout), `shutout_against_rate`,
      `rounds_per_game`, `score_per_round` (score won less score lost, by rounds played).
    """

    def each(value: Callable[[Standing], float]) -> np.ndarray:
        return np.array([[value(standing) for standing in pair] for pair in finished], np.float64)

    def margin(standing: Standing) -> int:
        own, other = final_points(rules, standing)
        return own - other

    won = each(lambda standing: winner_of(rules, standing) == POLICY)
    shut = each(lambda standing: is_shutout(rules, standing))
    rounds = each(lambda standing: standing.rounds)
    scored = each(lambda standing: standing.scores[0] - standing.scores[1])
    return {
        "games": 2 * len(finished),
        "game_pairs": len(finished),
        "game_win_rate": rate_interval(won.mean(axis=1), 2),
        "points_per_game": mean_interval(each(margin).mean(axis=1)),
        "shutout_rate": rate_interval((shut * won).mean(axis=1), 2),
        "shutout_against_rate": rate_interval((shut * (1 - won)).mean(axis=1), 2),
        "rounds_per_game": mean_interval(rounds.mean(axis=1)),
        "score_per_round": ratio_interval(scored.sum(axis=1), rounds.sum(axis=1)),
    }
