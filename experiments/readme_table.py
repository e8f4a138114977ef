"""Writes the README's table of results from the files in experiments/results; --check fails where the two differ."""

from __future__ import annotations

import argparse
import functools
import json
import operator
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS, README = ROOT / "experiments" / "results", ROOT / "README.md"


def percent(interval: dict[str, float]) -> str:
    """Returns a rate and its 95 % interval, as far as it lies between 0 and 1."""
    low, high = max(interval["low"], 0.0), min(interval["high"], 1.0)
    return f"{100 * interval['mean']:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def laptop_table() -> list[str]:
    """Returns the lines of the laptop preset's table."""
    path = RESULTS / "laptop.json"
    if not path.exists():
        return []
    runs = json.loads(path.read_text())["runs"]
    lines = [
        "`python -m dream.run preset=laptop seed=<s>` against uniform random play, "
        f"{runs[0]['final']['n']:,} mirrored hands, 95 % intervals; {runs[0]['device']}, two cores:",
        "",
        "| seed | hands won | knocked | points a hand | decisions | minutes | of them compiling |",
        "|---|---|---|---|---|---|---|",
    ]
    for seed, run in enumerate(runs):
        final = run["final"]
        points = final["points_per_hand"]
        lines.append(
            f"| {seed} | {percent(final['win_rate'])} | {percent(final['knock_rate'])} "
            f"| {points['mean']:.1f} ({points['low']:.1f} to {points['high']:.1f}) "
            f"| {run['decisions'] / 1e6:.1f} M | {run['seconds'] / 60:.1f} | {run['compile_seconds'] / 60:.1f} |"
        )
    return [*lines, "", "![hands won against random](experiments/results/laptop.svg)"]


STRENGTH = (
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
    ("dream_gin_rummy", "algo=dream env=gin_rummy iterations=35"),
    ("dueling_dream_cards", "preset=laptop experiment=dueling_dream_cards"),
)
"""Result file -> what was asked of dream.run."""
OPEN = "open_hands"
"""In a command: the learner saw the opponent's hand, so that what it won is no result of the game."""


def strength_table() -> list[str]:
    """Returns the lines of the table of single runs on full gin rummy."""
    lines = []
    for name, command in STRENGTH:
        path = RESULTS / f"{name}.json"
        for seed, run in enumerate(json.loads(path.read_text())["runs"] if path.exists() else []):
            final = run["final"]
            reports = run.get("final_by_opponent", {final["opponent"]: final})
            rates = [percent(reports[x]["win_rate"]) if x in reports else "" for x in ("random", "simple_bot")]
            hands, minutes = f"{final['n']:,}", f"{run['seconds'] / 60:.0f}"
            told = f"`{command} seed={seed}`" + (" (sees the opponent's hand: another game)" if OPEN in command else "")
            cells = [told, *rates, hands, f"{run['decisions'] / 1e6:.2f} M", minutes]
            lines.append("| " + " | ".join(cells) + " |")
    head = [
        "Runs on full gin rummy, a line each; all but `openspiel_ppo`, the document's convolutions, by a network "
        "that scores cards by one shared scorer (`network.card_scorer_width`). Hands won on mirrored deals, "
        "95 % intervals; one core of the same machine, often shared, minutes with waits; the result files hold "
        "whole command lines:",
        "",
        "| `python -m dream.run ...` | against random | against the simple bot | hands | decisions | minutes |",
        "|---|---|---|---|---|---|",
    ]
    return [*head, *lines] if lines else []


