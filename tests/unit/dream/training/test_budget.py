"""A run's end: its iterations, or before them a budget; the last iteration is evaluated either way."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
import types
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import chex
import jax
import numpy as np
import pytest
from command_support import without_seconds

import envs
from dream.config.compose import compose_config
from dream.storage.checkpoint import find
from dream.storage.policies import load_policy
from dream.training import measuring, metrics, run_state
from dream.training.beginning import Start
from dream.training.finished import load_run
from dream.training.loop import train
from dream.training.signals import StopRequest
from dream.training.start import prepare_run, with_stored_choices
from envs import InputError
from envs.terminal import play_in_terminal

NEVER = StopRequest(listen=False)
"""A stop request that does not come."""
KUHN = ("env=kuhn_poker", "tracking.mode=disabled", "eval.opponents=[]", "eval.every=1000")


def _records(*overrides: str) -> list[dict[str, Any]]:
    """Runs to the end and returns the record."""
    start = prepare_run(compose_config("config", with_stored_choices(list(overrides))))
    train(start, NEVER)
    return metrics.read(start.run_dir)


def _new(folder: Path, *overrides: str) -> list[dict[str, Any]]:
    return _records(*KUHN, f"run_dir={folder / 'run'}", *overrides)


@pytest.mark.parametrize(
    ("name", "limit", "iterations"),
    [("episodes", 300, 3), ("episodes", 256, 2), ("episodes", 257, 3), ("nodes", 1, 1), ("seconds", 1e-6, 1)],
)
def test_the_iteration_that_reaches_a_budget_is_the_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, limit: float, iterations: int
) -> None:
    """128 episodes per iteration; a total that is exactly the limit has reached it; which one it was is said."""
    settings = ("algo=external_mccfr", "algo.trajectories=64", "iterations=9", f"budget.{name}={limit}")
    records = _new(tmp_path, *settings)
    assert [record["iteration"] for record in records] == list(range(1, iterations + 1))
    assert records[-1][name] >= limit
    assert all(record[name] < limit for record in records[:-1])
    assert f"budget.{name}={limit:g} ends the run after {iterations} of 9 iterations\n" in capsys.readouterr().out


FOLLOWS = {
    "ppo": ("algo.learning_rate_decay", "learning_rate"),
    "mmd": ("algo.entropy_decay", "entropy_weight"),
    "dueling_dream": ("algo.learning_rate_decay", "learning_rate"),
    "rnad": ("algo.learning_rate_decay", "learning_rate"),
    "nfsp": ("algo.epsilon", "epsilon"),
}
"""Learner -> one of its schedules, and the metric that tells where it is."""


@pytest.mark.parametrize(
    ("algo", "end"),
    [*((algo, "budget.nodes=150") for algo in FOLLOWS), ("ppo", "budget.episodes=70"), ("ppo", "iterations=4")],
)
def test_a_schedule_may_take_as_long_as_the_run(algo: str, end: str, tmp_path: Path) -> None:
    """It falls by the share of the run that the iterations before have taken, also after a resume, to the bit."""
    schedule, metric = FOLLOWS[algo]
    falls = [f"{schedule}={{start: 1.0, end: 0.0, transition_steps: null, form: linear}}", "preset=tiny"]
    often = ("checkpoint.every=2", "checkpoint.keep=9")
    records = _new(tmp_path, f"algo={algo}", *falls, *often, *(["iterations=1000"] if "budget" in end else []), end)
    name, limit = end.split(".")[-1].split("=")
    spent = [0.0, *(record[name.removesuffix("s") if name == "iterations" else name] for record in records[:-1])]
    assert len(records) > 2
    values = [record[metric] / records[0][metric] for record in records]
    np.testing.assert_allclose(values, [1.0 - total / float(limit) for total in spent], atol=1e-5)
    before = [without_seconds(record) for record in records]
    resumed = _records(f"resume={tmp_path / 'run' / 'checkpoints' / '2'}")
    assert [without_seconds(record) for record in resumed] == before


def test_the_first_of_several_budgets_counts(tmp_path: Path) -> None:
    """An iteration of CFR costs the same nodes each time; one and a half times that is reached in the second."""
    one = _new(tmp_path / "one", "algo=cfr", "iterations=1")[0]["nodes"]
    records = _new(tmp_path, "algo=cfr", "iterations=9", f"budget.nodes={one * 1.5}", "budget.seconds=1000")
    assert [record["nodes"] for record in records] == [one, 2 * one]


@pytest.mark.parametrize("end", ["iterations=5", "budget.nodes=190"])
def test_the_last_iteration_is_evaluated(tmp_path: Path, end: str) -> None:
    """Every third and the last; the final report says the same."""
    records = _new(tmp_path, "algo=cfr", "eval.every=3", end)
    evaluated = [record["iteration"] for record in records if "eval/exploitability/average" in record]
    assert evaluated == sorted({*range(3, len(records) + 1, 3), len(records)})


@pytest.mark.parametrize("end", ["iterations=3", "budget.nodes=190"])
def test_a_fitted_average_knows_the_last_iteration(tmp_path: Path, end: str) -> None:
    """Fitted every second iteration it ends as if fitted every third, to the bit; both are fitted to the third."""
    settings = ("algo=dream", "algo.traversals=16", "algo.fit.steps=2", "algo.values.steps=2", end)
    averages, steps = [], []
    for every in (2, 3):
        average = f"algo.average={{source: network, every: {every}, fit: {{steps: 5, batch_size: 8}}}}"
        records = _new(tmp_path / str(every), *settings, average)
        assert len(records) == 3
        policies = load_run(tmp_path / str(every) / "run").policies
        averages.append(policies["average"].params)
        steps.append(records[-1]["gradient_steps"])
    chex.assert_trees_all_equal(*averages)
    assert steps[0] - steps[1] == 2 * 5  # of both players' networks, after the second iteration


def test_an_end_that_comes_later_is_one_too(tmp_path: Path) -> None:
    """A run cut back to an earlier checkpoint, its new end, has its average fitted there, once; the record says so."""
    average = "algo.average={source: network, every: 2, fit: {steps: 5, batch_size: 8}}"
    settings = ("algo=dream", "algo.traversals=16", "algo.fit.steps=2", "algo.values.steps=2", average)
    whole = _new(tmp_path / "whole", *settings, "iterations=3")
    _new(tmp_path, *settings, "iterations=4", "checkpoint.every=1", "checkpoint.keep=9")
    run = tmp_path / "run"
    cut = _records(f"resume={run / 'checkpoints' / '3'}", "iterations=3")
    assert [without_seconds(record) for record in cut] == [without_seconds(record) for record in whole]
    averages = [load_run(folder).policies["average"].params for folder in (run, tmp_path / "whole" / "run")]
    chex.assert_trees_all_equal(*averages)
    assert _records(f"resume={run}") == cut


def test_a_run_goes_on_with_a_larger_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It equals one that had the larger budget at once; a spent budget leaves it as it is, and says so."""
    settings = ("algo=cfr", "iterations=99")
    run = tmp_path / "run"
    whole = _new(tmp_path / "whole", *settings, "budget.nodes=190")
    _new(tmp_path, *settings, "budget.nodes=90")
    went_on = _records(f"resume={run}", "budget.nodes=190")
    assert [record["iteration"] for record in went_on] == [1, 2, 3, 4]
    assert without_seconds(went_on[2]) == without_seconds(whole[2])
    assert without_seconds(went_on[3]) == without_seconds(whole[3])
    capsys.readouterr()
    assert _records(f"resume={run}") == went_on
    assert "budget.nodes=190 ends the run after 4 of 99 iterations\n" in capsys.readouterr().out


