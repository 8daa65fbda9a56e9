"""By whichever names the side port is asked: over HTTP, with the header that a browser would send."""

from __future__ import annotations

import http.client
import json
from pathlib import Path

import pytest

from serving.console.own_name import OwnName
from serving.console.side_port import side_app, side_port
from serving.gateway.http_server import Address


def status(port: int, path: str, host: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        if answer.status == 421:
            assert "ask by an address or localhost" in json.loads(answer.read())["error"]["message"]
        return answer.status
    finally:
        connection.close()


@pytest.mark.parametrize(("listens", "host", "takes"), [
    ("127.0.0.1", "127.0.0.1:9464", True), ("127.0.0.1", "localhost:9464", True), ("127.0.0.1", "LOCALHOST", True),
    ("127.0.0.1", "[::1]:9464", True), ("127.0.0.1", "10.0.0.5", True), ("127.0.0.1", "evil.example:9464", False),
    ("127.0.0.1", "127.0.0.1.evil.example", False), ("127.0.0.1", "[::1].evil.example", False),
    ("127.0.0.1", "localhost.evil.example", False), ("127.0.0.1", "", False), ("127.0.0.1", "evil:80:80", False),
    ("rank.internal", "rank.internal:9464", True), ("rank.internal", "rank.example", False)])
def test_addresses_and_its_own_name_are_taken(listens: str, host: str, takes: bool) -> None:
    async def nothing(*_: object) -> None:
        raise AssertionError("nobody asks")

    assert OwnName(nothing, listens).takes(host) == takes


@pytest.mark.parametrize("path", ["/", "/metrics", "/readyz", "/v1/records", "/v1/console"])
def test_a_page_whose_name_came_to_mean_this_machine_reads_nothing(tmp_path: Path, path: str) -> None:
    with side_port(side_app(tmp_path), Address(port=0)) as port:
        assert status(port, path, "evil.example") == 421
        assert status(port, path, f"localhost:{port}") != 421


def test_on_other_interfaces_scrapers_ask_by_any_name_and_pages_do_not(tmp_path: Path) -> None:
    with side_port(side_app(tmp_path, host="0.0.0.0"), Address(port=0)) as port:
        assert status(port, "/metrics", "server:9464") == 200
        assert status(port, "/", "server:9464") == 421
