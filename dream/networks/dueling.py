"""The dueling network: one trunk, an advantage head and a value head.

observation -> trunk of ReLU layers -> (advantages[A], value); no hidden layer in the heads, no normalisation. A policy
head, where asked for, is a third one: (advantages[A], value, logits[A]).
In bfloat16 only the trunk's products are: the heads, every bias and every sum stay float32. Differences between
advantages are of the size of a point of deadwood, 0.005, where bfloat16 rounds values near 0.5 by 0.002.
Source: the DREAM document, "Architecture"; Wang et al. 2016, "Dueling network architectures", without their mean
subtraction: the targets are advantages already (see dream/equations/advantage_targets.py).
"""

from __future__ import annotations

import dataclasses

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from dream.config.settings import choice, number
from dream.networks import card_scorer, inputs
from dream.networks.layers import POLICY, SMALL, check_widths, linear
from dream.networks.network import Network
from envs import Game, InputError

_FIRST, _ADVANTAGES = "first", "advantages"


@dataclasses.dataclass(frozen=True)
class DuelingConfig:
    """Settings of the dueling network.

    Attributes:
      name: "dueling".
      hidden: widths of the trunk's layers.
      dtype: what the trunk's matrix products are computed in; parameters, biases, heads and results stay float32.
      card_scorer_width: None, or the width of the layers that score each card's actions alike (card_scorer.py).
      recall: whether a card scorer also reads what the opponent has discarded, from the observation's log.
      log_window: None to read the whole observation, else its dense part and this many of the newest events.
    """

    name: str = "dueling"
    hidden: tuple[int, ...] = number((1024, 1024, 512, 256), 1)
    dtype: str = choice("float32", "float32", "bfloat16")
    card_scorer_width: int | None = number(None, 1)
    recall: bool = False
    log_window: int | None = number(None, 1)


def make(config: DuelingConfig, game: Game, *, of_history: bool = False, policy_head: bool = False) -> Network:
    """Builds the dueling network for a game's observation and actions.

    Args:
      config: its settings.
      game: what it plays.
      of_history: whether it reads the observations of all players instead of one's.
      policy_head: whether it has a third output, the logits of a policy, which start near 0.
    Raises:
      InputError: no layer, a window longer than the game's log, or a card scorer for a game without card features.
    """
    hidden, window = config.hidden, config.log_window
    check_widths(hidden)
    log_slots = 0 if game.event_log is None else game.event_log.slots
    if window is not None and window > log_slots:
        raise InputError(f"network.log_window={window} is out of range; {game.name} has {log_slots} log slots")
    width = config.card_scorer_width
    if width is not None:
        return card_scorer.make(
            game, width=width, hidden=hidden, dtype=config.dtype, window=window, of_history=of_history,
            policy_head=policy_head, recall=config.recall,
        )  # fmt: skip
    if config.recall:
        raise InputError("network.recall=true goes with a card scorer; network.card_scorer_width must be a number")
    seen = inputs.whole(game) if window is None else inputs.window(game.event_log, window)
    if of_history:
        seen = inputs.of_all_players(game, seen)

    compute = jnp.dtype(config.dtype)

    def rest(sums: Array) -> tuple[Array, ...]:
        features = jax.nn.relu(sums)
        for n, width in enumerate(hidden[1:], start=1):
            features = jax.nn.relu(linear(width, f"trunk_{n}", compute)(features))
        small = hk.initializers.VarianceScaling(SMALL**2)
        logits = (linear(game.num_actions, POLICY, w_init=small)(features),) if policy_head else ()
        return linear(game.num_actions, _ADVANTAGES)(features), linear(1, "value")(features)[..., 0], *logits

    whole = hk.without_apply_rng(hk.transform(lambda x: rest(linear(hidden[0], _FIRST, compute)(x))))
    upper = hk.without_apply_rng(hk.transform(rest))
    return Network(
        init=lambda key: whole.init(key, jnp.zeros(seen.size)),
        apply=lambda params, observation: whole.apply(params, seen.of_observation(observation)),
        inputs=seen,
        apply_inputs=whole.apply,
        first_layer=lambda params: (params[_FIRST]["w"].astype(compute), params[_FIRST]["b"]),
        rest=upper.apply,
        width=hidden[0],
        rated_by=(_ADVANTAGES,),
    )
