"""Exports: every learner's policy goes into one file and comes back bit for bit, with a card that tells what it is."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import shutil
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from omegaconf import OmegaConf
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import dream
import envs
from dream import algorithms
from dream.algorithms.types import Algorithm, Resources
from dream.config.compose import compose_config
from dream.game_tree.tabular_policy import table_index, table_policy
from dream.storage import policy_file
from dream.storage.checkpoint_writer import CheckpointWriter
from dream.storage.policies import find, game_of, policies_of
from dream.storage.policy_file import Card, named, to_bytes
from envs import InputError

LEARNERS = sorted({place: name for name, place in sorted(algorithms._REGISTRY.items())}.values())
"""One of each kind; the others differ in settings."""


def _run(folder: pathlib.Path, algo: str, *overrides: str) -> pathlib.Path:
    """Writes a run directory with one checkpoint of a state with noise in it."""
    node = compose_config("config", [f"algo={algo}", "preset=tiny", *overrides]).node
    config = OmegaConf.to_container(node, resolve=True)
    game = envs.make(config["env"]["name"], **config["env"].get("rules", {}))
    learner = algorithms.make(config["algo"], config["network"], game)
    rng = np.random.default_rng(4)
    state = jax.tree.map(
        lambda x: np.asarray(x) + rng.random(x.shape, np.float32) if x.dtype == np.float32 else x,
        learner.init(jax.random.key(4)),
    )
    writer = CheckpointWriter(folder / algo, 1)
    writer.save(7, state, {"config": config, "game": game.identity})
    writer.close()
    return folder / algo


@pytest.mark.parametrize("algo", LEARNERS)
def test_every_learners_policies_come_back(tmp_path: pathlib.Path, algo: str) -> None:
    """Names, shapes, dtypes and bits of all arrays, and the probabilities they give."""
    run = _run(tmp_path, algo, "env=kuhn_poker")
    game = envs.make("kuhn_poker")
    state = game.init(jax.random.key(0))
    view, legal = game.view(state, 0), game.legal_actions(state)
    trained = find(run)
    for name, policy in policies_of(trained, game_of(trained)).items():
        path = dream.export_policy(run, tmp_path / f"{name}.safetensors", name)
        again = dream.load_policy(path)
        one, two = named(policy.params), named(again.params)
        assert list(one) == list(two)
        for place, x in one.items():
            x, y = np.asarray(x), np.asarray(two[place])
            assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes()), place
        np.testing.assert_array_equal(policy(view, legal), again(view, legal))


@dataclasses.dataclass(frozen=True)
class OutsideConfig:
    """Of a learner from outside the package: what its policy is."""

    name: str = "outside"
    kind: str = "table"


class OutsideState(NamedTuple):
    """What it has learned."""

    learned: np.ndarray
    iteration: np.ndarray


def _weighted(params: dict[str, Any], view: Any, legal: Any) -> Any:
    return legal * params["weights"] / (legal * params["weights"]).sum()


def _make_outside(config: OutsideConfig, network: Any, game: envs.Game, resources: Resources) -> Algorithm:
    """A learner that needs the tree, or one whose `init` computes on the host; neither can be built by shapes."""

    def init(key: Any) -> OutsideState:
        shape = resources.find_tree(game).legal.shape if config.kind == "table" else (game.num_actions,)
        return OutsideState(np.random.default_rng(int(jax.random.bits(key))).random(shape), np.int32(0))

    def policies(state: OutsideState) -> dict[str, envs.Policy]:
        if config.kind == "table":
            return {"current": table_policy(table_index(resources.find_tree(game)), state.learned)}
        return {"current": envs.Policy(_weighted, {"weights": state.learned})}

    return Algorithm(init, lambda state: (state, {}), policies, has_network=False)


@pytest.mark.parametrize("kind", ["table", "weights"])
def test_an_export_of_a_learner_from_outside_can_be_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A table whatever made it; a policy that cannot be built by shapes is refused, and nothing is written."""
    monkeypatch.setitem(algorithms._registered, "outside", (OutsideConfig, _make_outside))
    run, path = _run(tmp_path, "outside", "env=kuhn_poker", f"algo.kind={kind}"), tmp_path / "a.safetensors"
    if kind == "weights":
        with pytest.raises(InputError, match="not exported, as it could not be loaded again: the card's policy cannot"):
            dream.export_policy(run, path)
        assert not path.exists()
        return
    stored, again = dream.load_policy(run), dream.load_policy(dream.export_policy(run, path))
    for place, x in named(stored.params).items():
        np.testing.assert_array_equal(x, named(again.params)[place])


