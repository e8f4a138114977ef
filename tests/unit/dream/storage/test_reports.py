"""Reports say whom they measured, and do not outlive the checkpoint that it was."""

from __future__ import annotations

import json
import pathlib
import re
import shutil

import pytest

import dream
import envs
from dream.commands.evaluate import play_match, prepare_match
from dream.commands.exploit import exploit, prepare_exploit
from dream.config.compose import compose_config
from dream.storage import reports
from dream.storage.policies import at_checkpoint, find
from envs import InputError

KUHN = ("env=kuhn_poker", "algo=cfr_plus", "iterations=6", "checkpoint.every=2", "checkpoint.keep=5",
        "eval.final_games=8", "eval.games=8", "tracking.mode=disabled")  # fmt: skip
EVALUATION, EXPLOITABILITY = "evaluations/random_average_{}_games8.json", "exploitability/exact_average_{}.json"


def _evaluate(*overrides: str) -> dict:
    prepared = prepare_match(compose_config("evaluate", [*overrides, "games=8"]))
    play_match(prepared)
    return json.loads(prepared.path.read_text())


def _measure(checkpoint: pathlib.Path) -> dict:
    prepared = prepare_exploit(compose_config("exploit", [f"checkpoint={checkpoint}"]))
    exploit(prepared)
    return json.loads(prepared.path.read_text())


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A run of a sweep with reports of its iterations 4 and 6."""
    folder = tmp_path_factory.mktemp("sweep") / "0"
    dream.train([*KUHN, f"run_dir={folder}"], quiet=True)
    for iteration in ("4", "6"):
        _evaluate(f"checkpoint={folder / 'checkpoints' / iteration}")
        _measure(folder / "checkpoints" / iteration)
    return folder


def test_a_report_says_whom_it_measured(run_dir: pathlib.Path) -> None:
    """Both players' checksums and iterations where they were trained, the game, and what it was made with."""
    earlier, newest = find(run_dir / "checkpoints" / "4"), find(run_dir)
    assert earlier.meta["checksum"] != newest.meta["checksum"]
    report = _evaluate(f"checkpoint={earlier.path}", f"opponent={run_dir}")
    of = {trained.meta["iteration"]: {"iteration": trained.meta["iteration"], "checksum": trained.meta["checksum"]}
          for trained in (earlier, newest)}  # fmt: skip
    assert report["measured"] == {"checkpoint": of[4], "opponent": of[6]}
    assert report["game"] == json.loads(json.dumps(newest.meta["game"]))
    assert report["versions"]["jax"]
    assert "git_commit" in report["versions"]
    assert _evaluate(f"checkpoint={run_dir}")["measured"] == {"checkpoint": of[6], "opponent": None}
    found = _measure(run_dir)
    assert found["measured"] == {"checkpoint": of[6]}
    assert "git_commit" in found["versions"]


