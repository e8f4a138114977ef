"""Is W&B, whatever happens to it, one line that ends nothing?"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from dream.config.compose import compose_config
from dream.config.schema import TrackingConfig
from dream.config.settings import read
from dream.training import tracking
from dream.training.start import prepare_run
from dream.training.tracking import Tracker
from envs import InputError


class Core:
    """A stand-in for the wandb module: what it is asked for, and what it then raises."""

    def __init__(self, *fails: str) -> None:
        """Takes the calls that fail: "online", "offline", "log" or "finish"."""
        self.fails, self.asked, self.settings = fails, [], []

    def init(self, **options: Any) -> Core:
        """Starts a run."""
        self.settings.append(options)
        self._ask(options["mode"])
        return self

    url = "https://example.org/run"

    def define_metric(self, *names: str, **options: Any) -> None:
        """Takes an axis."""

    def log(self, record: dict[str, Any]) -> None:
        """Takes a record."""
        self._ask("log")

    def finish(self, exit_code: int = 0) -> None:
        """Ends the run."""
        self._ask("finish" if exit_code == 0 else "finish as failed")

    def teardown(self) -> None:
        """Ends the process behind it, as badly as wandb does where that was killed."""
        self.asked.append("teardown")
        raise SystemExit(247)

    def Settings(self, **options: Any) -> None:  # noqa: N802
        """Settings of a run."""

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if what in self.fails:
            raise ConnectionResetError(f"no {what} today\nand a second line")


@pytest.fixture
def tracker(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Callable[[Core, str], Tracker]:
    """Makes a tracker on a stand-in."""

    def make(core: Core, mode: str) -> Tracker:
        module = types.ModuleType("wandb")
        for name in ("init", "teardown", "Settings"):
            setattr(module, name, getattr(core, name))
        monkeypatch.setitem(sys.modules, "wandb", module)
        config = TrackingConfig(mode=mode)
        return Tracker(config, tmp_path, group="group", name="seed=1", run_id="one_id", settings={})

    return make


def test_the_run_is_named_and_can_be_gone_on_with(tracker: Callable[..., Tracker]) -> None:
    """Each part of a resumed run has the same id and may resume, so that they are sent as one."""
    core = Core()
    for _ in range(2):
        tracker(core, "offline").close()
    for options in core.settings:
        assert (options["name"], options["id"], options["resume"], options["group"]) == (
            "seed=1", "one_id", "allow", "group",
        )  # fmt: skip


def test_no_server_means_offline(tracker: Callable[..., Tracker], capfd: pytest.CaptureFixture[str]) -> None:
    """And one line; the record is kept for `wandb sync`."""
    core = Core("online")
    view = tracker(core, "online")
    view.log({"loss": 1.0})
    view.close()
    assert core.asked == ["online", "teardown", "offline", "log", "finish"]
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert "no online today); the run is kept offline" in said


def test_a_failed_run_is_ended_as_one_and_takes_in_no_other(tracker: Callable[..., Tracker]) -> None:
    """The next job of a sweep has a W&B run of its own, whatever is still open in the process."""
    core = Core()
    tracker(core, "offline").close(failed=True)
    assert core.asked == ["offline", "finish as failed"]
    assert core.settings[0]["reinit"] == "create_new"


@pytest.mark.parametrize("place", ["offline", "log", "finish"])
def test_a_lost_core_is_one_line(
    place: str, tracker: Callable[..., Tracker], capfd: pytest.CaptureFixture[str]
) -> None:
    """Wherever it is lost; it is not asked again, and given up so that nothing speaks as the process ends."""
    core = Core(place)
    view = tracker(core, "offline")
    for _ in range(3):
        view.log({"loss": 1.0})
    view.close()
    said = capfd.readouterr().err
    assert said == f"W&B is lost (ConnectionResetError: no {place} today); the run goes on without it\n"
    assert core.asked.count(place) == 1
    assert core.asked[-1] == "teardown"


def test_a_core_that_does_not_finish_is_left(
    tracker: Callable[..., Tracker], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is gone would be waited for without end."""
    core = Core()
    over = threading.Event()
    core.finish = lambda: over.wait(60)
    monkeypatch.setattr(tracking, "_FINISH_SECONDS", 0.05)
    tracker(core, "offline").close()
    over.set()
    assert "is left; `wandb sync` sends the rest" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("variable", "overrides", "mode"),
    [
        (None, [], "offline"),
        ("online", [], "online"),
        ("disabled", [], "disabled"),
        ("dryrun", [], "offline"),
        ("run", [], "online"),
        ("disabled", ["tracking.mode=offline"], "offline"),
        ("shared", ["tracking.mode=disabled"], "disabled"),
    ],
)
def test_a_mode_that_is_not_given_is_of_the_environment(
    variable: str | None, overrides: list[str], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W&B's own variable, with its older names; what is given, or stored with a run, comes first."""
    _set(monkeypatch, variable)
    node = compose_config("config", overrides).node.tracking
    assert read(TrackingConfig, node, "tracking").mode == mode


@pytest.mark.parametrize("variable", ["shared", "ofline", ""])
def test_a_mode_of_the_environment_that_no_run_has(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, before a run begins."""
    _set(monkeypatch, variable)
    message = f"tracking: WANDB_MODE={variable} is not valid; it must be online, offline or disabled, or not set"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        prepare_run(compose_config("config", ["env=kuhn_poker", "algo=cfr"]))


def _set(monkeypatch: pytest.MonkeyPatch, variable: str | None) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    if variable is not None:
        monkeypatch.setenv("WANDB_MODE", variable)


SCRIPT = """
import os, signal, subprocess, sys, time
from pathlib import Path
from dream.config.schema import TrackingConfig
from dream.training.tracking import Tracker
view = Tracker(TrackingConfig(mode=sys.argv[1]), Path(sys.argv[2]), group="g", name="n", run_id="abc", settings={})
view.log({"iteration": 1})
children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
if sys.argv[1] == "offline":
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    time.sleep(0.3)
for iteration in range(2, 9):
    view.log({"iteration": iteration})
    time.sleep(0.05)
view.close()
print("over", len(children))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux's /proc")
@pytest.mark.parametrize(("mode", "said"), [("offline", "W&B is lost"), ("online", "W&B cannot be reached")])
def test_the_real_core(mode: str, said: str, repo: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Killed, or without a key: one line, and none as the interpreter ends."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, mode, str(tmp_path)],
        cwd=repo, env={**kept, "HOME": str(tmp_path), "NETRC": str(tmp_path / "none")},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("over")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1, done.stderr
