"""Tables of the trained players of gin rummy and of bounds on them, as lines of Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import envs
from dream.storage import levels
from result_tables.common import decided, over_samples, percent, renamed, signed, stored, table

LAPTOP, BY_POINTS, BY_ROUNDS = "gin_rummy/laptop", "gin_rummy/laptop_points", "gin_rummy/laptop_rounds"
"""The player of `preset=laptop`, and shorter ones for points alone and for rounds; none comes with the package."""
SELF_PLAY = "gin_rummy/laptop_self_play"
"""The last of them, trained against itself alone."""
POPULATION = ("simple_bot", "marjj", "camper", "eaai_simple")
"""The rule-based players that the first of them meets in training."""


CURRICULUM = ("heuristic", "aggressive_knock", "meld_builder", "early_knock", "defensive")
"""The rule-based players that the 16-action document's recipe meets in training, at its size for two cores."""


def by_seed(runs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Returns stored runs of a player in the order of their seeds, which are texts there."""
    return sorted(runs.items(), key=lambda item: int(item[0]))


def laptop_field_table(name: str = LAPTOP) -> list[str]:
    """Returns the lines of the table of a player of `preset=laptop` against each player of the field, over seeds."""
    runs = [run for _, run in by_seed(stored("shipped_weights")[name])]
    command = renamed(runs[-1]["command"].rpartition(" seed=")[0])  # that of seed 0 was not kept of one player
    spent = ", ".join(f"{run['decisions'] / 1e6:.1f} M in {run['seconds'] / 60:.1f} minutes" for run in runs)
    rows = []
    for opponent in runs[0]["strength"]:
        points, won = _points_and_won(runs, opponent)
        each = ", ".join(f"{run['strength'][opponent]['points_per_hand']['mean']:+.1f}" for run in runs)
        rows.append([f"`{opponent}`", points, each, won])
    return table(
        "against | points per hand | by seed | rounds won",
        rows,
        f"`{command} seed=<s>`, decisions by seed: {spent}; {runs[0]['device']}, commit "
        f"{_commits(runs)}. {runs[0]['strength']['random']['n']:,} rounds with each seed; means over the {len(runs)} "
        "seeds with 95 % t-intervals:",
    )


def _points_and_won(runs: list[dict[str, Any]], opponent: str, reports: str = "strength") -> tuple[str, str]:
    """Returns points per hand against an opponent over seeds, with the 95 % t-interval of several, and rounds won."""
    results = [run[reports][opponent] for run in runs]
    points = over_samples([x["points_per_hand"]["mean"] for x in results])
    return signed(points), f"{100 * np.mean([x['win_rate']['mean'] for x in results]):.1f} %"


def population_table() -> list[str]:
    """Returns the lines of the table of what the rule-based players in training are worth, over seeds."""
    found = stored("shipped_weights")
    population, alone = ([run for _, run in by_seed(found[name])] for name in (BY_ROUNDS, SELF_PLAY))
    command = renamed(alone[0]["command"].removesuffix(" seed=0"))
    return table(
        "against | met in training | the population's | rounds won | against itself alone | rounds won",
        [
            [
                f"`{opponent}`",
                "yes" if opponent in POPULATION else "",
                *_points_and_won(population, opponent),
                *_points_and_won(alone, opponent),
            ]
            for opponent in alone[0]["strength"]
        ],
        f"`{command} seed=<s>`, {len(alone)} seeds, beside the {len(population)} by rounds won: the same recipe "
        "and as many decisions, against itself as it was in all rounds. "
        f"{alone[0]['strength']['random']['n']:,} rounds with each seed; points per hand, means over seeds with 95 % "
        "t-intervals, and rounds won:",
    )


def curriculum_table() -> list[str]:
    """Returns the lines of the table of the 16-action document's recipe, against each player of its curriculum."""
    runs = stored("r42")["runs"]
    rows = []
    for opponent in runs[0]["final_by_opponent"]:
        points, won = _points_and_won(runs, opponent, "final_by_opponent")
        each = [run["final_by_opponent"][opponent] for run in runs]
        seeds = ", ".join(f"{100 * one['win_rate']['mean']:.1f} %" for one in each)
        rows.append([f"`{opponent}`", "yes" if opponent in CURRICULUM else "", won, seeds, points])
    spent = ", ".join(f"{run['seconds'] / 60:.0f}" for run in runs)
    return table(
        "against | met in training | rounds won | by seed | points per hand",
        rows,
        f"`python -m dream.run experiment=r42 preset=laptop seed=<s>`, {len(runs)} seeds, "
        f"{runs[0]['decisions'] / 1e6:.1f} M decisions each in {spent} minutes of a core with other work beside. "
        f"{runs[0]['final']['n']:,} rounds against each on mirrored deals; points per hand are means over seeds with "
        "95 % t-intervals:",
    )


def scores_table() -> list[str]:
    """Returns the lines of the table of what knowing the score is worth."""
    found = stored("gin_scores")
    names, rows = [f"`{name}`" for name in found["players"]], []
    for match in found["matches"]:
        rates = ["{:.1f} % ({:.1f} to {:.1f})".format(*(100 * x for x in one))
                 for one in (*match["alone"], match["by_score"])]  # fmt: skip
        gain = "{:+.2f} ({:+.2f} to {:+.2f})".format(*(100 * x for x in match["gain"]))
        there = f"{100 * match['gain_where_chosen']:+.2f}"
        rows.append([f"`{match['opponent']}`", *rates, gain, there, f"{100 * match['share'][0]:.0f} %"])
    return table(
        f"against | {' | '.join(f'{name} alone' for name in names)} | chosen by the score | gain over the better one, "
        f"percentage points | the same on the deals it was chosen by | scores at which {names[0]} plays",
        rows,
        f"`{found['command']}`: games to 100 under EAAI's rules, {found['matches'][0]['deals']:,} mirrored deals with "
        "each player; the choice follows from one half of them, all figures from the other. 95 % intervals:",
    )


def _commits(runs: list[dict[str, Any]]) -> str:
    """Returns the commits that runs were made by, those of later sittings included."""
    made = [sitting for run in runs for sitting in (run, *run.get("resumed", ()))]
    return " and ".join(dict.fromkeys(str(one["git_commit"])[:7] for one in made))


def accumulating_table() -> list[str]:
    """Returns the lines of the table of dueling DREAM that accumulates, against the two players it is judged by."""
    runs, rows = stored("dueling_dream_accumulating")["runs"], []
    for seed, run in enumerate(runs):
        simple, camper = (run["final_by_opponent"][name] for name in ("simple_bot", "camper"))
        rows.append([
            seed, percent(simple["win_rate"]), f"{100 * decided(simple):.1f} %",
            signed(simple["points_per_hand"]), percent(camper["win_rate"]), signed(camper["points_per_hand"]),
            f"{run['decisions'] / 1e6:.1f} M", f"{run['seconds'] / 60:.0f}",
        ])  # fmt: skip
    return table(
        "seed | rounds won against `simple_bot` | of those not tied | points per hand | rounds won against `camper` | "
        "points per hand | decisions | minutes",
        [*rows, _over_seeds(runs)],
        f"`python -m dream.run experiment=dueling_dream_accumulating seed=<s>`, {runs[0]['final']['n']:,} rounds "
        "against each on mirrored deals, 95 % intervals, the last row's over the seeds; "
        f"{runs[0]['device']}, one core, tests and training beside it:",
    )


def _over_seeds(runs: list[dict[str, Any]]) -> list[str]:
    """Returns the row of means over runs, with 95 % t-intervals."""

    def mean(opponent: str, of: Callable[[dict[str, Any]], float], text: Callable[[dict[str, float]], str]) -> str:
        return text(over_samples([of(run["final_by_opponent"][opponent]) for run in runs]))

    def won(report: dict[str, Any]) -> float:
        return report["win_rate"]["mean"]

    def points(report: dict[str, Any]) -> float:
        return report["points_per_hand"]["mean"]

    return [
        "mean", mean("simple_bot", won, percent), mean("simple_bot", decided, percent),
        mean("simple_bot", points, signed), mean("camper", won, percent), mean("camper", points, signed), "", "",
    ]  # fmt: skip


def shipped_table() -> list[str]:
    """Returns the lines of the tables of the players that come with the package, against each player of their field."""
    lines = []
    for name, seeds in sorted(stored("shipped_weights").items()):
        if name not in (LAPTOP, SELF_PLAY, BY_POINTS, BY_ROUNDS):
            lines += [*_shipped(name, dict(by_seed(seeds))), ""]
    return lines[:-1]


def _shipped(name: str, seeds: dict[str, dict[str, Any]]) -> list[str]:
    """Returns the lines about one player: the seed that is shipped in full, of the others their points."""
    (first, run), *others = seeds.items()
    by_seed = [
        f"seed {seed}: {one['decisions'] / 1e6:.1f} M decisions in {one['seconds'] / 60:.0f} minutes, commit "
        f"{_commits([one])}"
        for seed, one in seeds.items()
    ]
    rows = []
    for opponent, result in run["strength"].items():
        rates = [f"{100 * result[rate]['mean']:.1f} %" for rate in ("loss_rate", "gin_rate", "knock_rate")]
        met = [one["strength"].get(opponent) for _, one in others]
        again = ["" if each is None else signed(each["points_per_hand"]) for each in met]
        rows.append(
            [
                f"`{opponent}`",
                signed(result["points_per_hand"]),
                *again,
                percent(result["win_rate"]),
                *rates,
            ]
        )
    return table(
        f"against | points per hand, seed {first} | {''.join(f'seed {seed} | ' for seed, _ in others)}rounds won | "
        "lost | gin | knocked",
        rows,
        f"`{name}`, `{run['command'].removesuffix(f' seed={first}')} seed=<s>`, {run['device']}; {'; '.join(by_seed)}. "
        f"{run['strength']['random']['n']:,} rounds per pairing; rates are of seed {first}.",
    )


def levels_table() -> list[str]:
    """Returns the lines of the table of levels, and of other players against the same field."""
    found = stored("gin_levels")
    field, rows, game = found["field"], [], envs.make("gin_rummy")
    games = sorted({x["games"] for x in found["players"].values()})
    rounds = f"{games[0]:,}" + (f" to {games[-1]:,}" if len(games) > 1 else "")
    for player, x in sorted(found["players"].items(), key=lambda item: item[1]["points_per_hand"]["mean"]):
        plays = levels.player_of(player, game)
        cells = [f"{x['by_opponent'][name]['mean']:+.1f}" if name != plays else "" for name in field]
        rows.append([_called(player), signed(x["points_per_hand"]), *cells])
    return table(
        " | ".join(["player", "mean", *(f"`{name}`" for name in field)]),
        rows,
        "`experiments/gin_levels.py`: points per hand by the game's default rules, "
        f"{rounds} mirrored rounds per pairing; the mean over the field, in which a player has 0 "
        "against itself, and by opponent.",
    )


def _called(player: str) -> str:
    """Returns a player as the table calls it, of a level who it is."""
    if not levels.is_level(player):
        return f"`{player}`"
    name, mistakes = levels.level(player, envs.make("gin_rummy"))
    return f"`{player}`: `{name}`" + (f", {100 * mistakes:.0f} % of its moves at random" if mistakes else "")


def bound_table() -> list[str]:
    """Returns the lines of the lower bounds on the strongest players and on the dense agent, as of today and before."""
    recent = [[*_bound(stored(f"gin_rummy_{name}_bound")), ""] for name in ("points", "strong", "dense")]
    dense = stored("gin_rummy_bound")
    dense |= {"policy": dense["policy"].replace("preset=laptop", "experiment=dueling_dream_dense")}
    return [*itertools.chain(*recent), *_bound(dense)]


def _bound(result: dict[str, Any]) -> list[str]:
    """Returns the lines of one lower bound."""
    bound, local = result["exploitability"], result.get("local")
    looked = "" if local is None else (
        f" The local best response, on {local['n']} rounds, found {signed(local['exploitability'])}."
    )  # fmt: skip
    return table(
        "answer | points per hand against the agent, on the deals of the choice",
        [(f"`{name}`", f"{value:+.1f}") for name, value in sorted(result["earned"].items(), key=lambda x: -x[1])],
        f"`{renamed(result['policy'])}`, measured by `{renamed(result['command'])}`. Exploitability is at least "
        f"**{bound['low']:.1f} points per hand**: {bound['mean']:.1f} measured, 95 % interval {bound['low']:.1f} to "
        f"{bound['high']:.1f}.{looked}",
    )
