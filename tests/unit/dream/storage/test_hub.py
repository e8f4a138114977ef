"""Files on the hub: from the local cache, by owner, repository and file; one clear line where they cannot be had."""

from __future__ import annotations

import pathlib
import sys

import pytest

import dream
from dream.storage import hub
from envs import InputError

COMMIT = "0" * 40


@pytest.fixture
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A cache as the hub's library keeps it, with one file of one repository, and no network."""
    pytest.importorskip("huggingface_hub")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    repository = tmp_path / "hub" / "models--owner--cards"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "snapshots" / COMMIT / "runs").mkdir(parents=True)
    (repository / "snapshots" / COMMIT / "runs" / "final.pkl").write_bytes(b"\x80\x04cposix\nsystem\n.")
    return tmp_path


def test_a_file_of_the_cache(cache: pathlib.Path) -> None:
    """Found without a connection, folders of the repository included."""
    path = hub.download("hf:owner/cards/runs/final.pkl")
    assert path.read_bytes().startswith(b"\x80\x04")
    assert cache in path.parents


def test_load_policy_goes_through_the_cache(cache: pathlib.Path) -> None:
    """What it finds is read as any foreign pickle: this one is refused."""
    with pytest.raises(InputError, match=r"final\.pkl is refused: it asks for posix\.system"):
        dream.load_policy("hf:owner/cards/runs/final.pkl")


@pytest.mark.parametrize("file", ["runs/other.pkl", "final.pkl"])
def test_a_file_that_is_not_there(cache: pathlib.Path, file: str) -> None:
    """One line that names the reference."""
    with pytest.raises(InputError) as error:
        hub.download(f"hf:owner/cards/{file}")
    assert f"hf:owner/cards/{file} cannot be loaded from the hub" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("reference", ["hf:", "hf:owner", "hf:owner/cards", "hf:owner//final.pkl", "hf:a/b/../c.pkl"])
def test_a_reference_of_another_form(reference: str) -> None:
    """Told before anything is asked of the hub."""
    with pytest.raises(InputError, match="it must be hf:<owner>/<repo>/<file>"):
        hub.download(reference)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"needs huggingface_hub.*dream-rummy\[hub\]"):
        hub.download("hf:owner/cards/final.pkl")
