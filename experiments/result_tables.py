"""The tables of results as lines of Markdown, one function a table, made from the files in experiments/results."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dream.evaluation.statistics import Interval, mean_interval

RESULTS = Path(__file__).resolve().parent / "results"
REPRODUCED = Path(__file__).resolve().parent / "reproduce" / "results"

RENAMED = (
    ("algo=dream_vr", "algo=dream"),
    ("algo=dream ", "algo=dueling_dream "),
    (".over=", ".transition_steps="),
    ("over:", "transition_steps:"),
    ("games_per_iteration", "episodes_per_iteration"),
    ("trace:", "gae_lambda:"),
)
"""Old -> new names, for command lines stored before the names changed."""
RUNS = {
    "runs/dream_slots": "`dueling_dream`, card scorer",
    "runs/escher": "`escher`, card scorer",
    "runs/ppo": "`ppo`, dense",
    "runs/dream": "`dueling_dream`, dense",
    "runs/dream_vr": "`dream`, card scorer",
}
"""Run in the stored ladder -> what it is."""


def stored(name: str) -> Any:
    """Returns a result file's content."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def reproduced(row: str) -> Any:
    """Returns the stored result of a row of reproduce/rows.yaml, None where there is none."""
    path = REPRODUCED / f"{row}.json"
    return json.loads(path.read_text()) if path.exists() else None


def table(head: str, rows: Iterable[Iterable[Any]], before: str = "") -> list[str]:
    """Returns the lines of a table.

    Args:
      head: names of the columns, between them " | ".
      rows: their cells.
      before: the line above it.
    """
    first, *others = (f"| {line} |" for line in (head, *(" | ".join(map(str, row)) for row in rows)))
    return [*([before, ""] if before else []), first, "|---" * (head.count(" | ") + 1) + "|", *others]


def over_samples(
    values: Sequence[float], interval: Callable[[np.ndarray], Interval] = mean_interval
) -> dict[str, float | None]:
    """Returns the mean and its interval over runs, or over pairs of them; one alone has none: null."""
    if len(values) < 2:
        return {"mean": float(values[0]), "low": None, "high": None}
    return interval(np.array(values))._asdict()


def percent(interval: dict[str, float | None]) -> str:
    """Returns a rate and its 95 % interval, cut to between 0 and 1, where it has one."""
    mean = f"{100 * interval['mean']:.2f} %"
    if interval["low"] is None:
        return mean
    low, high = max(interval["low"], 0.0), min(interval["high"], 1.0)
    return f"{mean} ({100 * low:.2f} to {100 * high:.2f})"


def signed(interval: dict[str, float | None]) -> str:
    """Returns points and their 95 % interval, where they have one, with signs."""
    return _written(interval, "+.2f")


def _written(interval: dict[str, float | None], form: str) -> str:
    mean, low, high = (None if x is None else format(x, form) for x in map(interval.get, ("mean", "low", "high")))
    return mean if low is None else f"{mean} ({low} to {high})"


def decided(report: dict[str, Any]) -> float:
    """Returns the share of rounds won of those that were not tied."""
    return report["win_rate"]["mean"] / (report["win_rate"]["mean"] + report["loss_rate"]["mean"])


def renamed(command: str) -> str:
    """Returns a stored command line by the names of today, for a shell: what it would expand is quoted."""
    for old, new in RENAMED:
        command = f"{command} ".replace(old, new).rstrip()
    return " ".join(f"'{word}'" if "{" in word else word for word in command.split(" "))


def against_random_table(name: str, overrides: str, cores: str) -> list[str]:
    """Returns the lines of the table of a recipe's runs against random play, and its picture.

    Args:
      name: the result file, without its suffix.
      overrides: of `python -m dream.run`.
      cores: what each run had, in words.
    """
    runs, rows = stored(name)["runs"], []
    for number, run in enumerate(runs):
        final = run["final"]
        cells = [run.get("seed", number), percent(final["win_rate"]), f"{100 * decided(final):.1f} %"]
        cells += [
            percent(final["knock_rate"]),
            "{mean:.1f} ({low:.1f} to {high:.1f})".format(**final["points_per_hand"]),
        ]
        cells += [f"{final['mean_length']['mean']:.0f}", f"{run['decisions'] / 1e6:.1f} M"]
        rows.append([*cells, f"{run['seconds'] / 60:.1f}", f"{run['compile_seconds'] / 60:.1f}"])
    lines = table(
        "seed | rounds won | of those not tied | knocked | points per hand | moves per round | decisions | minutes | "
        "of them compiling",
        rows,
        f"`python -m dream.run {overrides} seed=<s>` against uniform random play, "
        f"{runs[0]['final']['n']:,} rounds on mirrored deals, 95 % intervals; {runs[0]['device']}, {cores}:",
    )
    return [*lines, "", f"![rounds won against random play](../../experiments/results/{name}.svg)"]


