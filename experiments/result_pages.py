"""Writes the tables of results into docs/ and the README from the result files; --check fails where the two differ.

    python experiments/result_pages.py
    python experiments/result_pages.py --check

A page holds its tables between `<!-- section -->` and `<!-- /section -->`; everything else in it is written by hand.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from result_tables import common, gin_rummy, small_games
from result_tables.benchmarks import accelerator_table, benchmark_table, measured
from result_tables.comparison import (
    comparison_costs_table,
    comparison_table,
    judged,
    matches_table,
    trials_table,
    tuning_table,
    with_a_tree_table,
)
from result_tables.corrections import corrections_table
from result_tables.phantom import costs_table, peer_table, random_play_table, solvers_table, wide_network_table
from result_tables.players import (
    BY_POINTS,
    BY_ROUNDS,
    LAPTOP,
    accumulating_table,
    bound_table,
    by_seed,
    curriculum_table,
    laptop_field_table,
    levels_table,
    population_table,
    scores_table,
    shipped_table,
)
from result_tables.rummy500 import players_table, shaped_table
from result_tables.scaling import cost_table, seconds_table
from result_tables.search import beliefs_table, losses_table, search_table
from scripting.arguments import Parser

from dream.evaluation.statistics import mean_interval

ROOT = Path(__file__).resolve().parents[1]
README, PAGES = ROOT / "README.md", ROOT / "docs"
GIN, SMALL, SPEED = "docs/results/gin_rummy.md", "docs/results/small_games.md", "docs/performance.md"
Line = tuple[str, str, str]
"""Of the README's table: what, the value, the page with more."""


def _rates(name: str, opponent: str) -> str:
    """Returns the mean over a result file's seeds of the rounds won against an opponent, with its t-interval.

    Where the seeds are so few and so different that the interval leaves 0 to 100 %, each seed is listed instead.
    """
    finals = [
        run.get("final_by_opponent") or {run["final"]["opponent"]: run["final"]} for run in common.stored(name)["runs"]
    ]
    if len(finals) == 1:
        return f"{common.percent(finals[0][opponent]['win_rate'])} of rounds, one seed"
    rates = np.array([100 * final[opponent]["win_rate"]["mean"] for final in finals])
    mean, low, high = mean_interval(rates)
    if not 0 <= low <= high <= 100:
        return f"{', '.join(f'{rate:.1f}' for rate in rates)} % of rounds, {len(rates)} seeds"
    return f"{mean:.1f} % of rounds ({low:.1f} to {high:.1f}), {len(rates)} seeds"


def _rummy500_rows() -> list[Line]:
    """Returns the rows of rummy 500."""
    page, players = "docs/results/rummy500.md", common.stored("rummy500_players")
    found = [
        (
            f"Rule-based player `heuristic` of rummy 500 against {own} `greedy`",
            f"{common.percent(players[f'{count}/heuristic/greedy']['shared_win_rate'])} of rounds, ties shared",
            page,
        )
        for count, own in ((2, "one"), (3, "two"))
    ]
    shaped = [run for name, run in common.stored("rummy500_shaped").items() if name.startswith("3/")]
    rates = [run["final_by_opponent"]["greedy"]["shared_win_rate"]["mean"] for run in shaped]
    means = ", ".join(f"{100 * rate:.1f}" for rate in rates)
    what = "PPO on rummy 500 with the shaped reward, against two `greedy`"
    return [*found, (what, f"{means} % of rounds, ties shared", page)]


def _points_line(name: str, title: str = "") -> Line:
    """Returns the line about a trained player: points per hand against three others, by seed."""
    seeds = by_seed(common.stored("shipped_weights")[name])
    opponents = ("lookahead", "marjj", "camper")
    met = [[run["strength"][opponent]["points_per_hand"] for opponent in opponents] for _, run in seeds]
    points = [", ".join(f"{x['mean']:+.1f}" for x in of_seed) for of_seed in met]
    half = max(x["high"] - x["low"] for of_seed in met for x in of_seed) / 2
    how = "trained on again from the same weights" if "algo.start_from=" in seeds[0][1]["command"] else "trained again"
    again = f"; {how}: {'; '.join(points[1:])}" if points[1:] else ""
    return (
        f"{title or f'`{name}`'}, without search, against " + ", ".join(f"`{opponent}`" for opponent in opponents),
        f"{points[0]} points per hand{again} (each ±{half:.1f})",
        GIN,
    )


