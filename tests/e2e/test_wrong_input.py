"""Wrong input gets exactly one line on stderr, exit code 2, and changes nothing on disk."""

from __future__ import annotations

import gc
import importlib
import json
import pathlib
import pickle
import shutil
import signal
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from command_support import TINY, command, environment, snapshot

from dream.storage.checkpoint_meta import signed
from dream.training import loop

RUN = {
    "unknown key": (["iteration=4"], "did you mean 'iterations'"),
    "unknown nested key": (["algo.learning_rat=1e-3"], "did you mean 'algo.learning_rate'"),
    "added key": (["+algo.foo=1"], "unknown setting 'algo.foo'"),
    "no equals sign": (["iterations"], "iterations"),
    "not Hydra's grammar": (["iterations=[1,2"], "[1,2"),
    "a sweep without -m": (["iterations=1,2"], "iterations=1,2 gives several values; -m sweeps over them"),
    "text for a whole number": (["iterations=abc"], "iterations='abc' is not valid; it must be a whole number"),
    "fraction for a whole number": (["algo.epochs=1.5"], "algo.epochs=1.5 is not valid; it must be a whole number"),
    "null for a number": (["algo.epochs=null"], "algo.epochs=None is not valid"),
    "too few iterations": (["iterations=0"], "iterations=0 is out of range; it must be at least 1"),
    "negative seed": (["seed=-1"], "seed=-1 is out of range"),
    "learning rate 0": (["algo.learning_rate=0"], "it must be more than 0"),
    "learning rate nan": (["algo.learning_rate=nan"], "algo.learning_rate=nan is out of range; it must be finite and"),
    "budget without end": (["budget.seconds=1e400"], "budget.seconds=inf is out of range; it must be finite and more"),
    "unknown option": (["algo.epoch_unit=epochs"], "known: minibatches, passes"),
    "misspelt option": (["algo.shaping.form=literl"], "did you mean 'literal'"),
    "temperature 0": (["algo.temperature.start=0"], "algo.temperature.start=0.0 must be more than 0"),
    "a share of more than all": (["algo=nfsp", "algo.epsilon.start=2"], "algo.epsilon.start=2.0 is out of range"),
    "a factor below 0": (["algo=ppo", "algo.learning_rate_decay.end=-1"], "algo.learning_rate_decay.end=-1.0 is out"),
    "number for a mapping": (["algo.temperature=2"], "algo.temperature=2 must hold start, end, transition_steps, form"),
    "more lanes than games": (
        ["algo.num_envs=9000"],
        "algo.num_envs=9000 is more than algo.episodes_per_iteration=8192",
    ),
    "more lanes than traversals": (
        ["algo=dream", "env=leduc_poker", "algo.num_envs=1000"],
        "algo.num_envs=1000 is more than algo.traversals=900",
    ),
    "old algorithm": (["algo=dream_vr"], "algo=dream_vr is now algo=dream"),
    "old key": (["algo.lanes=8"], "algo.lanes is now algo.num_envs"),
    "a power that is no number": (
        ["algo=dcfr", "env=kuhn_poker", "algo.negative_power=nan"],
        "algo.negative_power=nan is no",
    ),
    "no tree for Deep CFR": (["algo=deep_cfr"], "algo=deep_cfr needs the whole tree of its game, and gin_rummy is not"),
    "no tree for CFR": (["algo=cfr", "env=gin_rummy_mdp"], "algo=cfr needs the whole tree of its game"),
    "unknown algorithm": (["algo=draem"], "did you mean 'dream'"),
    "unknown preset": (["preset=laptp"], "did you mean 'laptop'"),
    "unknown player in evaluations": (["eval.opponents=[rando]"], "eval.opponents: unknown player 'rando'"),
    "unknown player in training": (
        ["algo=ppo", "algo.opponents=[self,rando]"],
        "algo.opponents: unknown player 'rando'",
    ),
    "unknown player to start from": (["algo=ppo", "algo.start_from=nope"], "algo.start_from: unknown player 'nope'"),
    "unknown experiment": (["experiment=nothing"], "nothing"),
    "an experiment on another game": (
        ["experiment=ppo_dense", "env=leduc_poker"],
        "; experiment=ppo_dense is a recipe of env=gin_rummy, and env=leduc_poker was chosen",
    ),
    "unknown env": (["env=gin_rumy"], "did you mean 'gin_rummy'"),
    "unknown game": (["env.name=gin_rumy"], "did you mean 'gin_rummy'"),
    "unknown rule": (["+env.rules.knock=1"], "did you mean 'knock_limit'"),
    "unknown rule without +": (["env.rules.knock=1"], "did you mean 'knock_limit'"),
    "rule of another type": (["env.rules.knock_limit=ten"], "knock_limit='ten'"),
    "rule of another kind": (["env.rules.knock_limit=9.5"], "is a float; it must be an int"),
    "rule out of range": (["env.rules.knock_limit=1000"], "it must be in [0, 98]"),
    "rules are a number": (["env.rules=3"], "env.rules=3 is not valid; it must be a dict"),
    "no layers": (["network.hidden=[]"], "network.hidden=[] is empty"),
    "layer of no width": (["network.hidden=[16,0]"], "network.hidden[1]=0 is out of range"),
    "unknown dtype": (["network.dtype=float16"], "did you mean 'bfloat16'"),
    "window too long": (["network.log_window=81"], "gin_rummy has 80 log slots"),
    "odd number of hands": (["eval.games=5"], "eval.games=5 is odd"),
    "unknown opponent": (["eval.opponents=[randm]"], "unknown player 'randm'; did you mean 'random'?"),
    "an opponent twice": (
        ["eval.opponents=[random,greedy,random]"],
        "eval.opponents=['random', 'greedy', 'random'] names 'random' twice; name each once",
    ),
    "opponents are no list": (["eval.opponents=random"], "it must be a list"),
    "unknown tracking mode": (["tracking.mode=ofline"], "did you mean 'offline'"),
    "no tracking": (["tracking.mode=off"], "did you mean 'disabled'"),
    "no setting": (["leduc_poker"], "leduc_poker is not valid; it must be <setting>=<value>"),
    "a setting as a flag": (["--seed=1"], "--seed is not valid; settings are written key=value, as seed=1; --help"),
    "a flag in a sweep": (["-m", "--seed", "1,2"], "--seed is not valid; settings are written key=value, as seed=1,2;"),
    "a flag without value": (["--resume", "seed=1"], "settings are written key=value, as resume=<value>;"),
    "nothing kept": (["checkpoint.keep=0"], "checkpoint.keep=0 is out of range"),
    "broken interpolation": (["algo.epochs=${nothing}"], "nothing"),
    "run_dir is a file": (["run_dir=file"], "file exists and holds no run; choose a new folder"),
    "run_dir is inside a file": (["run_dir=file/run"], "file"),
    "run_dir is in use": (["run_dir=run"], "go on with resume="),
    "missing checkpoint": (["resume=nowhere"], "nowhere does not exist"),
    "foreign folder": (["resume=foreign"], "foreign holds no complete checkpoint"),
    "a file to resume": (["resume=run/config.yaml"], "resume=run/config.yaml is a file; it must be a run directory"),
    "resume with another network": (
        ["resume=run", "network.hidden=[16,9]"],
        "has {'hidden': [16, 8]}, the overrides ask for {",
    ),
    "resume with another seed": (["resume=run", "seed=5"], "seed cannot be changed"),
    "resume with other rules": (["resume=run", "env.rules.knock_limit=9"], "env cannot be changed"),
    "resume with fewer iterations": (["resume=run", "iterations=3"], "less than the 4 iterations"),
    "resume with another preset": (["resume=run", "preset=laptop"], "preset=laptop cannot be changed"),
    "resume with an unknown key": (["resume=run", "algo.foo=3"], "unknown setting 'algo.foo'"),
    "resume into another folder": (["resume=run", "run_dir=elsewhere"], "leave it out"),
    "a job twice": (["-m", "seed=1,1"], "jobs 0 and 1 are both seed=1; give each value once"),
    "a sweep of wrong jobs": (["-m", "seed=1,2", "algo.epochs=two"], "algo.epochs='two'"),
    "sweep into a folder in use": (["-m", "seed=1,2", "run_dir=run"], "a sweep needs a folder of its own"),
}
SWEEP = {
    "launcher": (["hydra/launcher=process"], "unknown hydra/launcher 'process'; did you mean 'processes'?"),
    "setting": (
        ["hydra.launcher.n_jobs=2"],
        "'hydra.launcher.n_jobs': it must be a setting of the launcher or sweeper chosen by",
    ),
    "interval": (
        ["hydra/sweeper=search", "algo.average_power=interval(2,1)"],
        "an interval must end above its start",
    ),
    "every job": (["hydra/launcher=processes", "algo.average_power=-1"], "algo.average_power=-1.0 is out of range"),
}
EVALUATE = {
    "no checkpoint": ([], "checkpoint= is missing"),
    "missing checkpoint": (["checkpoint=nowhere"], "nowhere does not exist"),
    "a misspelt player": (["checkpoint=gin_rummy/pointz"], "does not exist; did you mean 'gin_rummy/points'? it must"),
    "a misspelt opponent": (
        ["checkpoint=run", "opponent=gin_rummy/pointz"],
        "unknown player 'gin_rummy/pointz'; did you mean 'gin_rummy/points'? it must",
    ),
    "a checkpoint as a flag": (["--checkpoint", "run"], "settings are written key=value, as checkpoint=run; --help"),
    "foreign folder": (["checkpoint=foreign"], "no complete checkpoint"),
    "a file": (["checkpoint=run/config.yaml"], "is not a complete checkpoint"),
    "missing iteration": (["checkpoint=run/checkpoints/3"], "does not exist"),
    "an empty name": (["checkpoint="], "is empty"),
    "a rule-based player": (
        ["checkpoint=camper"],
        "camper is a named player, not a trained one; it can be an opponent, or play in ladders and games; it is "
        "measured where its game is given too, env=gin_rummy",
    ),
    "a level": (["checkpoint=level:3"], "it is measured where its game is given too, env=gin_rummy"),
    "an empty opponent": (["checkpoint=run", "opponent="], "unknown player ''"),
    "odd number of hands": (["checkpoint=run", "games=7"], "games=7 is not valid; it must be a multiple of 2"),
    "too few hands": (["checkpoint=run", "games=2"], "games=2 is out of range"),
    "unknown opponent": (["checkpoint=run", "opponent=randm"], "unknown player 'randm'"),
    "foreign opponent": (["checkpoint=run", "opponent=foreign"], "no complete checkpoint"),
    "unknown policy": (["checkpoint=run", "policy=best"], "known: current"),
    "unknown key": (["checkpoint=run", "gmaes=4"], "did you mean 'games'"),
    "a pickle that calls": (["checkpoint=calls.pkl"], "asks for posix.system"),
    "an opponent that calls": (["checkpoint=run", "opponent=calls.pkl"], "asks for posix.system"),
    "arrays of no network": (["checkpoint=arrays.pkl"], "first.w is missing"),
    "no hub reference": (["checkpoint=hf:owner/file.pkl"], "it must be hf:<owner>/<repo>/<file>"),
}
EXPORT = {
    "no checkpoint": ([], "checkpoint= is missing"),
    "missing checkpoint": (["checkpoint=nowhere"], "nowhere does not exist"),
    "another ending": (["checkpoint=run", "out=agent.pkl"], "it must end with .safetensors"),
    "no folder": (["checkpoint=run", "out=no/agent.safetensors"], "a file in an existing folder"),
    "unknown policy": (["checkpoint=run", "policy=best"], "known: current"),
    "unknown key": (["checkpoint=run", "uot=a"], "did you mean 'out'"),
}
RUMMY500 = {
    "negative seed": (["--seed=-1"], "--seed=-1 is not valid; it must be 0 or more"),
    "records in a folder": (
        ["--records=foreign"],
        "--records=foreign is not valid; it must be a file in a folder that",
    ),
    "records in no folder": (
        ["--records=no/rounds.jsonl"],
        "--records=no/rounds.jsonl is not valid; it must be a file",
    ),
    "records in a text": (["--records=file"], "file is there already and does not hold one record per line"),
}