def _slow(start: Start, turns: int, during: Callable[[int], None] = lambda done: None) -> Start:
    """Returns a start whose iterations take so many calls of 20 ms, the first iteration one."""
    algorithm, done = start.parts.algorithm, [0]

    def calls(state: Any) -> Generator[None, None, tuple[Any, dict[str, Any]]]:
        result = algorithm.iterate(state)
        for _ in range(turns if done[0] else 1):
            time.sleep(0.02)
            during(done[0])
            yield
        done[0] += 1
        return result

    parts = dataclasses.replace(
        start.parts, algorithm=dataclasses.replace(algorithm, calls=calls, several=None, most=1)
    )
    return dataclasses.replace(start, parts=parts)


def _seconds_pass_in_calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Stops a run's clock but for a second in each call after the first iteration; returns what `_slow` calls then."""
    now = [0.0]
    for module in (run_state, metrics):
        monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: now[0]))

    def during(done: int) -> None:
        now[0] += done

    return during


def _prepared(folder: Path, *overrides: str) -> Start:
    settings = (*KUHN, "algo=cfr", "checkpoint.every=1000", f"run_dir={folder / 'run'}", *overrides)
    return prepare_run(compose_config("config", list(settings)))


@pytest.mark.parametrize(("algo", "env"), [("cfr_plus", "kuhn_poker"), ("tabular_mmd", "kuhn_poker"),
                                           ("pcfr_plus", "phantom_ttt"), ("tabular_mmd", "phantom_ttt")])  # fmt: skip