def test_a_final_evaluation_says_whom_it_measured(
    run_dir: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The checksum tells it from one of the same iteration of other work; a file from before has none and passes."""
    folder = tmp_path / "run"
    shutil.copytree(run_dir, folder)
    newest, path = find(folder), folder / "evaluation.json"
    report = json.loads(path.read_text())
    stated = {"iteration": 6, "checksum": newest.meta["checksum"]}
    assert report["measured"] == {"checkpoint": stated}
    assert report["game"] == json.loads(json.dumps(newest.meta["game"]))
    assert dream.load_run(folder).evaluated == 6
    path.write_text(json.dumps(report | {"measured": {"checkpoint": stated | {"checksum": 1}}}))
    dream.load_run(folder)
    assert "evaluation.json is of another checkpoint of iteration 6 than" in capsys.readouterr().err
    del report["measured"]
    path.write_text(json.dumps(report))
    dream.load_run(folder)
    assert capsys.readouterr().err == ""


def test_a_sweep_is_not_read_off_a_report_of_dropped_work(run_dir: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The final evaluation is set aside with the rest, so that the same iteration reached again is not yet measured."""
    folder = tmp_path / "0"
    folder.mkdir()
    for name in ("config.yaml", "metrics.jsonl", "evaluation.json"):
        (folder / name).write_bytes((run_dir / name).read_bytes())
    (folder / "checkpoints" / "6").mkdir(parents=True)
    (before,) = dream.load_sweep(tmp_path)
    assert reports.set_aside_after(folder, 6) == []
    assert reports.set_aside_after(folder, 4) == [folder / "evaluation.stale.json"]
    assert reports.set_aside_after(folder, 0) == []
    (after,) = dream.load_sweep(tmp_path)
    assert (before["status"], after["status"]) == ("finished", "stopped")
    assert before["objective"] is not None
    assert after["objective"] is None


def test_resuming_sets_later_reports_aside(run_dir: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of checkpoints that are dropped; those of the checkpoint it goes on from stay."""
    old = {
        path: (run_dir / path).read_text() for path in ("evaluation.json", *map(_of_6, (EVALUATION, EXPLOITABILITY)))
    }
    kept = {path: (run_dir / path.format(4)).read_text() for path in (EVALUATION, EXPLOITABILITY)}
    (run_dir / "evaluations" / "notes.json").write_text("{damaged")
    capsys.readouterr()
    dream.train([f"resume={run_dir / 'checkpoints' / '4'}", "seed=0"])
    said = capsys.readouterr().out
    for path, text in old.items():
        stale = path.replace(".json", ".stale.json")
        assert (run_dir / stale).read_text() == text
        assert stale in said
    assert not (run_dir / _of_6(EVALUATION)).exists()
    assert not (run_dir / _of_6(EXPLOITABILITY)).exists()
    assert all((run_dir / path.format(4)).read_text() == text for path, text in kept.items())
    assert json.loads((run_dir / "evaluation.json").read_text())["iteration"] == 6
    assert (run_dir / "evaluations" / "notes.json").exists()


def _of_6(path: str) -> str:
    return path.format(6)


def test_trained_opponents_are_named_and_that_they_changed(
    run_dir: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they were when the run began; a resumed run meets them as they are, and says so."""
    rival, folder = tmp_path / "rival", tmp_path / "run"
    dream.train([*KUHN, "iterations=2", f"run_dir={rival}"], quiet=True)
    earlier = reports.measured(find(rival))
    opponents = f"eval.opponents=['{rival}',random]"
    dream.train([*KUHN, "iterations=2", opponents, f"run_dir={folder}"], quiet=True)
    assert json.loads((folder / "evaluation.json").read_text())["measured"]["opponents"] == {str(rival): earlier}
    dream.train([f"resume={folder}", "iterations=4"], quiet=True)
    assert "another player" not in capsys.readouterr().out
    dream.train([f"resume={rival}", "iterations=4"], quiet=True)
    dream.train([f"resume={folder}", "iterations=6"], quiet=True)
    now = reports.measured(find(rival))
    assert f"{rival} is another player than before: of iteration 4, checksum {now['checksum']}, not of iteration 2" in (
        capsys.readouterr().out
    )
    assert json.loads((folder / "evaluation.json").read_text())["measured"]["opponents"] == {str(rival): now}


def test_copies_of_checkpoints_have_reports_of_their_own(run_dir: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Seeds kept side by side are of one iteration, and their reports go to one folder."""
    for n, seed in enumerate(("seed0", "seed1")):
        copy = shutil.copytree(run_dir / "checkpoints" / "6", tmp_path / seed)
        _evaluate(f"checkpoint={copy}", f"seed={n}")
        _measure(copy)
    names = ("random_seed0_average_6_games8.json", "random_seed1_average_6_games8_seed1.json")  # deals of two seeds
    reports = [tmp_path / "evaluations" / name for name in names]
    assert [json.loads(path.read_text())["seed"] for path in reports] == [0, 1]
    assert sorted(path.name for path in (tmp_path / "exploitability").iterdir()) == [
        "exact_seed0_average_6.json",
        "exact_seed1_average_6.json",
    ]


def test_bounds_by_other_settings_have_reports_of_their_own(run_dir: pathlib.Path) -> None:
    """A quick look does not replace a bound of more games or iterations; few settings are spelt out."""
    given = {
        "local_average_6": ["method=local"],
        "local_average_6_games400": ["method=local", "local.games=400"],
        "local_average_6_horizon4_games400_seed7": [
            "method=local", "local.games=400", "local.horizon=4", "local.seed=7",
        ],
        "learned_average_6": ["method=learned"],
        "learned_average_6_seeds3-4": ["method=learned", "best_response.seeds=[3,4]"],
        "learned_average_6_iterations3_transition_steps3": ["method=learned", "best_response.iterations=3"],
    }  # fmt: skip
    for name, overrides in given.items():
        prepared = prepare_exploit(compose_config("exploit", [f"checkpoint={run_dir}", *overrides]))
        assert prepared.path.stem.removeprefix("exact_") == name
    many = [f"local.{name}=3" for name in ("horizon", "particles", "proposals", "seed")]
    prepared = prepare_exploit(compose_config("exploit", [f"checkpoint={run_dir}", "method=local", *many]))
    assert re.fullmatch(r"exact_local_average_6_settings-[0-9a-f]{8}\.json", prepared.path.name)


def test_a_run_is_found_inside_a_search_whatever_it_is_called(
    run_dir: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`s` and `search` begin the name of a search too, `64` ends it; a player's name is the player's."""
    monkeypatch.chdir(tmp_path)
    game = envs.make("kuhn_poker")
    shutil.copytree(run_dir, tmp_path / "random")
    assert at_checkpoint("random", game) == "random"
    for name in ("s", "search", "64"):
        path = find(shutil.copytree(run_dir, tmp_path / name)).path
        assert at_checkpoint(f"search:{name}:64", game) == f"search:{path}:64"
        assert at_checkpoint(f"search:{name}", game) == f"search:{path}"
        assert at_checkpoint(name, game) == str(path)


def test_reports_name_the_other_players_as_they_were(run_dir: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A run that went on, or an export that was written anew, is another player under the same name."""
    rival, file, folder = tmp_path / "rival", tmp_path / "rival.safetensors", tmp_path / "bound"
    bound = ["method=learned", f"best_response.players=['{rival}']"]
    prepared = []
    for iterations in (2, 4):
        given = [*KUHN, f"run_dir={rival}"] if iterations == 2 else [f"resume={rival}"]
        dream.train([*given, f"iterations={iterations}"], quiet=True)
        dream.export_policy(rival, file)
        prepared.append(
            [
                prepare_match(compose_config("evaluate", [f"checkpoint={run_dir}", f"opponent='{file}'"])),
                prepare_exploit(compose_config("exploit", [f"checkpoint={run_dir}", *bound])),
            ]
        )
        if iterations == 2:
            chosen = prepare_exploit(compose_config("exploit", [f"checkpoint={run_dir}", *bound, f"run_dir={folder}"]))
            known = {"checkpoint": chosen.measured, "players": {str(rival): reports.measured(find(rival))}}
            report = {"game": chosen.measurement.game.identity, "policy": "average", "measured": known}
            folder.mkdir()
            chosen.path.write_text(json.dumps(report | {"settings": chosen.measurement.settings}))
            prepare_exploit(compose_config("exploit", [f"checkpoint={run_dir}", *bound, f"run_dir={folder}"]))
    for earlier, later in zip(*prepared, strict=True):
        assert earlier.path != later.path
    with pytest.raises(InputError, match="by a response chosen among other players; choose another folder"):
        prepare_exploit(compose_config("exploit", [f"checkpoint={run_dir}", *bound, f"run_dir={folder}"]))


def test_a_setting_that_is_left_open_is_another_setting(run_dir: pathlib.Path) -> None:
    """The learner's own default of lambda, 0.95, stands there then, and not the 1 that is usual here."""
    paths = [
        prepare_exploit(compose_config("exploit", [f"checkpoint={run_dir}", "method=learned", *given])).path
        for given in ([], ["best_response.algo.gae_lambda=null"])
    ]
    assert len(set(paths)) == 2