@pytest.mark.parametrize(("iteration", "known"), [(2, False), (3, True)])
def test_an_export_knows_the_value_that_its_run_knows(tmp_path: pathlib.Path, iteration: int, known: bool) -> None:
    """There is one from the first iteration without shaping on: a search with either is the same player."""
    scale = {"start": 0.5, "end": 0.0, "transition_steps": 2, "form": "linear"}
    node = {"name": "ppo", "episodes_per_iteration": 2, "shaping": {"form": "literal", "scale": scale}}
    game = envs.make("mini_gin_rummy")
    learner = algorithms.make(node, {"hidden": [4]}, game)
    config = {"algo": node, "network": {"name": "dueling", "hidden": [4]}, "env": {"name": game.name}}
    writer = CheckpointWriter(tmp_path, 1)
    state = learner.init(jax.random.key(0))._replace(iteration=np.int32(iteration))
    writer.save(iteration, state, {"config": config, "game": game.identity})
    writer.close()
    exported = dream.export_policy(tmp_path, tmp_path / "policy.safetensors")
    assert [(dream.load_policy(one).value is not None) for one in (tmp_path, exported)] == [known, known]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A PPO run."""
    return _run(tmp_path_factory.mktemp("run"), "ppo", "env=leduc_poker")


def test_a_checkpoint_is_loaded_by_shapes(run: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`init`, which may deal games and play on in all of them, is traced, and neither compiled nor run."""
    make, keys = algorithms.make, []

    def watched(*args: Any) -> Any:
        learner = make(*args)
        return dataclasses.replace(learner, init=lambda key: keys.append(key) or learner.init(key))

    monkeypatch.setattr(algorithms, "make", watched)
    dream.load_policy(run)
    assert [isinstance(key, jax.core.Tracer) for key in keys] == [True]


@pytest.mark.parametrize(
    ("algo", "gone"),
    [
        ("ppo", {"start_from": "runs/gone"}),
        ("ppo", {"opponents": ["self", "runs/gone"]}),
        ("behaviour_cloning", {"records": "gone.jsonl"}),
    ],
)
def test_what_a_learner_started_from_may_be_gone(tmp_path: pathlib.Path, algo: str, gone: dict[str, Any]) -> None:
    """And whom it met: a policy is loaded all the same."""
    node = {"name": algo, "episodes_per_iteration": 2}
    learner = algorithms.make(node, {"hidden": [4]}, envs.make("kuhn_poker"))
    config = {"algo": node | gone, "network": {"hidden": [4]}, "env": {"name": "kuhn_poker"}}
    writer = CheckpointWriter(tmp_path, 1)
    writer.save(1, learner.init(jax.random.key(0)), {"config": config, "game": envs.make("kuhn_poker").identity})
    writer.close()
    assert dream.load_policy(tmp_path).game.name == "kuhn_poker"


