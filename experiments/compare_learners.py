r"""Sets two learners side by side on one game: matches of runs of both, at equal decisions and at equal seconds.

    python experiments/compare_learners.py --one runs/dream/0 runs/dream/1 --other runs/ppo/0 runs/ppo/1 \
        --out experiments/results/dueling_dream_ppo.json

Runs are taken in pairs. Both play as they stood at their last checkpoints within the decisions, and within the seconds,
that both have reached: give the runs checkpoint.every and checkpoint.keep for it. All play the rule-based players and,
at the same limit, each other. Means and 95 % t-intervals are over pairs; one pair alone has no interval, which is null.
Seconds are those without compiling, which the first job of a process does for the others. What is at a limit within
which a run holds nothing is null, with a note.
All runs must be of one game and its rules, those of a learner of one recipe and budget, each of another seed.

    python experiments/compare_learners.py --exploitability --one runs/reproduce/*_dueling_dream/seed* \
        --other runs/reproduce/*_ppo/seed* --out experiments/results/dream_ppo_exploitability.json

reads the evaluations of runs with exact values instead, of one game or several: the exploitability at the last
evaluation within each limit, of the average policy where a learner has one, else the current, with intervals on a log
scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from comparison import uniform_exploitability
from result_tables.common import over_samples
from scripting.arguments import Parser, result_file
from scripting.run_records import Run, check_alike, check_distinct, check_games, check_paths, overrides, read_run

import envs
from dream.evaluation import match
from dream.evaluation.statistics import positive_interval
from dream.storage.checkpoint import FOLDER
from dream.storage.files import write_json, writing
from dream.storage.policies import check_game, chosen_name, find, game_of, policy_of
from dream.training import metrics
from envs import Game, InputError, Policy

OPPONENTS = (
    "random", "greedy", "eaai_simple", "camper", "heuristic", "aggressive_knock", "meld_builder", "early_knock",
    "defensive", "simple_bot",
)  # fmt: skip
MEANS = ("win_rate", "loss_rate", "points_per_hand")
LIMITS = ("decisions", "seconds")
EXPLOITABILITY = "eval/exploitability/"
ONE_PAIR = "one pair of runs has no interval; give two pairs or more for one"


class NothingWithinError(InputError):
    """A run holds nothing to compare within a limit."""


class Point(NamedTuple):
    """A run as it is compared: at one of its iterations.

    Attributes:
      run: its directory.
      iteration: the one.
      found: what was read of it, its decisions and seconds among that.
    """

    run: Path
    iteration: int
    found: dict[str, float]

    @property
    def checkpoint(self) -> Path:
        """The folder of the iteration's checkpoint."""
        return self.run / FOLDER / str(self.iteration)


def spent(record: dict[str, Any]) -> dict[str, float]:
    """Returns the decisions of a record, and its seconds without compiling."""
    seconds = max(record["seconds"] - record["compile_seconds"], 0.0)
    return {"decisions": record["decisions"], "seconds": round(seconds, 3)}


def counters(run: Path) -> dict[int, dict[str, float]]:
    """Returns iteration -> decisions and seconds of the checkpoints a run has kept.

    Raises:
      InputError: no run directory, or no checkpoint in it.
    """
    kept = {int(path.name) for path in (run / FOLDER).glob("[0-9]*") if path.name.isdecimal()}
    found = {r["iteration"]: spent(r) for r in metrics.read(run) if r["iteration"] in kept}
    if not found:
        raise InputError(f"{run} holds no checkpoint with metrics; it must be a run directory")
    return found


def evaluations(run: Path) -> dict[int, dict[str, float]]:
    """Returns iteration -> decisions, seconds and exploitability where a run evaluated the policy it is judged by.

    Raises:
      InputError: no run directory, or no exploitability in its metrics.
    """
    key = EXPLOITABILITY + judged_by(run)
    records = [record for record in metrics.read(run) if record.get(key) is not None]
    return {r["iteration"]: spent(r) | {"exploitability": r[key]} for r in records}


