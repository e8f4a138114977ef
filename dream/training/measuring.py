"""What a run measures of its policies: matches against opponents, and exact values where a game has them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from dream.config import settings
from dream.evaluation import match
from dream.game_tree.exact import has_exploitability
from dream.game_tree.forms import TreeForm, exact_form
from dream.game_tree.tree import Tree
from dream.storage import files
from dream.storage.checkpoint import FOLDER
from dream.storage.policies import chosen_name, chosen_policy, find
from dream.storage.reports import ASKED, measured
from dream.storage.tree_cache import stored_tree
from dream.training import hosts
from dream.training.beginning import Parts
from dream.training.progress import MANY_INFOSETS, of_infosets
from dream.training.signals import StopRequest
from dream.training.tracked import HANDS
from envs import HostPlayer, Policy

_FINAL, _WATCHED = 1, 2
"""Folded into the seed's key for the deals of the final evaluation, and for those watched during training: neither are
those that a match with the same seed plays later."""


class _LeftError(Exception):
    """An evaluation is left, as a signal asks."""


class Measurements:
    """Measures the policies of a run's states.

    Attributes:
      reports, hands: of the newest evaluation, by opponent: the matches, and the rounds of each that are kept for W&B.
    """

    def __init__(self, parts: Parts) -> None:
        """Prepares the exact form, where the game has one and the configuration asks for it.

        Args:
          parts: of the run.
        """
        self._config, self._game, self._algorithm = parts.config, parts.game, parts.algorithm
        self._opponents, self._trained = parts.opponents, parts.trained
        exact = self._config.eval.exact and has_exploitability(self._game)
        self._form = exact_form(self._game, stored_tree) if exact else None
        self._measured: tuple[int, dict[str, dict[str, float]]] = (-1, {})
        self._announced = False
        self.reports: dict[str, dict[str, Any]] = {}
        self.hands: dict[str, list[dict[str, Any]]] = {}

    @property
    def tree(self) -> Tree | None:
        """The game's tree, where exact values are from one."""
        return self._form.tree if isinstance(self._form, TreeForm) else None

    def policy(self, state: Any) -> Policy:
        """Returns the policy of a state that plays matches."""
        return chosen_policy(self._algorithm.policies(state))

    def policy_name(self, state: Any) -> str:
        """Returns the name of the policy of a state that plays matches."""
        return chosen_name(self._algorithm.policies(state))

    def watched(self, state: Any, iteration: int, stop: StopRequest) -> dict[str, float]:
        """Returns what is measured while the run goes on, under eval/, and how long it took; {} where a signal came."""
        began = time.perf_counter()
        try:
            flat = self._flat(state, iteration, stop)
        except _LeftError:
            self.reports = {}
            return {}
        return flat | {"seconds_evaluate": time.perf_counter() - began}

    def _flat(self, state: Any, iteration: int, stop: StopRequest) -> dict[str, float]:
        def look(played: int) -> None:
            if stop.is_overdue:
                raise _LeftError

        games, flat = self._whole(self._config.eval.games), {}
        self.reports, self.hands = {}, {}
        for name, opponent in self._opponents.items():
            report = self._match(state, name, opponent, games, self._deals(_WATCHED), progress=look)
            self.reports[name] = report
            flat |= {f"eval/{name}/{k}": v.mean for k, v in report.items() if hasattr(v, "mean")}
        for name, values in self.exact(state, iteration).items():
            flat |= {f"eval/{quantity}/{name}": value for quantity, value in values.items()}
        return flat

    def final(self, state: Any, iteration: int, run_dir: Path) -> dict[str, Any]:
        """Plays the final matches, on deals of their own, and writes them in the run directory.

        Args:
          state: the learner's.
          iteration: of the state, whose checkpoint is written.
          run_dir: where.
        Returns:
          The reports by opponent.
        """
        games, deals, reports = self._whole(self._config.eval.final_games), self._deals(_FINAL), {}
        self.reports, self.hands = reports, {}
        for name, player in self._opponents.items():
            reports[name] = self._match(state, name, player, games, deals)
        report = {"iteration": iteration, "unit": self._game.unit, "num_players": self._game.num_players}
        report["deals"] = "of the final evaluation alone"
        asked = {"iterations": self._config.iterations, "budget": dataclasses.asdict(self._config.budget)}
        report[ASKED] = settings.flat(asked)
        if reports:
            first = next(iter(reports))
            report |= {"opponent": first, **reports[first], "by_opponent": reports}
        if self._form is not None:
            report["exact"] = self.exact(state, iteration)
        if hosts.leads():
            saved = find(run_dir / FOLDER / str(iteration))
            rivals = {name: of for name, of in self._trained.items() if name in self._opponents}
            players = {"checkpoint": measured(saved)} | ({"opponents": rivals} if rivals else {})
            report |= {"game": self._game.identity, "measured": players}
            files.write_json(run_dir / files.EVALUATION_FILE, report)
        return reports

    def exact(self, state: Any, iteration: int) -> dict[str, dict[str, float]]:
        """Returns NashConv and exploitability of every policy, in the game's unit; {} where they are out of reach.

        Shows progress where information sets are many.

        Args:
          state: the learner's.
          iteration: of the state, by which it is measured once.
        """
        if self._form is None or self._measured[0] == iteration:
            return self._measured[1]
        exact, infosets = {}, self._form.num_infosets
        if infosets > MANY_INFOSETS and not self._announced:
            print(f"exact values of {infosets:,} information sets", flush=True)
            self._announced = True
        if self._algorithm.tables is not None:
            tables = self._algorithm.tables(state)
        else:
            tables = {
                name: self._form.tabulate(policy, of_infosets(f"policy {name}", infosets))
                for name, policy in self._algorithm.policies(state).items()
            }
        for name, table in tables.items():
            value = self._form.values(table).nash_conv * self._game.reward_scale
            exact[name] = {"nash_conv": value, "exploitability": value / 2}
        self._measured = iteration, exact
        return exact

    def forget(self) -> None:
        """Forgets exact values: the state of their iteration has changed."""
        self._measured = -1, {}

    def _match(
        self,
        state: Any,
        name: str,
        opponent: Policy | HostPlayer,
        games: int,
        deals: Any,
        *,
        progress: Callable[[int], None] = lambda played: None,
    ) -> dict[str, Any]:
        """Returns the report of a match; its first hands are kept for W&B, where a run is tracked.

        Matches of one size are one compiled program, whether hands are kept or not.
        """
        heard = self.hands.setdefault(name, []).append if self._config.tracking.mode != "disabled" else None
        policy = self.policy(state)
        return match(
            self._game, policy, opponent, games=games, seed=deals, progress=progress, on_hand=heard, hands=HANDS
        )

    def _deals(self, which: int) -> Any:
        return jax.random.fold_in(jax.random.key(self._config.seed), which)

    def _whole(self, games: int) -> int:
        """Returns the rounds of whole deals, each played from every seat, nearest to a number of rounds from below."""
        players = self._game.num_players
        return max(games // players, 2) * players
