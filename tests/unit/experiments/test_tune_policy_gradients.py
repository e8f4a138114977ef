"""Trials of settings on a small game: what they are given, what is stored of them, and what is refused."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from types import SimpleNamespace

import jax
import pytest
import tune_policy_gradients
from script_support import called


@pytest.fixture
def tune(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Calls the script of trials, whose trials are not run, on trials.yaml."""
    done = {"last": 0.5, "mean_of_last_3": 0.5, "seconds": 1.0}
    group = SimpleNamespace(run=lambda trial, decisions, seed: {"trial": trial, **done})
    monkeypatch.setattr(tune_policy_gradients, "Group", lambda env, node: group)

    def call(*arguments: str) -> int:
        files = ["--trials", str(tmp_path / "trials.yaml"), "--out", str(tmp_path / "results" / "out.json")]
        return called(tune_policy_gradients, "kuhn_poker", *files, *arguments)

    return call


_GROUPS = "{a: {algorithm: ppo, settings: [], trials: [{learning_rate: 1}, {learning_rate: 2}]}, b: {algorithm: mmd}}"


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (_GROUPS, ["--groups", "a", "h"], "--groups h is not in {}; it must be among a, b"),
        (_GROUPS, [], "group b of {} lacks settings; it must have algorithm, settings, trials"),
        (None, [], "{} cannot be read (No such file or directory); --trials must be a file of groups"),
        ("", [], "{} holds no groups; it must name some, each with algorithm, settings, trials"),
        ("a: [", [], "{} is damaged (while parsing a flow node); it must be YAML"),
        ("a: 5", [], "group a of {} lacks algorithm; it must have algorithm, settings, trials"),
        (
            "a: {algorithm: ppo, settings: ['algo.entropy_decay.end=0.1'], trials: []}",
            [],
            "group a of {} sets algo.entropy_decay.end=0.1; its trials must have learning_rate_end or entropy_end "
            "instead",
        ),
        (
            "a: {algorithm: ppo, settings: [], trials: [{learning_rate: 1}, {learnign_rate: 1}]}",
            [],
            "unknown setting of group a, 'learnign_rate'; did you mean 'learning_rate'? known: clip_epsilon, "
            "correction_clip, entropy_end, entropy_weight, epochs, gae_lambda, learning_rate, learning_rate_end, "
            "max_grad_norm, value_weight",
        ),
        (
            "a: {algorithm: ppo, settings: [], trials: [{entropy_weight: high}]}",
            [],
            "group a: a trial has entropy_weight='high'; it must be a number",
        ),
    ],
)
def test_groups_that_are_not_there_are_named(
    tune: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
    content: str | None, arguments: list[str], message: str,
) -> None:  # fmt: skip
    """One line, before anything is run."""
    trials = tmp_path / "trials.yaml"
    if content is not None:
        trials.write_text(content)
    assert tune(*arguments) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"error: {message.format(trials)}\n")


_SMALL = ["algo.episodes_per_iteration=64", "algo.batch_size=64", "network.hidden=[8]"]


def test_a_trial_falls_by_its_own_factors_alone() -> None:
    """Not by those of conf/tuned too, 0.999 in the second iteration: the learner has the trial's rate at its share."""
    group = tune_policy_gradients.Group("kuhn_poker", {"algorithm": "mmd", "settings": _SMALL})
    trial, state = (
        {"learning_rate": 1e-3, "entropy_weight": 0.2, "entropy_end": 0.5},
        group.first.init(jax.random.key(0)),
    )
    for share, rate, weight in ((0.0, 1e-3, 0.2), (0.5, 5e-4, 0.2 / 2.5**0.5)):
        state, metrics, _ = group.step(state, group.settings(trial, share))
        assert float(metrics["learning_rate"]) == pytest.approx(rate, rel=1e-5)
        assert float(metrics["entropy_weight"]) == pytest.approx(weight, rel=1e-5)