def test_a_solver_that_plays_no_games_has_no_budget_of_them(tmp_path: Path, algo: str, env: str) -> None:
    """It would never be reached; nothing is written."""
    with pytest.raises(InputError, match=rf"budget\.episodes=9 ends no run of algo={algo}, .* use budget\.nodes"):
        _new(tmp_path, f"algo={algo}", f"env={env}", "iterations=1", "budget.episodes=9")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("total", ["nodes", "episodes"])
def test_a_learner_from_records_counts_neither_nodes_nor_games(total: str, tmp_path: Path) -> None:
    """A budget of them would never be reached."""
    game = envs.make("kuhn_poker")
    file = tmp_path / "rounds.jsonl"
    play_in_terminal(game, [envs.make_bot("random", game)] * 2, rounds=2, seed=1, keep=file, write=[].append)
    given = ["env=kuhn_poker", "algo=behaviour_cloning", f"algo.records={file}", f"budget.{total}=9"]
    with pytest.raises(
        InputError, match=rf"budget\.{total}=9 ends no run of algo=behaviour_cloning, .*budget\.seconds"
    ):
        prepare_run(compose_config("config", [*given, f"run_dir={tmp_path / 'run'}"]))


def test_a_budget_ends_a_long_iteration_between_two_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was finished before it is kept, evaluated and saved, and equals a run of that length."""
    monkeypatch.setattr(run_state, "PATIENCE_SECONDS", 2.0)
    passes, calls = _seconds_pass_in_calls(monkeypatch), []

    def during(done: int) -> None:
        passes(done)
        calls.append(done)

    start = _slow(_prepared(tmp_path, "iterations=3"), 50, during)
    train(_with_budget(start, 1.0), NEVER)
    assert calls == [0, 1, 1, 1, 1], "it is left once the patience is over: after more than three seconds"
    records = metrics.read(start.run_dir)
    assert [record["iteration"] for record in records] == [1]
    whole = _new(tmp_path / "whole", "algo=cfr", "iterations=1")
    assert without_seconds(records[0]) == without_seconds(whole[0])
    assert find(start.run_dir).meta["iteration"] == 1
    assert json.loads((start.run_dir / "evaluation.json").read_text())["iteration"] == 1


def test_what_settles_late_is_measured_and_saved_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first iteration is evaluated and saved when the budget ends the second; settling then changes the average."""
    monkeypatch.setattr(run_state, "PATIENCE_SECONDS", 2.0)
    during = _seconds_pass_in_calls(monkeypatch)
    start = _slow(_prepared(tmp_path, "iterations=3", "eval.every=1", "checkpoint.every=1"), 50, during)

    def settle(state: Any) -> Generator[None, None, tuple[Any, dict[str, float]]]:
        yield
        return state._replace(weights=np.ones_like(state.weights)), {"gradient_steps": 5.0}

    algorithm = dataclasses.replace(start.parts.algorithm, settle=settle)
    start = dataclasses.replace(start, parts=dataclasses.replace(start.parts, algorithm=algorithm))
    train(_with_budget(start, 1.0), NEVER)
    (record,) = metrics.read(start.run_dir)
    assert record["gradient_steps"] == 5
    assert record["eval/exploitability/average"] == pytest.approx(11 / 24)  # of uniform play
    report = json.loads((start.run_dir / "evaluation.json").read_text())
    assert report["exact"]["average"]["exploitability"] == pytest.approx(11 / 24)
    stored = find(start.run_dir)
    assert (stored.meta["iteration"], stored.meta["counters"]["gradient_steps"]) == (1, 5)
    np.testing.assert_array_equal(stored.restore(algorithm.init(jax.random.key(0))).weights, 1.0)


def test_a_checkpoint_before_a_fit_of_the_average_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it is loaded to play, once; not that of an iteration with a fit, nor a run's last one."""
    _new(
        tmp_path, "algo=deep_cfr", "preset=tiny", "iterations=3", "algo.average.every=2", "checkpoint.every=1",
        "checkpoint.keep=3", "eval.exact=false",
    )  # fmt: skip
    capsys.readouterr()
    cases = ((1, "current", False), (1, None, True), (1, None, False), (2, None, False), (3, "average", False))
    for iteration, name, warned in cases:
        checkpoint = tmp_path / "run" / "checkpoints" / str(iteration)
        load_policy(checkpoint, name)
        line = (
            f"warning: {checkpoint}: its average policy is not of iteration 1, as it is fitted every 2 iterations and "
            "plays uniformly before the first fit; go on with the run, or choose policy=current\n"
        )
        assert capsys.readouterr().err == (line if warned else "")