def test_the_card_tells_what_it_is(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Beside the file in JSON: game, settings, arrays, checksum; the file itself is enough to load it."""
    path = dream.export_policy(run, tmp_path / "agent.safetensors")
    card = json.loads((tmp_path / "agent.json").read_text())
    assert card["game"] == envs.make("leduc_poker").identity
    assert (card["algo"]["name"], card["policy"], card["iteration"]) == ("ppo", "current", 7)
    assert "opponents" not in card["algo"]
    assert card["network"]["hidden"] == [16, 8]
    assert card["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    arrays = load_file(path)
    assert {name: {"dtype": str(x.dtype), "shape": list(x.shape)} for name, x in arrays.items()} == card["arrays"]
    assert card["parameters"] == sum(x.size for x in arrays.values())
    (tmp_path / "agent.json").unlink()
    dream.load_policy(path)


def test_an_export_of_an_export_is_the_same(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Arrays and card survive."""
    first = dream.export_policy(run, tmp_path / "one.safetensors")
    second = dream.export_policy(first, tmp_path / "two.safetensors")
    assert first.read_bytes() == second.read_bytes()


def test_by_default_it_lies_in_the_run(run: pathlib.Path) -> None:
    """policy.safetensors and policy.json."""
    assert dream.export_policy(run) == run / "policy.safetensors"
    assert (run / "policy.json").exists()


def test_files_of_one_folder_do_not_replace_each_other(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """By the default name there is one export; the same player's is written again."""
    one, other = (tmp_path / f"{name}.safetensors" for name in ("one", "other"))
    dream.export_policy(run, one)
    dream.export_policy(run, other)
    content = to_bytes(dataclasses.replace(find(other).card, source="another run"), load_file(other))
    other.write_bytes(content)
    assert [dream.export_policy(one) for _ in range(2)] == [tmp_path / "policy.safetensors"] * 2
    with pytest.raises(InputError, match="is the export of another player or policy; choose another name by out="):
        dream.export_policy(other)


def _changed(path: pathlib.Path, change: Any) -> None:
    with safe_open(path, "numpy") as file:
        card = json.loads(file.metadata()["dream_card"])
    arrays = load_file(path)
    change(card, arrays)
    save_file(arrays, path, metadata={"dream_card": json.dumps(card)})


WRONG = {
    "an array less": (lambda card, arrays: arrays.pop("network.value.w"), "network.value.w is missing"),
    "an array more": (lambda card, arrays: arrays.update(more=np.ones(1)), "more is not of this network"),
    "another shape": (
        lambda card, arrays: arrays.update({"network.value.b": np.ones(2, np.float32)}),
        "network.value.b is [2], not [1]",
    ),
    "another dtype": (
        lambda card, arrays: arrays.update({"network.value.b": np.ones(1)}), "network.value.b holds float64, not",
    ),
    "another format": (lambda card, arrays: card.update(format=2), "format 2; this version reads format 1"),
    "an unknown game": (lambda card, arrays: card["env"].update(name="whist"), "unknown game 'whist'"),
    "another version": (lambda card, arrays: card["game"].update(version="0"), "version 0, not on"),
    "no game": (lambda card, arrays: card.update(env={}), "card.env.name is missing"),
    "an unknown setting": (lambda card, arrays: card["algo"].update(clipp=1), "did you mean 'algo.clip_epsilon'"),
    "an absurd network": (lambda card, arrays: card["network"].update(hidden=[2**24, 2**24]), "not [30, 16777216]"),
    "another policy": (lambda card, arrays: card.update(policy="best"), "no policy 'best'"),
    "a list for a name": (lambda card, arrays: card["algo"].update(name=[]), "card.algo.name is missing"),
    "no network's name": (lambda card, arrays: card["network"].update(name={}), "card.network.name is missing"),
    "no dict": (lambda card, arrays: card.update(algo=3), "algo=3 must be"),
    "an unknown key": (lambda card, arrays: card.update(games=3), "card.games"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_changed_export_is_refused(run: pathlib.Path, tmp_path: pathlib.Path, name: str) -> None:
    """In one line that names what is wrong."""
    change, reported = WRONG[name]
    path = dream.export_policy(run, tmp_path / "agent.safetensors")
    _changed(path, change)
    with pytest.raises(InputError) as error:
        dream.load_policy(path)
    assert reported in str(error.value)
    assert "\n" not in str(error.value)


def test_damaged_arrays_are_refused(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """By their checksum; a file of an earlier version has none and is loaded."""
    path = dream.export_policy(run, tmp_path / "agent.safetensors")
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"agent\.safetensors is damaged: its arrays do not match their checksum"):
        dream.load_policy(path)
    _changed(path, lambda card, arrays: card.pop("checksum"))
    dream.load_policy(path)


def test_what_is_no_export_is_refused(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Another's safetensors file, a damaged one, a file of another kind."""
    path = dream.export_policy(run, tmp_path / "agent.safetensors")
    save_file({"x": np.ones(1)}, tmp_path / "foreign.safetensors")
    (tmp_path / "short.safetensors").write_bytes(path.read_bytes()[:-1])
    (tmp_path / "text.pkl").write_text("text")
    reported = {
        "foreign.safetensors": "not an export",
        "short.safetensors": "not a readable",
        "text.pkl": "nor a policy's file",
    }
    for file, text in reported.items():
        with pytest.raises(InputError, match=text) as error:
            dream.load_policy(tmp_path / file)
        assert file in str(error.value)


@pytest.mark.parametrize(
    ("out", "reported"),
    [("agent.pkl", "must end with"), ("nowhere/agent.safetensors", "existing folder"), ("", "end with")],
)
def test_where_it_cannot_be_written(run: pathlib.Path, tmp_path: pathlib.Path, out: str, reported: str) -> None:
    """One line, and nothing is there afterwards."""
    with pytest.raises(InputError, match=reported):
        dream.export_policy(run, tmp_path / out)
    assert not list(tmp_path.iterdir())


def test_another_programs_json_is_kept(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Beside the file, by its name; the card of an earlier export is replaced."""
    results = tmp_path / "results.json"
    results.write_text('{"file": "paper.pdf"}')
    with pytest.raises(InputError, match=r"is there and is not the card of results\.safetensors; choose another name"):
        dream.export_policy(run, tmp_path / "results.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    path = dream.export_policy(run, tmp_path / "agent.safetensors")
    assert dream.export_policy(run, path) == path


def test_what_is_not_its_own_export_is_kept(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A file without a card, and the export of another run or policy, wherever `out` names it."""
    foreign = tmp_path / "foreign.safetensors"
    save_file({"x": np.ones(1)}, foreign)
    agent = dream.export_policy(_run(tmp_path, "sd_cfr", "env=kuhn_poker"), tmp_path / "agent.safetensors", "current")
    kept = {path: path.read_bytes() for path in (foreign, agent, agent.with_suffix(".json"))}
    for path, reported in (
        (foreign, r"foreign\.safetensors is there and is no export; choose another name by out="),
        (agent, r"agent\.safetensors is the export of another player or policy; choose another name by out="),
    ):
        with pytest.raises(InputError, match=reported):
            dream.export_policy(run, path)
    with pytest.raises(InputError, match="of another player or policy"):
        dream.export_policy(tmp_path / "sd_cfr", agent, "average")
    assert {path: path.read_bytes() for path in kept} == kept


def test_a_run_that_went_on_is_exported_again(tmp_path: pathlib.Path) -> None:
    """To its own file, as the same command did before; another run does not replace it."""
    runs = [tmp_path / name for name in ("one", "other")]
    for run, seed in zip(runs, (0, 1), strict=True):
        dream.train(["env=kuhn_poker", "algo=cfr", "iterations=1", f"seed={seed}", f"run_dir={run}"], quiet=True)
    path = dream.export_policy(runs[0], tmp_path / "agent.safetensors")
    dream.train([f"resume={runs[0]}", "iterations=2"], quiet=True)
    assert dream.export_policy(runs[0], path) == path
    assert json.loads(path.with_suffix(".json").read_text())["iteration"] == 2
    with pytest.raises(InputError, match="of another player or policy"):
        dream.export_policy(runs[1], path)
    alone = tmp_path / "alone.safetensors"  # the file says itself which run it is of
    shutil.copy(path, alone)
    copy = dream.export_policy(alone, tmp_path / "copy.safetensors")
    dream.train([f"resume={runs[0]}", "iterations=3"], quiet=True)
    for place in (copy, alone):
        dream.export_policy(dream.export_policy(runs[0], path), place)
        assert json.loads(place.with_suffix(".json").read_text())["iteration"] == 3


def test_a_run_has_one_policy_by_the_default_name(tmp_path: pathlib.Path) -> None:
    """Another needs a name of its own; a file whose card was deleted is identified by its content."""
    run = tmp_path / "run"
    dream.train(["env=kuhn_poker", "algo=cfr", "iterations=1", f"run_dir={run}"], quiet=True)
    path = dream.export_policy(run, name="average")
    content = path.read_bytes()
    for card in (path.with_suffix(".json"), None):
        with pytest.raises(InputError, match="of another player or policy; choose another name by out="):
            dream.export_policy(run, name="current")
        if card is not None:
            card.unlink()
    assert path.read_bytes() == content
    dream.train([f"resume={run}", "iterations=2"], quiet=True)
    assert dream.export_policy(run) == path
    assert json.loads(path.with_suffix(".json").read_text())["iteration"] == 2


def test_an_export_cut_off_between_its_files_is_written_again(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    """By the same command, wherever it is written, after the run went on too."""
    run, path = tmp_path / "run", tmp_path / "agent.safetensors"
    dream.train(["env=kuhn_poker", "algo=cfr", "iterations=1", f"run_dir={run}"], quiet=True)

    def killed(*_: Any) -> None:
        raise SystemExit

    for iterations in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr("dream.commands.export.write_bytes", killed)
            with pytest.raises(SystemExit):
                dream.export_policy(run, path)
        dream.train([f"resume={run}", f"iterations={iterations + 1}"], quiet=True)
        assert dream.export_policy(run, path) == path


def test_an_unknown_policy_writes_nothing(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """It is refused before anything is written."""
    with pytest.raises(InputError, match="unknown policy 'best'"):
        dream.export_policy(run, tmp_path / "agent.safetensors", "best")
    assert not list(tmp_path.iterdir())


ASKS: dict[str, tuple[dict[str, object], str]] = {
    "a file": ({"opponents": ["/etc/passwd"]}, "card.algo.opponents names other players"),
    "the hub": ({"opponents": ["hf:owner/repo/file.pkl"]}, "card.algo.opponents names other players"),
    "a share": ({"shares": [1.0]}, "card.algo.shares names other players"),
    "a helper that is none": ({"assistant": "hf:owner/repo/file.pkl"}, "unknown assistant"),
}


@pytest.mark.parametrize("name", ASKS)
def test_a_card_that_asks_for_more_is_refused(run: pathlib.Path, tmp_path: pathlib.Path, name: str) -> None:
    """It names a policy's shape: no other player, no file, no reference."""
    changes, reported = ASKS[name]
    path = dream.export_policy(run, tmp_path / "agent.safetensors")
    _changed(path, lambda card, arrays: card["algo"].update(changes))
    with pytest.raises(InputError) as error:
        dream.load_policy(path)
    assert reported in str(error.value)


def test_how_a_learner_learned_is_of_no_account(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A card of a run against fixed players, whose names exports leave out, or of huge rollouts, loads all the same."""
    path = dream.export_policy(run, tmp_path / "agent.safetensors")
    _changed(path, lambda card, arrays: card["algo"].update(rollout_length=2**30, episodes_per_iteration=2**30))
    dream.load_policy(path)


def test_arrays_are_read_after_their_shapes(run: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    """A card of another network is refused by the header alone."""
    path = dream.export_policy(run, tmp_path / "agent.safetensors")
    _changed(path, lambda card, arrays: card["network"].update(hidden=[2**24, 2**24]))
    monkeypatch.setattr(policy_file, "_arrays", lambda file: pytest.fail("arrays were read"))
    with pytest.raises(InputError, match="not \\[30, 16777216\\]"):
        dream.load_policy(path)


def test_kinds_that_numpy_lacks_are_named(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """bfloat16 is not float32."""
    path = dream.export_policy(run, tmp_path / "agent.safetensors")
    with safe_open(path, "numpy") as file:
        metadata = file.metadata()
    arrays = load_file(path)
    bits = jax.numpy.zeros(arrays["network.value.b"].shape, "bfloat16")
    save_file({**arrays, "network.value.b": np.asarray(bits)}, path, metadata=metadata)
    with pytest.raises(InputError, match=r"network\.value\.b holds BF16, not float32"):
        dream.load_policy(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(run: pathlib.Path, tmp_path: pathlib.Path, value: float) -> None:
    """At load, by the array's name; and such a policy is not exported."""
    path = dream.export_policy(run, tmp_path / "agent.safetensors")
    arrays = load_file(path)
    name = max(arrays, key=lambda name: arrays[name].size)
    arrays[name] = arrays[name].copy()
    arrays[name].flat[3] = value
    with safe_open(path, framework="numpy") as file:
        card = {**json.loads(file.metadata()["dream_card"]), "checksum": ""}
    save_file(arrays, path, metadata={"dream_card": json.dumps(card)})
    with pytest.raises(InputError) as error:
        dream.load_policy(path)
    assert f"{name} is not finite (1 of" in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="is not finite"):
        to_bytes(Card(env={}, game={}), arrays)