def _minutes(name: str) -> str:
    """Returns the fewest and the most minutes of a trained player's runs."""
    seconds = [run["seconds"] for _, run in by_seed(common.stored("shipped_weights")[name])]
    return f"{min(seconds) / 60:.0f} to {max(seconds) / 60:.0f}"


def _rounds_line(name: str, title: str) -> Line:
    """Returns the line about a trained player: rounds won against OpenSpiel's simple bot, over seeds."""
    runs = [run for _, run in by_seed(common.stored("shipped_weights")[name])]
    rates = [100 * run["strength"]["simple_bot"]["win_rate"]["mean"] for run in runs]
    if len(rates) == 1:
        value = f"{rates[0]:.1f} % of rounds, one seed"
    else:
        value = "{:.1f} % of rounds ({:.1f} to {:.1f}), {} seeds".format(*mean_interval(np.array(rates)), len(rates))
    return (f"{title}, against OpenSpiel's simple bot", value, GIN)


def _games_line(name: str, opponents: tuple[str, ...]) -> Line:
    """Returns the line about a player's games to 100."""
    found = {
        one["opponent"]: [100 * x for x in one["game_win_rate"]]
        for one in common.stored("gin_relations")["relations"]
        if one["player"] == name
    }
    return (
        f"`{name}` in games to 100 under EAAI's rules, games won against "
        + ", ".join(f"`{opponent}`" for opponent in opponents),
        ", ".join("{:.1f} % ({:.1f} to {:.1f})".format(*found[opponent]) for opponent in opponents),
        GIN,
    )


def _search_line() -> Line:
    """Returns the line about a search against the policy it searches with, and what it wins more against another."""
    found = common.stored("gin_search")
    name, met = found["policy"]["name"], {x["opponent"]: x for x in found["pairings"] if x["player"] == "search"}
    return (
        f"`search:gin_rummy/{name}` against `gin_rummy/{name}`; its gain over that policy against `lv5`",
        "{:+.1f} points per hand ({:+.1f} to {:+.1f}); ".format(*met["policy"]["points_per_hand"])
        + "{:+.1f} ({:+.1f} to {:+.1f})".format(*met["lv5"]["more_than_policy"]),
        GIN,
    )


def _strongest_rows() -> list[Line]:
    """Returns the lines about the strongest players of gin rummy."""
    bound = common.stored("gin_rummy_points_bound")["exploitability"]
    played = common.stored("gin_search")["pairings"]
    (searched,) = (x for x in played if (x["player"], x["opponent"]) == ("search", "policy"))
    return [
        _points_line("gin_rummy/points"),
        _games_line("gin_rummy/points", ("eaai_simple", "marjj")),
        _search_line(),
        (
            "Lower bounds on the exploitability of `gin_rummy/points`: a learned response that starts from it, and "
            "`search:gin_rummy/points`",
            "{mean:.1f} ({low:.1f} to {high:.1f}) and ".format(**bound)
            + "{:.1f} points per hand ({:.1f} to {:.1f})".format(*searched["points_per_hand"]),
            GIN,
        ),
        _points_line("gin_rummy/strong"),
        _games_line("gin_rummy/strong", ("eaai_simple", "marjj", "mc:512")),
        _points_line(LAPTOP, f"`preset=laptop`, {_minutes(LAPTOP)} minutes on one core"),
        _rounds_line(LAPTOP, "`preset=laptop`"),
    ]


def _gin_rows() -> list[Line]:
    """Returns the lines about the other players of gin rummy."""
    bound = common.stored("gin_rummy_dense_bound")["exploitability"]
    pair = next(r for x in common.stored("rule_bots") if x["name"] == "lookahead" for r in x["results"])
    runs = {
        "Dueling DREAM with a dense network, five minutes on two cores, against random play": ("laptop", "random"),
        "The dueling DREAM document's own recipe at its own size, 500 iterations, against random play": (
            "document",
            "random",
        ),
        "The same with a step size that falls and a tenth of the weight for actions not taken, 268 iterations, "
        "against random play": ("document_falling", "random"),
        "`experiment=document_small`, half of the document's games, an annealed step, a narrower network, "
        "37 minutes on two cores (one seed; the other four 71 to 91 on one), "
        "against random play": (
            "document_small",
            "random",
        ),
        "Dueling DREAM with a card scorer, against OpenSpiel's simple bot": ("dueling_dream_cards", "simple_bot"),
        "Dueling DREAM with accumulation, 23 to 52 minutes on one core, against OpenSpiel's simple bot": (
            "dueling_dream_accumulating",
            "simple_bot",
        ),
        "PPO on the 16-action game, against the simple bot": ("ppo_gin_rummy_mdp", "simple_bot"),
        "PPO on OpenSpiel's game, 3.2 M decisions, against the simple bot": ("openspiel_ppo_cards", "simple_bot"),
    }
    return [
        *((what, _rates(*run), GIN) for what, run in runs.items()),
        (
            "Rule-based player `lookahead`, against the simple bot, excluding ties",
            common.percent(pair["win_rate_excluding_ties"]),
            GIN,
        ),
        (
            "Lower bound on the exploitability of the dense agent, by a learned response that starts from `camper`",
            f"{bound['mean']:.1f} points per hand ({bound['low']:.1f} to {bound['high']:.1f})",
            GIN,
        ),
    ]