def test_a_budget_that_the_first_iteration_spends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with what to do, and the folder can be used again."""
    monkeypatch.setattr(run_state, "PATIENCE_SECONDS", 0.0)
    start = _slow(_prepared(tmp_path, "iterations=3"), 10**6)
    start.parts.algorithm.iterate(start.parts.algorithm.init(jax.random.key(0)))
    with pytest.raises(
        InputError, match=r"budget\.seconds=1e-06 is spent within the first iteration, of which nothing"
    ):
        train(_with_budget(start, 1e-6), NEVER)
    assert metrics.read(start.run_dir) == []
    assert not (start.run_dir / "run.lock").exists()


def test_a_signal_ends_a_long_iteration_between_two_calls(tmp_path: Path) -> None:
    """The iteration before it is saved, and going on gives what an undisturbed run gives."""
    stop = StopRequest(grace=0.1, listen=False)

    def interrupt(done: int) -> None:
        stop.received = signal.SIGTERM if done == 1 else None

    start = _slow(_prepared(tmp_path, "iterations=3"), 10**6, interrupt)
    train(start, stop)
    assert [record["iteration"] for record in metrics.read(start.run_dir)] == [1]
    assert not (start.run_dir / "evaluation.json").exists()
    went_on = _records(f"resume={start.run_dir}")
    whole = _new(tmp_path / "whole", "algo=cfr", "iterations=3")
    assert [without_seconds(record) for record in went_on] == [without_seconds(record) for record in whole]


def test_settings_that_no_checkpoint_holds_yet_are_to_be_given_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A resumed run that is left before an iteration is done has them nowhere; without new ones it says nothing."""
    run, lost = tmp_path / "run", "the settings it went on with are in no checkpoint yet; give them again"
    _new(tmp_path, "algo=cfr", "iterations=2")
    for given, done in ((["iterations=9"], False), (["iterations=9", "algo.updates=2"], False), ([], False),
                        (["iterations=3"], True)):  # fmt: skip
        start = prepare_run(compose_config("config", with_stored_choices([f"resume={run}", *given])))
        stop = StopRequest(listen=False)
        stop.received = None if done else signal.SIGTERM
        capsys.readouterr()
        ended = train(start, stop)
        said = bool(given) and not done
        out = capsys.readouterr().out
        assert (lost in out) == said
        assert "of an earlier iteration" not in out, "the run was evaluated where it was left"
        assert (lost in ended.rescue()) == said


def test_a_last_evaluation_that_a_signal_left_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that goes on ends with the record of one that nothing disturbed."""
    settings = ("algo=cfr", "iterations=3", "eval.opponents=[random]", "eval.games=8", "eval.final_games=8")
    (*_, undisturbed) = _new(tmp_path / "whole", *settings)
    stop = StopRequest(grace=0.0, listen=False)

    def interrupted(*_: Any, progress: Callable[[int], None], **__: Any) -> Any:
        stop.received = signal.SIGTERM
        while True:
            progress(0)

    start = _prepared(tmp_path, *settings[1:])
    with monkeypatch.context() as patch:
        patch.setattr(measuring, "match", interrupted)
        train(start, stop)
    assert not any(name.startswith("eval/") for name in metrics.read(start.run_dir)[-1])
    (*_, newest) = _records(f"resume={start.run_dir}")
    assert without_seconds(newest) == without_seconds(undisturbed)


def _with_budget(start: Start, seconds: float) -> Start:
    """Returns a start with a budget in seconds."""
    budget = dataclasses.replace(start.parts.config.budget, seconds=seconds)
    config = dataclasses.replace(start.parts.config, budget=budget)
    return dataclasses.replace(start, parts=dataclasses.replace(start.parts, config=config))


@pytest.mark.parametrize(
    ("override", "reported"),
    [
        ("budget.nodes=0", r"budget\.nodes=0\.0 is out of range; it must be more than 0"),
        ("budget.episodes=-5", r"budget\.episodes=-5\.0 is out of range"),
        ("budget.seconds=long", r"budget\.seconds='long' is not valid; it must be a number"),
        ("budget=100", r"budget=100 must hold nodes, episodes, seconds"),
        ("budget.node=100", "did you mean 'budget.nodes'"),
    ],
)
def test_wrong_budget(override: str, reported: str) -> None:
    """One line that names the place and what would be right."""
    with pytest.raises(InputError, match=reported):
        prepare_run(compose_config("config", [override]))