def test_the_exploitability_of_a_trial_is_in_the_unit_of_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reward of 1 is five points here: half of a gap of 0.4 is one point."""
    monkeypatch.setattr(tune_policy_gradients, "nash_conv", lambda tree, table: 0.4)
    monkeypatch.setattr(tune_policy_gradients, "tabulate", lambda tree, policy: policy)
    policies = SimpleNamespace(policies=lambda state: {"current": None})
    group = SimpleNamespace(game=SimpleNamespace(reward_scale=5.0), tree=None, first=policies)
    assert tune_policy_gradients.Group.exploitability(group, None) == pytest.approx(1.0)


def test_trials_are_stored_whole_or_not_at_all(
    tune: Callable[..., int],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a folder that is made, beside other groups; a disk that takes a part of it leaves what was there."""
    trials, out = tmp_path / "trials.yaml", tmp_path / "results" / "out.json"
    trials.write_text(_GROUPS)
    assert tune("--groups", "a") == 0
    first = json.loads(out.read_text())["kuhn_poker"]["a"]
    assert [one["trial"] for one in first["trials"]] == [{"learning_rate": 1}, {"learning_rate": 2}]
    trials.write_text("c: {algorithm: ppo, settings: [], trials: [{learning_rate: 3}]}")
    assert tune() == 0
    stored = json.loads(out.read_text())["kuhn_poker"]
    assert (list(stored), stored["a"]) == (["a", "c"], first)
    before = out.read_bytes()

    def half(path: pathlib.Path, content: bytes | str) -> None:
        with path.open("wb") as file:
            file.write(content[:9].encode() if isinstance(content, str) else content[:9])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "write_bytes", half)
        patch.setattr(pathlib.Path, "write_text", half)
        with pytest.raises(OSError, match="No space left"):
            tune()
    assert out.read_bytes() == before
    out.write_text("{")
    capsys.readouterr()
    assert tune() == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.startswith(f"error: {out} is damaged")) == ("", True)


def test_a_group_that_is_cut_off_leaves_the_stored_one(
    tune: Callable[..., int], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not stored yet is kept as far as it came."""
    trials, out = tmp_path / "trials.yaml", tmp_path / "results" / "out.json"
    trials.write_text(_GROUPS)
    assert tune("--groups", "a") == 0
    before = json.loads(out.read_text())["kuhn_poker"]["a"]

    def interrupted(trial: dict[str, int], decisions: float, seed: int) -> dict[str, float]:
        if trial["learning_rate"] != 1:
            raise KeyboardInterrupt
        return {"last": 0.25, "mean_of_last_3": 0.25, "seconds": 1.0}

    monkeypatch.setattr(tune_policy_gradients, "Group", lambda env, node: SimpleNamespace(run=interrupted))
    with pytest.raises(KeyboardInterrupt):
        tune("--groups", "a")
    assert json.loads(out.read_text())["kuhn_poker"] == {"a": before}
    trials.write_text("{c: {algorithm: ppo, settings: [], trials: [{learning_rate: 1}, {learning_rate: 2}]}}")
    with pytest.raises(KeyboardInterrupt):
        tune()
    assert len(json.loads(out.read_text())["kuhn_poker"]["c"]["trials"]) == 1


@pytest.mark.parametrize("number", ["0", "-1", "nan"])
def test_no_decisions_are_too_few(tune: Callable[..., int], capsys: pytest.CaptureFixture[str], number: str) -> None:
    """One line, before anything is run."""
    assert tune("--decisions", number) == 2
    assert capsys.readouterr().err == (
        f"error: argument --decisions: '{number}' is not valid; it must be a number above 0\n"
    )


def test_a_group_is_not_replaced_by_fewer_decisions(
    tune: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, before anything is run; as many replace it, and other groups may have fewer."""
    trials, out = tmp_path / "trials.yaml", tmp_path / "results" / "out.json"
    trials.write_text("{a: &a {algorithm: ppo, settings: [], trials: [{learning_rate: 1}]}, b: *a}")
    assert tune("--groups", "a") == 0
    before = out.read_bytes()
    capsys.readouterr()
    assert tune("--decisions", "5e4") == 2
    shown = capsys.readouterr()
    assert (shown.out, out.read_bytes()) == ("", before)
    assert shown.err == (
        f"error: {out} holds 2,500,000 decisions of group a, here are 50,000; make it as many, or give another --out\n"
    )
    assert (tune("--groups", "b", "--decisions", "5e4"), tune("--groups", "a")) == (0, 0)
