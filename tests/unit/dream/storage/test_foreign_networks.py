"""The documented pickles of other projects: their arrays become this project's networks, and those play."""

from __future__ import annotations

import copy
import dataclasses
import json
import pathlib
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
import pytest
from simba_reference import random_weights, simba_forward

import dream
import envs
from dream.commands.evaluate import play_match, prepare_match
from dream.commands.exploit import exploit, prepare_exploit
from dream.config.compose import compose_config
from dream.evaluation import match
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tabular_policy import tabulate
from dream.game_tree.tree import build_tree
from dream.networks import make_network
from dream.storage.foreign.networks import read_network
from envs import InputError

Write = Callable[[Any], pathlib.Path]


@pytest.fixture
def write(tmp_path: pathlib.Path) -> Write:
    """Writes a pickle and returns its path."""

    def written(content: Any) -> pathlib.Path:
        path = tmp_path / "foreign.pkl"
        path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, 4))
        return path

    return written


@pytest.fixture(scope="module")
def simba() -> dict[str, dict[str, np.ndarray]]:
    """Random weights of the document's network."""
    return random_weights(np.random.default_rng(7))


@pytest.mark.parametrize("outer", [True, False])
def test_the_documents_network_gives_the_documents_outputs(simba: Any, write: Write, outer: bool) -> None:
    """Every head on random observations against NumPy within 1e-4, with the outer "params" and without."""
    policy = dream.load_policy(write({"params": simba} if outer else simba))
    observations = np.random.default_rng(8).random((33, 342), np.float32)
    reported, expected = policy.outputs(observations), simba_forward(simba, observations)
    assert set(reported) == {"logits", "value_draw", "value_discard", "value_knock", "opp_dw_pred"} == set(expected)
    for name, x in expected.items():
        assert reported[name].shape == x.shape == ((33, 16) if name == "logits" else (33,))
        assert reported[name].dtype == np.float32
        np.testing.assert_allclose(reported[name], x, atol=1e-4, rtol=1e-4, err_msg=name)
        assert np.std(x) > 0.05
    with pytest.raises(InputError, match=r"of shape \[342\] do not fit; they must be \[B, 342\]"):
        policy.outputs(observations[0])


def test_its_parameters_are_the_networks_numbers(simba: Any, write: Write) -> None:
    """4,576,276 of them, under their own names, bit for bit."""
    policy = dream.load_policy(write({"params": simba}))
    assert sum(x.size for x in jax.tree.leaves(policy.params)) == 4_576_276
    assert set(policy.params) == set(simba)
    for layer, parts in simba.items():
        for part, x in parts.items():
            np.testing.assert_array_equal(policy.params[layer][part], x)


def test_it_plays_the_softmax_of_its_legal_logits(simba: Any, write: Write) -> None:
    """On a view of the game, and in a match."""
    policy, game = dream.load_policy(write(simba)), envs.make("gin_rummy_mdp")

    @jax.jit
    def dealt(key: jax.Array) -> tuple[Any, ...]:
        state = game.init(key)
        view, legal = game.view(state, state.current_player), game.legal_actions(state)
        return game.encode(view), legal, policy(view, legal)

    observation, legal, played = jax.device_get(dealt(jax.random.key(0)))
    logits = simba_forward(simba, observation[None])["logits"][0]
    expected = np.where(legal, np.exp(logits - logits.max()), 0)
    np.testing.assert_allclose(played, expected / expected.sum(), atol=1e-4)
    assert 0.01 < played[0] < 0.99
    assert match(game, policy, envs.make_bot("random", game), games=4)["n"] == 4


def test_float64_and_float16_become_float32(simba: Any, write: Write) -> None:
    """The network computes in float32."""
    for dtype in (np.float64, np.float16):
        changed = {**simba, "opp_dw_pred": {k: x.astype(dtype) for k, x in simba["opp_dw_pred"].items()}}
        params = dream.load_policy(write(changed)).params
        assert params["opp_dw_pred"]["kernel"].dtype == np.float32
        np.testing.assert_array_equal(params["opp_dw_pred"]["kernel"], simba["opp_dw_pred"]["kernel"].astype(dtype))


def _set(layer: str, part: str, value: Any) -> Callable[[dict], None]:
    return lambda params: params.setdefault(layer, {}).__setitem__(part, value)


