"""The dueling network: one trunk, an advantage head and a value head.

observation -> trunk of ReLU layers -> (advantages[A], value); no hidden layer in the heads, no normalisation.
Source: the DREAM document, "Architecture"; Wang et al. 2016, "Dueling network architectures", without their mean
subtraction: the advantage target is centred by the policy instead (see dream/equations/advantage_targets.py).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from dream.config.settings import choice, number
from dream.networks import card_scorer, inputs
from dream.networks.network import Network
from envs import Game, InputError

_FIRST = "first"


@dataclasses.dataclass(frozen=True)
class DuelingConfig:
    """Settings of the dueling network.

    Attributes:
      name: "dueling".
      hidden: widths of the trunk's layers.
      dtype: what matrix products are computed in; parameters and results stay float32.
      card_scorer_width: None, or the width of the layers that score each card's actions alike (card_scorer.py).
      log_window: None to read the whole observation, else its dense part and this many of the newest events.
    """

    name: str = "dueling"
    hidden: tuple[int, ...] = number((1024, 1024, 512, 256), 1)
    dtype: str = choice("float32", "float32", "bfloat16")
    card_scorer_width: int | None = number(None, 1)
    log_window: int | None = number(None, 1)


def make(config: DuelingConfig, game: Game, *, of_history: bool = False) -> Network:
    """Builds the dueling network for a game's observation and actions.

    Args:
      config: its settings.
      game: what it plays.
      of_history: whether it reads the observations of all players instead of one's.
    Raises:
      InputError: no layer, a window longer than the game's log, or a card scorer for a game without card features.
    """
    hidden, window = config.hidden, config.log_window
    if not hidden:
        raise InputError("network.hidden=[] is empty; it must hold the width of at least one layer")
    log_slots = 0 if game.event_log is None else game.event_log.slots
    if window is not None and window > log_slots:
        raise InputError(f"network.log_window={window} is out of range; {game.name} has {log_slots} log slots")
    width = config.card_scorer_width
    if width is not None:
        return card_scorer.make(
            game, width=width, hidden=hidden, dtype=config.dtype, window=window, of_history=of_history
        )
    seen = inputs.whole(game) if window is None else inputs.window(game.event_log, window)
    if of_history:
        seen = inputs.of_all_players(game, seen)

    def first(x: Array) -> Array:
        return hk.Linear(hidden[0], name=_FIRST)(x)

    def rest(activation: Array) -> tuple[Array, Array]:
        features = jax.nn.relu(activation)
        for n, width in enumerate(hidden[1:], start=1):
            features = jax.nn.relu(hk.Linear(width, name=f"trunk_{n}")(features))
        return hk.Linear(game.num_actions, name="advantages")(features), hk.Linear(1, name="value")(features)[..., 0]

    whole = hk.without_apply_rng(hk.transform(lambda x: rest(first(x))))
    upper = hk.without_apply_rng(hk.transform(rest))
    compute = jnp.dtype(config.dtype)

    def cast(tree: Any, to: Any) -> Any:
        return jax.tree.map(lambda x: x.astype(to), tree)

    def apply_inputs(params: Any, x: Array) -> tuple[Array, Array]:
        return cast(whole.apply(cast(params, compute), x.astype(compute)), jnp.float32)

    def apply_rest(params: Any, activation: Array) -> tuple[Array, Array]:
        return cast(upper.apply(cast(params, compute), activation.astype(compute)), jnp.float32)

    return Network(
        init=lambda key: whole.init(key, jnp.zeros(seen.size)),
        apply=lambda params, observation: apply_inputs(params, seen.of_observation(observation)),
        inputs=seen,
        apply_inputs=apply_inputs,
        first_layer=lambda params: (params[_FIRST]["w"].astype(compute), params[_FIRST]["b"].astype(compute)),
        rest=apply_rest,
        width=hidden[0],
    )
