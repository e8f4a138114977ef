"""A trained player against uniform random play: experiments/evaluate_vs_random.py RUN_OR_CHECKPOINT --games 10000."""

from __future__ import annotations

from scripting.arguments import Parser

import envs
from dream.commands.evaluate import play_match, prepared
from dream.config import settings
from dream.config.schema import EvaluateConfig


def main() -> None:
    """Plays mirrored deals, prints the table and writes the report, as python -m dream.evaluate does."""
    parser = Parser(__doc__)
    parser.add_argument("checkpoint", help="a run directory (its latest checkpoint) or a checkpoint's folder")
    parser.add_argument("--games", type=int, default=10000, help="rounds, an even number (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of deals and actions (default %(default)s)")
    try:
        play_match(prepared(settings.read(EvaluateConfig, {**vars(parser.parse_args()), "opponent": "random"}, "")))
    except envs.InputError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
