"""Does a run go on with its own configuration, whatever the defaults are?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from omegaconf import OmegaConf

import envs
from dream.commands.exploit import prepare_exploit
from dream.commands.ladder import prepare_ladder
from dream.commands.play import prepare_play
from dream.config.compose import Composed, compose_config
from dream.storage.lock import RunLock
from dream.training import start as training_start
from dream.training.finished import load_run
from dream.training.start import build_run, prepare_run, with_stored_choices
from envs import InputError


def test_settings_of_the_runs_own_algorithm_apply(stored: Path) -> None:
    """`algo.clip_epsilon` is PPO's; the default algorithm does not know it."""
    given = [f"resume={stored}", "algo.clip_epsilon=0.1", "iterations=8"]
    start = prepare_run(compose_config("config", with_stored_choices(given)))
    assert start.parts.config.algo["clip_epsilon"] == 0.1
    assert start.parts.config.env.name == "leduc_poker"
    assert start.parts.config.iterations == 8
    with pytest.raises(InputError, match=r"algo\.clip"):
        compose_config("config", given)


def test_whole_numbers_are_kept_as_such(stored: Path) -> None:
    """However they were written, in the configuration that is stored; a run goes on with them as with any others."""
    usual = ["algo=ppo", "env=leduc_poker"]
    written = ["iterations=1e2", "eval.games=1e3", "algo.epochs=2.0", "network.hidden=[6.4e1,32]"]
    plain = ["iterations=100", "eval.games=1000", "algo.epochs=2", "network.hidden=[64,32]"]
    one, other = (prepare_run(compose_config("config", [*usual, *given])).plain for given in (written, plain))
    assert repr(one) == repr(other)
    mini = ["algo=ppo", "env=mini_gin_rummy"]
    rules = (
        prepare_run(compose_config("config", [*mini, f"env.rules.gin_bonus={n}"])).plain["env"] for n in ("1e0", 1)
    )
    assert len(set(map(repr, rules))) == 1
    start = prepare_run(compose_config("config", with_stored_choices([f"resume={stored}", "iterations=1e1"])))
    assert repr(start.plain["iterations"]) == repr(start.parts.config.iterations) == "10"


@pytest.mark.parametrize("given", ["network=simba", "network.hidden=[8]"])
@pytest.mark.parametrize("algo", ["cfr", "tabular_mmd", "outcome_mccfr"])
def test_settings_of_a_network_are_refused_where_there_is_none(algo: str, given: str) -> None:
    """With and without a tree; what a game or preset sets of the network is nobody's wish."""
    for env in ("leduc_poker", *(["phantom_ttt"] if algo != "outcome_mccfr" else [])):
        overrides = [f"algo={algo}", f"env={env}", "preset=tiny"]
        prepare_run(compose_config("config", overrides))
        with pytest.raises(InputError) as error:
            prepare_run(compose_config("config", [*overrides, given]))
        assert str(error.value) == f"{given} has no effect with algo={algo}, which has no network; leave it out"


def test_a_resumed_job_stays_in_its_sweeps_group(stored: Path) -> None:
    """The W&B group is the stored one, not that of a run on its own."""
    start = prepare_run(compose_config("config", with_stored_choices([f"resume={stored}"])))
    assert start.group == "some_sweep"


def test_a_checkpoint_outside_of_a_run_is_not_gone_on_from(stored: Path, tmp_path: Path) -> None:
    """A copy by another name, and one in another run's folder: nothing there is written or read as its run."""
    for copy in (stored / "best", tmp_path / "other" / "start_from" / "4"):
        shutil.copytree(stored / "checkpoints" / "4", copy)
        for use in (lambda copy=copy: prepare_run(compose_config("config", [f"resume={copy}"])),
                    lambda copy=copy: load_run(copy)):  # fmt: skip
            with pytest.raises(InputError, match="is a checkpoint outside of a run; it must be in checkpoints/"):
                use()


