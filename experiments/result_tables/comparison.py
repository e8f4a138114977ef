"""The tables of the comparison of all learners, as lines of Markdown, from the stored results of comparison.py."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from result_tables import common

WITH_A_TREE = {"leduc": "leduc_poker", "liars_dice": "liars_dice", "mini_gin_4x2": "mini_gin_rummy 4x2"}
"""Game in the rows of reproduce/rows.yaml -> its name in other result files."""
REPRODUCED = {
    "deep_cfr": "deep_cfr",
    "dream": "dream",
    "dueling_dream": "dueling_dream_tuned",
    "dueling_dream, accumulating": "dueling_dream_accumulating",
    "dueling_dream, accumulating by a critic": "dueling_dream_critic",
    "escher": "escher",
    "mmd": "mmd",
    "mmd, by a critic": "mmd_critic",
    "mmd, by a critic, last iterate": "mmd_critic_last",
    "nfsp": "nfsp",
    "os_sd_cfr": "os_sd_cfr",
    "ppo": "ppo_tuned",
    "rnad": "rnad",
    "sd_cfr": "sd_cfr",
    "vr_dcfr_plus": "vr_dcfr_plus",
}
"""Learner of the comparison -> its rows in reproduce/rows.yaml, without the game."""


def comparison_table(result: str = "comparison") -> list[str]:
    """Returns the lines of a stored table: a learner's exploitability on each game at one budget, over seeds."""
    return lines_of(common.stored(result))


def lines_of(compared: dict[str, Any]) -> list[str]:
    """Returns the lines of the table of what was collected."""
    games = dict(sorted(compared.items()))
    names = sorted({name for game in games.values() for name in game["learners"]})
    usual = [statistics.mode(len(x["seeds"]) for x in game["learners"].values()) for game in games.values()]
    titles = [f"{name}, {game['unit']}, n {n}" for (name, game), n in zip(games.items(), usual, strict=True)]
    rows = [["uniform play", "", *(f"{game['uniform']:.3f}" for game in games.values())]]
    for name in names:
        policies = sorted({p for g in games.values() for p in g["learners"].get(name, {}).get("exploitability", {})})
        for policy in policies:
            pairs = zip(games.values(), usual, strict=True)
            rows.append([f"`{name}`", policy, *(_cell(game["learners"].get(name), policy, n) for game, n in pairs)])
    return common.table(" | ".join(["learner", "policy", *titles]), rows)


def judged(policies: dict[str, Any]) -> str:
    """Returns the policy a learner is judged by: its average where its theory is about that, else its last iterate."""
    return "average" if "average" in policies else "current"


def _cell(learner: dict[str, Any] | None, policy: str, usual: int) -> str:
    """Returns mean and interval, bold for what the learner is judged by, with an unusual number of seeds."""
    found = learner and learner["exploitability"].get(policy)
    if not found:
        return ""
    text = f"{found['mean']:.3f}"
    if found["low"] is not None and found["high"] > 1000 * found["low"]:
        text += f" (seeds {min(found['values']):.3f} to {max(found['values']):.3f})"
    elif found["low"] is not None:
        text += f" ({found['low']:.3f} to {found['high']:.3f})"
    seeds = len(found["values"])
    text = f"**{text}**" if policy == judged(learner["exploitability"]) else text
    return text if seeds == usual else f"{text}, n {seeds}"


def with_a_tree_table() -> list[str]:
    """Returns the lines of the table: each learner on the games with a tree, from the rows of reproduce/rows.yaml."""
    uniform = common.stored("dueling_dream_ppo_exploitability")
    found = {
        game: {name: common.reproduced(f"{game}_{row}") for name, row in REPRODUCED.items()} for game in WITH_A_TREE
    }
    kept = {game: [result for result in rows.values() if result] for game, rows in found.items()}
    budgets = {game: statistics.mode(round(x["nodes"] / 1e6) for x in rows) for game, rows in kept.items()}
    counts = {game: statistics.mode(x["seeds"] for x in rows) for game, rows in kept.items()}
    titles = [
        f"{name}, {uniform[name]['unit']}, {budgets[game]} M nodes, n {counts[game]}"
        for game, name in WITH_A_TREE.items()
    ]
    rows = [["uniform play", "", *(f"{uniform[name]['uniform']:.3f}" for name in WITH_A_TREE.values())]]
    for name in REPRODUCED:
        policy = next((results[name]["policy"] for results in found.values() if results[name]), "")
        cells = [_cell_of_row(results[name], budgets[game], counts[game]) for game, results in found.items()]
        rows.append([f"`{name}`", policy, *cells])
    return common.table(" | ".join(["learner", "policy", *titles]), rows)


