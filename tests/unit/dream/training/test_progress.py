"""Does a run say what it will do, how long it will take, and what to do next?"""

from __future__ import annotations

import pathlib
import re
import shlex

import pytest
from omegaconf import OmegaConf

import envs
from dream.config.compose import compose_config
from dream.config.schema import BudgetConfig
from dream.training.announce import device, next_steps, plan
from dream.training.progress import Lines, Pace, RunProgress, duration

BEFORE = {"iteration": 0, "seconds": 1.0, "compile_seconds": 0.5, "nodes": 0, "episodes": 0}


def _record(iteration: int, seconds: float, compile_seconds: float, **more: float) -> dict:
    work = {"nodes": 100 * iteration, "episodes": 10 * iteration}
    return {"iteration": iteration, "seconds": seconds, "compile_seconds": compile_seconds, **work, **more}


def test_the_first_iteration_says_how_long_the_run_will_take() -> None:
    """41 s of which 35 compiled and 2 evaluated: 4 s each, 99 of them to come."""
    pace = Pace(100, BudgetConfig(), BEFORE)
    (line,) = pace.remarks(_record(1, 42.0, 35.5, seconds_evaluate=2.0))
    assert line.startswith("the first iteration took 41 s, 35 s of them compiling; about 4 s per iteration")
    assert "7 min for the rest, until " in line
    assert pace.remarks(_record(2, 47.0, 35.5)) == []
    assert pace.seconds_left(_record(2, 47.0, 35.5)) == pytest.approx(98 * 5)
    pace.remarks(_record(3, 60.0, 35.5, seconds_evaluate=10.0))
    assert pace.seconds_left(_record(3, 60.0, 35.5)) == pytest.approx(97 * 4)


@pytest.mark.parametrize(
    ("budget", "left"),
    [
        (BudgetConfig(nodes=600), 5 * 4.0),
        (BudgetConfig(episodes=30), 2 * 4.0),
        (BudgetConfig(seconds=62.0), 20.0),
        (BudgetConfig(seconds=1e9, nodes=1e9), 99 * 4.0),
    ],
)
def test_a_budget_ends_the_estimate_too(budget: BudgetConfig, left: float) -> None:
    """Whichever limit is nearest."""
    pace = Pace(100, budget, BEFORE)
    record = _record(1, 42.0, 37.5)
    pace.remarks(record)
    assert pace.seconds_left(record) == pytest.approx(left)


def test_a_resumed_run_counts_from_where_it_began() -> None:
    """Nodes of before are not this session's, nor is the first iteration's compiling."""
    before = {"iteration": 50, "seconds": 500.0, "compile_seconds": 30.0, "nodes": 1000, "episodes": 0}
    pace = Pace(100, BudgetConfig(nodes=2000), before)
    record = {"iteration": 51, "seconds": 520.0, "compile_seconds": 40.0, "nodes": 1100, "episodes": 0}
    pace.remarks(record)
    assert pace.seconds_left(record) == pytest.approx(9 * 10.0)


def test_an_overrun_budget_is_said() -> None:
    """One long iteration past budget.seconds; a little over is not worth a line."""
    (line,) = Pace(100, BudgetConfig(seconds=30), BEFORE).remarks(_record(1, 901.0, 20.0))
    assert line.startswith("budget.seconds=30 is overrun by 15 min")
    assert line.endswith("the last one took 15 min")
    assert Pace(100, BudgetConfig(seconds=30), BEFORE).remarks(_record(1, 30.5, 20.0)) == []


def test_a_short_first_iteration_is_no_estimate() -> None:
    """What 0.1 s besides compiling took says nothing about iterations of microseconds; the next ones do."""
    pace = Pace(200_000, BudgetConfig(), BEFORE)
    assert pace.remarks(_record(1, 3.8, 3.2)) == ["the first iteration took 2.8 s, 2.7 s of them compiling"]
    assert pace.remarks(_record(1001, 3.9, 3.2)) == []
    assert pace.seconds_left(_record(1001, 3.9, 3.2)) == pytest.approx(199 * 0.1, rel=0.01)


def test_a_run_of_one_iteration_needs_no_estimate() -> None:
    """There is no rest."""
    assert Pace(1, BudgetConfig(), BEFORE).remarks(_record(1, 42.0, 35.5)) == []


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """The first iteration's record, then what it says about the time."""
    progress = RunProgress(Pace(9, BudgetConfig(), BEFORE), 0)
    progress.show(_record(1, 42.0, 35.5, loss=0.25))
    progress.show(_record(9, 50.0, 35.5, loss=0.125))
    progress.close()
    first, second, last = capsys.readouterr().out.splitlines()
    assert (first, last) == ("iteration 1/9  42 s  loss 0.25", "iteration 9/9  50 s  loss 0.125")
    assert second.startswith("the first iteration took 41 s")


