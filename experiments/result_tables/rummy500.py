"""The tables of results on rummy 500."""

from __future__ import annotations

from typing import Any

from result_tables import common


def _of_match(report: dict[str, Any]) -> list[str]:
    """Returns rounds won and the mean score of a match, with their intervals."""
    return [common.percent(report["shared_win_rate"]), "{mean:.1f} ({low:.1f} to {high:.1f})".format(**report["score"])]


def shaped_table() -> list[str]:
    """Returns the lines of the table of PPO with the shaped reward, a row for each number of players and seed."""
    rows = []
    for name, run in common.stored("rummy500_shaped").items():
        (players, seed), finals = name.split("/"), run["final_by_opponent"]
        met = [common.percent(one["shared_win_rate"]) for one in run.get("against_seed", {}).values()]
        rounds, minutes = f"{256 * run['iterations']:,}", f"{run['seconds'] / 60:.1f}"
        cells = [players, seed.removeprefix("seed"), *_of_match(finals["random"]), *_of_match(finals["greedy"])]
        rows.append([*cells, *(met[:1] or [""]), rounds, minutes])
    return common.table(
        "players | seed | against random: won | mean score | against greedy: won | mean score | "
        "against the next seed: won | rounds trained | minutes",
        rows,
        "`python experiments/rummy500_shaped.py`: `algo=ppo env.rules.reward=shaped`, trained against random and "
        "greedy players. One trained player, the other seats by one kind of player, every deal from every "
        "seat; judged by the score, not the shaped reward. 95 % intervals of one run each; with n players an even "
        "share is 1 / n.",
    )


def players_table() -> list[str]:
    """Returns the lines of the table of players that need no training, by number of players."""
    return common.table(
        "players | player | against | rounds won | mean score | rounds",
        [
            (x["num_players"], f"`{x['player']}`", f"`{x['opponent']}`", *_of_match(x), f"{x['n']:,}")
            for x in common.stored("rummy500_players").values()
        ],
        "`python experiments/rummy500_players.py --counts 2 3 4 --seed 20 --out <new file>`: one player, the "
        "other seats by one kind of player, every deal from every seat; 95 % intervals. With n players an even share "
        "is 1 / n.",
    )
