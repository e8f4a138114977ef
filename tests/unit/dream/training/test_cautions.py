"""Are settings that would not do what is meant refused or reported, at a run's start and where it goes on?"""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import OmegaConf
from stored_run import changed, resumed, write_meta

import envs
from dream.config.compose import compose_config, mixed_recipe
from dream.training import cautions, loop
from dream.training.start import prepare_run
from envs import InputError, records


@pytest.mark.parametrize(("end", "given", "reported"), [(4, 8, True), (3, 8, False), (4, 4, False)])
def test_a_schedule_that_ended_with_the_run_is_reported(
    end: int, given: int, reported: bool, stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A weight that fell until the former end has no further to fall; constants of one iteration are no schedules."""
    falls = {"start": 1.0, "end": 0.1, "transition_steps": end, "form": "linear"}
    changed(stored, config__algo__entropy_decay=falls)
    changed(stored, config__algo__learning_rate_decay=falls | {"end": 0.0, "transition_steps": 8})
    resumed(stored, f"iterations={given}")
    line = "algo.entropy_decay.transition_steps=4 was the run's end: it changes no further"
    assert (line in capsys.readouterr().out) == reported


IDLE = (
    "algo.learning_rate_decay is 0 after 4 iterations: nothing is learned from iteration 5 on; a larger "
    "algo.learning_rate_decay.transition_steps reaches further"
)


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        (["iterations=4"], ""),
        (["iterations=9"], IDLE),
        (["iterations=9", "algo.learning_rate_decay.end=0.1"], ""),
        (["iterations=9", "budget.nodes=1e6"], ""),
    ],
)  # fmt: skip
def test_iterations_without_a_step_are_reported(
    given: list[str], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the start, where the step falls to 0 before the run's end; how many a budget allows is not known."""
    falls = ["algo.learning_rate_decay.end=0", "algo.learning_rate_decay.transition_steps=4"]
    prepare_run(compose_config("config", ["algo=ppo", "env=kuhn_poker", *falls, *given]))
    assert capsys.readouterr().out == (f"{reported}\n" if reported else "")


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        (["algo=deep_cfr", "eval.every=2", "algo.average.every=4"], True),
        (["algo=deep_cfr", "eval.every=4", "algo.average.every=2"], False),
        (["algo=deep_cfr", "eval.every=9", "algo.average.every=4"], False),
        (["algo=dream", "eval.every=2", "algo.average.every=4"], False),
        (["algo=dream", "eval.every=2", "algo.average.every=4", "algo.average.source=network"], True),
    ],
)  # fmt: skip
def test_evaluations_between_two_fits_of_the_average_are_reported(
    given: list[str], reported: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it is a network; the last iteration has a fit of its own, and an exact mixture is never behind."""
    prepare_run(compose_config("config", ["env=kuhn_poker", "iterations=9", *given]))
    line = (
        "algo.average.every=4 does not divide eval.every=2: evaluations in between are of the average fitted last, of "
        "uniform play before the first; give algo.average.every=2 for a fit at each\n"
    )
    assert capsys.readouterr().out == (line if reported else "")


@pytest.mark.parametrize(("iterations", "tau", "left"), [(100, "0.005", 61), (1110, "0.005", 0), (4, "1.0", 0)])
def test_averages_of_little_but_initial_parameters_are_reported(
    iterations: int, tau: str, left: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are what commands take of a run; the recipe that has them runs for long enough."""
    given = ["env=kuhn_poker", "algo=ppo", f"iterations={iterations}", f"algo.average_tau={tau}"]
    prepare_run(compose_config("config", [*given, "algo.learning_rate_decay.end=1"]))
    line = (
        f"algo.average_tau={tau}: {iterations} iterations leave {left} % of the initial parameters in the average, "
        "which matches and exports take by default; a larger one leaves less\n"
    )
    assert capsys.readouterr().out == (line if left else "")


@pytest.mark.parametrize(("tau", "left"), [(0.005, 82), (0.5, 0)])
def test_so_are_those_that_a_budget_cut_short(tau: float, left: int, capsys: pytest.CaptureFixture[str]) -> None:
    """How many iterations a budget allows is known at its end."""
    config = SimpleNamespace(iterations=1110, budget=SimpleNamespace(seconds=9.0))
    start = SimpleNamespace(plain={"algo": {"average_tau": tau}})
    run = SimpleNamespace(config=config, start=start, iteration=40, spent="budget.nodes=5000")
    loop._say_limit(run)
    reported = f": 40 iterations leave {left} % of the initial parameters in the average"
    assert (reported in capsys.readouterr().out) == bool(left)
    run.iteration = 1110
    loop._say_limit(run)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("given", "share"),
    [
        (["algo=escher", "algo.exploration=0.8"], "0.8"),
        (["algo=escher"], ""),
        (["algo=escher", "algo.exploration=0.8", "algo.weights.importance=true"], ""),
        (["algo=dream", "algo.weights.importance=false"], "0.5"),
        (["algo=vr_dcfr_plus"], ""),
        (["algo=deep_cfr"], ""),
        (["algo=outcome_mccfr"], ""),
    ],
)
def test_regrets_that_lean_to_what_the_policy_plays_are_reported(given: list[str], share: str) -> None:
    """Samples of several iterations are fitted at once, each drawn as often as its policy came there."""
    algo = compose_config("config", ["env=kuhn_poker", *given]).node.algo
    line = (
        f"algo.exploration={share} with algo.weights.importance=false: each iteration's regrets count by how likely "
        "its own policy was to come to a decision; algo.exploration=1 or algo.weights.importance=true counts all alike"
    )
    assert cautions.leaning_regrets(OmegaConf.to_container(algo, resolve=True)) == (line if share else "")


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        (["iterations=20"], "learning_rate_decay.transition_steps=870: longer than the run of 20 iterations"),
        (["iterations=1"], "learning_rate_decay.transition_steps=870: longer than the run of 1 iteration"),
        (
            ["algo.entropy_decay={start:1,end:0,transition_steps:5000}"],
            "entropy_decay.transition_steps=5000: longer than the run of 870 iterations",
        ),
        (["iterations=870"], ""),
        (["iterations=20", "algo.learning_rate_decay.end=1"], ""),
        (["iterations=20", "algo.learning_rate_decay.transition_steps=null"], ""),
        (["preset=tiny"], ""),
    ],
)
def test_a_schedule_longer_than_the_run_is_reported(given: list[str], reported: str) -> None:
    """Where the overrides make it so; what a recipe ships is meant."""
    composed = compose_config("config", ["env=kuhn_poker", "algo=ppo", *given])
    line = f"algo.{reported}, which ends before; null takes as long as the run" if reported else ""
    assert cautions.long_schedules(composed, composed.node) == line


