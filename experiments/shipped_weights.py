"""Trains, measures and exports the players that come with the package; measures that of `preset=laptop` too.

    python experiments/shipped_weights.py train gin_rummy/strong --seed 1     # or goes on with a run that was stopped
    python experiments/shipped_weights.py measure gin_rummy/strong --seed 1   # against the field; stored
    python experiments/shipped_weights.py ship gin_rummy/strong --seed 0      # into dream/weights, with its card

Only a run of the recipe that has ended is measured, and only what was measured is shipped: the run's newest checkpoint
must have the stored iteration and checksum.

Runs are in runs/shipped/<game>/<name>/seed<n>, or where --runs says. Every player of the field is met on deals of its
own pairing, each deal from both seats; no deal was watched in training. experiments/results/shipped_weights.json holds
each seed's figures, so that another seed's can be set beside those of the weights that are shipped.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from scripting.arguments import Parser
from scripting.child_runs import go_on
from scripting.run_records import check_asked, difference, finished, origin, stored_result

import dream
import envs
from dream.evaluation import match
from dream.storage import files, shipped
from dream.storage.policies import Trained, find, find_player, game_of, policy_of
from dream.training import metrics
from envs import Game, InputError

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "experiments" / "results" / "shipped_weights.json"
WEIGHTS = ROOT / "dream" / "weights"
KEPT = ("win_rate", "loss_rate", "tie_rate", "points_per_hand", "gin_rate", "knock_rate", "undercut_rate")


class Recipe(NamedTuple):
    """How a player is trained, and what it is measured against.

    Attributes:
      overrides: of python -m dream.run.
      field: players by name.
      rounds: per player of the field.
    """

    overrides: tuple[str, ...]
    field: tuple[str, ...]
    rounds: int = 12000


_GIN_FIELD = (
    "random", "simple_bot", "greedy", "eaai_simple", "marjj", "camper", "patient", "heuristic", "defensive",
    "early_knock", "aggressive_knock", "meld_builder", "lookahead",
)  # fmt: skip
_POPULATION = (  # of experiment=ppo_gin_rummy
    "algo.opponents=[past_self,simple_bot,marjj,camper,eaai_simple]", "algo.shares=[0.35,0.2,0.15,0.15,0.15]",
)  # fmt: skip
_SHORT = (
    "preset=laptop", "iterations=300", "algo.learning_rate_decay.transition_steps=300", "checkpoint.every=50",
    "eval.every=50", "algo.shaping.win_bonus_after=0",
)  # fmt: skip
"""The preset at the length that it had."""
_ROUNDS = (*_SHORT, "algo.shaping={form:potential,scale:{start:0,end:0,transition_steps:1},win_bonus:150}")
"""The same as it was, by rounds won."""
RECIPES = {
    "gin_rummy/strong": Recipe(("experiment=ppo_gin_rummy", "iterations=1500"), _GIN_FIELD),
    "gin_rummy/points": Recipe(  # goes on from the one above, by what the game pays alone
        (
            "experiment=ppo_gin_rummy", "iterations=700", "algo.start_from=gin_rummy/strong",
            "algo.shaping.win_bonus=0", "algo.learning_rate=5e-4",
        ),
        ("gin_rummy/strong", *_GIN_FIELD),
    ),
    "gin_rummy/laptop": Recipe(("preset=laptop",), _GIN_FIELD, 6000),
    "gin_rummy/laptop_rounds": Recipe(_ROUNDS, _GIN_FIELD, 6000),
    "gin_rummy/laptop_self_play": Recipe(  # what the rule-based players of the population are worth
        (*_ROUNDS, "algo.opponents=[past_self]", "algo.shares=null"), _GIN_FIELD, 6000
    ),
    "gin_rummy/laptop_points": Recipe(  # by what the game pays, and at first for deadwood too
        (*_SHORT, "algo.shaping={scale:{transition_steps:150},win_bonus:0}"), _GIN_FIELD, 6000
    ),
    "gin_rummy_openspiel/ppo": Recipe(
        ("experiment=openspiel_ppo_cards",), ("random", "simple_bot", "greedy", "marjj", "lookahead")
    ),
    "gin_rummy_openspiel/strong": Recipe(
        (
            "experiment=openspiel_ppo_cards", "iterations=1000", *_POPULATION,
            "algo.pool_every=10", "algo.shaping.win_bonus=50.0", "checkpoint.every=50", "eval.every=50",
        ),
        _GIN_FIELD,
    ),
    "gin_rummy_openspiel/points": Recipe(
        (
            "experiment=openspiel_ppo_cards", "iterations=700", *_POPULATION, "algo.pool_every=10",
            "algo.start_from=gin_rummy_openspiel/strong", "algo.shaping.win_bonus=0", "algo.learning_rate=5e-4",
            "checkpoint.every=50", "eval.every=50",
        ),
        ("gin_rummy_openspiel/strong", *_GIN_FIELD),
    ),
    "gin_rummy_mdp/strong": Recipe(
        ("experiment=ppo_gin_rummy", "env=gin_rummy_mdp", "network.recall=false", "iterations=1000"), _GIN_FIELD
    ),
    "gin_rummy_mdp/points": Recipe(
        (
            "experiment=ppo_gin_rummy", "env=gin_rummy_mdp", "network.recall=false", "iterations=700",
            "algo.start_from=gin_rummy_mdp/strong", "algo.shaping.win_bonus=0", "algo.learning_rate=5e-4",
        ),
        ("gin_rummy_mdp/strong", *_GIN_FIELD),
    ),
    "gin_rummy_mdp/ppo": Recipe(
        ("algo=ppo", "env=gin_rummy_mdp", "preset=laptop"), ("random", "simple_bot", "heuristic", "lookahead")
    ),
}  # fmt: skip


def train(name: str, seed: int, run: Path) -> None:
    """Starts a run, over where it was stopped before its first checkpoint, or goes on with it."""
    if code := go_on([*RECIPES[name].overrides, f"seed={seed}"], run, "tracking.mode=disabled"):
        sys.exit(code)


def field(name: str, game: Game) -> list[str]:
    """Returns the players of a recipe's field that play a game."""
    known = [*envs.bot_names(game), *shipped.names(game.name)]
    return [opponent for opponent in RECIPES[name].field if opponent in known]