SIMBA_WRONG = {
    "a layer less": (lambda p: p.pop("Dense_3"), "Dense_3.bias is missing; Dense_3.kernel is missing"),
    "a part less": (lambda p: p["LayerNorm_1"].pop("scale"), "LayerNorm_1.scale is missing"),
    "a layer more": (_set("Dense_6", "kernel", np.ones((2, 2), np.float32)), "Dense_6.kernel is not of this network"),
    "a part more": (_set("LayerNorm_0", "mean", np.ones(2, np.float32)), "LayerNorm_0.mean is not of this network"),
    "transposed": (
        lambda p: p["Dense_5"].update(kernel=p["Dense_5"]["kernel"].T), "Dense_5.kernel is [16, 1024], not [1024, 16]",
    ),
    "another observation": (
        _set("Dense_0", "kernel", np.zeros((341, 1024), np.float32)), "Dense_0.kernel is [341, 1024], not [342, 1024]",
    ),
    "whole numbers": (_set("value_draw", "bias", np.zeros(1, np.int32)), "value_draw.bias holds int32, not float32"),
    "no number": (_set("value_draw", "bias", np.array([np.nan], np.float32)), "bias holds numbers that are not"),
    "too large": (_set("value_draw", "bias", np.array([1e300])), "value_draw.bias holds numbers that are not finite"),
    "a list": (_set("value_draw", "bias", [0.0]), "value_draw.bias is a list; it must be an array"),
    "no layer": (lambda p: p.update(step=3), "'step' is an int; it must be a layer"),
    "no layers": (lambda p: p.clear(), "holds no layers"),
}  # fmt: skip


@pytest.mark.parametrize("name", SIMBA_WRONG)
def test_wrong_arrays_are_named(simba: Any, write: Write, name: str) -> None:
    """In one line, with the file."""
    change, reported = SIMBA_WRONG[name]
    params = copy.deepcopy(simba)
    change(params)
    path = write({"params": params})
    with pytest.raises(InputError) as error:
        dream.load_policy(path)
    assert reported in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def _dueling(hidden: list[int], window: int | None = None) -> tuple[Any, dict[str, dict[str, np.ndarray]]]:
    """Returns a dueling network on gin rummy and random parameters as NumPy arrays."""
    network, rng = make_network({"name": "dueling", "hidden": hidden, "log_window": window}), np.random.default_rng(5)
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    return network, jax.tree.map(lambda x: 0.1 * rng.standard_normal(x.shape, np.float32), shapes)


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize(
    "config",
    [
        {},
        {"learning_rate": 2e-3, "env": "gin"},
        {"algo": {"play_temperature": 0.5}},
        {"algo": {"play_temperature": 1}},
        {"algo": {"play_temperature": np.float32(0.5)}},
    ],
)
def test_the_dueling_agent_under_haikus_names(write: Write, config: dict, window: int | None, game: Any) -> None:
    """Sizes as its arrays tell; it plays by soft regret matching, at the document's temperature or its own."""
    network, params = _dueling([12, 8], window)
    policy = dream.load_policy(write({"params": params, "config": config}))
    jax.tree.map(np.testing.assert_array_equal, policy.params, params)
    state = jax.jit(game.init)(jax.random.key(1))
    view, legal = game.view(state, 0), np.asarray(game.legal_actions(state))
    advantages, value = network.apply(params, game.encode(view))
    below = np.asarray(advantages, np.float64) - np.max(np.asarray(advantages)[legal])
    temperature = config.get("algo", {}).get("play_temperature", 0.1)
    weights = np.where(legal, np.logaddexp(0, below / temperature), 0)
    np.testing.assert_allclose(policy(view, legal), weights / weights.sum(), atol=1e-4)
    reported = policy.outputs(np.asarray(game.encode(view))[None])
    np.testing.assert_allclose(reported["advantages"][0], advantages, atol=1e-4)
    np.testing.assert_allclose(reported["value"][0], value, atol=1e-4)