def _leduc_rows() -> list[Line]:
    """Returns the lines about Leduc poker."""
    rows = ("dream_paper", "dream", "dueling_dream_critic", "mmd_critic", "ppo_tuned", "dueling_dream_tuned")
    measured = [common.reproduced(f"leduc_{name}") for name in rows]
    uniform = common.stored("dueling_dream_ppo_exploitability")["leduc_poker"]["uniform"]
    published, at_5m = f"{measured[0]['published'] / 1000:g}", "Exploitability on Leduc poker after 5 M nodes"
    names = (
        f"Exploitability on Leduc poker (uniform play: {uniform:.3f}): DREAM, recipe of its paper, 1,111 iterations "
        f"(published: {published})",
        f"{at_5m}: DREAM, our settings",
        f"{at_5m}: dueling DREAM that accumulates, with a critic of histories, average policy, "
        f"{measured[2]['seeds']} seeds",
        f"{at_5m}: MMD with a critic of histories, averaged parameters, {measured[3]['seeds']} seeds",
        f"{at_5m}: PPO, tuned for self-play",
        f"{at_5m}: dueling DREAM as documented, tuned with as many trials as PPO",
    )
    return [
        (name, f"{x['mean'] / 1000:.3f} chips{_between(x)}", SMALL) for name, x in zip(names, measured, strict=True)
    ]


def _between(row: dict[str, Any]) -> str:
    """Returns the interval of a reproduced row, or that it is of one seed."""
    return ", one seed" if row["low"] is None else f" ({row['low'] / 1000:.3f} to {row['high'] / 1000:.3f})"


_PHANTOM_GAMES = {"phantom_ttt": ("phantom tic-tac-toe", 2), "dark_hex": ("Dark Hex", 3)}
"""Game -> its title, and the digits of an exploitability that differ between learners."""


def _comparison_rows() -> list[Line]:
    """Returns the lines about all learners on one budget, some of them on one game, and on ten times that budget."""
    at_one = (
        "ppo", "dueling_dream, accumulating by a critic", "vr_dcfr_plus", "escher", "mmd", "dueling_dream", "dream",
    )  # fmt: skip
    at_ten = (
        "vr_dcfr_plus", "mmd, annealed, uniform magnet", "ppo, annealed", "escher", "dueling_dream, annealed", "rnad",
        "nfsp", "dueling_dream", "ppo", "mmd", "dream",
    )  # fmt: skip
    on_dark_hex = (
        "vr_dcfr_plus", "ppo, annealed, entropy too", "mmd, annealed, uniform magnet", "mmd", "ppo, annealed", "ppo",
        "dueling_dream, annealed", "dueling_dream", "rnad",
    )  # fmt: skip
    return [
        _comparison_row("phantom_ttt", "comparison", 1, at_one),
        _comparison_row("phantom_ttt", "comparison_10m", 10, at_ten),
        _comparison_row("dark_hex", "comparison_10m", 10, on_dark_hex),
    ]


def _comparison_row(name: str, result: str, millions: int, learners: tuple[str, ...]) -> Line:
    game, (title, digits) = common.stored(result)[f"{name} classical"], _PHANTOM_GAMES[name]

    def found(learner: str) -> str:
        head, _, rest = learner.partition(", ")
        policies = game["learners"][learner]["exploitability"]
        return f"`{head}` {rest} {policies[judged(policies)]['mean']:.{digits}f}".replace("  ", " ")

    return (
        f"Exploitability on {title} after {millions} M nodes (uniform play: {game['uniform']:.3f})",
        "; ".join(found(learner) for learner in learners),
        "docs/results/comparison.md",
    )


