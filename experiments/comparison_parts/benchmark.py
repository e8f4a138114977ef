"""What the benchmark of arXiv 2502.08938 trains its learners with for 10 M nodes, as settings of this project.

PPO and MMD learn there from 8 games at a time, `steps` decisions of each, in `batches` minibatches; here from whole
games, as many as have 95 % of these decisions on average, so that they fill as many minibatches. Its value loss is
halved, ours is not. R-NaD learns from each batch of games once, and its period is counted in gradient steps.
Source: best_hyperparameters/ of the benchmark's repository, commit 591d35d. Deviations: whole games; the step
size falls over the iterations that games of the length of PPO's take; R-NaD's gradients are clipped by their norm.
"""

from __future__ import annotations

from typing import NamedTuple

MOVES = {"dark_hex abrupt": 6.03, "dark_hex classical": 7.88, "phantom_ttt abrupt": 6.69, "phantom_ttt classical": 7.94}
"""Game -> decisions of both players in a game, on average over 1 M nodes of PPO."""
_WIDTHS = "network.hidden=[512,512,512]"


class Recipe(NamedTuple):
    """What a learner has on every game, what on each, and how many games it plays in an iteration."""

    overrides: tuple[str, ...]
    of_game: dict[str, tuple[str, ...]]
    games: dict[str, int]


class _Tuned(NamedTuple):
    """A line of the benchmark's PPO or MMD: its names, its units."""

    lr: float
    clip: float
    ent: float
    vf: float
    max_grad: float
    steps: int
    batches: int
    epochs: int
    kl: float | None = None

    def overrides(self) -> tuple[str, ...]:
        """Returns the line in this project's terms."""
        settings = {
            "learning_rate": self.lr, "clip_epsilon": self.clip, "entropy_weight": self.ent,
            "value_weight": self.vf / 2, "max_grad_norm": self.max_grad, "batch_size": 8 * self.steps // self.batches,
            "epochs": self.epochs, **({} if self.kl is None else {"kl_weight": self.kl, "magnet": "uniform"}),
        }  # fmt: skip
        return tuple(f"algo.{name}={value}" for name, value in settings.items())


def _policy_gradient(tuned: dict[str, _Tuned]) -> Recipe:
    common = (
        "network=actor_critic", _WIDTHS, "algo.discount=0.99", "algo.gae_lambda=0.95", "algo.gae_over=all",
        "algo.value_loss=clipped", "algo.adam_epsilon=1e-5",
    )  # fmt: skip
    games = {game: round(0.95 * 8 * line.steps / MOVES[game]) for game, line in tuned.items()}
    return Recipe(common, {game: line.overrides() for game, line in tuned.items()}, games)


PPO = _policy_gradient(
    {
        "phantom_ttt classical": _Tuned(2.5e-4, 0.1, 0.05, 0.5, 0.5, 128, 4, 4),
        "phantom_ttt abrupt": _Tuned(2.5e-4, 0.8, 0.2, 0.5, 1.0, 512, 1, 4),
        "dark_hex classical": _Tuned(2e-3, 0.025, 0.05, 1.0, 2.0, 512, 4, 8),
        "dark_hex abrupt": _Tuned(2.5e-4, 0.025, 0.05, 0.0625, 2.0, 256, 8, 4),
    }
)
MMD = _policy_gradient(
    {
        "phantom_ttt classical": _Tuned(2.5e-4, 0.1, 0.05, 0.5, 0.5, 128, 4, 4, 0.05),
        "phantom_ttt abrupt": _Tuned(2.5e-4, 0.8, 0.2, 1.0, 0.25, 16, 1, 4, 0.2),
        "dark_hex classical": _Tuned(6.25e-5, 0.1, 0.2, 2.0, 2.0, 128, 4, 1, 0.025),
        "dark_hex abrupt": _Tuned(6.25e-5, 0.8, 0.05, 0.0625, 0.5, 32, 32, 2, 0.1),
    }
)


def _regularised_nash(
    lr: float, batch: int, eta: float, period: int, average: float, trace: float, clip: float
) -> tuple:
    settings = {
        "batch_games": batch, "learning_rate": lr, "eta": eta, "period": period, "target_tau": average,
        "trace_clip": trace, "max_grad_norm": clip,
    }  # fmt: skip
    return tuple(f"algo.{name}={value}" for name, value in settings.items())


RNAD = Recipe(
    (_WIDTHS,),
    {
        "phantom_ttt classical": _regularised_nash(2e-4, 64, 0.1, 12_500, 5e-4, 0.125, 2e4),
        "phantom_ttt abrupt": _regularised_nash(4e-4, 512, 0.05, 6_250, 1.25e-4, 4.0, 4e4),
        "dark_hex classical": _regularised_nash(4e-4, 128, 0.025, 25_000, 5e-4, 0.25, 2.5e3),
        "dark_hex abrupt": _regularised_nash(2e-4, 64, 0.2, 12_500, 8e-3, 1.0, 2e4),
    },
    {"phantom_ttt classical": 64, "phantom_ttt abrupt": 512, "dark_hex classical": 128, "dark_hex abrupt": 64},
)