DUELING_WRONG = {
    "a layer of the trunk less": (lambda p: p.pop("trunk_2"), {}, "trunk_2"),
    "the last layer of the trunk less": (lambda p: p.pop("trunk_3"), {}, "trunk_3"),
    "told by its config": (lambda p: p.pop("trunk_3"), {"network": {"hidden": [16, 12, 8, 6]}}, "trunk_3.w is missing"),
    "no value": (lambda p: p.pop("value"), {"hidden": [16, 12, 8, 6]}, "value.b is missing; value.w is missing"),
    "another game": (
        lambda p: p["advantages"].update(b=np.zeros(5, np.float32)), {"hidden": [16, 12, 8, 6]},
        "advantages.b is [5], not [107]",
    ),
    "absurd config": (lambda p: p.pop("value"), {"hidden": [1] * 10_000, "env": {"name": 3}}, "value.w is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", DUELING_WRONG)
def test_wrong_arrays_of_the_dueling_agent_are_named(write: Write, name: str) -> None:
    """Where arrays are missing, what the network should be is what its config tells, or the document's."""
    change, config, reported = DUELING_WRONG[name]
    _, params = _dueling([16, 12, 8, 6])
    change(params)
    with pytest.raises(InputError) as error:
        dream.load_policy(write({"params": params, "config": config}))
    assert reported in str(error.value)
    assert "\n" not in str(error.value)


def test_shared_arrays_are_not_copied_under_every_name(write: Write) -> None:
    """One array of 8 MB under 10,000 names: refused before anything is made of it."""
    array = np.zeros((2000, 2000), np.float16)
    path = write({"params": {f"trunk_{n}": {"w": array} for n in range(10_000)}})
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="is missing"):
            dream.load_policy(path)
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()


def test_a_pickle_of_something_else(write: Write) -> None:
    """One line."""
    with pytest.raises(InputError, match="holds a list; it must hold a dict"):
        dream.load_policy(write([1]))


def test_an_import_is_exported_bit_for_bit(simba: Any, write: Write, tmp_path: pathlib.Path) -> None:
    """As float32 arrays under the document's names."""
    path = dream.export_policy(write({"params": simba}), tmp_path / "simba.safetensors")
    again = dream.load_policy(path)
    for layer, parts in simba.items():
        for part, x in parts.items():
            assert np.asarray(again.params[layer][part]).tobytes() == x.tobytes()
    observations = np.random.default_rng(9).random((3, 342), np.float32)
    expected = simba_forward(simba, observations)["logits"]
    np.testing.assert_allclose(again.outputs(observations)["logits"], expected, atol=1e-4)


def test_the_commands_take_the_file(tmp_path: pathlib.Path) -> None:
    """Exploitability of a dueling network's pickle is that of the Policy, told beside the file."""
    network = make_network({"name": "dueling", "hidden": [8]}, envs.make("leduc_poker"))
    params = jax.tree.map(np.asarray, network.init(jax.random.key(0)))
    path = tmp_path / "leduc.pkl"
    path.write_bytes(pickle.dumps({"params": params, "config": {"env": {"name": "leduc_poker"}}}))
    exploit(prepare_exploit(compose_config("exploit", [f"checkpoint={path}"])))
    reported = json.loads((tmp_path / "exploitability" / "exact_leduc.pkl.json").read_text())
    tree = build_tree(envs.make("leduc_poker"))
    assert reported["nash_conv"] == pytest.approx(nash_conv(tree, tabulate(tree, dream.load_policy(path))))
    assert reported["iteration"] is None
    play_match(prepare_match(compose_config("evaluate", [f"checkpoint={path}", f"opponent={path}", "games=4"])))
    assert json.loads(next((tmp_path / "evaluations").iterdir()).read_text())["n"] == 4


def _named(params: dict[str, dict[str, np.ndarray]], names: dict[str, str], parts: tuple[str, str]) -> dict[str, Any]:
    """Returns the layers under other names; a name with slashes makes modules in modules."""
    made: dict[str, Any] = {}
    for own, name in names.items():
        *scopes, last = name.split("|")
        inner = made
        for scope in scopes:
            inner = inner.setdefault(scope, {})
        inner[last] = dict(zip(parts, (params[own]["w"], params[own]["b"]), strict=True))
    return made