def _cost_rows() -> list[Line]:
    """Returns the lines about what takes how long."""
    exact = [common.stored("exact_values")[f"dark_hex {version}"] for version in ("classical", "abrupt")]
    sizes = " and ".join(f"{run['information_sets'] / 1e6:.0f} M" for run in exact)
    return [
        (
            f"Exact exploitability on Dark Hex, {sizes} information sets",
            " and ".join(f"{run['nash_conv_seconds']:.1f}" for run in exact) + " s",
            "docs/games/phantom.md",
        ),
        (
            "Uniform random play of gin rummy, two CPU cores",
            f"{measured('random_play', 'decisions_per_s') / 1e6:.1f} M decisions per second",
            SPEED,
        ),
        (
            "Hand evaluator, best division of 15 cards of two decks, one by one and 4,096 hands at once",
            " and ".join(
                f"{measured('hand_evaluator', f'uniform {how} hands_per_s') / 1000:,.0f} k"
                for how in ("from_scratch", "batched")
            )
            + " hands per second",
            SPEED,
        ),
    ]


def headline_table() -> list[str]:
    """Returns the lines of the README's table."""
    rows = [*_strongest_rows(), *_gin_rows(), *_leduc_rows(), *_comparison_rows(), *_rummy500_rows(), *_cost_rows()]
    cells = [(what, value, f"[{Path(page).stem}]({page})") for what, value, page in rows]
    return common.table("what | measured, with 95 % interval | details", cells)


DOCUMENT_RUNS = {
    "document": ("network.dtype=bfloat16 iterations=500", "two cores, other work at first"),
    "document-falling": (
        'network.dtype=bfloat16 algo.untaken_weight=0.1 "algo.learning_rate_decay={start: 1, end: 0, '
        'transition_steps: 333, form: cosine}" algo.temperature.transition_steps=267 algo.uniform_iterations=13 '
        "iterations=268",
        "two cores, other work at idle priority beside most of it",
    ),
    "document-small": ("experiment=document_small", "one core beside other work, seed 4 two cores"),
    "document-small-40": (
        "experiment=document_small algo.epochs=40 algo.epoch_unit=minibatches",
        "one core beside other work",
    ),
    "document-small-constant": (
        "experiment=document_small iterations=400 algo.learning_rate_decay.end=1",
        "one core beside other work",
    ),
    "document-small-weight": ("experiment=document_small algo.untaken_weight=1", "one core beside other work"),
    "document-small-128": (
        "experiment=document_small iterations=800 algo.episodes_per_iteration=128 algo.batch_size=512 algo.epochs=40 "
        "algo.epoch_unit=minibatches algo.learning_rate_decay.end=1",
        "one core",
    ),
}
"""Section of the page, and name of the result file, -> overrides and cores of runs of the dueling DREAM recipe."""

