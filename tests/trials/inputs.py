"""Wrong input to every command and script: one line and exit code 2, and nothing on disk has changed.

Commands run inside the process, with what does the work replaced; the end-to-end tests' own cases are among them.
Scripts run in processes of their own; argparse answers some of them, with its usage before the line.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import pathlib
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from command_support import environment, snapshot, succeed

from envs import InputError
from trials.hold import BYTES, ROOT

MOST_BYTES = 4 * BYTES
"""For all commands together: they run in one process, whose compiled programs and thread stacks stay reserved."""
_NUMBERS = ("abc", "[1]", "{a: 1}", "nan", "-1")
_TRAINED = ("checkpoint=/dev/null", "checkpoint=file", "checkpoint=run/config.yaml", "checkpoint=foreign")
_FORMS = ("nothing=1", "+no.such=1", "seed=${nowhere}", "=", "[", "a=b=c", "seed=[1", "checkpoint={")
FIELDS = {
    "dream.run": (
        "iterations", "seed", "checkpoint.every", "checkpoint.keep", "eval.every", "eval.games", "eval.final_games",
        "budget.nodes", "budget.seconds", "algo.batch_size", "algo.epochs", "algo.learning_rate", "algo.tau",
        "algo.discount", "network.hidden", "tracking.mode",
    ),
    "dream.evaluate": ("games", "seed", "target"),
    "dream.exploit": ("best_response.iterations", "best_response.games", "local.horizon", "local.games", "local.seed"),
    "dream.ladder": ("games", "block", "seed", "plot"),
    "dream.play": ("port", "open_browser", "anyone"),
}  # fmt: skip
OTHERS = {
    "dream.play": (
        ["host=0.0.0.0"], ["host=example.invalid"], ["players=nowhere"], ["players=[nowhere]"], ["players=[foreign]"],
        ["players=[calls.pkl]"], ["players=[file]"], ["players=[arrays.pkl]"], ["players=[1]"],
        ["records=no/file.jsonl"], ["records=foreign"],
    ),
    "dream.evaluate": (
        ["checkpoint=run", "target=100"], ["checkpoint=run", "target=0"], ["checkpoint=run", "scoring=dream"],
        ["checkpoint=run", "target=100", "scoring=nope"], ["checkpoint=run", "histories=no/file"],
        ["checkpoint=run", "histories=foreign"],
    ),
    "dream.exploit": (
        ["checkpoint=random", "env=dark_hex"], ["checkpoint=random"], ["checkpoint=run", "env=kuhn_poker"],
        ["checkpoint=run", "method=exakt"], ["checkpoint=run", "policy=best"],
        ["checkpoint=run", "method=learned", "best_response.players=[randm]"],
        ["checkpoint=run", "method=learned", "best_response.start=nowhere"],
        ["checkpoint=run", "method=local", "local.player=nope"],
    ),
    "dream.ladder": (
        ["players=[run,random]", "env=dark_hex"], ["players=[]"], ["players=[randm,random]"], ["players=[run,run]"],
        ["env=nope"],
    ),
    "dream.run": (
        ["env.rules.preset=nope"], ["env.rules.preset=42"], ["env.rules.preset=null"], ["env.rules.preset=[dream]"],
        ["env=mini_gin_rummy", "env.rules.preset=dream"], ["env=rummy500", "env.rules.preset=dream"],
        ["env=dark_hex", "env.rules.preset=3"], ["env=dark_hex", "env.rules.board_size=4"],
        ["env=phantom_ttt", "env.rules.version=loud"], ["env=phantom_ttt", "env.rules.opening=99"], ["env=dark_hexx"],
        ["algo=mmd", "algo.magnet=moving"], ["algo=mmd", "algo.magnet_tau=0"], ["algo=mmd", "algo.magnet_tau=nan"],
        ["algo=mmd", "algo.kl_weight=-1"], ["algo=mmd", "algo.kl_weight=inf"], ["algo=mmd", "algo.opponents=[]"],
        ["algo=mmd", "algo.opponents=[randm]"], ["algo=mmd", "algo.opponents=[random]", "algo.shares=[0.5,0.5]"],
        ["algo=mmd", "algo.opponents=[random]", "algo.advantage=expected_sarsa"], ["algo=mmd", "algo.rollout_length=0"],
        ["algo=mmd", "algo.objective=mirror_step"], ["algo=ppo", "algo.exploration=0.1"],
        ["algo=ppo", "algo.optimism=1"],
        ["algo=ppo", "algo.average_tau=2"],
        ["algo=mmd", "algo.entropy_decay.transition_steps=0"], ["algo=mmdd"], ["algo=ppo", "algo.kl_weight=0.1"],
        ["algo=tabular_mmd"], ["algo=tabular_mmd", "env=rummy500"], ["algo.correction.trace=1"],
        ["algo=dream", "algo.correction.trace=2"], ["algo=dream", "algo.correction.clip=-1"],
        ["algo=dream", "algo.correction.nope=1"], ["algo=escher", "algo.correction=3"],
    ),
}  # fmt: skip
"""Command -> arguments that are wrong together, or are wrong for the run on Kuhn poker."""
SCRIPTS = {
    "experiments/collect_runs.py": (["out.json", "nowhere"], ["--nothing"]),
    "experiments/compare_learners.py": (["--games", "x"], []),
    "experiments/dueling_dream_exploitability.py": (["nowhere"], []),
    "experiments/evaluate_vs_random.py": (["nowhere"], ["run", "--games", "x"]),
    "experiments/mini_gin_play.py": (["nowhere"], []),
    "experiments/mirror_descent_noise.py": (["--seeds", "0"], ["--iterations", "x"]),
    "experiments/compare_openspiel_gin.py": (["--hands", "x"],),
    "experiments/rummy500_players.py": (["nowhere"], ["--deals", "x"]),
    "experiments/gin_losses.py": (["--player", "nowhere"], ["--opponents", "nowhere"]),
    "experiments/gin_search.py": (["--policy", "nowhere"], ["--preset", "nope"], ["--only", "nope"]),
    "experiments/gin_relations.py": (["--only", "nope"],),
    "experiments/trials.py": (["--count", "-1"], ["--kinds", "nope"]),
    "experiments/reproduce/run.py": (["no_such_row"],),
    "experiments/reproduce/plot.py": (["--results", "nowhere"],),
    "experiments/benchmarks/melds.py": (["--batch", "0"],),
}


def _their_cases() -> Any:
    path = ROOT / "tests" / "e2e" / "test_wrong_input.py"
    spec = importlib.util.spec_from_file_location("wrong_input_cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _all() -> Iterator[tuple[str, list[str]]]:
    """Yields command or script, and its arguments."""
    known = _their_cases()
    for command, cases in (("run", known.RUN), ("evaluate", known.EVALUATE), ("export", known.EXPORT)):
        for arguments, _ in cases.values():
            yield f"dream.{command}", arguments
    for command, fields in FIELDS.items():
        base = ["checkpoint=run"] if command in ("dream.evaluate", "dream.exploit") else []
        for field in fields:
            for value in _NUMBERS:
                if not (field == "network.hidden" and value == "[1]"):
                    yield command, [*base, f"{field}={value}"]
    for command in ("dream.evaluate", "dream.exploit", "dream.export"):
        for argument in _TRAINED:
            yield command, [argument]
    for command, others in OTHERS.items():
        for arguments in others:
            yield command, arguments
    for command in ("dream.run", "dream.evaluate", "dream.exploit", "dream.export", "dream.ladder", "dream.play"):
        for argument in _FORMS:
            yield command, [argument]
    for script, cases in SCRIPTS.items():
        for arguments in cases:
            yield script, arguments


def cases(count: int, seed: int, folder: pathlib.Path) -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    """Yields name, file name and what makes the file: the input in JSON; `count` of them, spread over all."""
    every = list(_all())
    chosen = every if not count else [every[n] for n in np.linspace(0, len(every) - 1, count).astype(int)]
    for command, arguments in chosen:
        yield (
            f"{command} {' '.join(arguments)}",
            "input.json",
            lambda c=command, a=arguments: json.dumps([c, a]).encode(),
        )


def warm_up(folder: pathlib.Path) -> None:
    """Makes a run, and files that are none; and lets no command go to work."""
    small = ("env=kuhn_poker", "preset=tiny", "iterations=4", "checkpoint.every=2", "tracking.mode=disabled")
    succeed("dream.run", *small, "run_dir=whole", cwd=folder)
    place = folder / "place"
    (folder / "home").mkdir()
    for target in (folder / "home",):
        shutil.copytree(folder / "whole", target / "run", symlinks=True)
        (target / "file").write_text("text")
        (target / "calls.pkl").write_bytes(b"\x80\x04cposix\nsystem\n\x8c\x0etouch executed\x85R.")
        (target / "arrays.pkl").write_bytes(pickle.dumps({"params": {"first": {"b": np.zeros(3, np.float32)}}}))
        (target / "foreign").mkdir()
        (target / "foreign" / "weights.bin").write_bytes(b"\x00" * 99)
    assert place.is_dir()
    from dream.commands import main

    original = main._run_job

    def work(prepared: Any) -> None:
        raise AssertionError("the command went to work")

    main._run_job = lambda job, prepare: original(work, prepare)
    with contextlib.suppress(InputError):
        _command("dream.evaluate", ["checkpoint=run", "games=7"], folder / "home")
    with contextlib.suppress(InputError):
        _command("dream.play", ["players=[nowhere]"], folder / "home")


def read(path: pathlib.Path) -> None:
    """Gives a command or script its input; raises InputError with its line where it refuses as it should."""
    command, arguments = json.loads(path.read_text())
    home = path.parent.parent / "home"
    (_script if command.endswith(".py") else _command)(command, arguments, home)


def _command(command: str, arguments: list[str], home: pathlib.Path) -> None:
    before, out, err, code = snapshot(home), io.StringIO(), io.StringIO(), None
    argv, sys.argv = sys.argv, [command, *arguments]
    try:
        with contextlib.chdir(home), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            importlib.import_module(command).main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = argv
    text = err.getvalue()
    assert code == 2, f"exit code {code}: {text[-300:]}"
    assert not out.getvalue(), "prints"
    assert snapshot(home) == before, "changes files"
    assert text.startswith("error: "), text[:300]
    assert text.endswith("\n"), text[:300]
    raise InputError(text[:-1])


def _script(script: str, arguments: list[str], home: pathlib.Path) -> None:
    before = snapshot(home)
    done = subprocess.run(
        [sys.executable, str(ROOT / script), *arguments], cwd=home, env=environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2, f"exit code {done.returncode}: {done.stderr[-300:]}"
    assert "Traceback" not in done.stderr, done.stderr[-300:]
    assert snapshot(home) == before, "changes files"
    raise InputError(done.stderr.strip().splitlines()[-1])


def must_be_refused(name: str) -> bool:
    """All are wrong."""
    return True


def may(name: str) -> tuple[str, ...]:
    """Scripts are started in processes of their own."""
    return ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec") if ".py " in f"{name} " else ()
