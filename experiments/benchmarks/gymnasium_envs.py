"""Steps/s of the Gymnasium environments of one game and of many, with uniform random play of whole games as the floor.

Actions are legal and drawn on the host, which is timed with the steps. A step of the many is one of each copy, those
dealt anew included. `reset_seconds` and `step_seconds` are of the first calls, compilation included. With --devices the
many are split over as many devices of the CPU, of one thread each.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
import numpy as np
from common import Parser, Work, at_least_one, interleaved, random_play, run, split_cores, spread

import envs
from envs import Game
from envs.adapters.gymnasium import single_player_env
from envs.adapters.gymnasium_vector import vector_env

_SECONDS = 1.0
"""A measurement lasts at least this long."""
_STEPS = 100
"""Steps of one game per call."""
_NOISE = 16
"""Different orders in which actions are preferred."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--env", default="gin_rummy", help="the game (default %(default)s)")
    parser.add_argument("--opponent", default="random", help="who has the other seats (default %(default)s)")
    parser.add_argument("--copies", type=at_least_one, default=4096, help="games at once (default %(default)s)")
    parser.add_argument("--devices", type=at_least_one, default=1, help="that share the games (default %(default)s)")
    parser.add_argument("--observations", nargs="+", default=["view", "vector"], choices=["view", "vector"])
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times one game, many with each kind of observation, and random play in the same rounds."""
    split_cores(arguments.devices, [arguments.copies])
    game = envs.make(arguments.env)
    single, first = _single(game, arguments.opponent)
    works = {"single": single, "random_play": random_play(game, arguments.copies)}
    for kind in arguments.observations:
        works[kind] = _many(game, arguments.opponent, arguments.copies, kind)
    timings = interleaved(works, arguments.repeats, _SECONDS)
    report = {"env": game.name, "opponent": arguments.opponent, "copies": arguments.copies}
    report["single"] = first | spread("steps_per_s", timings["single"].rates("steps"))
    for kind in arguments.observations:
        timing = timings[kind]
        report[kind] = spread("steps_per_s", timing.rates("steps")) | {"compile_seconds": timing.compile_seconds}
    return report | {"random_play": spread("decisions_per_s", timings["random_play"].rates("decisions"))}


def _single(game: Game, opponent: str) -> tuple[Work, dict[str, float]]:
    """Returns some steps of one game, and the seconds of the first calls."""
    began = time.perf_counter()
    env = single_player_env(game, opponent)
    _, info = env.reset(seed=0)
    dealt = time.perf_counter()
    _, _, over, _, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
    first = {"reset_seconds": dealt - began, "step_seconds": time.perf_counter() - dealt}
    rng, at = np.random.default_rng(0), [info, over]

    def work(n: int) -> None:
        for word in rng.integers(2**31, size=_STEPS).tolist():
            if at[1]:
                at[:] = env.reset()[1], False
            legal = np.flatnonzero(at[0]["action_mask"])
            _, _, at[1], _, at[0] = env.step(int(legal[word % len(legal)]))

    return Work(work, lambda nothing: {"steps": _STEPS}), first


def _many(game: Game, opponent: str, copies: int, kind: str) -> Work:
    env = vector_env(game, opponent, num_envs=copies, observation=kind, devices=jax.device_count())
    noise = np.random.default_rng(0).integers(1, 127, (_NOISE, copies, game.num_actions), np.int8)
    infos = [env.reset(seed=0)[1]]

    def work(n: int) -> None:
        infos[0] = env.step(np.argmax(infos[0]["action_mask"] * noise[n % _NOISE], axis=1))[-1]

    return Work(work, lambda nothing: {"steps": copies})


if __name__ == "__main__":
    main()