SECTIONS: dict[tuple[Path, str], Callable[[], list[str]]] = {
    (README, "results"): headline_table,
    (PAGES / "results" / "gin_rummy.md", "shipped"): shipped_table,
    (PAGES / "results" / "gin_rummy.md", "laptop-preset"): laptop_field_table,
    (PAGES / "results" / "gin_rummy.md", "laptop-points"): functools.partial(laptop_field_table, BY_POINTS),
    (PAGES / "results" / "gin_rummy.md", "laptop-rounds"): functools.partial(laptop_field_table, BY_ROUNDS),
    (PAGES / "results" / "gin_rummy.md", "population"): population_table,
    (PAGES / "results" / "gin_rummy.md", "scores"): scores_table,
    (PAGES / "results" / "gin_rummy.md", "accumulating"): accumulating_table,
    (PAGES / "results" / "gin_rummy.md", "laptop"): functools.partial(
        gin_rummy.against_random_table, "laptop", "experiment=dueling_dream_dense", "two cores, seeds 3 and 4 one"
    ),
    (PAGES / "results" / "gin_rummy.md", "curriculum"): curriculum_table,
    (PAGES / "results" / "gin_rummy.md", "runs"): gin_rummy.strength_table,
    (PAGES / "results" / "gin_rummy.md", "corrections"): functools.partial(corrections_table, "gin_rummy"),
    (PAGES / "results" / "gin_rummy.md", "variants"): gin_rummy.variants_table,
    (PAGES / "results" / "gin_rummy.md", "learners"): small_games.learners_table,
    (PAGES / "results" / "gin_rummy.md", "learners-trials"): functools.partial(
        tuning_table, "gin_trials", "points per hand", lambda objective: f"{-objective:+.1f}"
    ),
    (PAGES / "results" / "gin_rummy.md", "ladder"): gin_rummy.ladder_table,
    (PAGES / "results" / "gin_rummy.md", "games-ladder"): gin_rummy.games_ladder_table,
    (PAGES / "results" / "gin_rummy.md", "relations"): gin_rummy.relations_table,
    (PAGES / "results" / "gin_rummy.md", "pairings"): gin_rummy.pairings_table,
    (PAGES / "results" / "gin_rummy.md", "levels"): levels_table,
    (PAGES / "results" / "gin_rummy.md", "search"): search_table,
    (PAGES / "results" / "gin_rummy.md", "beliefs"): beliefs_table,
    (PAGES / "results" / "gin_rummy.md", "beliefs-mdp"): functools.partial(beliefs_table, "gin_beliefs_gin_rummy_mdp"),
    (PAGES / "results" / "gin_rummy.md", "losses"): losses_table,
    (PAGES / "results" / "gin_rummy.md", "bound"): bound_table,
    (PAGES / "results" / "small_games.md", "learners"): small_games.exploitability_table,
    (PAGES / "results" / "small_games.md", "corrections"): functools.partial(corrections_table, "leduc_poker"),
    (PAGES / "results" / "small_games.md", "trials"): functools.partial(tuning_table, "small_games_trials"),
    (PAGES / "results" / "small_games.md", "calibration"): small_games.calibration_table,
    (PAGES / "results" / "small_games.md", "mini-gin"): small_games.mini_gin_table,
    (PAGES / "results" / "comparison.md", "comparison"): comparison_table,
    (PAGES / "results" / "comparison.md", "comparison-10m"): functools.partial(comparison_table, "comparison_10m"),
    (PAGES / "results" / "comparison.md", "costs-10m"): functools.partial(comparison_costs_table, "comparison_10m"),
    (PAGES / "results" / "comparison.md", "with-a-tree"): with_a_tree_table,
    (PAGES / "results" / "comparison.md", "matches"): matches_table,
    (PAGES / "results" / "comparison.md", "comparison-costs"): comparison_costs_table,
    (PAGES / "results" / "comparison.md", "trials"): trials_table,
    (PAGES / "results" / "rummy500.md", "players"): players_table,
    (PAGES / "results" / "rummy500.md", "shaped"): shaped_table,
    (PAGES / "games" / "phantom.md", "costs"): costs_table,
    (PAGES / "games" / "phantom.md", "wide-network"): wide_network_table,
    (PAGES / "games" / "phantom.md", "peer"): peer_table,
    (PAGES / "games" / "phantom.md", "solvers"): solvers_table,
    (PAGES / "games" / "phantom.md", "random-play"): random_play_table,
    (PAGES / "performance.md", "benchmarks"): benchmark_table,
    (PAGES / "performance.md", "accelerator"): accelerator_table,
    (PAGES / "scaling.md", "cost"): cost_table,
    (PAGES / "scaling.md", "seconds"): seconds_table,
    **{
        (PAGES / "results" / "gin_rummy.md", section): functools.partial(
            gin_rummy.against_random_table, section.replace("-", "_"), *run
        )
        for section, run in DOCUMENT_RUNS.items()
    },
}


def fill(page: Path, section: str, blocks: list[list[str]], *, check: bool, command: str) -> None:
    """Puts blocks of lines between the markers of a section of a page, or ends with code 1 where it has others.

    Args:
      page: the file.
      section: `<!-- section -->` and `<!-- /section -->` are the markers.
      blocks: lines of Markdown; an empty line comes between blocks.
      check: whether to compare only.
      command: what writes the section, for the message.
    """
    text = page.read_text()
    start, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    before, rest = text.split(start)
    after = rest.split(end)[1]
    body = "\n\n".join("\n".join(block) for block in blocks)
    new = f"{before}{start}\n\n{body}\n\n{end}{after}"
    if check and new != text:
        print(f"error: {page.name}, {section}, differs from the result files; run python {command}", file=sys.stderr)
        sys.exit(1)
    if not check:
        page.write_text(new)


def main() -> None:
    """Runs the command."""
    parser = Parser(__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail where a page differs")
    check = parser.parse_args().check
    for (page, section), table in SECTIONS.items():
        fill(page, section, [table()], check=check, command="experiments/result_pages.py")


if __name__ == "__main__":
    main()
