"""Computes how policies of mini_gin_rummy play, exactly: draws, knocks by deadwood, endings; one run or more.

python -m dream.run algo=cfr_plus env=mini_gin_rummy env.rules.preset=4x2 iterations=600 run_dir=runs/4x2
python experiments/mini_gin_play.py runs/4x2 runs/5x2 --out experiments/results/mini_gin_play.json
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jax
import numpy as np
from scripting.arguments import Parser, result_file
from scripting.run_records import holds, stored_result

from dream.game_tree.sequence_form import expected_value, nash_conv
from dream.game_tree.tabular_policy import tabulate
from dream.game_tree.tree import Tree
from dream.storage.checkpoint import find
from dream.storage.files import write_json
from dream.storage.policies import game_of, policy_of
from dream.storage.tree_cache import stored_tree
from envs import InputError
from envs.gin_rummy.core.rules import MINI_PRESETS, MiniRules
from envs.gin_rummy.melding import melds

_DRAWS = {0: "first_offer", 1: "second_offer", 3: "draw"}
_SIZES = ("num_ranks", "num_suits")
_TAKE, _DISCARD, _FIRST_CARD = 1, 4, 3


def reach_of(tree: Tree, table: np.ndarray) -> np.ndarray:
    """Returns the chance of every history when both play a table: float64[N]."""
    own = np.ones(tree.num_histories)
    for low, high in zip(tree.levels[1:-1], tree.levels[2:], strict=True):
        up = tree.parent[low:high]
        own[low:high] = own[up] * table[tree.infoset[up], tree.action[low:high]]
    return own * tree.chance


def play_of(tree: Tree, table: np.ndarray) -> dict[str, Any]:
    """Returns frequencies of a table's play, each decision weighted by how often it comes up."""
    reach, playing = reach_of(tree, table), tree.infoset >= 0
    weight = np.bincount(tree.infoset[playing], reach[playing], minlength=tree.num_infosets)
    view, cards = tree.views, tree.game.rules.num_cards
    knocking = table[:, _FIRST_CARD + cards :].sum(axis=1)
    play: dict[str, Any] = {
        f"takes_the_pile_at_{name}": _mean(table[:, _TAKE], weight * (view.phase == phase))
        for phase, name in _DRAWS.items()
    }
    may = (view.phase == _DISCARD) & view.can_knock
    play["knocks_when_gin"] = _mean(knocking, weight * (may & view.can_gin))
    play["knocks_by_deadwood"] = {
        str(left): {"times_a_hand": float(weight[here].sum()), "knocks": _mean(knocking, weight * here)}
        for left in range(1, tree.game.rules.knock_limit + 1)
        if np.any(here := may & ~view.can_gin & (view.deadwood == left))
    }
    return play | {"endings": endings(tree, reach)}


def endings(tree: Tree, reach: np.ndarray) -> dict[str, float]:
    """Returns how rounds end: shares of knocks won, gins, undercuts, ties and dead rounds."""
    over, rules = tree.player < 0, tree.game.rules
    before = np.maximum(tree.parent, 0)
    knocked = over & (tree.action >= _FIRST_CARD + rules.num_cards)
    knocker = np.maximum(tree.player[before], 0)
    points = np.round(tree.payoff[np.arange(len(over)), knocker] * tree.game.reward_scale)
    gin = np.zeros(len(over), bool)
    gin[knocked] = goes_gin(tree, tree.infoset[before[knocked]], tree.action[knocked])
    kinds = {
        "knock": knocked & ~gin & (points > 0),
        "gin": gin,
        "undercut": knocked & (points < 0),
        "tie": knocked & ~gin & (points == 0),
        "dead": over & ~knocked,
    }
    return {name: float(reach[kind].sum()) for name, kind in kinds.items()}


def goes_gin(tree: Tree, infosets: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Returns whether knocks leave no deadwood, by the hand and the discard: bool[N], from int[N] each."""
    rules, card = tree.game.rules, actions - _FIRST_CARD - tree.game.rules.num_cards
    if rules.knock_form == "best_discard":
        return tree.views.deadwood[infosets] == 0
    chosen, place = np.unique(np.stack([infosets, card]), axis=1, return_inverse=True)
    suit, rank = np.divmod(chosen[1], rules.num_ranks)
    hands = tree.views.hand[chosen[0]].astype(np.int32)
    hands[np.arange(len(suit)), suit] &= ~(1 << rank)
    return np.asarray(jax.jit(jax.vmap(melds.deadwood))(hands) == 0)[place.reshape(-1)]


def _mean(values: np.ndarray, weights: np.ndarray) -> float | None:
    total = weights.sum()
    return float((values * weights).sum() / total) if total > 0 else None


def named(rules: MiniRules) -> str:
    """Returns what a result is kept by: the deck, and the rules that differ from the preset of its sizes."""
    deck = f"{rules.num_ranks}x{rules.num_suits}"
    usual = dataclasses.asdict(MINI_PRESETS.get(deck, MINI_PRESETS["4x2"]))
    other = [f"{name}={value}" for name, value in dataclasses.asdict(rules).items()
             if name not in _SIZES and value != usual[name]]  # fmt: skip
    return " ".join([deck, *other])


def reports(references: list[str]) -> dict[str, dict[str, Any]]:
    """Returns what runs play, by deck; raises InputError where two are of the same rules."""
    found: dict[str, dict[str, Any]] = {}
    of_deck: dict[str, str] = {}
    for reference in references:
        deck, summary = report(reference)
        if deck in found:
            raise InputError(f"{of_deck[deck]} and {reference} are both of {deck}; give one run of each")
        found[deck], of_deck[deck] = summary, reference
    return found


def report(reference: str) -> tuple[str, dict[str, Any]]:
    """Returns a run's deck, and what it plays, with uniform play.

    Raises:
      InputError: no run of mini_gin_rummy there.
    """
    checkpoint = find(reference)
    game = game_of(checkpoint)
    if game.name != "mini_gin_rummy":
        raise InputError(f"{reference} is a run on {game.name}; it must be one on mini_gin_rummy")
    tree = stored_tree(game)
    table, uniform = tabulate(tree, policy_of(checkpoint, game)), tree.uniform()
    scale = game.reward_scale
    gap, loose = (nash_conv(tree, x) * scale for x in (table, uniform))
    summary = {
        "algo": checkpoint.meta["config"]["algo"]["name"],
        "iteration": checkpoint.meta["iteration"],
        "updates": checkpoint.meta["config"]["algo"].get("updates"),
        "histories": tree.num_histories,
        "information_sets": tree.num_infosets,
        "nash_conv": gap,
        "nash_conv_uniform": loose,
        "share_of_uniform": gap / loose,
        "value_to_player_0": float(expected_value(tree, table)[0]) * scale,
        "play": play_of(tree, table),
        "uniform_play": play_of(tree, uniform),
    }
    return named(game.rules), summary


def main() -> None:
    """Reads the arguments, prints what was found and writes it."""
    parser = Parser(__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", help="run directories or checkpoints")
    parser.add_argument("--out", type=result_file, help="a JSON file; other decks and rules in it are kept")
    arguments = parser.parse_args()
    try:
        kept = stored_result(arguments.out, each=holds("play", "uniform_play")) if arguments.out else {}
        found = reports(arguments.runs)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    print(json.dumps(found, indent=2))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(arguments.out, kept | found)


if __name__ == "__main__":
    main()
