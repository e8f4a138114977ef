"""A game whose payoffs or probabilities are of no use has no tree, and so no exact value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dream.game_tree import build_tree
from dream.game_tree.probe import agrees
from dream.game_tree.sampling import sampling_tree
from envs import InputError
from envs.kuhn_poker import KuhnPoker
from envs.leduc_poker import LeducPoker


def _kuhn(change: Callable[[Array, Array], tuple[Array, Array]], share: float = 1.0) -> KuhnPoker:
    """Returns Kuhn poker whose outcomes' probabilities and rewards are changed, and the deals' probabilities scaled."""

    @dataclasses.dataclass(frozen=True)
    class Broken(KuhnPoker):
        def outcomes(self, state: object, action: Array) -> tuple[object, Array, Array, Array]:
            states, probs, rewards, done = super().outcomes(state, action)
            return states, *change(probs, rewards), done

        def initial_outcomes(self) -> tuple[object, Array]:
            states, probs = super().initial_outcomes()
            return states, probs * share

    return Broken()


WRONG = {
    "nan": (lambda: _kuhn(lambda p, r: (p, r * jnp.nan)), "outcomes: the rewards nan, nan are not finite"),
    "infinite": (
        lambda: _kuhn(lambda p, r: (p, jnp.where(r > 1, jnp.inf, r))),
        "outcomes: the rewards -2, inf are not finite",
    ),
    "not zero-sum": (lambda: _kuhn(lambda p, r: (p, r + 0.5)), "outcomes: the rewards 0.5, 0.5 do not sum to 0"),
    "none possible": (lambda: _kuhn(lambda p, r: (p * 0, r)), "outcomes: probabilities sum to 0, the least is 0"),
    "a quarter": (lambda: _kuhn(lambda p, r: (p / 4, r)), "outcomes: probabilities sum to 0.25, the least is 0.25"),
    "nan chance": (lambda: _kuhn(lambda p, r: (p * jnp.nan, r)), "outcomes: probabilities sum to nan"),
    "no deals": (lambda: _kuhn(lambda p, r: (p, r), 0.0), "initial_outcomes: probabilities sum to 0, the least is 0"),
}
"""What is wrong -> a game, and a part of the message."""


def test_a_view_that_hides_what_is_legal_is_refused() -> None:
    """The tree would give the actions of one history to all that look the same."""

    @dataclasses.dataclass(frozen=True)
    class Hidden(KuhnPoker):
        def legal_actions(self, state: Any) -> Array:
            legal = super().legal_actions(state)
            return legal & ~((state.hands[1] == 0) & (jnp.arange(2) == 1) & (state.current_player == 0))

    with pytest.raises(InputError, match="a view must tell what is legal"):
        build_tree(Hidden())


@pytest.mark.parametrize("defect", WRONG)
def test_a_tree_of_no_use_is_refused_in_one_line(defect: str) -> None:
    """It names the game, the method and the value."""
    make, message = WRONG[defect]
    with pytest.raises(InputError) as error:
        build_tree(make())
    assert str(error.value).startswith("game 'kuhn_poker': ")
    assert "\n" not in str(error.value)
    assert message in str(error.value)


def test_a_game_that_says_that_it_is_not_zero_sum_has_a_tree() -> None:
    """Its payoffs are as it gives them."""

    class General(KuhnPoker):
        zero_sum = False

        def outcomes(self, state: object, action: Array) -> tuple[object, Array, Array, Array]:
            states, probs, rewards, done = super().outcomes(state, action)
            return states, probs, rewards + 0.5, done

    assert build_tree(General()).payoff.max() > build_tree(KuhnPoker()).payoff.max()


def test_a_deal_that_cannot_occur_is_no_part_of_the_tree() -> None:
    """Leduc poker with such a deal among the others: the same tree, and sampled as before."""

    @dataclasses.dataclass(frozen=True)
    class Padded(LeducPoker):
        def initial_outcomes(self) -> tuple[object, Array]:
            states, probs = super().initial_outcomes()
            states = jax.tree.map(lambda x: jnp.concatenate([x[:3], x[:1], x[3:]]), states)
            return states, jnp.concatenate([probs[:3], jnp.zeros(1), probs[3:]])

    tree, plain = build_tree(Padded()), build_tree(LeducPoker())
    for name in ("chance", "parent", "payoff", "infoset"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(plain, name))
    assert agrees(tree, Padded())
    for one, other in zip(*(jax.tree.leaves(sampling_tree(each)) for each in (tree, plain)), strict=True):
        np.testing.assert_array_equal(one, other)