OWN = ("first", "trunk_1", "trunk_2", "trunk_3", "advantages", "value")
HAIKU, FLAX = ("w", "b"), ("kernel", "bias")
THEIRS: dict[str, tuple[tuple[str, ...], tuple[str, str]]] = {
    "haiku's": (("linear", *(f"linear_{n}" for n in range(1, 6))), HAIKU),
    "haiku's in a module": (tuple(f"dueling_net/~/linear{n}" for n in ("", "_1", "_2", "_3", "_4", "_5")), HAIKU),
    "haiku's MLP": (
        (*(f"dueling/~/mlp/~/linear_{n}" for n in range(4)), "dueling/~/advantage_head", "dueling/~/value_head"), HAIKU,
    ),
    "heads the other way round": (("linear", "linear_1", "linear_2", "linear_3", "linear_5", "linear_4"), HAIKU),
    "flax's": (tuple(f"Dense_{n}" for n in range(6)), FLAX),
    "flax's with heads": ((*(f"Dense_{n}" for n in range(4)), "advantage_head", "value_head"), FLAX),
    "flax's in modules": (
        (*(f"Trunk_0|Dense_{n}" for n in range(4)), "AdvantageHead_0|Dense_0", "ValueHead_0|Dense_0"), FLAX,
    ),
}  # fmt: skip


@pytest.mark.parametrize("hidden", [[16, 12, 8, 6], [16, 16, 8, 6], [16, 8, 16, 8]], ids=str)
@pytest.mark.parametrize("name", THEIRS)
def test_layers_are_told_by_their_shapes(write: Write, name: str, hidden: list[int]) -> None:
    """Under Haiku's and Flax's own names, sorted by name as tree maps leave them, the arrays come back bit for bit."""
    _, params = _dueling(hidden)
    names, parts = THEIRS[name]
    theirs = _named(params, dict(zip(OWN, names, strict=True)), parts)
    theirs = dict(sorted(theirs.items()))
    foreign = read_network(write({"params": {"params": theirs} if parts is FLAX else theirs, "config": {"seed": 1}}))
    assert foreign.network["hidden"] == hidden
    assert foreign.game == {"name": "gin_rummy", "rules": {}}
    for layer in OWN:
        for part in HAIKU:
            np.testing.assert_array_equal(foreign.params[f"{layer}.{part}"], params[layer][part])


def test_the_documents_network_under_haikus_names_plays(write: Write) -> None:
    """6,738,796 numbers, as the document says; and a second network beside it, the target, is left alone."""
    _, params = _dueling([1024, 1024, 512, 256])
    theirs = _named(params, dict(zip(OWN, THEIRS["haiku's"][0], strict=True)), HAIKU)
    policy = dream.load_policy(write({"params": theirs, "target_params": theirs, "config": {}, "iteration": 800}))
    assert sum(x.size for x in jax.tree.leaves(policy.params)) == 6_738_796


@dataclasses.dataclass
class Config:
    """Settings as another project's code may hold them."""

    learning_rate: float = 2e-3
    hidden: tuple[int, ...] = (8,)
    env: Any = None
    algo: Any = None


@dataclasses.dataclass(slots=True)
class Slots:
    """The same in slots."""

    play_temperature: float = 0.5