def test_the_time_left_is_not_judged_by_the_first_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """It compiles: after it no more than a bound is known, then the time since it is a measure; at the end nothing."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    lines = Lines()
    now[0] = 30.0
    assert [lines.left(done, 2000) for done in (0, 1)] == ["", ""]
    now[0] = 40.0
    assert [lines.left(done, 2000) for done in (101, 1001, 2000)] == ["  about 3 min left", "  about 10 s left", ""]
    lines, now[0] = Lines(), 100.0
    assert lines.left(1000, 2000) == "  less than 60 s left"
    now[0] = 110.0
    assert lines.left(1500, 2000) == "  about 10 s left"
    lines, now[0] = Lines(), 182.0
    assert lines.left(1, 2000) == "  less than 40.0 h left"


def test_an_opponent_by_its_place_has_its_whole_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Two of a game's players, or two runs of a folder, are two."""
    rates = {"eval/gin_rummy/strong/win_rate": 0.5, "eval/gin_rummy/points/win_rate": 0.25, "eval//runs/a/win_rate": 1}
    progress = RunProgress(Pace(9, BudgetConfig(), BEFORE), 0)
    progress.show(_record(9, 50.0, 35.5, **rates, **{"eval/exploitability/average": 0.5}))
    line, *_ = capsys.readouterr().out.splitlines()
    assert line.endswith(
        "wins against gin_rummy/strong 50.0 %  wins against gin_rummy/points 25.0 %  wins against /runs/a 100.0 %"
        "  exploitability of average 0.5"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0432, "0.043 s"), (42, "42 s"), (150, "2 min"), (7200, "2.0 h"), (86400 * 9, "9.0 days"), (5940, "99 min")],
)
def test_duration(seconds: float, text: str) -> None:
    """In the unit that fits."""
    assert duration(seconds) == text


def _plan(*overrides: str, tabular: bool = False, done: int = 0) -> str:
    composed = compose_config("config", list(overrides))
    settings = OmegaConf.to_container(composed.node, resolve=True)
    game = envs.make(settings["env"]["name"])
    return "\n".join(plan(settings, game, tabular=tabular, run_dir=pathlib.Path("/runs/a"), done=done))


def test_plan() -> None:
    """Algorithm, game, size, budget, network with its parameters, device and folder."""
    text = _plan(
        "algo=ppo", "env=leduc_poker", "network.hidden=[16,8]", "budget.seconds=30", "iterations=2000", "seed=7"
    )
    settings = compose_config("config", ["algo=ppo", "env=leduc_poker"]).node.algo
    assert text.startswith("ppo on leduc_poker · 2,000 iterations, budget.seconds=30 · ")
    assert f"episodes per iteration: {settings.episodes_per_iteration:,}" in text
    inputs = envs.make("leduc_poker").observation_size
    assert f"network dueling, {(inputs + 1) * 16 + 17 * 8 + 9 * 3 + 9:,} parameters · " in text
    assert re.search(r", (1 CPU core|\d+ CPU cores) · seed 7", text)
    assert "run directory: /runs/a" in text
    text = _plan("algo=cfr", "env=kuhn_poker", "eval.opponents=[]", "iterations=20", tabular=True, done=5)
    assert text.startswith(
        "cfr on kuhn_poker · from iteration 5 to 20 · full updates per iteration: 1\ntables, no network"
    )
    assert "against no one" in text


@pytest.mark.parametrize(("cores", "text"), [(1, "1 CPU core"), (2, "2 CPU cores")])
def test_device(cores: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One core is not "1 cores"."""
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(cores), raising=False)
    assert device().endswith(f", {text}")


def test_next_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Commands that can be pasted; W&B's only where there is something to send."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "my runs" / "a"
    leduc = envs.make("leduc_poker")
    lines = next_steps(place, leduc, {}, finished=True, wandb=True)
    assert [line.split()[0] for line in lines] == ["evaluate:", "exploit:", "rate:", "send"]
    assert lines[1].endswith("python -m dream.exploit checkpoint='my runs/a'")
    assert lines[3].endswith("wandb sync 'my runs/a'/wandb/offline-run-*")
    lines = next_steps(tmp_path / "b", leduc, {}, finished=False, wandb=False)
    assert lines[0].endswith("python -m dream.run resume=b")
    assert not any("wandb" in line for line in lines)


def test_next_steps_of_a_folder_with_odd_characters(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """They can be pasted too: what the shell hands over names the folder in Hydra's grammar."""
    monkeypatch.chdir(tmp_path)
    for name in ("lr=0.1", "a(1)", "été"):
        lines = next_steps(tmp_path / name, envs.make("kuhn_poker"), {}, finished=False, wandb=False)
        resume, evaluate, exploit, rate = [shlex.split(line.partition(":")[2])[3:] for line in lines]
        assert compose_config("config", resume).node.resume == name
        assert compose_config("evaluate", evaluate).node.checkpoint == name
        assert compose_config("exploit", exploit).node.checkpoint == name
        assert compose_config("ladder", rate).node.players == ["random", name]


def test_next_steps_fit_the_game(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """A ladder by the run's own rules; neither ladder nor bound where the game is no zero-sum one of two."""
    monkeypatch.chdir(tmp_path)
    for name, rules, suggested in (
        ("gin_rummy", {"preset": "dream"}, "env=gin_rummy players"),
        ("gin_rummy", {"preset": "eaai", "knock_limit": 9}, "env.rules.preset=eaai env.rules.knock_limit=9 players"),
        ("gin_rummy_mdp", {"reward": "categorical"}, "env=gin_rummy_mdp env.rules.reward=categorical players"),
        ("rummy500", {"num_players": 2, "target": 500, "max_rounds": 40}, "players=2 env.rules.target=500 players"),
        ("rummy500", {"num_players": 3}, None),
        ("rummy500", {"num_players": 2, "rewards": "points"}, None),
    ):
        lines = next_steps(tmp_path / "a", envs.make(name, **rules), rules, finished=True, wandb=False)
        assert [line.split()[0] for line in lines] == ["evaluate:", "exploit:", "rate:"][: None if suggested else 1]
        assert suggested is None or suggested in lines[-1]
        assert lines[0].endswith(" games=9999" if rules.get("num_players") == 3 else "opponent=random")