@pytest.mark.parametrize("going_on", [True, False])
def test_an_opponent_is_named_once(going_on: bool, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is spelled, in a new run as in one that goes on; a name is another player than a folder called so."""
    monkeypatch.chdir(stored.parent)
    monkeypatch.setattr(training_start, "find_opponent", lambda place, game: place)  # the checkpoint has no arrays
    shutil.copytree(stored, stored.parent / "random")
    begun = [f"resume={stored}"] if going_on else ["algo=ppo", "env=leduc_poker"]

    def prepared(*named: str) -> list[str]:
        given = with_stored_choices([*begun, f"eval.opponents=[{','.join(named)}]"])
        return list(prepare_run(compose_config("config", given)).parts.opponents)

    with pytest.raises(InputError, match=r"names 'random' twice; name each once"):
        prepared("random", "run", "random")
    for again in ("./run", "run/", str(stored), "run/checkpoints/4"):
        with pytest.raises(InputError, match=f"'run' and '{again}' are the same player; name each once"):
            prepared("random", "run", again)
    assert prepared("random", "run", "./random") == ["random", "run", "./random"]


def test_a_learner_is_chosen_with_its_settings() -> None:
    """By name alone it would be another learner under that name: CFR+ that floors no regret."""
    command = ["env=kuhn_poker", "algo=cfr", "algo.name=cfr_plus"]
    with pytest.raises(InputError, match=r"algo\.name=cfr_plus has the settings of algo=cfr; choose algo=cfr_plus"):
        prepare_run(compose_config("config", command))
    assert prepare_run(compose_config("config", [*command, "algo=cfr_plus"])).parts.config.algo["plus"]


def test_a_game_is_chosen_with_its_sizes() -> None:
    """By name alone it would be played with the sizes that are tuned for another, or its rules be called unknown."""
    for other in ("leduc_poker", "gin_rummy"):
        command = [f"env={other}", "algo=dream", "env.name=kuhn_poker"]
        with pytest.raises(InputError, match=rf"env\.name=kuhn_poker has the settings of env={other}; choose env=kuhn"):
            prepare_run(compose_config("config", command))
    assert prepare_run(compose_config("config", [*command, "env=kuhn_poker"])).parts.game.name == "kuhn_poker"
    with pytest.raises(InputError, match="unknown game 'kun_poker'; did you mean 'kuhn_poker'"):
        prepare_run(compose_config("config", ["env.name=kun_poker"]))


@pytest.mark.parametrize(
    ("name", "prepare", "given"),
    [
        ("ladder", prepare_ladder, []),
        ("play", prepare_play, ["terminal=true"]),
        ("exploit", prepare_exploit, ["checkpoint=random"]),
    ],
)
def test_a_game_is_chosen_with_its_rules(name: str, prepare: Callable[[Composed], object], given: list[str]) -> None:
    """As everywhere."""
    with pytest.raises(InputError, match=r"env\.name=kuhn_poker has the settings of env=leduc_poker"):
        prepare(compose_config(name, [*given, "env=leduc_poker", "env.name=kuhn_poker"]))


def test_an_empty_name_is_no_run(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a variable of the shell that is not set; the folder one is in is not meant."""
    monkeypatch.chdir(stored)
    with pytest.raises(InputError, match="resume= is empty; it must be a run directory"):
        prepare_run(compose_config("config", with_stored_choices(["resume="])))
    (stored.parent / "empty").mkdir()
    monkeypatch.chdir(stored.parent / "empty")
    with pytest.raises(InputError, match="run_dir= is empty; it must be a folder"):
        prepare_run(compose_config("config", ["run_dir="]))


def test_choices_that_are_given_stay(stored: Path) -> None:
    """Nothing is put before what the user said; without resume= nothing changes at all."""
    assert with_stored_choices([f"resume={stored}", "algo=dueling_dream"])[-1] == "algo=dueling_dream"
    assert "algo=ppo" not in with_stored_choices([f"resume={stored}", "algo=dueling_dream"])
    assert with_stored_choices(["seed=3"]) == ["seed=3"]
    with pytest.raises(InputError, match=r"algo=dueling_dream cannot be changed by resume="):
        prepare_run(compose_config("config", with_stored_choices([f"resume={stored}", "algo=dueling_dream"])))


def test_a_setting_newer_than_the_checkpoint_takes_its_default(stored: Path) -> None:
    """And can be given beside resume=."""
    path = stored / "checkpoints" / "4" / "meta" / "metadata"
    meta = json.loads(path.read_text())
    del meta["config"]["budget"]
    path.write_text(json.dumps(meta))
    for given, nodes in (([], None), (["budget.nodes=5"], 5.0)):
        start = prepare_run(compose_config("config", with_stored_choices([f"resume={stored}", *given])))
        assert (start.parts.config.budget.nodes, start.parts.config.budget.episodes) == (nodes, None)


def test_what_decides_the_start_alone_is_not_changed_by_resume(stored: Path) -> None:
    """The weights are the checkpoint's, which config.yaml must not say to come from elsewhere; null says nothing."""
    given = with_stored_choices([f"resume={stored}", "algo.start_from=runs/other"])
    with pytest.raises(InputError, match=r"^algo\.start_from cannot be changed by resume=: .* has None, and weights"):
        prepare_run(compose_config("config", given))
    with pytest.raises(InputError, match=r"^~iterations takes a setting away"):
        prepare_run(compose_config("config", with_stored_choices([f"resume={stored}", "~iterations"])))
    prepare_run(compose_config("config", with_stored_choices([f"resume={stored}", "algo.start_from=null"])))
    meta_file = stored / "checkpoints" / "4" / "meta" / "metadata"
    meta, other = json.loads(meta_file.read_text()), compose_config("config", ["algo=dueling_dream", "env=leduc_poker"])
    meta["choices"], meta["config"]["algo"] = other.choices, OmegaConf.to_container(other.node.algo, resolve=True)
    meta_file.write_text(json.dumps(meta))
    with pytest.raises(InputError, match=r"^algo\.initial_scale cannot be changed by resume="):
        prepare_run(compose_config("config", with_stored_choices([f"resume={stored}", "algo.initial_scale=0.5"])))


SETTINGS = ["algo=cfr", "env=kuhn_poker", "iterations=4"]


def _begun(run_dir: Path, *overrides: str) -> None:
    """Leaves what a run leaves that is killed before its first checkpoint."""
    start = prepare_run(compose_config("config", [*SETTINGS, *overrides, f"run_dir={run_dir}"]))
    (run_dir / "checkpoints" / "2.orbax-checkpoint-tmp-0").mkdir(parents=True)
    (run_dir / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(start.plain)))
    (run_dir / "metrics.jsonl").write_text('{"iteration": 1}\n')