def test_so_is_one_that_is_given_to_a_run_that_goes_on(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that it was begun with was said then, or is meant."""
    name = "algo.entropy_decay"
    for given, reported in (([], False), ([f"{name}={{start:1,end:0.5,transition_steps:900}}"], True)):
        resumed(stored, "iterations=8", *given)
        line = f"{name}.transition_steps=900: longer than the run of 8 iterations, which ends before; "
        line += "null takes as long as the run\n"
        assert capsys.readouterr().out == (line if reported else "")


@pytest.mark.parametrize(
    ("given", "own"),
    [
        (["experiment=ppo_dense", "env=kuhn_poker"], "gin_rummy"),
        (["experiment=ppo_dense"], ""),
        (["env=kuhn_poker"], ""),
        (["experiment=mmd_critic", "env=kuhn_poker"], ""),
        (["experiment=ppo_gin_rummy", "env=gin_rummy_mdp"], ""),
        (["experiment=dueling_dream_critic", "env=liars_dice"], "leduc_poker"),
    ],
)
def test_a_recipe_of_another_game_is_reported(given: list[str], own: str) -> None:
    """But for the games that it has numbers for."""
    experiment, env = given[0], given[-1]
    line = (
        f"{experiment} is a recipe of env={own}: with {env} its numbers replace those tuned for {env}, where it has "
        f"any; without the experiment all are those of {env}"
    )
    assert mixed_recipe(compose_config("config", given)) == (line if own else "")


def test_a_new_run_says_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each; of a recipe on its own game, as it is, nothing."""
    prepare_run(compose_config("config", ["experiment=mmd_critic", "env=liars_dice", "iterations=200"]))
    said = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0].split(":")[0] for line in said] == [
        "experiment=mmd_critic", "algo.learning_rate_decay.transition_steps=1110,", "algo.average_tau=0.005",
    ]  # fmt: skip
    prepare_run(compose_config("config", ["env=kuhn_poker", "algo=escher", "algo.exploration=0.8"]))
    assert capsys.readouterr().out.startswith("algo.exploration=0.8 with algo.weights.importance=false")
    prepare_run(compose_config("config", ["experiment=mmd_critic"]))
    assert capsys.readouterr().out == ""