def test_jax_arrays_and_a_dataclass_are_read_as_data(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays as JAX pickles them, and a dataclass's fields, whose class is never looked up."""
    network = make_network({"name": "dueling", "hidden": [8]}, envs.make("leduc_poker"))
    params = network.init(jax.random.key(0))
    theirs = _named(params, {"first": "linear", "advantages": "linear_1", "value": "linear_2"}, HAIKU)
    theirs = {layer: {part: jax.numpy.asarray(x) for part, x in parts.items()} for layer, parts in theirs.items()}
    path = write(pickle.dumps({"params": theirs, "config": Config(env={"name": "leduc_poker"}, algo=Slots())}))
    assert b"_reconstruct_array" in path.read_bytes()
    monkeypatch.setattr(Config, "__setattr__", None)
    foreign = read_network(path)
    assert foreign.game["name"] == "leduc_poker"
    assert foreign.acts.temperature == 0.5
    np.testing.assert_array_equal(foreign.params["first.w"], params["first"]["w"])


class Settings(NamedTuple):
    """Settings as a named tuple, whose pickle does not name its fields."""

    hidden: tuple[int, ...] = (8,)
    learning_rate: float = 2e-3


def test_bfloat16_and_named_tuples_are_read_as_data(write: Write) -> None:
    """A network in bfloat16, settings and an optimiser's state in named tuples: float32 of the same values."""
    network = make_network({"name": "dueling", "hidden": [8]})
    params = jax.tree.map(lambda x: x.astype(jax.numpy.bfloat16), network.init(jax.random.key(0)))
    theirs = _named(params, {"first": "linear", "advantages": "linear_1", "value": "linear_2"}, HAIKU)
    state = optax.chain(optax.clip(1.0), optax.adam(1e-3)).init(theirs)
    foreign = read_network(write({"params": theirs, "config": Settings(), "opt_state": state}))
    assert foreign.game["name"] == "gin_rummy"
    assert foreign.network["hidden"] == [8]
    for layer, parts in params.items():
        for part, x in parts.items():
            assert foreign.params[f"{layer}.{part}"].dtype == np.float32
            np.testing.assert_array_equal(foreign.params[f"{layer}.{part}"], np.asarray(x, np.float32))


def _layers(*sizes: tuple[int, int]) -> dict[str, dict[str, np.ndarray]]:
    return {
        f"linear{f'_{n}' if n else ''}": {"w": np.zeros(size, np.float32), "b": np.zeros(size[1], np.float32)}
        for n, size in enumerate(sizes)
    }


REFUSED_BY_SHAPE: dict[str, tuple[Any, str]] = {
    "no advantages": (_layers((4887, 8), (8, 1)), "no layer has 107 outputs, as the advantages must; it holds linear"),
    "no value": (_layers((4887, 8), (8, 107)), "no layer has 1 outputs, as the value must"),
    "another observation": (_layers((342, 8), (8, 107), (8, 1)), "no chain of layers leads from its 4887 inputs"),
    "a gap": (_layers((4887, 8), (9, 7), (7, 107), (7, 1)), "no chain of layers"),
    "a layer that leads nowhere": (_layers((4887, 8), (8, 107), (8, 1), (8, 5)), "no chain of layers"),
    "heads of another layer each": (_layers((4887, 8), (8, 7), (7, 107), (8, 1)), "no chain of layers"),
    "in two ways": (
        {
            "a": _layers((4887, 8))["linear"], "c": _layers((8, 8))["linear"], "d": _layers((8, 8))["linear"],
            "e": _layers((8, 107))["linear"], "f": _layers((8, 1))["linear"],
        }, "in more than one way",
    ),
    "norms": (
        _layers((4887, 8), (8, 107), (8, 1)) | {"layer_norm": {"scale": np.ones(8), "offset": np.ones(8)}},
        "layer_norm holds offset, scale; a layer holds w and b, or kernel and bias",
    ),
    "a head called value_head alone": (
        {"value_head": {"kernel": np.zeros((8, 1), np.float32), "bias": np.zeros(1, np.float32)}}, "107 outputs",
    ),
    "a name with a line in it": ({"a\nb": _layers((4, 8))["linear"], "c": _layers((8, 1))["linear"]}, r"a\nb [4, 8]"),
    "no array": ({"linear": {"w": [1.0], "b": np.zeros(1)}}, "holds something that is no array"),
    "odd arrays": ({"linear": {"w": np.zeros((2, 3)), "b": np.zeros(2)}}, "holds arrays of [2, 3] and [2]"),
    "many layers": (_layers(*[(1, 1)] * 65), "65 layers"),
    "many alike": (_layers((4887, 8), *[(8, 8)] * 60, (8, 107), (8, 2)), "no layer has 1 outputs"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_BY_SHAPE)
def test_shapes_that_do_not_tell_are_refused(write: Write, name: str) -> None:
    """One line that says what is missing, and what is there."""
    content, reported = REFUSED_BY_SHAPE[name]
    with pytest.raises(InputError) as error:
        read_network(write({"params": content}))
    assert reported in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "env",
    [{"name": "leduc_poker", "rules": {3: 4}}, {"name": "gin_rummy", "rules": {"knock_limit": "x" * 9000}}],
    ids=["a key", "a text"],
)
def test_rules_out_of_a_config(write: Write, env: dict) -> None:
    """What is no rule's name is not one; a wrong value is cut."""
    with pytest.raises(InputError) as error:
        read_network(write({"params": _layers((4887, 8), (8, 107)), "config": {"env": env}}))
    assert len(str(error.value)) < 600