Attempt = Callable[..., str]


@pytest.fixture
def folder(whole: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A working folder with a finished run, a file, and a folder of other things."""
    shutil.copytree(whole, tmp_path / "run", symlinks=True)
    (tmp_path / "file").write_text("text")
    (tmp_path / "calls.pkl").write_bytes(b"\x80\x04cposix\nsystem\n\x8c\x0etouch executed\x85R.")
    (tmp_path / "arrays.pkl").write_bytes(pickle.dumps({"params": {"first": {"b": np.zeros(3, np.float32)}}}))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "weights.bin").write_bytes(b"\x00" * 99)
    return tmp_path


@pytest.fixture
def refused(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Attempt]:
    """Runs a command inside this process and checks how it refuses; returns its one line."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.chdir(folder)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)

    def advance(run: loop.Run, stop: object) -> None:
        pytest.fail("the command went to work")

    monkeypatch.setattr(loop.Run, "advance", advance)
    gc.freeze()  # what the command leaves is all that is collected, in milliseconds

    def attempt(module: str, *arguments: str) -> str:
        before = snapshot(folder)
        monkeypatch.setattr(sys, "argv", [module, *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            importlib.import_module(module).main()
        out, err = capfd.readouterr()
        assert left.value.code == 2, err
        assert not out
        assert err.startswith("error: ")
        assert err.endswith("\n")
        assert err.count("\n") == 1
        assert snapshot(folder) == before
        return err

    yield attempt
    gc.collect()
    gc.unfreeze()
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("name", RUN)
def test_run_refuses(name: str, refused: Attempt) -> None:
    """python -m dream.run with one wrong thing."""  # noqa: D403
    arguments, reported = RUN[name]
    assert reported in refused("dream.run", *arguments)


@pytest.mark.parametrize("name", SWEEP)
def test_a_sweep_that_hydra_could_not_begin_is_refused(name: str, refused: Attempt) -> None:
    """Without a table of jobs that never were."""
    for plugin in ("optuna_sweeper", "joblib_launcher"):
        pytest.importorskip(f"hydra_plugins.hydra_{plugin}")
    arguments, reported = SWEEP[name]
    kuhn = (*TINY, "algo=cfr", "env=kuhn_poker", "eval.opponents=[]", "checkpoint.every=1")
    assert reported in refused("dream.run", "-m", *kuhn, *arguments, "seed=1,2", "run_dir=sweep")


@pytest.mark.parametrize("name", EXPORT)
def test_export_refuses(name: str, refused: Attempt) -> None:
    """python -m dream.export with one wrong thing."""  # noqa: D403
    arguments, reported = EXPORT[name]
    assert reported in refused("dream.export", *arguments)


@pytest.mark.parametrize("name", EVALUATE)
def test_evaluate_refuses(name: str, refused: Attempt) -> None:
    """python -m dream.evaluate with one wrong thing."""  # noqa: D403
    arguments, reported = EVALUATE[name]
    assert reported in refused("dream.evaluate", *arguments)


@pytest.mark.parametrize("name", RUMMY500)
def test_rummy500_refuses(name: str, refused: Attempt) -> None:
    """python -m envs.rummy500 with one wrong thing."""  # noqa: D403
    arguments, reported = RUMMY500[name]
    assert reported in refused("envs.rummy500.__main__", *arguments)


def _change_meta(checkpoint: pathlib.Path, change: Callable[[dict], None]) -> None:
    file = checkpoint / "meta" / "metadata"
    meta = json.loads(file.read_text())
    change(meta)
    file.write_text(json.dumps(signed(meta)))


def _truncate(checkpoint: pathlib.Path) -> None:
    largest = max(checkpoint.rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])


DAMAGE = {
    "truncated": (_truncate, "damaged"),
    "without meta": (lambda path: (path / "meta" / "metadata").unlink(), "complete checkpoint"),
    "of no format of ours": (lambda path: _change_meta(path, lambda m: m.pop("checksum")), "foreign checkpoint"),
    "of a later format": (lambda path: _change_meta(path, lambda m: m.update(format=99)), "format 99"),
    "of another game version": (
        lambda path: _change_meta(path, lambda m: m["game"].update(version="0")), "version 0, not on gin_rummy version",
    ),
    "of other rules": (
        lambda path: _change_meta(path, lambda m: m["game"]["rules"].update(gin_bonus=25)), "gin_bonus=25, not 50",
    ),
    "of another network": (
        lambda path: _change_meta(path, lambda m: m["config"]["network"].update(hidden=[16, 9])), "another network",
    ),
}  # fmt: skip
USES = {
    "run": ("dream.run", "resume=run", "iterations=6", "tracking.mode=disabled"),
    "evaluate": ("dream.evaluate", "checkpoint=run/checkpoints/4", "games=4"),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", DAMAGE)
def test_checkpoint_that_cannot_be_used(name: str, use: str, folder: pathlib.Path, refused: Attempt) -> None:
    """To go on from or to evaluate, a checkpoint that is damaged or of something else."""
    damage, reported = DAMAGE[name]
    damage(folder / "run" / "checkpoints" / "4")
    assert reported in refused(*USES[use])


@pytest.mark.parametrize(
    "arguments",
    [("algo.learning_rat=1",), ("-m", "seed=1,2", "iterations=0"), ("resume=run", "iterations=6")],
    ids=["key", "sweep", "damaged"],
)
def test_in_a_process_of_its_own(arguments: tuple[str, ...], folder: pathlib.Path) -> None:
    """The same from the shell: nothing else speaks, not even libraries as the process ends."""
    for file in (folder / "run" / "checkpoints" / "4" / "state" / "d").iterdir():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 3])
    before = snapshot(folder)
    done = command("dream.run", *arguments, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert snapshot(folder) == before