def test_a_run_without_a_checkpoint_starts_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command that made it, and resume= says so; its folder is left as it is until the run begins."""
    run_dir = tmp_path / "run"
    _begun(run_dir)
    capsys.readouterr()
    start = prepare_run(compose_config("config", [*SETTINGS, f"run_dir={run_dir}"]))
    assert start.checkpoint is None
    assert "starts over" in capsys.readouterr().out
    assert (run_dir / "metrics.jsonl").exists()
    with pytest.raises(InputError, match=r"has no checkpoint yet.*run_dir="):
        prepare_run(compose_config("config", [f"resume={run_dir}"]))
    with pytest.raises(InputError, match=r"has no checkpoint yet.*run_dir="):
        with_stored_choices([f"resume={run_dir}"])


def test_a_finished_run_without_checkpoints_does_not_start_over(tmp_path: Path) -> None:
    """Its records and reports would be lost."""
    run_dir = tmp_path / "run"
    _begun(run_dir)
    (run_dir / "evaluation.json").write_text("{}")
    with pytest.raises(InputError, match="holds a finished run whose checkpoints are gone; choose a new folder"):
        prepare_run(compose_config("config", [*SETTINGS, f"run_dir={run_dir}"]))
    with pytest.raises(InputError, match="is a finished run whose checkpoints are gone; it cannot be resumed"):
        prepare_run(compose_config("config", [f"resume={run_dir}"]))


def test_a_run_that_is_at_its_first_iterations_is_not_resumed(tmp_path: Path) -> None:
    """The line is about the process that runs it, not about starting over."""
    run_dir = tmp_path / "run"
    _begun(run_dir)
    with RunLock(run_dir) as lock:
        lock.acquire()
        with pytest.raises(InputError, match="is in use by"):
            with_stored_choices([f"resume={run_dir}"])


def test_a_folder_of_something_else_is_not_started_over(tmp_path: Path) -> None:
    """Other settings, a damaged configuration, a checkpoint (damaged, too), or no run at all."""
    run_dir = tmp_path / "run"
    _begun(run_dir, "seed=5")
    again = compose_config("config", [*SETTINGS, f"run_dir={run_dir}"])
    with pytest.raises(InputError, match="other settings and no checkpoint"):
        prepare_run(again)
    (run_dir / "config.yaml").write_text("a: [")
    with pytest.raises(InputError, match="other settings and no checkpoint"):
        prepare_run(again)
    (run_dir / "checkpoints" / "2").mkdir()
    with pytest.raises(InputError, match="go on with resume="):
        prepare_run(again)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="choose a new folder"):
        prepare_run(compose_config("config", [*SETTINGS, f"run_dir={tmp_path / 'other'}"]))


def test_a_game_of_someone_else_is_checked_before_a_learner_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A payoff that is not a number is one line that names the method; this project's games are taken as they are."""

    class Broken(type(envs.make("kuhn_poker"))):
        """Kuhn poker that pays nothing that is a number."""

        def step(self, state: Any, action: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
            """Plays."""
            after, rewards, done = super().step(state, action)
            return after, rewards * jnp.nan, done

    node = compose_config("config", ["algo=ppo", "env=kuhn_poker"]).node
    build_run(node)
    monkeypatch.setattr(envs, "make", lambda name, **rules: Broken())
    with pytest.raises(InputError, match="step: a reward is not finite"):
        build_run(node)
