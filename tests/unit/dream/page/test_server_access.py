"""The server on the wire: who gets in, and by which address."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from page_support import PATIENCE, TOKEN, open_socket, served
from websockets.exceptions import InvalidStatus

from dream.page.hub import Hub
from dream.page.server import FILES, Site, address, names


@pytest.fixture(scope="module")
def page() -> Iterator[tuple[Hub, int]]:
    """A server that all tests here share."""
    with served() as (hub, port):
        yield hub, port


@pytest.fixture(scope="module")
def everywhere() -> Iterator[int]:
    """The port of a server at all addresses of this machine."""
    with served(host="0.0.0.0") as (_, port):
        yield port


def _get(port: int, path: str, host: str | None = None) -> tuple[int, dict[str, str], bytes]:
    """Returns status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), answer.read()
    finally:
        connection.close()


def test_the_page_and_its_files_are_served(page: tuple[Hub, int]) -> None:
    """With headers that allow nothing from elsewhere, and no address of another place in them."""
    for path in sorted(FILES.iterdir()):
        status, headers, body = _get(page[1], f"/{TOKEN}/{path.name}")
        assert (status, body) == (200, path.read_bytes())
        assert "default-src 'none'" in {name.lower(): x for name, x in headers.items()}["content-security-policy"]
        outside = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http" + "://" not in outside
        assert "https" + "://" not in outside
    assert _get(page[1], f"/{TOKEN}/")[2] == (FILES / "index.html").read_bytes()


def test_every_sentence_has_one_name() -> None:
    """Each name in strings.js is given once, and every name that a file of the page uses is there."""
    text = (FILES / "strings.js").read_text()
    table = text[text.index("export const T = {") :].split("\n};")[0]
    given = re.findall(r"^  (\w+):", table, re.MULTILINE)
    assert len(given) == len(set(given))
    used = {name for path in FILES.glob("*.js") for name in re.findall(r"\bT\.(\w+)", path.read_text())}
    assert used <= set(given)


@pytest.mark.parametrize(
    "path",
    ["/", "/wrong/", "/wrong/main.js", f"/{TOKEN}/../../pyproject.toml", f"/{TOKEN}/%2e%2e/server.py",
     f"/{TOKEN}/..%2fserver.py", f"/{TOKEN}//etc/passwd", f"/{TOKEN}/server.py", f"/{TOKEN}/nothing.js"],
)  # fmt: skip
def test_what_is_not_the_page_is_not_found(page: tuple[Hub, int], path: str) -> None:
    """No token, a wrong one, or a path."""
    assert _get(page[1], path)[0] == 404


def test_another_host_is_refused(page: tuple[Hub, int]) -> None:
    """A name that was made to point to this machine does not open the page, nor its socket."""
    assert _get(page[1], f"/{TOKEN}/", "evil.example")[0] == 404
    with pytest.raises(InvalidStatus, match="403"), open_socket(page[1], host=f"evil.example:{page[1]}"):
        pass


_MACHINE = socket.gethostname()


@pytest.mark.parametrize(
    ("host", "is_let_in"),
    [("192.168.1.7:{port}", True), ("[fd00::5]:{port}", True), ("[FD00::5]:{port}", True), ("127.0.0.1:{port}", True),
     ("localhost:{port}", True), (_MACHINE + ":{port}", True), ("evil.example:{port}", False), ("192.168.1.7", False),
     ("192.168.1.7:1", False), (_MACHINE, False), ("fd00::5:{port}", False), ("[192.168.1.7]:{port}", False),
     ("192.168.1.7.evil.example:{port}", False), ("192.168.1:{port}", False), ("[fd00::5:{port}", False)],
)  # fmt: skip
def test_at_all_addresses_any_of_them_is_its_own(everywhere: int, host: str, is_let_in: bool) -> None:
    """And the machine's name; no other name, which may have been made to point here, and no other port."""
    host = host.format(port=everywhere)
    assert _get(everywhere, f"/{TOKEN}/", host)[0] == (200 if is_let_in else 404)
    assert _get(everywhere, "/wrong/", host)[0] == 404


def test_at_all_addresses_the_socket_opens_by_them(everywhere: int) -> None:
    """And not by another name, nor for a page from another address."""
    for host in (f"192.168.1.7:{everywhere}", f"[fd00::5]:{everywhere}", f"{_MACHINE}:{everywhere}"):
        with open_socket(everywhere, host=host) as opened:
            opened.send(json.dumps({"type": "hello"}))
            assert json.loads(opened.recv(PATIENCE))["type"] == "welcome"
        with pytest.raises(InvalidStatus), open_socket(everywhere, origin="http://192.168.1.8", host=host):
            pass
    with pytest.raises(InvalidStatus), open_socket(everywhere, host=f"evil.example:{everywhere}"):
        pass


def test_hosts_are_named_as_browsers_do() -> None:
    """IPv6 in brackets, letters small, and port 80 left out or not."""
    assert names("fd00::5", 8123) == ["[fd00::5]:8123"]
    assert names("Table.example", 80) == ["table.example:80", "table.example"]
    assert names("127.0.0.1", 1) == ["127.0.0.1:1", "[::1]:1", "localhost:1"]
    assert address("fd00::5", 8123, "token") == "http://[fd00::5]:8123/token/"
    assert address("127.0.0.1", 8123, "token") == "http://127.0.0.1:8123/token/"
    for host in ("0.0.0.0", "::"):
        assert address(host, 8123, "token") == f"http://{_MACHINE}:8123/token/"


@pytest.mark.parametrize(("host", "status"), [("192.168.1.7", 200), ("[fd00::5]:80", 200), ("evil.example", 404)])
def test_port_80_may_be_left_out(page: tuple[Hub, int], host: str, status: int) -> None:
    """At all addresses too; asked without a socket, as the port may not be had."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": f"/{TOKEN}/", "headers": [(b"host", host.encode())]}
    asyncio.run(Site(page[0], TOKEN, "::", 80).application()(scope, None, send))
    assert sent[0]["status"] == status


@pytest.mark.parametrize("origin", ["http://evil.example", "null", None, "http://127.0.0.1:1"])
def test_another_origin_is_refused(page: tuple[Hub, int], origin: str | None) -> None:
    """A page from elsewhere cannot talk to the server, though it runs in the same browser."""
    with pytest.raises(InvalidStatus), open_socket(page[1], origin=origin):
        pass


def test_a_wrong_token_is_refused(page: tuple[Hub, int]) -> None:
    """At the socket too."""
    with pytest.raises(InvalidStatus), open_socket(page[1], token="wrong"):
        pass
