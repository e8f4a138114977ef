"""The dueling network: its size, what it accepts, and that reading views equals multiplying observations."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame
from jax import Array

from dream.config.compose import compose_config
from dream.equations.sampling import sample_action
from dream.networks import Network, make_history_network, make_network, make_policy_network
from dream.networks.network import dense_reader, make_reader
from dream.rollout import self_play
from envs import Game, InputError

SMALL = {"name": "dueling", "hidden": [16, 8]}
GAMES, LANES, WINDOW = 20, 12, 3


def test_parameter_count_of_the_document() -> None:
    """Exactly 6,738,796 with the trunk (1024, 1024, 512, 256) and heads 107 and 1, all float32."""
    params = jax.eval_shape(make_network({"name": "dueling"}).init, jax.random.key(0))
    sizes = [leaf.size for leaf in jax.tree.leaves(params)]
    assert sum(sizes) == 6_738_796
    widths = [4887, 1024, 1024, 512, 256]
    layers = [*itertools.pairwise(widths), (256, 107), (256, 1)]
    assert sorted(sizes) == sorted([a * b for a, b in layers] + [b for _, b in layers])
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype("float32")}


def test_accepts_the_configurations_node_and_a_plain_dict() -> None:
    """Both give the same parameters and the same answers: float32[107] and a scalar."""
    node = compose_config("config", ["network.hidden=[16,8]"]).node.network
    observation = jax.random.uniform(jax.random.key(1), (4887,))
    answers = []
    for config in (node, SMALL, {"hidden": [16, 8]}):
        network = make_network(config)
        advantages, value = jax.jit(network.apply)(jax.jit(network.init)(jax.random.key(0)), observation)
        assert (advantages.shape, advantages.dtype) == ((107,), jnp.float32)
        assert (value.shape, value.dtype) == ((), jnp.float32)
        answers.append(np.r_[advantages, value])
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


def test_apply_is_the_network_written_out() -> None:
    """ReLU layers and two linear heads, in NumPy; a batch by vmap, and the layers in the order of their names."""
    network = make_network(SMALL)
    params = jax.jit(network.init)(jax.random.key(3))
    params = jax.tree.map(lambda x: x + 0.1 * jax.random.normal(jax.random.key(x.size), x.shape), params)
    batch = np.asarray(jax.random.uniform(jax.random.key(4), (5, 4887)))
    host = {name: {k: np.asarray(v) for k, v in layer.items()} for name, layer in params.items()}
    hidden = np.maximum(batch @ host["first"]["w"] + host["first"]["b"], 0)
    hidden = np.maximum(hidden @ host["trunk_1"]["w"] + host["trunk_1"]["b"], 0)
    advantages, values = jax.jit(jax.vmap(network.apply, (None, 0)))(params, batch)
    expected = hidden @ host["advantages"]["w"] + host["advantages"]["b"]
    np.testing.assert_allclose(advantages, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(values, (hidden @ host["value"]["w"] + host["value"]["b"])[:, 0], rtol=1e-3, atol=1e-3)


def test_fits_any_game() -> None:
    """The sizes are the game's."""
    network = make_network(SMALL, CoinGame())
    advantages, value = network.apply(network.init(jax.random.key(0)), jnp.zeros(17))
    assert (advantages.shape, value.shape) == ((3,), ())


@pytest.fixture(scope="module")
def networks(game: Game) -> dict[str, tuple[Network, Any]]:
    """Networks on gin rummy with parameters none of which is zero."""
    made = {}
    for name, change in {"whole": {}, "bfloat16": {"dtype": "bfloat16"}, "window": {"log_window": WINDOW}}.items():
        network = make_network({**SMALL, **change}, game)
        params = jax.jit(network.init)(jax.random.key(5))
        made[name] = network, jax.tree.map(lambda x: x + 0.05 * jax.random.normal(jax.random.key(9), x.shape), params)
    return made