def judged_by(run: Path) -> str:
    """Returns which of a run's policies its exploitability is of: the one that plays its matches.

    Raises:
      InputError: no run directory, or no exploitability in its metrics.
    """
    values = (item for record in metrics.read(run) for item in record.items())
    found = {key.removeprefix(EXPLOITABILITY) for key, x in values if key.startswith(EXPLOITABILITY) and x is not None}
    if not found:
        raise InputError(f"{run} holds no {EXPLOITABILITY}*; it must be the directory of a run with exact values")
    return chosen_name(found)


def last_within(limit: str, pair: Sequence[tuple[Path, dict[int, dict[str, float]]]]) -> list[Point]:
    """Returns, of both runs of a pair, the last of its iterations within what both have reached.

    Args:
      limit: "decisions" or "seconds".
      pair: of each run its directory and its iterations to choose from.
    Raises:
      NothingWithinError: a run has none.
      InputError: a run that counts nothing of the limit.
    """
    most = {run: max(totals[limit] for totals in kept.values()) for run, kept in pair}
    if not any(most.values()):
        raise NothingWithinError(f"{' and '.join(map(str, most))} count no {limit}")
    for run, total in most.items():
        if not total:
            raise InputError(f"{run} counts no {limit}, as solvers of game trees do; learners that play games do")
    shared, points = min(most.values()), []
    for run, kept in pair:
        within = [n for n, totals in kept.items() if totals[limit] <= shared]
        if not within:
            raise NothingWithinError(f"{run} kept nothing to compare within {shared:,.0f} {limit}")
        points.append(Point(run, max(within), kept[max(within)]))
    return points


def side_by_side(
    pairs: Iterable[tuple[Path, Path]], read: Callable[[Path], dict[int, dict[str, float]]]
) -> tuple[dict[str, list[Point] | None], dict[str, Any]]:
    """Returns what is compared of pairs of runs, and what the result says of it.

    Args:
      pairs: run directories.
      read: gives a run's iterations to choose from, each with what `spent` returns.
    Returns:
      "<one | other>_at_equal_<limit>" -> a point of each pair, None at a limit within which a run has none; and the
      number of pairs, what seconds are, and notes.
    Raises:
      InputError: there is no limit at which all pairs can be compared.
    """
    readings = [[(run, read(run)) for run in pair] for pair in pairs]
    points: dict[str, list[Point] | None] = {}
    notes = [ONE_PAIR] * (len(readings) < 2)
    for limit in LIMITS:
        try:
            sides = [list(side) for side in zip(*(last_within(limit, pair) for pair in readings), strict=True)]
        except NothingWithinError as error:
            sides = [None, None]
            notes.append(f"nothing at equal {limit}: {error}")
        points |= zip((f"one_at_equal_{limit}", f"other_at_equal_{limit}"), sides, strict=True)
    if not any(points.values()):
        raise InputError(notes[-1])
    header = {"pairs": len(readings), "seconds": "without compiling"}
    return points, header | ({"note": "; ".join(notes)} if notes else {})


def compare_exploitability(one: list[Path], other: list[Path]) -> dict[str, Any]:
    """Returns game -> exploitability of both learners, pair by pair and over pairs, and that of uniform random play.

    Raises:
      InputError: a run twice, a pair of two games, or runs of one learner that differ in more than the seed.
    """
    check_paths([*one, *other])
    by_game: dict[str, list[tuple[Run, Run]]] = {}
    for pair in zip(map(read_run, one), map(read_run, other), strict=True):
        first, second = pair
        if first.game_name != second.game_name:
            raise InputError(
                f"{first.path} is a run on {first.game_name} and {second.path} on {second.game_name}; "
                "a pair must be of one game"
            )
        by_game.setdefault(first.game_name, []).append(pair)
    for pairs in by_game.values():
        check_pairs(pairs)
    return {name: _of_game(pairs) for name, pairs in by_game.items()}


def check_pairs(pairs: list[tuple[Run, Run]]) -> None:
    """Raises InputError unless all runs are of one game, and those of each side of one recipe, budget and own seeds."""
    check_games([run for pair in pairs for run in pair])
    for side in zip(*pairs, strict=True):
        check_distinct(side)
        check_alike(side)


