"""The page's command: what it prints, and that its address is answered."""

from __future__ import annotations

import pathlib
import re
import signal
import urllib.request

import pytest
from command_support import start

pytest.importorskip("uvicorn", reason="the extra `play` is not installed")


def test_the_address_is_a_line_of_its_own(tmp_path: pathlib.Path) -> None:
    """With the token in it, before anything is asked for; the page is there, and an interrupt ends the command."""
    process = start("dream.play", "open_browser=false", cwd=tmp_path)
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", lines[-1]):
                break
        else:
            pytest.fail(f"no address in {lines}")
        with urllib.request.urlopen(lines[-1], timeout=60) as answer:
            assert answer.status == 200
            assert b"<html" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130, -signal.SIGINT)
    finally:
        process.kill()
        process.communicate()