@pytest.fixture(scope="module")
def differences(game: Game, networks: dict[str, tuple[Network, Any]]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Random games read both ways: largest differences by name, float[T, lanes], and which are valid."""
    readers = {name: make_reader(game, network) for name, (network, _) in networks.items()}

    def far(one: Any, two: Any) -> Array:
        pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
        return jnp.max(jnp.stack([jnp.max(jnp.abs(a - b)) for a, b in pairs]))

    def act(memory: Any, view: Any, legal: Array, player: Array, key: Array) -> tuple[Array, Any, dict]:
        observation, reported, after = game.encode(view), {}, {}
        for name, (network, params) in networks.items():
            read, after[name] = readers[name].read(readers[name].prepare(params), memory[name], view, player)
            reported[name] = far(read, network.apply(params, observation))
        seen = networks["window"][0].inputs
        reported["window inputs"] = far(seen.of_view(view), seen.of_observation(observation))
        reported["moves"] = far(networks["whole"][0].apply(networks["whole"][1], observation), (jnp.zeros(107), 0.0))
        reported["rounding"] = far(*(network.apply(networks["whole"][1], observation) for network in pair))
        return sample_action(key, legal.astype(jnp.float32)), after, reported

    pair = networks["whole"][0], networks["bfloat16"][0]
    actor = self_play.Actor(lambda key: {name: reader.start() for name, reader in readers.items()}, act)
    record = jax.jit(lambda key: self_play.play(game, actor, key, games=GAMES, num_envs=LANES))(jax.random.key(6))
    return jax.device_get((record.decisions.extras, record.valid))


@pytest.mark.parametrize(("name", "tolerance"), [("whole", 2e-5), ("window", 2e-5), ("bfloat16", 0.1)])
def test_reading_views_in_order_equals_the_dense_network(differences: Any, name: str, tolerance: float) -> None:
    """At every decision of whole random games, both players, lanes that begin anew included."""
    notes, valid = differences
    assert valid.sum() > 60 * GAMES
    assert valid.any(axis=1).sum() > 100
    assert notes[name][valid].max() < tolerance * max(1.0, notes["moves"][valid].max())
    assert notes["moves"][valid].min() > 0.1


def test_window_of_a_view_equals_that_of_its_observation(differences: Any) -> None:
    """The dense entries and the newest events, newest first; only a quotient may be rounded otherwise."""
    notes, valid = differences
    assert notes["window inputs"][valid].max() < 1e-7


def test_bfloat16_rounds_but_not_much(differences: Any) -> None:
    """It computes in another precision than float32, within a few per cent."""
    notes, valid = differences
    rounding = notes["rounding"][valid] / np.maximum(notes["moves"][valid], 1)
    assert 1e-5 < rounding.mean() < 0.02


def test_bfloat16_parameters_and_gradients_stay_float32(networks: dict[str, tuple[Network, Any]]) -> None:
    """So that small steps are not lost."""
    network, params = networks["bfloat16"]
    gradient = jax.jit(jax.grad(lambda p: network.apply(p, jnp.ones(4887))[1]))(params)
    for tree in (params, gradient):
        assert {leaf.dtype for leaf in jax.tree.leaves(tree)} == {np.dtype("float32")}


def test_window_is_newest_first(game: Game) -> None:
    """Two events in the log: the window of three holds the later, the earlier, and zeros."""
    seen = make_network({**SMALL, "log_window": WINDOW}, game).inputs
    observation = np.arange(4887, dtype=np.float32)
    observation[156 + 2 * 59 : 4876] = 0
    window = np.asarray(jax.jit(seen.of_observation)(observation))
    dense = np.r_[observation[:156], observation[4876:]]
    expected = np.r_[dense, observation[156 + 59 : 156 + 2 * 59], observation[156 : 156 + 59], np.zeros(59)]
    np.testing.assert_array_equal(window, expected)
    assert seen.size == 167 + 3 * 59


def test_a_window_or_a_game_without_log_has_the_dense_reader(game: Game) -> None:
    """Nothing is carried where nothing can be."""
    for network in (make_network({**SMALL, "log_window": 2}, game), make_network(SMALL, CoinGame())):
        assert not network.inputs.carries_log
    network = make_network(SMALL, CoinGame())
    assert make_reader(CoinGame(), network).start() == dense_reader(network).start() == ()


WRONG = [
    ({"name": "duelling"}, "did you mean 'dueling'"),
    ({**SMALL, "hidden": []}, "network.hidden=[] is empty"),
    ({**SMALL, "hidden": [4, 0]}, "network.hidden[1]=0 is out of range"),
    ({**SMALL, "hidden": 16}, "network.hidden=16 is not valid; it must be a list"),
    ({**SMALL, "dtype": "float16"}, "did you mean 'bfloat16'"),
    ({**SMALL, "log_window": 0}, "network.log_window=0 is out of range; it must be at least 1"),
    ({**SMALL, "log_window": 81}, "network.log_window=81 is out of range; gin_rummy has 80 log slots"),
    ({**SMALL, "width": 3}, "unknown setting 'network.width'"),
    ("dueling", "must be a configuration node or a dict"),
    (None, "must be a configuration node or a dict"),
]


@pytest.mark.parametrize(("config", "reported"), WRONG)
def test_wrong_configuration(config: Any, reported: str) -> None:
    """One line that says what would be right."""
    with pytest.raises(InputError) as error:
        make_network(config)
    assert reported in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("make", [make_network, make_history_network, make_policy_network])
@pytest.mark.parametrize("game", ["kuhn_poker", 3])
def test_a_game_by_name_is_refused(make: Any, game: Any) -> None:
    """By an AttributeError of what reads its observations, until then."""
    with pytest.raises(InputError, match=rf"^{game!r} is not a game; give one, as envs.make\('kuhn_poker'\)$"):
        make(SMALL, game)
