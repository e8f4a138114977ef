"""The page in a real browser: a server for each file of tests, a fresh browser for each test."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from page_moves import SLOWEST
from page_support import TOKEN, served

from dream.page.hub import Hub
from dream.page.opened import Keeper

_CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Hub, pathlib.Path]]:
    """A server for the whole file; its hub, and the file that rounds are kept in."""
    kept = tmp_path_factory.mktemp("records") / "games.jsonl"
    with served(keeper=Keeper(kept)) as (hub, port):
        yield f"http://127.0.0.1:{port}/{TOKEN}/", hub, kept


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    if _CHROMIUM is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, address: tuple[str, Hub, pathlib.Path]) -> Iterator[Any]:
    """A fresh browser with the page open; an error on the page fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    opened = context.new_page()
    opened.set_default_timeout(SLOWEST)
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    opened.goto(address[0])
    opened.wait_for_selector("#start")
    yield opened
    context.close()
    assert not faults
