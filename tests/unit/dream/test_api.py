"""The public functions: what the commands do, as objects and InputErrors; their docstrings' examples run."""

from __future__ import annotations

import asyncio
import dataclasses
import doctest
import importlib
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dream
import dream.evaluate
import dream.exploit
import envs
from dream.api import _interrupts
from dream.commands.evaluate import play_match, prepare_match
from dream.config.compose import compose_config
from dream.evaluation import match
from dream.evaluation.recorded import recorded_reports
from dream.game_tree import build_tree, nash_conv, table_index, table_policy, tabulate
from dream.networks import make_network
from envs import InputError, records
from envs.kuhn_poker import KuhnPoker

REPO = pathlib.Path(__file__).resolve().parents[3]
KUHN = ["env=kuhn_poker", "algo=cfr_plus", "iterations=6", "eval.every=2", "eval.games=8", "eval.final_games=8"]
FUNCTIONS = ["train", "evaluate", "exploit", "load_run", "load_sweep", "load_policy", "export_policy"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dream.FinishedRun:
    """Six iterations of CFR+ on Kuhn poker."""
    folder = tmp_path_factory.mktemp("api") / "run"
    return dream.train([*KUHN, "tracking.mode=disabled", f"run_dir={folder}"], quiet=True)


def test_a_quiet_run_says_what_its_settings_mean(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As that a schedule is longer than it: only progress and tables are left out."""
    longer = ["algo=ppo", "preset=tiny", "iterations=1", "algo.entropy_decay={start:1,end:0.5,transition_steps:9}"]
    dream.train(["env=kuhn_poker", *longer, "tracking.mode=disabled", f"run_dir={tmp_path / 'run'}"], quiet=True)
    assert "algo.entropy_decay.transition_steps=9: longer than the run of 1 iteration" in capsys.readouterr().out


def test_a_finished_run_holds_what_was_written(run: dream.FinishedRun) -> None:
    """Directory, records, policies, matches and exact values."""
    assert run.iteration == 6
    assert run.metrics == [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
    assert sorted(run.policies) == ["average", "current"]
    assert run.policies["average"].game == run.game == envs.make("kuhn_poker")
    stored = json.loads((run.directory / "evaluation.json").read_text())
    assert run.exact == stored["exact"]
    assert run.evaluation["random"].win_rate._asdict() == stored["win_rate"]
    tree = build_tree(run.game)
    assert nash_conv(tree, tabulate(tree, run.policies["average"])) == run.exact["average"]["nash_conv"]


def test_columns(run: dream.FinishedRun) -> None:
    """With names only the records that have all; without, NaN where a record lacks a metric."""
    curve = run.columns("iteration", "eval/exploitability/average")
    assert curve["iteration"].tolist() == [2, 4, 6]
    assert np.all(np.isfinite(curve["eval/exploitability/average"]))
    every = run.columns()
    assert every["iteration"].tolist() == [1, 2, 3, 4, 5, 6]
    assert np.isnan(every["eval/exploitability/average"]).tolist() == [True, False] * 3
    with pytest.raises(InputError, match="no metric 'los'; it has iteration"):
        run.columns("los")


def test_references_runs_and_policies_mean_the_same(run: dream.FinishedRun, tmp_path: pathlib.Path) -> None:
    """A path, a run, a Policy and an export give one match, and one exploitability."""
    file = dream.export_policy(run, tmp_path / "agent.safetensors", "average")
    players = [run, str(run.directory), run.directory, run.policies["average"], dream.load_policy(run), file]
    assert len({str(dream.evaluate(player, games=64, seed=1)) for player in players}) == 1
    assert {dream.exploit(player).exploitability for player in players} == {run.exact["average"]["exploitability"]}
    assert dream.exploit(run, name="current").exploitability == run.exact["current"]["exploitability"]
    assert dream.evaluate(run, run, games=64).points_per_hand == dream.evaluate(run, file, games=64).points_per_hand
    assert repr(dream.load_run(run)) == repr(run)


def test_inside_an_event_loop(run: dream.FinishedRun) -> None:
    """In a notebook, whose cells run inside a loop, tables in double precision come back bit for bit."""

    async def cell() -> float:
        return dream.exploit(run).exploitability

    assert asyncio.run(cell()) == run.exact["average"]["exploitability"]


def test_a_lower_bound(run: dream.FinishedRun, capsys: pytest.CaptureFixture[str]) -> None:
    """The learned best response, small: its size is said before it compiles; an interval next to the exact value."""
    small = ["best_response.iterations=1", "best_response.seeds=[0]", "best_response.games=8"]
    small += ["best_response.choice_games=8", "best_response.control_games=0", "best_response.network.hidden=[4]"]
    sizes = ["best_response.algo.episodes_per_iteration=8", "best_response.algo.batch_size=8"]
    report = dream.exploit(run, [*small, *sizes], method="both")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("learned best response: 1 trainings of 1 iterations (8 rounds each) and 8 rounds of ")
    assert shown[1].startswith("best response, seed 0: iteration 1/1 ")
    assert report.is_exact
    assert report.learned is not None
    assert report.learned.low <= report.learned.mean < report.learned.high
    assert report.local is None
    assert report.record["learned"]["n"] == 8
    least = f"exploitability at least {report.learned.low:.4g} chips per hand, {report.learned.mean:.4g} ("
    assert str(dataclasses.replace(report, is_exact=False)).startswith(least)
    assert "at least" not in str(report)


def test_a_game_that_is_not_zero_sum_has_no_exploitability(tmp_path: pathlib.Path) -> None:
    """A run reports none, as `dream.exploit` refuses it."""

    class General(KuhnPoker):
        name = "general_kuhn"
        zero_sum = False

    envs.register("general_kuhn", General)
    game = ["env=general_kuhn", "tracking.mode=disabled"]
    run = dream.train([*KUHN[1:], *game, f"run_dir={tmp_path / 'run'}"], quiet=True)
    assert run.exact == {}
    with pytest.raises(InputError, match="needs a two-player zero-sum game"):
        dream.exploit(run)


def test_no_bound_is_a_share_of_nothing() -> None:
    """Kuhn's equilibrium that never bets first: the exact value is 0, and the local bound stands alone."""
    bets = jnp.zeros((16, 3)).at[1].set(jnp.array([1 / 3, 0, 1])).at[jnp.array([2, 9])].set(jnp.array([0, 1 / 3, 1]))
    policy = envs.Policy(
        lambda bets, view, legal: np.array([1, 0]) + bets[view.bets, view.card] * np.array([-1, 1]), bets
    )
    report = dream.exploit(policy, ["local.games=8"], method="local", game=envs.make("kuhn_poker"))
    assert abs(report.exploitability) < 1e-6
    assert report.local is not None
    assert "local_over_exact" not in report.record


REFUSED: dict[str, tuple[Callable[[dream.FinishedRun], Any], str]] = {
    "a dict for a list": (lambda run: dream.train({"iterations": 2}), "must be a list of strings"),
    "an iterator for a list": (lambda run: dream.train(x for x in ["iterations=2"]), "must be a list of strings"),
    "nothing for a list": (lambda run: dream.exploit(run, None), "overrides=None is not valid; it must be a list of"),
    "runs for a sweep": (lambda run: dream.load_sweep([run]), "names no folder; it must be that of a sweep"),
    "rounds that are no whole number": (
        lambda run: match(run.game, *[envs.make_bot("random", run.game)] * 2, games=100.0),
        "games=100.0 is not valid; it must be a whole number, a multiple of 2",
    ),
    "text for a list": (lambda run: dream.train("iterations=2"), "must be a list of strings"),
    "unknown game": (lambda run: dream.train(["env=kuhn"]), "unknown env 'kuhn'"),
    "occupied folder": (lambda run: dream.train([*KUHN, f"run_dir={run}"]), "choose a new folder"),
    "sweep": (
        lambda run: dream.train(["seed=1,2"]),
        "in Python call the function once for each",
    ),
    "no such run": (lambda run: dream.evaluate("nowhere"), "nowhere does not exist"),
    "no such opponent": (lambda run: dream.evaluate(run, "nobody"), "unknown player 'nobody'"),
    "an opponent that is none": (lambda run: dream.evaluate(run, opponent=3), "3 names no player; it must be a text"),
    "a run that is none": (lambda run: dream.load_run(3), "3 names no player; it must be a text or a path"),
    "a rule-based player to load": (
        lambda run: dream.load_policy("solved"),
        "solved is made for a game and not loaded: from dream.storage.policies import find_player; find_player(",
    ),
    "a search to load": (
        lambda run: dream.load_policy("search:gin_rummy/points"),
        "search:gin_rummy/points is made for",
    ),
    "odd games": (lambda run: dream.evaluate(run, games=5), "must be a multiple of 2"),
    "games of text": (lambda run: dream.evaluate(run, games="many"), "must be a whole number"),
    "a game by name": (
        lambda run: dream.evaluate("random", game="kuhn_poker"),
        "game='kuhn_poker' is not a game; give one, as in game=envs.make('kuhn_poker')",
    ),
    "unknown policy": (lambda run: dream.evaluate(run, name="best"), "unknown policy 'best'"),
    "name of a policy": (lambda run: dream.evaluate(run.policies["average"], name="average"), "leave it out"),
    "name of a rule-based player's policy": (
        lambda run: dream.evaluate("random", name="average", game=run.game),
        "name=average chooses among a run's policies; leave it out with random",
    ),
    "method": (lambda run: dream.exploit(run, method="guess"), "unknown method 'guess'"),
    "setting": (lambda run: dream.exploit(run, ["local.gams=4"]), "unknown setting"),
    "settings of what is not computed": (
        lambda run: dream.exploit(run, ["best_response.iterations=9"]),
        "best_response.* has no effect with method=auto on kuhn_poker",
    ),
    "policy among the overrides": (
        lambda run: dream.exploit(run, ["policy=current"]),
        "policy=current among the overrides has no effect; which of its policies is the argument name=",
    ),
    "rules among the overrides": (lambda run: dream.exploit(run, ["+env.rules.x=1"]), "the game is the argument game="),
    "a policy alone": (lambda run: dream.export_policy(run.policies["average"]), "cannot be exported by itself"),
    "another game": (
        lambda run: dream.evaluate(run.policies["average"], game=envs.make("leduc_poker")),
        "plays kuhn_poker version 1, not leduc_poker",
    ),
    "a run of another game": (lambda run: dream.exploit(run, game=envs.make("leduc_poker")), "not on leduc_poker"),
    "no game": (
        lambda run: dream.exploit(envs.Policy(lambda params, view, legal: legal / legal.sum())),
        "does not know its game",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_wrong_input_is_an_input_error(run: dream.FinishedRun, what: str) -> None:
    """One line that says what is wrong."""
    wrong, reported = REFUSED[what]
    with pytest.raises(InputError) as caught:
        wrong(run)
    assert reported in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_policy_knows_its_game(run: dream.FinishedRun) -> None:
    """Bots, tables and networks refuse another game where they are used, and other rules of theirs."""
    leduc, short = envs.make("leduc_poker"), envs.make("mini_gin_rummy", max_turns=1)
    tree = build_tree(run.game)
    bot = envs.make_bot("random", leduc)
    for player in (bot, table_policy(table_index(build_tree(leduc)), np.zeros((936, 3)), leduc)):
        with pytest.raises(InputError, match="plays leduc_poker version 1, not kuhn_poker"):
            tabulate(tree, player)
        with pytest.raises(InputError, match="plays leduc_poker version 1, not kuhn_poker"):
            dream.evaluate(run, player, games=8)
    bot = envs.make_bot("random", envs.make("mini_gin_rummy"))
    with pytest.raises(InputError, match="with other rules: max_actions=6, not 4; max_turns=2, not 1"):
        envs.check_plays(bot, short)
    envs.check_plays(envs.Policy(bot.apply), short)  # one that knows no game is tried


def test_the_functions_win_over_the_command_modules() -> None:
    """Both orders of import; the modules stay within reach, and `-m` finds them."""
    assert callable(dream.evaluate)
    assert callable(dream.exploit)
    for name in ("evaluate", "exploit"):
        module = importlib.import_module(f"dream.{name}")
        assert callable(module.main)
        assert getattr(dream, name).__module__ == "dream.api"
    script = "import dream; f = dream.evaluate; import dream.evaluate; assert dream.evaluate is f; print(f.__name__)"
    done = subprocess.run([sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, check=True)
    assert done.stdout == "evaluate\n"


def test_import_is_light() -> None:
    """`import dream` loads neither JAX nor the commands, in less than 0.3 seconds of work."""
    script = (
        "import time, sys; began = time.process_time(); import dream; spent = time.process_time() - began\n"
        "assert not {'jax', 'hydra', 'numpy', 'envs', 'dream.api'} & set(sys.modules)\n"
        "assert set(dream.__all__) <= set(dir(dream)); print(spent)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.3


def test_every_public_name_is_there() -> None:
    """The names of __all__, typed and documented."""
    for name in dream.__all__:
        value = getattr(dream, name)
        assert value.__doc__
    for function in (getattr(dream, name) for name in FUNCTIONS):
        assert "Example:" in function.__doc__
        assert "Raises:" in function.__doc__
        assert "return" in function.__annotations__
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        dream.trian  # noqa: B018
    assert callable(make_network)
    assert dream.InputError is InputError


@pytest.fixture(scope="module")
def with_leduc(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder that holds runs/leduc, one iteration of CFR, and the same as the only job of runs/sweep."""
    folder = tmp_path_factory.mktemp("examples")
    small = ["env=leduc_poker", "iterations=1", "algo=cfr", "eval.games=4", "eval.final_games=4"]
    dream.train([*small, "tracking.mode=disabled", f"run_dir={folder / 'runs' / 'leduc'}"], quiet=True)
    shutil.copytree(folder / "runs" / "leduc", folder / "runs" / "sweep" / "0")
    return folder


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_examples_run(function: str, with_leduc: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each docstring's example, in a folder that holds the run it names."""
    monkeypatch.chdir(with_leduc)
    monkeypatch.setenv("WANDB_MODE", "disabled")
    (example,) = doctest.DocTestFinder(recurse=False).find(
        getattr(dream, function), function, globs={"dream": dream, "envs": envs}
    )
    assert example.examples
    reported: list[str] = []
    result = doctest.DocTestRunner().run(example, out=reported.append)
    assert result.failed == 0, "".join(reported)


def test_an_interrupt_before_there_is_work_is_raised_and_the_handler_given_back() -> None:
    """The first one is remembered once there is work to save; the second is raised."""
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), _interrupts():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    with _interrupts() as stop:
        stop.protect()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.received == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_each_opponents_report_is_kept(run: dream.FinishedRun, capsys: pytest.CaptureFixture[str]) -> None:
    """dream.evaluate leaves the run's own evaluation alone, and one opponent's report the others'."""
    own = (run.directory / "evaluation.json").read_bytes()
    opponents = ["random", str(run.directory)]
    for opponent in opponents:
        given = [f"checkpoint={run}", f"opponent='{opponent}'", "games=8"]
        play_match(prepare_match(compose_config("evaluate", given)))
    play_match(prepare_match(compose_config("evaluate", [f"checkpoint={run}", "games=8", "policy=current"])))
    assert (run.directory / "evaluation.json").read_bytes() == own
    reports = {path.name: json.loads(path.read_text()) for path in (run.directory / "evaluations").iterdir()}
    assert len(reports) == 3
    assert reports["random_average_6_games8.json"]["opponent"] == "random"
    assert reports["random_average_6_games8.json"]["policy"] == "average"
    assert reports["random_current_6_games8.json"]["policy"] == "current"
    assert {report["opponent"] for report in reports.values()} == set(opponents)
    assert all(math.isfinite(report["points_per_hand"]["mean"]) for report in reports.values())
    assert "per hand" in capsys.readouterr().out


def test_records_tell_two_policies_of_a_run_apart(run: dream.FinishedRun, tmp_path: pathlib.Path) -> None:
    """The report of the records is that of the match between them, not that of one player in both seats."""
    folder, rounds = shutil.copytree(run.directory, tmp_path / "run"), tmp_path / "rounds.jsonl"
    given = [f"checkpoint='{folder}'", f"opponent='{folder}'", "policy=current", "games=40", f"histories='{rounds}'"]
    match = prepare_match(compose_config("evaluate", given))
    play_match(match)
    played = json.loads(match.path.read_text())["points_per_hand"]["mean"]
    (report,) = recorded_reports(records.read(rounds))
    points = {name: player["points_per_hand"]["mean"] for name, player in report["players"].items()}
    assert played
    assert points == {f"{folder} (current)": pytest.approx(played), f"{folder}": pytest.approx(-played)}


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_another_envs_is_named(tmp_path: pathlib.Path, kind: str) -> None:
    """A package or module `envs` next to the user's script ends the import with one line that names it."""
    theirs = tmp_path / "envs"
    if kind == "folder":
        theirs.mkdir()
        (theirs / "__init__.py").write_text("")
    else:
        theirs = tmp_path / "envs.py"
        theirs.write_text("")
    (tmp_path / "script.py").write_text("import dream\n")
    for command in (["script.py"], ["-m", "dream.run", "preset=tiny"]):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPO)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        last = done.stderr.strip().splitlines()[-1]
        assert f"{theirs} hides this project's package `envs`; rename it" in last


def test_a_folder_of_data_called_envs_is_no_harm(tmp_path: pathlib.Path) -> None:
    """One without Python's __init__.py hides nothing."""
    (tmp_path / "envs").mkdir()
    script = "import dream, envs; print(envs.__file__)"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{REPO}"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(REPO / "envs" / "__init__.py")


def test_a_policy_stays_a_pytree(run: dream.FinishedRun) -> None:
    """Its game is static: no leaf, part of the structure."""
    policy = run.policies["average"]
    again = jax.tree.map(lambda x: x, policy)
    assert again.game == policy.game
    assert len(jax.tree.leaves(policy)) == len(jax.tree.leaves(policy.params))


def test_policies_of_one_recipe_are_one_function(tmp_path: pathlib.Path) -> None:
    """So that a program is compiled once for all seeds and checkpoints; another setting is another function."""
    overrides = [
        "preset=tiny",
        "algo=ppo",
        "env=kuhn_poker",
        "iterations=1",
        "eval.opponents=[]",
        "tracking.mode=disabled",
    ]
    for name, own in (("0", []), ("1", ["seed=1"]), ("warm", ["algo.play_temperature=0.5", "algo.epochs=1"])):
        dream.train([*overrides, *own, f"run_dir={tmp_path / name}"], quiet=True)
    first, second, warm = (dream.load_policy(tmp_path / name) for name in ("0", "1", "warm"))
    assert jax.tree.structure(first) == jax.tree.structure(second) != jax.tree.structure(warm)
    assert any(np.any(x != y) for x, y in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True))