STRENGTH = (
    ("ppo_gin_rummy_laptop", "preset=laptop by rounds won"),
    ("ppo_gin_rummy_mdp", "algo=ppo env=gin_rummy_mdp preset=laptop"),
    ("openspiel_ppo", "experiment=openspiel_ppo preset=laptop"),
    ("openspiel_ppo_cards", "experiment=openspiel_ppo_cards"),
    ("openspiel_ppo_cards_35m", "experiment=openspiel_ppo_cards iterations=2136"),
    (
        "openspiel_open_hands",
        "experiment=openspiel_ppo_cards env.rules.observation=open_hands iterations=534 algo.num_envs=1024 "
        "algo.rollout_length=64 algo.batch_size=2048 algo.epochs=2",
    ),
    ("escher_gin_rummy", "algo=escher env=gin_rummy iterations=28"),
    ("dream_gin_rummy_fading", "algo=dream env=gin_rummy iterations=28"),
    (
        "dream_gin_rummy",
        "algo=dream env=gin_rummy algo.exploration=0.05 algo.weights.clip=20 algo.values.policy=stored "
        "algo.correction.trace=1 algo.correction.clip=null iterations=35",
    ),
    ("dueling_dream_cards", "preset=laptop experiment=dueling_dream_cards"),
)
"""Result file -> overrides of dream.run, without the seed."""
OPEN = "open_hands"
"""In a command: the learner saw the opponent's hand, so that what it won is no result of the game."""


def strength_table() -> list[str]:
    """Returns the lines of the table of single runs on full gin rummy."""
    rows = []
    for name, command in STRENGTH:
        for seed, run in enumerate(stored(name)["runs"]):
            final = run["final"]
            reports = run.get("final_by_opponent", {final["opponent"]: final})
            rates = [percent(reports[x]["win_rate"]) if x in reports else "" for x in ("random", "simple_bot")]
            what = f"`{command} seed={seed}`" + (" (sees the opponent's hand: another game)" if OPEN in command else "")
            decisions, minutes = f"{run['decisions'] / 1e6:.2f} M", f"{run['seconds'] / 60:.0f}"
            rows.append([what, *rates, f"{final['n']:,}", decisions, minutes])
    return table(
        "`python -m dream.run ...` | against random | against the simple bot | rounds | decisions | minutes",
        rows,
        "One line per run. All but `openspiel_ppo`, which uses convolutions, share one scorer over all "
        "cards (`network.card_scorer_width`). Rounds won on mirrored deals, 95 % intervals; one core of the same "
        "machine, often shared, the first player on two (its seeds 3 and 4 on one); minutes with waits. The result "
        "files hold whole command lines:",
    )


