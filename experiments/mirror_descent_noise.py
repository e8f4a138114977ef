"""Computes how far magnetic mirror descent gets on Leduc poker where games are sampled and nothing else is estimated.

Every iteration samples games of a policy with uniform play mixed in, and takes the exact Q(h, a) of their histories:
no network, no critic. An information set that was met makes the closed-form step with the mean of its histories'
advantages, each weighted by the others' reach ratio; the rest stay as they are. Steps and weights are those of
`experiment=mmd_critic`, which differs: its sets share a network's parameters, whose fit gives sets of little weight
smaller steps, and it averages parameters where this averages logits. `optimism` starts at the first iteration's values.

python experiments/mirror_descent_noise.py --out experiments/results/mirror_descent_noise.json
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
from scripting.arguments import Parser, result_file

import envs
from dream.equations.mirror_descent import magnetic_logits
from dream.evaluation.statistics import positive_interval
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tree import Tree, build_tree

CASES = {
    "exact": {"games": None},
    "sampled": {},
    "sampled, optimism 3": {"optimism": 3.0},
    "sampled, optimism 10": {"optimism": 10.0},
}
"""What is compared, and its settings; all else is as in conf/experiment/mmd_critic.yaml."""


class Settings(NamedTuple):
    """Of one run: games per iteration, None for exact advantages, the steps, and the averages' rates per iteration."""

    games: int | None = 1024
    iterations: int = 1110
    exploration: float = 0.3
    alpha: tuple[float, float] = (0.3, 0.1)
    beta: float = 60.0
    optimism: float = 0.0
    slow_tau: float = 0.1
    average_tau: float = 0.005


def main() -> None:
    """Runs every case with every seed and writes what was found."""
    parser = Parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=Settings().iterations)
    parser.add_argument("--out", type=result_file, help="JSON file of the result")
    arguments = parser.parse_args()
    for name in ("seeds", "iterations"):
        if getattr(arguments, name) < 1:
            parser.exit(2, f"error: --{name}={getattr(arguments, name)} is out of range; it must be at least 1\n")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
    tree, report = build_tree(envs.make("leduc_poker")), {}
    for name, changes in CASES.items():
        settings = Settings(**changes, iterations=arguments.iterations)
        seeds = range(arguments.seeds if settings.games else 1)
        runs = [settle(tree, settings, np.random.default_rng(seed)) for seed in seeds]
        report[name] = {"settings": settings._asdict(), "runs": runs}
        means = {policy: [run[policy] for run in runs] for policy in runs[0]}
        print(f"{name:24}" + "".join(f"  {policy} {_told(values)}" for policy, values in means.items()), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps({"env": "leduc_poker", "cases": report}, indent=1) + "\n")


def settle(tree: Tree, settings: Settings, random: np.random.Generator) -> dict[str, float]:
    """Returns the exploitability of the last policy and of that of the averaged logits, after all iterations."""
    uniform, sign = tree.uniform(), np.where(tree.player[:, None] == 0, 1.0, -1.0)
    logits = averaged = np.zeros(tree.legal.shape)
    slow = np.zeros((tree.num_histories, tree.legal.shape[1]))
    for n in range(settings.iterations):
        policy = _softmax(tree, logits)
        drawn = (1 - settings.exploration) * policy + settings.exploration * uniform
        advantages = sign * _advantages(tree, policy)
        slow = advantages if n == 0 else slow + settings.slow_tau * (advantages - slow)
        ahead = advantages + settings.optimism * (advantages - slow)
        weights = _visits(tree, drawn, settings.games, random) * _ratios(tree, policy, drawn)
        met, mean = _means(tree, ahead, weights)
        share = n / settings.iterations
        alpha = (1 - share) * settings.alpha[0] + share * settings.alpha[1]
        step = magnetic_logits(logits, mean, 0.0, step=1 / settings.beta, strength=alpha)
        logits = np.where(met[:, None], step, logits)
        averaged = averaged + settings.average_tau * (logits - averaged)
    policies = {"last": logits, "averaged": averaged}
    return {name: nash_conv(tree, _softmax(tree, x)) / 2 for name, x in policies.items()}


def _softmax(tree: Tree, logits: np.ndarray) -> np.ndarray:
    highest = np.max(logits, axis=1, keepdims=True, where=tree.legal, initial=-np.inf)
    powers = np.exp(np.where(tree.legal, logits - highest, -np.inf))
    return powers / powers.sum(axis=1, keepdims=True)


def _levels(tree: Tree) -> list[slice]:
    """Returns where the histories of each level but the first are."""
    return [slice(low, high) for low, high in zip(tree.levels[1:-1], tree.levels[2:], strict=True)]


def _advantages(tree: Tree, table: np.ndarray) -> np.ndarray:
    """Returns Q(h, a) - V(h) to player 0 of every history: float64[N, A]."""
    over = tree.player < 0
    values, q = np.where(over, tree.payoff[:, 0], 0.0), np.zeros((tree.num_histories, tree.legal.shape[1]))
    for level in reversed(_levels(tree)):
        here = np.flatnonzero(tree.player[level] >= 0) + level.start
        values[here] = np.sum(table[tree.infoset[here]] * q[here], axis=1)
        up = tree.parent[level]
        np.add.at(q, (up, tree.action[level]), tree.chance[level] / tree.chance[up] * values[level])
    first = np.flatnonzero(tree.parent < 0)
    values[first] = np.sum(table[tree.infoset[first]] * q[first], axis=1)
    return np.where(over[:, None], 0.0, q - values[:, None])


def _reach(tree: Tree, table: np.ndarray, player: int) -> np.ndarray:
    """Returns the product of one player's own probabilities on the way to every history: float64[N]."""
    reach = np.ones(tree.num_histories)
    for level in _levels(tree):
        up = tree.parent[level]
        own = np.where(tree.player[up] == player, table[tree.infoset[up], tree.action[level]], 1.0)
        reach[level] = reach[up] * own
    return reach


def _visits(tree: Tree, table: np.ndarray, games: int | None, random: np.random.Generator) -> np.ndarray:
    """Returns how many of the games pass each history, or with None the chance that one does: float64[N]."""
    reach = tree.chance * _reach(tree, table, 0) * _reach(tree, table, 1)
    if games is None:
        return reach
    over = tree.player < 0
    visits = np.zeros(tree.num_histories)
    visits[over] = random.multinomial(games, reach[over] / reach[over].sum())
    for level in reversed(_levels(tree)):
        np.add.at(visits, tree.parent[level], visits[level])
    return visits


def _ratios(tree: Tree, policy: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Returns the other's reach ratio of every history: float64[N]."""
    others = [_reach(tree, policy, player) / _reach(tree, drawn, player) for player in (1, 0)]
    return np.where(tree.player == 0, *others)


def _means(tree: Tree, values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns which information sets were met, bool[I], and the weighted mean over their histories, float64[I, A]."""
    playing = tree.player >= 0
    infoset, weight = tree.infoset[playing], weights[playing]
    total = np.bincount(infoset, weight, minlength=tree.num_infosets)
    sums = np.zeros(tree.legal.shape)
    np.add.at(sums, infoset, weight[:, None] * values[playing])
    return total > 0, sums / np.where(total > 0, total, 1.0)[:, None]


def _told(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.3f}"
    found = positive_interval(np.array(values))
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


if __name__ == "__main__":
    main()