def learners_table() -> list[str]:
    """Returns the lines of the table that sets DREAM against PPO."""
    path = RESULTS / "dueling_dream_ppo.json"
    if not path.exists():
        return []
    told = json.loads(path.read_text())
    rows = told["over_pairs"]
    titles = {name: name.replace("one_at", "DREAM,").replace("other_at", "PPO,").replace("_", " ") for name in rows}
    spent = {
        name: " and ".join(
            f"{sum(x[key] for x in at) / len(at) / unit:.1f} {text}"
            for key, unit, text in (("decisions", 1e6, "M decisions"), ("seconds", 60, "minutes"))
        )
        for name, at in told["counters"].items()
    }
    commands = [" ".join(told["overrides"][name][0]) for name in ("one", "other")]
    spending = "; ".join(f"{titles[name]}: {text}" for name, text in spent.items())
    lines = [
        f"DREAM against PPO on `gin_rummy`, hands won, mean over {told['pairs']} pairs of runs with its 95 % "
        f"t-interval, {told['games']:,} mirrored hands a match ({spending}). Runs: "
        f"DREAM `{commands[0]}`, PPO `{commands[1]}`, and further seeds.",
        "",
        "| against | " + " | ".join(titles[name] for name in rows) + " |",
        "|---|" + "---|" * len(rows),
    ]
    for opponent in rows["other_at_equal_seconds"]:
        cells = [percent(own[opponent]["win_rate"]) if opponent in own else "" for own in rows.values()]
        lines.append(f"| {'DREAM' if opponent == 'one' else f'`{opponent}`'} | " + " | ".join(cells) + " |")
    return lines