def _cell_of_row(result: dict[str, Any] | None, millions: int, usual: int) -> str:
    """Returns a row's mean and interval in the game's unit, with an unusual number of nodes or seeds."""
    if not result:
        return ""
    mean, low, high = (None if x is None else x / 1000 for x in (result["mean"], result["low"], result["high"]))
    text = f"{mean:.3f}" if low is None else f"{mean:.3f} ({low:.3f} to {high:.3f})"
    nodes = result["nodes"] / 1e6
    text += f", {nodes:.1f} M" if round(nodes) != millions else ""
    return text if result["seeds"] == usual else f"{text}, n {result['seeds']}"


def comparison_costs_table(result: str = "comparison") -> list[str]:
    """Returns the lines of the table: what a run of each learner took on each game, the mean over seeds."""
    games = dict(sorted(common.stored(result).items()))
    names = sorted({name for game in games.values() for name in game["learners"]})
    rows = []
    for name in names:
        found = [game["learners"].get(name) for game in games.values()]
        cells = [f"{x['nodes'] / 1e6:.2f} M nodes, {x['seconds']:.0f} s" if x else "" for x in found]
        rows.append([f"`{name}`", *cells])
    return common.table(" | ".join(["learner", *games]), rows)


def matches_table() -> list[str]:
    """Returns the lines of the table: what each learner earns from the others, per game that was played."""
    rows = []
    for game, played in sorted(common.stored("comparison_matches").items()):
        for name, by_other in sorted(played["earned"].items(), key=lambda one: -statistics.mean(one[1].values())):
            worst = min(by_other, key=by_other.__getitem__)
            mean = f"{statistics.mean(by_other.values()):+.3f}"
            cells = [f"{game}, {played['unit']}", f"`{name}`", played["seeds"][name], mean]
            rows.append([*cells, f"{by_other[worst]:+.3f}", f"`{worst}`"])
    return common.table("game | learner | seed | mean over the others | least | from", rows)


def trials_table() -> list[str]:
    """Returns the lines of the table: what was tried for each learner and what came of it; bold where it was best."""
    rows = []
    for name, groups in sorted(common.stored("comparison_trials").items()):
        best = min(trial["objective"] for group in groups for trial in group["trials"])
        rows += [(f"`{name}`", _nodes(group), _given(group), _tried(group), _outcomes(group, best)) for group in groups]
    return common.table("learner | nodes | given | tried | exploitability", rows)


def tuning_table(
    result: str, outcome: str = "exploitability", shown: Callable[[float], str] = "{:.3f}".format
) -> list[str]:
    """Returns the lines of the table: what was tried for the learners of each game; bold where it was best.

    Args:
      result: name of the file of trials.
      outcome: title of the last column.
      shown: an objective, which is minimised, as text.
    """
    rows = []
    found = [(name, group) for name, groups in common.stored(result).items() for group in groups]
    for name, group in sorted(found, key=lambda x: (x[1]["game"], x[0])):
        same = [other for named, other in found if (named, other["game"]) == (name, group["game"])]
        best = min(trial["objective"] for other in same for trial in other["trials"])
        cells = [f"`{group['game']}`", f"`{name}`", _nodes(group)]
        rows.append([*cells, _given(group), _tried(group), _outcomes(group, best, shown)])
    return common.table(f"game | learner | nodes | given | tried | {outcome}", rows)


def _nodes(group: dict[str, Any]) -> str:
    return f"{min(trial['nodes'] for trial in group['trials']) / 1e6:.1f} M"


def _given(group: dict[str, Any]) -> str:
    return ", ".join(f"`{text.removeprefix('algo.')}`" for text in group["given"])


def _tried(group: dict[str, Any]) -> str:
    return ", ".join(f"`{key.removeprefix('algo.')}`" for key in group["trials"][0]["settings"])


def _outcomes(group: dict[str, Any], best: float, shown: Callable[[float], str] = "{:.3f}".format) -> str:
    """Returns each trial's settings with its objective; those that are equal in all trials of the group once."""
    found, names = [], _apart([trial["settings"] for trial in group["trials"]])
    for trial in group["trials"]:
        text = f"{', '.join(str(trial['settings'][name]) for name in names)}: {shown(trial['objective'])}"
        found.append(f"**{text}**" if trial["objective"] == best else text)
    return "; ".join(found)


def _apart(trials: list[dict[str, Any]]) -> list[str]:
    """Returns the settings of trials but for those that always have an earlier one's value."""
    found: dict[str, list[Any]] = {}
    for name in trials[0]:
        values = [settings[name] for settings in trials]
        if values not in found.values():
            found[name] = values
    return list(found)
