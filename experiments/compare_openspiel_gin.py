"""Plays rounds of all kinds on pyspiel's gin rummy and on ours, and counts differing decisions; 100,000 by default.

python experiments/compare_openspiel_gin.py --help
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from scripting.arguments import Parser, at_least_one

import envs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))


def main() -> None:
    """Reads the arguments, plays in batches and prints one JSON object; exit code 1 if anything differs."""
    parser = Parser(__doc__)
    parser.add_argument("--hands", type=at_least_one, default=100_000, help="rounds (default %(default)s)")
    parser.add_argument("--batch", type=at_least_one, default=1_000, help="rounds at once (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of deals and players (default %(default)s)")
    arguments = parser.parse_args()
    totals: dict[str, int] = {"hands": 0}
    for counts in _batches(arguments):
        totals["hands"] += arguments.batch
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
        print(json.dumps(totals), file=sys.stderr)
    print(json.dumps(totals))
    sys.exit(int(any(count for name, count in totals.items() if name not in ("hands", "decisions"))))


def _batches(arguments: argparse.Namespace) -> Iterator[dict[str, int]]:
    """Plays one batch after the other; half of the decks are rich in melds."""
    import openspiel_lockstep as lockstep

    game, rng = envs.make("gin_rummy_openspiel"), random.Random(arguments.seed)
    noisy = functools.partial(lockstep.greedy, noise=0.3)
    choosers = [
        lockstep.uniform,
        lockstep.eager,
        lockstep.shuttling,
        lockstep.greedy,
        lockstep.patient,
        noisy,
        lockstep.simple,
    ]
    for _ in range(0, arguments.hands, arguments.batch):
        records = []
        for n in range(arguments.batch):
            deck = lockstep.rich_deck(rng) if rng.random() < 0.5 else rng.sample(range(52), 52)
            records.append(lockstep.play(deck, choosers[n % len(choosers)], rng))
        yield lockstep.differences(game, records, arguments.batch)


if __name__ == "__main__":
    main()
