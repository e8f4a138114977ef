"""Tables of gin rummy: runs against fixed players, ladders, pairings, variants."""

from __future__ import annotations

from typing import Any

from result_tables import common

RUNS = {
    "runs/dream_slots": "`dueling_dream`, card scorer",
    "runs/escher": "`escher`, card scorer",
    "runs/ppo": "`ppo`, dense",
    "runs/dream": "`dueling_dream`, dense",
    "runs/dream_vr": "`dream`, card scorer",
}
"""Run in the stored ladder -> what it is."""


def against_random_table(name: str, overrides: str, cores: str) -> list[str]:
    """Returns the lines of the table of a recipe's runs against random play, and its picture.

    Args:
      name: the result file, without its suffix.
      overrides: of `python -m dream.run`.
      cores: what each run had, in words.
    """
    runs, rows = common.stored(name)["runs"], []
    for number, run in enumerate(runs):
        final = run["final"]
        cells = [run.get("seed", number), common.percent(final["win_rate"]), f"{100 * common.decided(final):.1f} %"]
        cells += [
            common.percent(final["knock_rate"]),
            "{mean:.1f} ({low:.1f} to {high:.1f})".format(**final["points_per_hand"]),
        ]
        cells += [f"{final['mean_length']['mean']:.0f}", f"{run['decisions'] / 1e6:.1f} M"]
        rows.append([*cells, f"{run['seconds'] / 60:.1f}", f"{run['compile_seconds'] / 60:.1f}"])
    lines = common.table(
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
        for seed, run in enumerate(common.stored(name)["runs"]):
            final = run["final"]
            reports = run.get("final_by_opponent", {final["opponent"]: final})
            rates = [common.percent(reports[x]["win_rate"]) if x in reports else "" for x in ("random", "simple_bot")]
            what = f"`{command} seed={seed}`" + (" (sees the opponent's hand: another game)" if OPEN in command else "")
            decisions, minutes = f"{run['decisions'] / 1e6:.2f} M", f"{run['seconds'] / 60:.0f}"
            rows.append([what, *rates, f"{final['n']:,}", decisions, minutes])
    return common.table(
        "`python -m dream.run ...` | against random | against the simple bot | rounds | decisions | minutes",
        rows,
        "One line per run. All but `openspiel_ppo`, which uses convolutions, share one scorer over all "
        "cards (`network.card_scorer_width`). Rounds won on mirrored deals, 95 % intervals; one core of the same "
        "machine, often shared, the first player on two (its seeds 3 and 4 on one); minutes with waits. The result "
        "files hold whole command lines:",
    )


def ladder_table() -> list[str]:
    """Returns the lines of the ladder's table."""
    players = common.stored("ladder_gin_rummy")
    lines = common.table(
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
    players = common.stored("ladder_gin_eaai")
    lines = common.table(
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
    for x in common.stored("gin_relations")["relations"]:
        games = (
            "{:.1f} % ({:.1f} to {:.1f})".format(*(100 * y for y in x["game_win_rate"])) if x["game_win_rate"] else ""
        )
        mean, bottom, top = x["points_per_hand"]
        published = "" if x["published"] is None else f"{100 * x['published']:.1f} %"
        cells = [f"`{x['player']}`", f"`{x['opponent']}`", games, published]
        cells += [f"{mean:+.2f} ({bottom:+.2f} to {top:+.2f})", f"{x['deals']:,}"]
        rows.append([*cells, f"{x['core_seconds'] / (2 * x['deals']):.3f}"])
    return common.table(
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
        results = {(entry["name"], r["opponent"]): r for entry in common.stored(name) for r in entry["results"]}
        for one, other in pairings:
            result = results[one, other]
            cells = [f"`{one}`", f"`{other}`", common.percent(result["win_rate_excluding_ties"])]
            rows.append([*cells, common.signed(result["points_per_hand"]), f"{result['n']:,}"])
    return common.table(
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
    for name, run in zip(names, common.stored("openspiel_variants")["runs"], strict=True):
        final, decisions = run["final"], f"{run['decisions'] / 1e6:.2f} M"
        rows.append([name, common.percent(final["win_rate"]), common.signed(final["points_per_hand"]), decisions])
    return common.table(
        "variant | rounds won | points per hand | decisions",
        rows,
        "Variants of `experiment=openspiel_ppo_cards`, one seed each, against the simple bot, 10,000 rounds on "
        "mirrored deals. The last two differ in the bonus for winning alone:",
    )
