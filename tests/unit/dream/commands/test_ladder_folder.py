"""What a ladder's folder keeps, so that it alone is enough to go on."""

from __future__ import annotations

import pathlib
import shutil

import pytest

from dream.commands import ladder
from dream.commands.ladder_folder import SETTINGS, completed
from dream.config.compose import compose_config
from dream.storage import files
from dream.storage.policies import find


def _prepared(*overrides: str) -> ladder.Ladder:
    return ladder.prepare_ladder(compose_config("ladder", completed(list(overrides))))


def test_players_by_relative_paths_are_found_from_elsewhere(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another working folder they were unknown players; their names, by which matches are kept, stay."""
    place = find("gin_rummy/strong").path
    for suffix in (".safetensors", ".json"):
        shutil.copy(place.with_suffix(suffix), tmp_path / f"mine{suffix}")
    monkeypatch.chdir(tmp_path)
    first = _prepared("players=[random,mine.safetensors]", "games=8", "run_dir=ladder")
    first.run_dir.mkdir()
    files.write_json(first.run_dir / SETTINGS, first.identity | {"players": first.sources} | ladder._asked(first))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    second = _prepared("run_dir=../ladder")
    assert (list(second.players), second.sources) == (["random", "mine.safetensors"], first.sources)
    assert second.places["mine.safetensors"] == str(tmp_path / "mine.safetensors")
    assert ladder._asked(second) == ladder._asked(first)
    searching = _prepared("run_dir=../ladder", "players=['search:../mine.safetensors:4',random]")
    kept = ladder._asked(searching)["paths"]
    assert kept == {
        "mine.safetensors": str(tmp_path / "mine.safetensors"),
        "search:../mine.safetensors:4": f"search:{tmp_path / 'elsewhere' / '..' / 'mine.safetensors'}:4",
    }