def _of_game(pairs: list[tuple[Run, Run]]) -> dict[str, Any]:
    points, header = side_by_side([(one.path, other.path) for one, other in pairs], evaluations)
    game = pairs[0][0].game
    return {
        "unit": game.unit,
        "uniform": uniform_exploitability(game),
        **header,
        "overrides": {key: overrides(run.path) for key, run in zip(("one", "other"), pairs[0], strict=True)},
        "policies": {key: judged_by(run.path) for key, run in zip(("one", "other"), pairs[0], strict=True)},
        "by_pair": {key: at and [point.found for point in at] for key, at in points.items()},
        "over_pairs": {
            key: at and over_samples([point.found["exploitability"] for point in at], positive_interval)
            for key, at in points.items()
        },
    }


def played(game: Game, first: Policy, second: Policy, games: int, seed: int) -> dict[str, float]:
    """Plays a match and returns its means."""
    report = match(game, first, second, games=games, seed=seed)
    return {name: report[name].mean for name in MEANS}


def compare(one: list[Path], other: list[Path], opponents: list[str], games: int) -> dict[str, Any]:
    """Plays everything, printing each match when it is done.

    Raises:
      InputError: a run twice, runs of several games, or runs of one learner that differ in more than the seed.
    """
    check_paths([*one, *other])
    check_pairs(list(zip(map(read_run, one), map(read_run, other), strict=True)))
    points, header = side_by_side(zip(one, other, strict=True), counters)
    rows: dict[str, dict[str, list[dict[str, float]]] | None] = {name: at and {} for name, at in points.items()}
    for seed, (game, policies) in enumerate(_players(points)):
        for name, policy in policies.items():
            against = {opponent: envs.make_bot(opponent, game) for opponent in opponents}
            if name.startswith("other"):
                against["one"] = policies[name.replace("other", "one")]
            for opponent, player in against.items():
                means = played(game, policy, player, games, seed)
                rows[name].setdefault(opponent, []).append(means)
                print(f"pair {seed}  {name} against {opponent}: {100 * means['win_rate']:.1f} % of rounds", flush=True)
    over = {
        name: against
        and {
            opponent: {key: over_samples([means[key] for means in runs]) for key in MEANS}
            for opponent, runs in against.items()
        }
        for name, against in rows.items()
    }
    given = {"one": [overrides(run) for run in one], "other": [overrides(run) for run in other]}
    at = {name: at and [point.found for point in at] for name, at in points.items()}
    return {"games": games, **header, "overrides": given, "counters": at, "by_pair": rows, "over_pairs": over}


def _players(points: dict[str, list[Point] | None]) -> Iterator[tuple[Game, dict[str, Policy]]]:
    """Yields the game and the policies of each pair; all must play the first one's game by its rules."""
    names, of_pairs = zip(*((name, at) for name, at in points.items() if at is not None), strict=True)
    game = game_of(find(of_pairs[0][0].checkpoint))
    for pair in zip(*of_pairs, strict=True):
        trained = {name: find(point.checkpoint) for name, point in zip(names, pair, strict=True)}
        for player in trained.values():
            check_game(player, game, payoffs=True)
        yield game, {name: policy_of(player, game) for name, player in trained.items()}


def main() -> None:
    """Reads the arguments, plays, and writes all."""
    parser = Parser(__doc__)
    parser.add_argument("--one", nargs="+", type=Path, required=True, help="run directories of one learner")
    parser.add_argument("--other", nargs="+", type=Path, required=True, help="as many of the other")
    parser.add_argument("--opponents", nargs="+", default=list(OPPONENTS), help="names of envs.make_bot")
    parser.add_argument("--games", type=int, default=4000, help="mirrored rounds of a match (default %(default)s)")
    parser.add_argument(
        "--exploitability", action="store_true", help="play no match; read the exact values of the runs' evaluations"
    )
    parser.add_argument("--out", type=result_file, required=True, help="the JSON file to write")
    arguments = parser.parse_args()
    if len(arguments.one) != len(arguments.other):
        parser.exit(
            2, f"error: {len(arguments.one)} runs of one and {len(arguments.other)} of the other make no pairs\n"
        )
    try:
        if arguments.exploitability:
            found = compare_exploitability(arguments.one, arguments.other)
        else:
            found = compare(arguments.one, arguments.other, arguments.opponents, arguments.games)
        with writing(arguments.out):
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            write_json(arguments.out, found)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    print(arguments.out)


if __name__ == "__main__":
    main()