def test_a_run_that_goes_on_without_a_step_says_so(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each time, also where a budget ends it."""
    falls = {"start": 1.0, "end": 0.0, "transition_steps": 2, "form": "linear"}
    changed(stored, config__algo__learning_rate_decay=falls, config__iterations=1000)
    for given in ([], ["budget.nodes=1e6"]):
        resumed(stored, *given)
        assert "is 0 after 2 iterations: nothing is learned from iteration 5 on" in capsys.readouterr().out
    resumed(stored, "iterations=4")
    assert "is 0" not in capsys.readouterr().out


@pytest.mark.parametrize("given", ["algo.learning_rate_decay.end=0", "algo.entropy_decay={start:1,end:0.5}"])
def test_a_schedule_needs_its_length(given: str) -> None:
    """An end alone would be reached after one iteration; who means that says so."""
    usual = ["algo=ppo", "env=dark_hex"]
    name = given.split("=")[0].removesuffix(".end")
    with pytest.raises(InputError, match=rf"^{name} would go from 1 to .* in one iteration; give {name}\.transition"):
        prepare_run(compose_config("config", [*usual, given]))
    prepare_run(compose_config("config", [*usual, given, f"{name}.transition_steps=1"]))
    prepare_run(compose_config("config", [*usual, given.replace("}", ",transition_steps:1}"), "iterations=1"]))


def test_a_schedule_of_the_runs_length_needs_a_length_in_iterations(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not known of seconds; of a run that gets longer it goes on from where the new length has it."""
    follows = "algo.entropy_decay={end: 0.5, transition_steps: null}"
    usual = ["algo=ppo", "env=dark_hex", follows]
    prepare_run(compose_config("config", [*usual, "budget.episodes=1e6"]))
    with pytest.raises(
        InputError, match=r"^algo\.entropy_decay\.transition_steps=null takes as long as the run, whose"
    ):
        prepare_run(compose_config("config", [*usual, "budget.seconds=60"]))
    with pytest.raises(InputError, match=r"^algo\.shaping\.scale\.transition_steps=null needs .* algo=dream does not"):
        prepare_run(compose_config("config", ["algo=dream", "algo.shaping.scale={end: 0.0, transition_steps: null}"]))
    with pytest.raises(InputError, match=r"^algo\.shaping\.scale\.transition_steps=null needs .* algo=dream does not"):
        prepare_run(compose_config("config", ["algo=dream", "algo.shaping.scale.transition_steps=null"]))
    falls = {"start": 1.0, "end": 0.1, "transition_steps": None, "form": "linear"}
    changed(stored, config__algo__entropy_decay=falls)
    line = "algo.entropy_decay takes as long as the run, and goes on from where the new length has it"
    for given, reported in (([], False), (["iterations=9"], True), (["budget.nodes=1e9"], True)):
        resumed(stored, *given)
        assert (line in capsys.readouterr().out) == reported


@pytest.mark.parametrize(
    ("algo", "name", "then", "now", "made"),
    [
        ("dueling_dream", "algo.unit", "points", "reward", "networks in .* learned"),
        ("escher", "algo.regrets.head", "dueling", "plain", "networks in .* learned"),
        ("escher", "algo.memory.kind", "fifo", "reservoir", "samples in .* were kept"),
    ],
)
def test_what_networks_and_buffers_hold_stays(
    algo: str, name: str, then: str, now: str, made: str, tmp_path: Path
) -> None:
    """Advantages learned in points are no rewards; the newest samples are no uniform sample of all."""
    run, given = tmp_path / "run", f"{name}={then}"
    write_meta(run, prepare_run(compose_config("config", [f"algo={algo}", "env=leduc_poker", "iterations=4", given])))
    resumed(run, "iterations=8", given)
    with pytest.raises(InputError, match=rf"^{name} cannot be changed by resume=: the {made} with {given}; start a"):
        resumed(run, "iterations=8", f"{name}={now}")


def test_an_end_that_changes_needs_its_length(stored: Path) -> None:
    """A schedule that is over would be at a new end at once; one that is under way goes there."""
    name = "algo.entropy_decay"
    message = (
        f"{name} would go from 1 to 0.1 at once, as it ends with iteration 1 and {stored / 'checkpoints' / '4'} "
        f"is of 4; give {name}."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        resumed(stored, "iterations=8", f"{name}.end=0.1")
    with pytest.raises(InputError, match="at once, as it ends with iteration 4 and"):
        resumed(stored, "iterations=8", f"{name}.end=0.1", f"{name}.transition_steps=4")
    for given in ([f"{name}.transition_steps=8"], [f"{name}.start=0.1"]):
        resumed(stored, "iterations=8", f"{name}.end=0.1", *given)
    changed(stored, config__algo__entropy_decay={"start": 1.0, "end": 0.5, "transition_steps": 8, "form": "linear"})
    resumed(stored, "iterations=8", f"{name}.end=0.1")
    changed(stored, config__algo__entropy_decay={"start": 1.0, "end": 0.5, "transition_steps": 3, "form": "linear"})
    resumed(stored, "iterations=8")


def test_a_constant_schedule_needs_none() -> None:
    """Also where one end is said to be the other."""
    given = ["algo.mirror.eta.start=2", "algo.mirror.eta.end=${algo.mirror.eta.start}"]
    prepare_run(compose_config("config", ["experiment=dueling_dream_critic", "env=kuhn_poker", *given]))


def test_a_smaller_budget_than_was_spent_is_refused(stored: Path) -> None:
    """Its result would be that of the larger one; the run's own, which it has reached, is not."""
    changed(stored, counters={"nodes": 5040, "episodes": 70}, seconds=9.5, config__budget__nodes=5000.0)
    resumed(stored)
    resumed(stored, "budget.nodes=1e4", "budget.episodes=null")
    for given, spent in (("nodes=500", "5,040 nodes"), ("episodes=60", "70 episodes"), ("seconds=9", "10 seconds")):
        with pytest.raises(InputError, match=rf"^budget\.{given} is less than the {spent} that .*run has spent"):
            resumed(stored, f"budget.{given}")


def test_more_evaluations_than_averages_are_reported(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where each evaluation had an average of its own: what is resolved once does not follow the other setting."""
    other = compose_config("config", ["algo=os_sd_cfr", "env=phantom_ttt", "eval.every=4"])
    config = OmegaConf.to_container(other.node, resolve=True)
    rules = envs.make("phantom_ttt").identity
    changed(stored, choices=dict(other.choices), game=rules)
    for part in ("algo", "env", "network", "eval", "budget"):
        changed(stored, **{f"config__{part}": config[part]})
    resumed(stored, "eval.every=1")
    assert "algo.average.every=4 stays" in capsys.readouterr().out
    for given in (["eval.every=8"], ["eval.every=1", "algo.average.every=1"], []):
        resumed(stored, *given)
        assert "average" not in capsys.readouterr().out


def test_what_is_unseen_stays_unseen(tmp_path: Path) -> None:
    """Which decisions of records are held out is decided once: neither the share nor the games may change."""
    file = tmp_path / "games.jsonl"
    game = envs.make("kuhn_poker")
    games = [records.record(game, deal, [0, 0], ("anna", "otto")) for deal in ((0, 1, 2), (1, 2, 0), (2, 0, 1))]
    records.write(file, games)
    given = ["algo=behaviour_cloning", "env=kuhn_poker", f"algo.records={file}", "algo.held_out=0.5"]
    start = prepare_run(compose_config("config", given))
    write_meta(tmp_path / "run", start, fixed=start.parts.algorithm.fixed)
    resumed(tmp_path / "run", f"algo.records={file.rename(tmp_path / 'moved.jsonl')}")
    records.write(file, games[::-1])
    message = r"^algo\.{} cannot be changed by resume=: it decides what .* has learned from; start a new run"
    for given, name in (
        (["algo.held_out=0.9", f"algo.records={tmp_path / 'moved.jsonl'}"], "held_out"),
        ([], "records"),
    ):
        with pytest.raises(InputError, match=message.format(name)):
            resumed(tmp_path / "run", *given)


@pytest.mark.parametrize(
    "algo", [{"learning_rate_decay": 3, "average": [1], "warmup": {"transition_steps": 1}, "records": 7}, {"steps": {}}]
)
def test_settings_of_other_shapes_are_no_schedules(algo: dict[str, Any]) -> None:
    """A learner from outside may use these names for something else."""
    node = OmegaConf.create({"algo": algo, "iterations": 9, "budget": {"nodes": None}, "eval": {"every": 3}})
    composed = SimpleNamespace(node=node, given=lambda path: ["algo.warmup.factor=2"])
    cautions.check_lengths(composed)
    cautions.check_whole_run(node, SimpleNamespace(with_share=None))
    assert cautions.of_resume(node, node) == []
    assert cautions.idle_steps(node, 4) == cautions.leaning_regrets(algo | {"exploration": 0.5, "weights": 3}) == ""
    assert cautions.long_schedules(composed, node) == ""
