"""Does a mixture seat the learner and its opponents as its shares say?"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream.rollout.opponents import assign_seats, is_learner, make_mixture, policy_at
from envs import InputError

GAME = envs.make("kuhn_poker")


def test_seats_and_opponents_come_by_share() -> None:
    """20,000 games: shares within five standard errors, both seats, the two draws independent."""
    mixture = make_mixture(("self", "random"), (1.0, 3.0), GAME)
    drawn = jax.vmap(lambda key: assign_seats(mixture, 2, key))(jax.random.split(jax.random.key(0), 20_000))
    against = np.asarray(drawn.opponent == 1)
    assert abs(against.mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 20_000)
    for group in (against, ~against):
        seats = np.asarray(drawn.seat)[group]
        assert abs(seats.mean() - 0.5) < 5 * 0.5 / np.sqrt(group.sum())


def test_only_the_fixed_player_decides_on_its_seat() -> None:
    """Against itself the learner decides everywhere, against another only on its seat."""
    mixture = make_mixture(("self", "random"), None, GAME)
    state = GAME.init(jax.random.key(1))
    view, legal = GAME.view(state, 0), GAME.legal_actions(state)
    own = jnp.array([1.0, 0.0])
    for opponent, learner_seat, player, expected in [(0, 0, 1, 1.0), (0, 1, 0, 1.0), (1, 0, 0, 1.0), (1, 1, 0, 0.5)]:
        seating = jax.eval_shape(lambda: assign_seats(mixture, 2, jax.random.key(0)))._replace(
            seat=jnp.int32(learner_seat), opponent=jnp.int32(opponent)
        )
        policy = policy_at(mixture, seating, jnp.int32(player), own, view, legal)
        assert float(policy[0]) == expected
        assert bool(is_learner(seating, jnp.int32(player))) == (expected == 1.0)


@pytest.mark.parametrize(
    ("names", "shares", "words"),
    [
        (("self",), (1.0, 2.0), "does not fit"),
        (("self", "random"), (), r"algo\.shares=\[\] does not fit"),
        ((), None, "is empty"),
        (("self", "random"), (0.0, 0.0), "not all 0"),
        (("nobody",), None, "nobody"),
    ],
)
def test_wrong_mixtures_are_refused(names: tuple[str, ...], shares: tuple[float, ...] | None, words: str) -> None:
    """One line that says what is wrong."""
    with pytest.raises(InputError, match=words) as caught:
        make_mixture(names, shares, GAME)
    assert "\n" not in str(caught.value)