def exploitability_table() -> list[str]:
    """Returns the lines of the table that sets DREAM's exploitability against PPO's."""
    path = RESULTS / "dueling_dream_ppo_exploitability.json"
    if not path.exists():
        return []
    games = json.loads(path.read_text())
    lines = [
        "Exact exploitability (NashConv / 2) of the current policies, DREAM against PPO: mean over pairs of runs with "
        "its 95 % interval on a log scale, at the last evaluation within the decisions, and within the seconds, that "
        "both have reached. "
        "`python experiments/reproduce/run.py <kuhn | leduc | liars_dice | mini_gin_4x2>_<dueling_dream | ppo>`, then "
        "`python experiments/compare_learners.py --exploitability --one runs/reproduce/*_dueling_dream/seed* "
        f"--other runs/reproduce/*_ppo/seed* --out experiments/results/{path.name}`:",
        "",
        "| game | uniform play | pairs | decisions | DREAM | PPO | seconds | DREAM | PPO |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for game, told in games.items():
        cells = [f"`{game}`, {told['unit']}", f"{told['uniform']:.3f}", f"{told['pairs']}"]
        for limit, unit, text in (("decisions", 1e6, "M"), ("seconds", 1, "s")):
            both = [f"{name}_at_equal_{limit}" for name in ("one", "other")]
            pairs = zip(*(told["by_pair"][name] for name in both), strict=True)
            spent = [max(x[limit] for x in pair) for pair in pairs]
            cells.append(f"{sum(spent) / len(spent) / unit:.3g} {text}")
            cells += ["{mean:.3f} ({low:.3f} to {high:.3f})".format(**told["over_pairs"][name]) for name in both]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def ladder_table() -> list[str]:
    """Returns the lines of the ladder's table."""
    path = RESULTS / "ladder_gin_rummy.json"
    if not path.exists():
        return []
    told = json.loads(path.read_text())
    games = told[0]["results"][0]["n"]
    lines = [
        f"`python -m dream.ladder env=gin_rummy players=[...]`, {games:,} mirrored hands a pairing: ratings "
        "(Bradley-Terry, 400 for odds of ten to one) with 95 % intervals; `runs/dream` and `runs/ppo` are seed 0 of "
        "DREAM against PPO, the other runs seed 0 of the table of runs on full gin rummy:",
        "",
        "| player | rating |",
        "|---|---|",
        *(f"| `{x['name']}` | {x['rating']:.0f} ({x['low']:.0f} to {x['high']:.0f}) |" for x in told),
    ]
    return [*lines, "", "![ratings](experiments/results/ladder_gin_rummy.svg)"]


def pairings_table() -> list[str]:
    """Returns the lines of the table of single pairings: rule bots, and the search levels."""
    rows = []
    for name, pairings in (
        ("rule_bots", (("lookahead", "simple_bot"),)),
        ("levels", (("lv4", "heuristic"), ("lv5", "lv4"), ("lv7", "lv5"))),
    ):
        path = RESULTS / f"{name}.json"
        told = json.loads(path.read_text()) if path.exists() else []
        results = {(entry["name"], r["opponent"]): r for entry in told for r in entry["results"]}
        for one, other in pairings:
            if (one, other) in results:
                result = results[one, other]
                points = result["points_per_hand"]
                rows.append(
                    f"| `{one}` | `{other}` | {percent(result['win_rate_excluding_ties'])} "
                    f"| {points['mean']:+.2f} ({points['low']:+.2f} to {points['high']:+.2f}) | {result['n']:,} |"
                )
    head = [
        "`python -m dream.ladder env=gin_rummy players=[<player>,<against>] games=<hands>`, mirrored hands, "
        "95 % intervals:",
        "",
        "| player | against | hands won, excluding ties | points a hand | hands |",
        "|---|---|---|---|---|",
    ]
    return [*head, *rows] if rows else []


def benchmark_table() -> list[str]:
    """Returns the lines of the benchmarks' table."""
    rows = []
    for name, key, text in (
        ("random_play", "decisions_per_s", "uniform random play, full legal mask, decisions/s"),
        ("random_play", "ratio", "the same over pyspiel's gin_rummy driven from Python"),
        ("openspiel_gin", "random games_per_s", "OpenSpiel's gin, uniform random play, games/s, both cores"),
        ("openspiel_gin", "random ratio", "the same over pyspiel's C++ loop on the same cores (target 20)"),
        ("openspiel_gin", "simple_bot games_per_s", "OpenSpiel's gin, simple bot against itself, games/s, both cores"),
        ("openspiel_gin", "simple_bot ratio", "the same over pyspiel's C++ loop on the same cores (target 10)"),
        ("selfplay", "decisions_per_s", "self-play with the document's network, decisions/s"),
        ("selfplay", "ratio", "the same over dense 4,887-vectors"),
        ("solvers", "leduc_poker iterations_per_s", "CFR on Leduc, iterations/s, one core"),
        ("solvers", "leduc_poker ratio", "the same over pyspiel's C++ solver"),
        ("solvers", "liars_dice iterations_per_s", "CFR on liar's dice, iterations/s, one core"),
        ("solvers", "liars_dice ratio", "the same over pyspiel's C++ solver"),
        ("solvers", "leduc_poker nash_conv_ms", "NashConv of a table on Leduc, milliseconds"),
        ("solvers", "liars_dice nash_conv_ms", "NashConv of a table on liar's dice, milliseconds"),
        ("memory", "peak_gib", "peak memory of one iteration of 8,192 games, GiB"),
    ):
        path = RESULTS / f"{name}.json"
        if path.exists():
            value = functools.reduce(operator.getitem, key.split(), json.loads(path.read_text()))
            rows.append(f"| {text} | {value:,.0f} |" if value > 1000 else f"| {text} | {value:.2f} |")
    head = [
        "Benchmarks (`experiments/benchmarks/`, medians, two shared CPU cores):",
        "",
        "| what | measured |",
        "|---|---|",
    ]
    return [*head, *rows] if rows else []


def fill(section: str, blocks: list[list[str]], *, check: bool, command: str, readme: Path = README) -> None:
    """Puts blocks of lines between the markers of a section of the README, or ends with code 1 where it has others.

    Args:
      section: `<!-- section -->` and `<!-- /section -->` are the markers.
      blocks: lines of Markdown; an empty line comes between blocks.
      check: whether to compare only.
      command: what writes the section, for the message.
      readme: the file.
    """
    text = readme.read_text()
    start, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    before, rest = text.split(start)
    after = rest.split(end)[1]
    body = "\n\n".join("\n".join(block) for block in blocks)
    new = f"{before}{start}\n\n{body}\n\n{end}{after}"
    if check and new != text:
        print(f"error: README.md differs from the result files; run python {command}", file=sys.stderr)
        sys.exit(1)
    if not check:
        readme.write_text(new)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, fail where the README differs")
    check = parser.parse_args().check
    tables = (
        laptop_table,
        learners_table,
        exploitability_table,
        ladder_table,
        pairings_table,
        strength_table,
        benchmark_table,
    )
    blocks = [block for block in (table() for table in tables) if block]
    fill("results", blocks, check=check, command="experiments/readme_table.py")


if __name__ == "__main__":
    main()
