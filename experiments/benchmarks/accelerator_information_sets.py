"""A part of accelerator.py: a network on all information sets of phantom games, evaluated as `dream.exploit` does it.

Not a part: NashConv of the resulting table. It runs in NumPy and SciPy on the host, so a GPU changes nothing of it;
exact.py measures it anywhere.
"""

from __future__ import annotations

import time
from typing import Any

import jax
from accelerator_parts import Sitting
from common import ratio, spread

import envs

_GAMES = {
    "phantom_ttt classical": ({}, {"opening": "04/8"}),
    "dark_hex abrupt": ({"version": "abrupt"}, {"version": "abrupt", "board_size": 2}),
}
"""Name and version -> rules at full size, and at toy size; the game with the most information sets comes last."""
_HIDDEN, _TOY_HIDDEN = (512, 512, 512), (16, 16, 16)
_TIMES_AS_LONG = 5.0
"""As the first game the last one takes, with 4.6 times as many information sets."""


def information_sets(sitting: Sitting) -> dict[str, Any]:
    """Measures a network on every information set; the larger game only where there is time."""
    least = 0.0
    for name, rules in _GAMES.items():
        found = sitting.found[name] = {}
        if sitting.left < _TIMES_AS_LONG * least:
            found["skipped"] = f"time is out: {sitting.left:.0f} s are left"
            continue
        is_last = name == list(_GAMES)[-1]
        until = 0.0 if is_last else sitting.left * _TIMES_AS_LONG / (1 + _TIMES_AS_LONG)
        game = envs.make(name.split()[0], **rules[sitting.toy])
        least = _evaluations(sitting, game, until, found)
    return sitting.found


def _evaluations(sitting: Sitting, game: envs.Game, until: float, found: dict[str, Any]) -> float:
    """Times evaluations, two at least, until few enough seconds are left; returns those of two and the set-up."""
    from common import parameters

    from dream.game_tree.placement.form import placement_form
    from dream.networks import make_network
    from dream.networks.policy import Acts, make_network_policy

    config = {"name": "dueling", "hidden": list(_TOY_HIDDEN if sitting.toy else _HIDDEN)}
    network = make_network(config, game)
    policy = make_network_policy(game, network, network.init(jax.random.key(0)), Acts())
    began = time.monotonic()
    form = placement_form(game)
    found |= {"seconds_form": time.monotonic() - began, "information_sets": form.num_infosets}
    found |= {"hidden": config["hidden"], "parameters": parameters(config, game)}
    first, found["calls"] = _evaluation(form, policy)
    found["seconds_first_network"] = first
    seconds = []
    while not seconds or (len(seconds) < sitting.repeats and sitting.left - seconds[-1] > until):
        seconds.append(_evaluation(form, policy)[0])
        found |= spread("seconds_network", seconds) | {"times": len(seconds)}
        found |= spread("information_sets_per_s", [form.num_infosets / one for one in seconds])
    found["compile_seconds"] = max(0.0, first - found["seconds_network"])
    if sitting.left - seconds[-1] > until:  # the rest of the work: views made on the host, copies, checks
        found["seconds_without_network"] = _evaluation(form, envs.make_bot("random", game))[0]
    found |= _over_products(form, policy, found["calls"], seconds)
    return found["seconds_form"] + first + seconds[-1]


def _evaluation(form: Any, policy: envs.Policy) -> tuple[float, int]:
    """Returns the seconds of one evaluation, and in how many calls of a compiled program it was done."""
    calls = []
    began = time.monotonic()
    form.tabulate(policy, lambda done, all_of_them: calls.append(done))
    return time.monotonic() - began, len(calls)


def _over_products(form: Any, policy: envs.Policy, calls: int, seconds: list[float]) -> dict[str, float]:
    """Returns what evaluations took over what their matrix products take alone, those of padded rows included."""
    from products import floor, products_of

    from dream.game_tree.placement import form as placement

    def rows(x: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((placement._BATCH, *x.shape[1:]), x.dtype)

    _, _, views, _, _ = next(form.decisions(1))
    legal = jax.ShapeDtypeStruct((placement._BATCH, form.game.num_actions), bool)
    of_one_call, _ = products_of(placement._apply, policy, jax.tree.map(rows, views), legal)
    straight = {product: calls * count for product, count in of_one_call.items()}
    alone = floor(straight, len(seconds))
    over = {key.replace("ratio", "network_over_products"): x for key, x in ratio(seconds, alone).items()}
    tflop = 1e-12 * sum(count * product.operations for product, count in straight.items())
    return spread("network_products_s", alone) | over | {"network_tflop": tflop}
