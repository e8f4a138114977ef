"""Tables of the small games, and of dueling DREAM beside PPO."""

from __future__ import annotations

import functools
from typing import Any

from result_tables import common


def learners_table() -> list[str]:
    """Returns the lines of the tables that compare the dueling DREAM agent with PPO: rounds won, points per hand."""
    result = common.stored("dueling_dream_ppo")
    over = result["over_pairs"]
    sides = (("one_at", "dueling DREAM,"), ("other_at", "PPO,"), ("_", " "))
    titles = {name: functools.reduce(lambda text, x: text.replace(*x), sides, name) for name in over}
    spent = {
        name: " and ".join(
            f"{sum(x[key] for x in at) / len(at) / unit:.{digits}f} {text}"
            for key, unit, digits, text in (("decisions", 1e6, 2, "M decisions"), ("seconds", 60, 1, "minutes"))
        )
        for name, at in result["counters"].items()
    }
    spending = "; ".join(f"{titles[name]}: {text}" for name, text in spent.items())
    runs = [common.renamed(" ".join(result["overrides"][side][0])) for side in ("one", "other")]
    before = (
        f"Mean over {result['pairs']} pairs of runs with its 95 % t-interval, {result['games']:,} rounds per match on "
        f"mirrored deals ({spending}; times {_seconds(result)}). {_apart(result['counters'])}"
        f"Runs: dueling DREAM `{runs[0]}`, PPO `{runs[1]}`, and further seeds."
    )
    lines = []
    for what, key, shown in (
        ("rounds won", "win_rate", common.percent),
        ("points per hand", "points_per_hand", common.signed),
    ):
        rows = []
        for opponent in over["other_at_equal_seconds"]:
            cells = [shown(own[opponent][key]) if opponent in own else "" for own in over.values()]
            rows.append(["dueling DREAM" if opponent == "one" else f"`{opponent}`", *cells])
        head = " | ".join([f"{what} against", *titles.values()])
        lines += [*common.table(head, rows, before), ""]
        before = ""
    return lines[:-1]


def _apart(counters: dict[str, list[dict[str, float]]]) -> str:
    """Returns a sentence for each limit that should be equal for both learners and differs by more than 5 %."""
    found = ""
    for limit in ("decisions", "seconds"):
        less, more = sorted(
            sum(x[limit] for x in counters[f"{side}_at_equal_{limit}"]) / len(counters[f"{side}_at_equal_{limit}"])
            for side in ("one", "other")
        )
        if more > 1.05 * less:
            share = 100 * (more / less - 1)
            found += f"As checkpoints are some iterations apart, equal {limit} differ by {share:.0f} %. "
    return found


def _seconds(result: dict[str, Any]) -> str:
    """Returns what the seconds of a comparison are; one that does not say so is of the time before it did."""
    return result.get("seconds", "with compiling")


def exploitability_table() -> list[str]:
    """Returns the lines of the table that compares the dueling DREAM agent's exploitability with PPO's."""
    rows, results = [], common.stored("dueling_dream_ppo_exploitability")
    policies = {game: _policies(result) for game, result in results.items()}
    alike = len(set(policies.values())) == 1
    for game, result in results.items():
        title = f"`{game}`, {result['unit']}" + ("" if alike else f", {policies[game]}")
        cells = [title, f"{result['uniform']:.3f}", result["pairs"]]
        for limit, unit, text in (("decisions", 1e6, "M"), ("seconds", 1, "s")):
            both = [f"{name}_at_equal_{limit}" for name in ("one", "other")]
            pairs = zip(*(result["by_pair"][name] for name in both), strict=True)
            spent = [max(x[limit] for x in pair) for pair in pairs]
            cells.append(f"{sum(spent) / len(spent) / unit:.3g} {text}")
            cells += [common.written(result["over_pairs"][name], ".3f") for name in both]
        rows.append(cells)
    kinds = " or ".join(sorted(set(map(_seconds, results.values()))))
    return common.table(
        "game | uniform play | pairs | decisions | dueling DREAM | PPO | seconds | dueling DREAM | PPO",
        rows,
        f"Exact exploitability (NashConv / 2) of {next(iter(policies.values())) if alike else 'the policies named'}: "
        "mean over pairs of runs with its 95 % interval on a log scale, at the last evaluation within the decisions, "
        f"and within the seconds, that both have reached; seconds {kinds}:",
    )


def _policies(result: dict[str, Any]) -> str:
    """Returns which policies a comparison's exploitability is of; one that does not say so is of the current ones."""
    one, other = (result.get("policies", {}).get(side, "current") for side in ("one", "other"))
    return f"the {one} policies" if one == other else f"dueling DREAM's {one} and PPO's {other} policy"


def calibration_table() -> list[str]:
    """Returns the lines of the table that compares lower bounds with exact exploitability."""
    rows = []
    for result in common.stored("calibration").values():
        cells = [f"`{result['game']}`, {result['unit']}", str(result["iterations"])]
        cells.append(f"{result['exact']['exploitability']:.3g}")
        for kind in ("learned", "local"):
            value = "{mean:.3f} ({low:.3f} to {high:.3f})".format(**result[kind]["exploitability"])
            cells += [value, f"{result[f'{kind}_over_exact']:.2f}"]
        rows.append([*cells, " ".join(f"`{override}`" for override in result["overrides"])])
    return common.table(
        "game | iterations of CFR | exact | learned response | share of exact | local response | share of exact | "
        "settings",
        rows,
        "`python experiments/calibration.py <settings> --games <game> --iterations <n>`. The policy is CFR's average "
        "after so many iterations. Exploitability in the game's unit, 95 % intervals; a share of 1 would mean that the "
        "response is a best response:",
    )


def mini_gin_table() -> list[str]:
    """Returns the lines of the table of near-equilibrium play on the reduced decks."""
    rows = []
    for deck, x in common.stored("mini_gin_play").items():
        play, endings = x["play"], x["play"]["endings"]
        cells = [f"`{deck}`", f"{x['histories']:,}", f"{x['information_sets']:,}", f"{x['nash_conv']:.2g}"]
        cells += [f"{x['nash_conv_uniform']:.2f}", f"{x['value_to_player_0']:+.2f}"]
        cells += [f"{100 * play['takes_the_pile_at_draw']:.0f} %", f"{100 * play['knocks_when_gin']:.0f} %"]
        rows.append([*cells, f"{100 * (endings.get('tie', 0) + endings.get('dead', 0)):.0f} %"])
    return common.table(
        "deck | histories | information sets | NashConv | of uniform play | value to player 0 | takes the pile | "
        "knocks at gin | ties and dead rounds",
        rows,
        "`python experiments/mini_gin_play.py`: CFR+ on the reduced decks, and how its average policy plays. NashConv "
        "is in points; shares are of a player's chances, or of rounds:",
    )