def learners_table() -> list[str]:
    """Returns the lines of the tables that compare the dueling DREAM agent with PPO: rounds won, points per hand."""
    result = stored("dueling_dream_ppo")
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
    runs = [renamed(" ".join(result["overrides"][side][0])) for side in ("one", "other")]
    before = (
        f"Mean over {result['pairs']} pairs of runs with its 95 % t-interval, {result['games']:,} rounds per match on "
        f"mirrored deals ({spending}; times {_seconds(result)}). {_apart(result['counters'])}"
        f"Runs: dueling DREAM `{runs[0]}`, PPO `{runs[1]}`, and further seeds."
    )
    lines = []
    for what, key, shown in (("rounds won", "win_rate", percent), ("points per hand", "points_per_hand", signed)):
        rows = []
        for opponent in over["other_at_equal_seconds"]:
            cells = [shown(own[opponent][key]) if opponent in own else "" for own in over.values()]
            rows.append(["dueling DREAM" if opponent == "one" else f"`{opponent}`", *cells])
        head = " | ".join([f"{what} against", *titles.values()])
        lines += [*table(head, rows, before), ""]
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
    rows, results = [], stored("dueling_dream_ppo_exploitability")
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
            cells += [_written(result["over_pairs"][name], ".3f") for name in both]
        rows.append(cells)
    kinds = " or ".join(sorted(set(map(_seconds, results.values()))))
    return table(
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


def ladder_table() -> list[str]:
    """Returns the lines of the ladder's table."""
    players = stored("ladder_gin_rummy")
    lines = table(
        "player | rating",
        [(RUNS.get(x["name"], f"`{x['name']}`"), _rating(x)) for x in players],
        f"`python -m dream.ladder env=gin_rummy players=[...]`, {players[0]['results'][0]['n']:,} rounds per pairing "
        "on mirrored deals: ratings (Bradley-Terry, 400 for odds of ten to one) with 95 % intervals. Trained players "
        "are seed 0 of the runs above, but for the dense ones, which are earlier runs of 300 seconds "
        "([0020](../decisions/0020-ppo-laptop-gin.md)); the picture has the names of their folders then.",
    )
    return [*lines, "", "![ratings](../../experiments/results/ladder_gin_rummy.svg)"]


def _rating(x: dict[str, Any]) -> str:
    return f"{x['rating']:.0f} ({x['low']:.0f} to {x['high']:.0f})"


def games_ladder_table() -> list[str]:
    """Returns the lines of the ladder by rounds, games and points under EAAI's rules."""
    players = stored("ladder_gin_eaai")
    lines = table(
        "player | rating by rounds won | rating by games won | points per hand",
        [(f"`{x['name']}`", _rating(x), _rating(x["games"]), _points_rating(x["points"])) for x in players],
        "`experiments/gin_ladder.py`: rounds under the rules of the EAAI 2021 challenge, "
        f"{players[0]['results'][0]['n']:,} per pairing on mirrored deals, and the games to 100 they make. All ratings "
        "have mean 0.",
    )
    figure = "../../experiments/results/ladder_gin_eaai_games.svg"
    return [*lines, "", f"![games to 100 won by the row's player against the column's, %]({figure})"]


def _points_rating(points: dict[str, Any]) -> str:
    return f"{points['rating']:+.2f} ({points['low']:+.2f} to {points['high']:+.2f})"


def relations_table() -> list[str]:
    """Returns the lines of the table of published pairings."""
    rows = []
    for x in stored("gin_relations")["relations"]:
        games = (
            "{:.1f} % ({:.1f} to {:.1f})".format(*(100 * y for y in x["game_win_rate"])) if x["game_win_rate"] else ""
        )
        mean, bottom, top = x["points_per_hand"]
        published = "" if x["published"] is None else f"{100 * x['published']:.1f} %"
        cells = [f"`{x['player']}`", f"`{x['opponent']}`", games, published]
        cells += [f"{mean:+.2f} ({bottom:+.2f} to {top:+.2f})", f"{x['deals']:,}"]
        rows.append([*cells, f"{x['core_seconds'] / (2 * x['deals']):.3f}"])
    return table(
        "player | against | games won | published | points per hand | deals | core seconds per round",
        rows,
        "`experiments/gin_relations.py`: games to 100 under EAAI's rules, from mirrored rounds, against what others "
        "published of players like these, with 95 % intervals.",
    )


def pairings_table() -> list[str]:
    """Returns the lines of the table of single pairings: rule bots, and the search levels."""
    rows = []
    for name, pairings in (
        ("rule_bots", (("lookahead", "simple_bot"),)),
        ("levels", (("lv4", "heuristic"), ("lv5", "lv4"), ("lv7", "lv5"))),
    ):
        results = {(entry["name"], r["opponent"]): r for entry in stored(name) for r in entry["results"]}
        for one, other in pairings:
            result = results[one, other]
            cells = [f"`{one}`", f"`{other}`", percent(result["win_rate_excluding_ties"])]
            rows.append([*cells, signed(result["points_per_hand"]), f"{result['n']:,}"])
    return table(
        "player | against | rounds won, excluding ties | points per hand | rounds",
        rows,
        "`python -m dream.ladder env=gin_rummy players=[<player>,<against>] games=<rounds>`, mirrored deals, "
        "95 % intervals:",
    )


def variants_table() -> list[str]:
    """Returns the lines of the table of variants of the runs against OpenSpiel's simple bot."""
    names = (
        "three planes of cards",
        "and what the opponent discarded (`recall`)",
        "and the opponent's hand (`open_hands`: another game)",
        "win bonus 200, larger batches",
        "win bonus 2000, larger batches",
    )
    rows = []
    for name, run in zip(names, stored("openspiel_variants")["runs"], strict=True):
        final, decisions = run["final"], f"{run['decisions'] / 1e6:.2f} M"
        rows.append([name, percent(final["win_rate"]), signed(final["points_per_hand"]), decisions])
    return table(
        "variant | rounds won | points per hand | decisions",
        rows,
        "Variants of `experiment=openspiel_ppo_cards`, one seed each, against the simple bot, 10,000 rounds on "
        "mirrored deals. The last two differ in the bonus for winning alone:",
    )


def calibration_table() -> list[str]:
    """Returns the lines of the table that compares lower bounds with exact exploitability."""
    rows = []
    for result in stored("calibration").values():
        cells = [f"`{result['game']}`, {result['unit']}", str(result["iterations"])]
        cells.append(f"{result['exact']['exploitability']:.3g}")
        for kind in ("learned", "local"):
            value = "{mean:.3f} ({low:.3f} to {high:.3f})".format(**result[kind]["exploitability"])
            cells += [value, f"{result[f'{kind}_over_exact']:.2f}"]
        rows.append([*cells, " ".join(f"`{override}`" for override in result["overrides"])])
    return table(
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
    for deck, x in stored("mini_gin_play").items():
        play, endings = x["play"], x["play"]["endings"]
        cells = [f"`{deck}`", f"{x['histories']:,}", f"{x['information_sets']:,}", f"{x['nash_conv']:.2g}"]
        cells += [f"{x['nash_conv_uniform']:.2f}", f"{x['value_to_player_0']:+.2f}"]
        cells += [f"{100 * play['takes_the_pile_at_draw']:.0f} %", f"{100 * play['knocks_when_gin']:.0f} %"]
        rows.append([*cells, f"{100 * (endings.get('tie', 0) + endings.get('dead', 0)):.0f} %"])
    return table(
        "deck | histories | information sets | NashConv | of uniform play | value to player 0 | takes the pile | "
        "knocks at gin | ties and dead rounds",
        rows,
        "`python experiments/mini_gin_play.py`: CFR+ on the reduced decks, and how its average policy plays. NashConv "
        "is in points; shares are of a player's chances, or of rounds:",
    )