def of_recipe(name: str, seed: int, run: Path) -> Trained:
    """Returns the newest checkpoint of a run.

    Raises:
      InputError: there is none, or the run is not one of the recipe and seed that has ended.
    """
    trained = find(run)
    check_asked(run, [*RECIPES[name].overrides, f"seed={seed}"])
    if not finished(run):
        raise InputError(
            f"{run} was left before its end; run `python experiments/shipped_weights.py train {name} --seed {seed}` "
            "first"
        )
    return trained


def measure(name: str, seed: int, run: Path) -> None:
    """Plays the field and stores what came out, after every player; over what is stored, when all were played.

    Raises:
      InputError: as `of_recipe`.
    """
    trained = of_recipe(name, seed, run)
    known = str(seed) in stored_result(RESULT).get(name, {})  # damage is refused before anything is played
    policy = policy_of(trained, game_of(trained))
    record = training(run) | which(trained) | {"strength": {}}
    opponents = field(name, policy.game)
    for opponent in opponents:
        deals = zlib.crc32(f"{name} {seed} {opponent}".encode())
        report = match(policy.game, policy, find_player(opponent, policy.game), games=RECIPES[name].rounds, seed=deals)
        record["strength"][opponent] = {"n": report["n"]} | {key: report[key] for key in KEPT if key in report}
        points = report["points_per_hand"]
        print(f"{name} seed {seed} against {opponent}: {points.mean:+.2f} points per hand "
              f"({points.low:+.2f} to {points.high:+.2f})", flush=True)  # fmt: skip
        if known and len(record["strength"]) < len(opponents):
            continue
        stored = stored_result(RESULT)
        stored.setdefault(name, {})[str(seed)] = record
        files.write_json(RESULT, stored)


def training(run: Path) -> dict[str, Any]:
    """Returns what is known of a run: command, commit, decisions, seconds; `resumed` where it went on."""
    made, last = origin(run), metrics.read(run)[-1]
    given = (text for text in made.pop("overrides") if not text.startswith("tracking."))
    kept = {key: made[key] for key in ("git_commit", "device", "resumed") if key in made}
    spent = {"iterations": last["iteration"], "decisions": last["decisions"], "seconds": last["seconds"]}
    return {"command": " ".join(["python -m dream.run", *given]), **kept, **spent}


def which(trained: Trained) -> dict[str, int]:
    """Returns what identifies weights: iteration and checksum of a checkpoint."""
    return {"iterations": trained.meta["iteration"], "checksum": trained.meta["checksum"]}


def measured(name: str, seed: int, run: Path) -> tuple[dict[str, Any], list[int]]:
    """Returns what was measured of a run as it is now, and the seeds of that name that were measured.

    Raises:
      InputError: as `of_recipe`, or a run that was not measured whole, or was trained further since.
    """
    trained = of_recipe(name, seed, run)
    stored = stored_result(RESULT).get(name, {})
    again = f"run `python experiments/shipped_weights.py measure {name} --seed {seed}` first"
    own = stored.get(str(seed))
    if own is None:
        raise InputError(f"{RESULT} holds no measurement of {name}, seed {seed}; {again}")
    if missing := [opponent for opponent in field(name, game_of(trained)) if opponent not in own["strength"]]:
        raise InputError(f"{name}, seed {seed} was not measured against {missing[0]}; {again}")
    now = which(trained)
    if differing := difference({key: own.get(key) for key in now}, now):
        raise InputError(f"{run} is not what was measured: {differing}; {again}")
    return own, sorted(map(int, stored))


def ship(name: str, seed: int, run: Path) -> None:
    """Exports a run's policy into the package, with what was measured on its card; both files are ready before.

    Raises:
      InputError: as `measured`.
    """
    own, seeds = measured(name, seed, run)
    path = WEIGHTS / f"{name}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".shipping") as folder:
        made = dream.export_policy(run, Path(folder) / path.name)
        card = json.loads(made.with_suffix(".json").read_text())
        card["training"] = {key: own[key] for key in own if key != "strength"} | {"seed": seed}
        card["strength"], card["seeds_measured"] = own["strength"], seeds
        files.write_json(made.with_suffix(".json"), card)
        made.replace(path)
        made.with_suffix(".json").replace(path.with_suffix(".json"))
    print(path)


def main() -> None:
    """Reads the arguments and does one of the three."""
    parser = Parser(__doc__)
    parser.add_argument("what", choices=("train", "measure", "ship"))
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "shipped", help="folder of the runs")
    arguments = parser.parse_args()
    run = arguments.runs / arguments.name / f"seed{arguments.seed}"
    try:
        {"train": train, "measure": measure, "ship": ship}[arguments.what](arguments.name, arguments.seed, run)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()
