"""A trained player against uniform random play: experiments/evaluate_vs_random.py RUN_OR_CHECKPOINT --games 10000."""

from __future__ import annotations

import argparse
from typing import NoReturn

import dream
import envs
from dream.config import settings
from dream.config.schema import EvaluateConfig
from dream.evaluation import match
from dream.evaluation.report import report_table
from dream.storage.checkpoint import find
from dream.storage.files import write_json
from dream.storage.policies import game_of, report_dir


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\n")


def main() -> None:
    """Plays mirrored deals, prints the table and writes evaluation.json, as python -m dream.evaluate does."""
    parser = _Parser(description=__doc__)
    parser.add_argument("checkpoint", help="a run directory (its latest checkpoint) or a checkpoint's folder")
    parser.add_argument("--games", type=int, default=10000, help="hands, an even number (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of deals and actions (default %(default)s)")
    try:
        given = settings.read(EvaluateConfig, vars(parser.parse_args()), "")
        checkpoint, policy = find(given.checkpoint), dream.load_policy(given.checkpoint)
        game = game_of(checkpoint)
        report = match(game, policy, envs.make_bot("random", game), games=given.games, seed=given.seed)
    except envs.InputError as error:
        parser.error(str(error))
    iteration = checkpoint.meta["iteration"]
    report_table(f"{given.checkpoint} (iteration {iteration}) against random", report)
    told = {"iteration": iteration, "opponent": "random", "seed": given.seed, "policy": given.policy}
    told |= {"unit": game.unit, "num_players": game.num_players}
    write_json(report_dir(given.checkpoint, checkpoint) / "evaluation.json", {**told, **report})


if __name__ == "__main__":
    main()
