"""The page's command: what it prints, and that its address is answered."""

from __future__ import annotations

import pathlib
import re
import signal
import socket
import subprocess
import urllib.request

import pytest
from command_support import start

pytest.importorskip("uvicorn", reason="the extra `play` is not installed")


def _address(process: subprocess.Popen[str], host: str) -> str:
    """Returns the address that the command prints, which must be of this host."""
    assert process.stdout is not None
    found = next((line.rstrip("\n") for line in process.stdout if line.startswith("http")), "")
    assert re.fullmatch(rf"http://{re.escape(host)}:\d+/[\w-]{{32}}/", found)
    return found


def test_the_address_is_a_line_of_its_own(tmp_path: pathlib.Path) -> None:
    """With the token in it, before anything is asked for; the page is there, and an interrupt ends the command."""
    process = start("dream.play", "open_browser=false", cwd=tmp_path)
    try:
        with urllib.request.urlopen(_address(process, "127.0.0.1"), timeout=60) as answer:
            assert answer.status == 200
            assert b"<html" in answer.read()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert errors == ""
        assert process.returncode in (0, 130)  # 0 where interrupts are ignored, as in a shell's job in the background
    finally:
        process.kill()
        process.communicate()


def test_opened_to_other_machines_the_address_has_this_ones_name(tmp_path: pathlib.Path) -> None:
    """It is answered by that name, and by an address in its place."""
    process = start("dream.play", "open_browser=false", "host=0.0.0.0", "anyone=true", cwd=tmp_path)
    try:
        name = socket.gethostname()
        printed = _address(process, name)
        by_address = printed.replace(name, "127.0.0.1", 1)
        for asked in (printed, by_address):
            request = urllib.request.Request(by_address, headers={"Host": asked.split("/")[2]})
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert b"<html" in answer.read()
    finally:
        process.kill()
        process.communicate()
