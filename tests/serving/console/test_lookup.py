"""The console's question, over HTTP to a side port and over gRPC to a real server."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from starlette.requests import Request
from starlette.types import Message

from serving.bundle.loaded_bundle import LoadedBundle
from serving.console.lookup import MOST_SECONDS, Lookup
from serving.console.side_port import Console, side_app, side_port
from serving.gateway.http_server import Address
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.away_server import AwayServer, within_seconds
from tests.serving.in_process_server import InProcessServer

LOOKUP = Lookup()


@pytest.fixture(scope="module")
def port(loaded: LoadedBundle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve)
    folder = tmp_path_factory.mktemp("figures")
    with InProcessServer(servicer) as server, side_port(side_app(folder, Console(LOOKUP)), Address(port=0)) as port:
        LOOKUP.target = server.target
        yield port
    servicer.close()


def ask(port: int, body: bytes, kind: str = "application/json") -> tuple[int, Any]:
    headers = {"Grpc-Timeout": "20S", "Content-Type": kind}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/why-not", body, headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_slate_comes_with_reasons_and_with_the_fate_of_an_item(port: int, loaded: LoadedBundle) -> None:
    keys = [loaded.items.key(row) for row in range(5)]
    asked = {"request": {"user_id": "u07", "limit": 3, "reasons": True}, "item_ids": keys}
    status, body = ask(port, json.dumps(asked).encode())
    assert status == 200
    assert len(body["answer"]["items"]) == 3
    assert all(item["reasons"] for item in body["answer"]["items"])
    assert [fate["item_id"] for fate in body["items"]] == keys


@pytest.mark.parametrize(("body", "said"), [
    (b"{", "INVALID_ARGUMENT"), (b'{"request": {"user_id": ""}}', "INVALID_ARGUMENT"),
    (b'{"request": {"user_id": "u", "placements": [{"name": "a"}]}}', "INVALID_ARGUMENT")])
def test_what_cannot_be_asked_is_said(port: int, body: bytes, said: str) -> None:
    status, heard = ask(port, body)
    assert (status, heard["error"]["status"]) == (400, said)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_what_a_page_of_another_site_may_send_is_not_taken(port: int, kind: str) -> None:
    status, heard = ask(port, b'{"request": {"user_id": "u07"}}', kind)
    assert status == 415
    assert "Content-Type: application/json" in heard["error"]["message"]


def test_a_body_of_more_bytes_than_may_be_is_refused(port: int) -> None:
    assert ask(port, b" " * (1 << 20) + b"{}")[0] == 413


def test_a_body_of_more_parts_than_may_be_is_not_parsed(port: int) -> None:
    """It is small in bytes; nested, listed or as many values, it would hold up the port while it is unpacked."""
    for asked in (b'{"item_ids": [%b]}' % (b'"",' * 60_000), b"[" * 60_000, b'{"request": ' * 60_000):
        status, heard = ask(port, asked)
        assert (status, heard["error"]["status"]) == (413, "INVALID_ARGUMENT")
        assert "the limit is 50000" in heard["error"]["message"]


def test_a_body_of_many_parts_is_answered_as_grpc_answers_it(port: int) -> None:
    """Parsed in its turn, beside the event loop."""
    status, heard = ask(port, json.dumps({"request": {"user_id": "u07"}, "item_ids": ["i"] * 40_000}).encode())
    assert status == 400
    assert heard["error"]["fields"]


def test_without_a_server_that_speaks_plain_text_it_says_whom_to_ask(tmp_path: Path) -> None:
    with side_port(side_app(tmp_path), Address(port=0)) as port:
        status, body = ask(port, b"{}")
    assert status == 503
    assert "sluice gateway" in body["error"]["message"]


class Asked(sluice_pb2_grpc.RankingServicer):
    """Keeps what came with the question."""

    async def WhyNot(self, request: pb.WhyNotRequest, context: grpc.aio.ServicerContext) -> pb.WhyNotResponse:
        self.metadata = {key: str(value) for key, value in context.invocation_metadata() or ()}
        self.seconds = context.time_remaining()
        return pb.WhyNotResponse()


def question(**headers: str) -> Request:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    told = {"content-length": "2", "content-type": "application/json", **headers}
    return Request({"type": "http", "method": "POST", "headers": [
        (name.encode(), value.encode("latin-1")) for name, value in told.items()]}, receive)


def test_the_caller_does_not_choose_how_long_it_is_asked() -> None:
    asked, lookup = Asked(), Lookup()
    with InProcessServer(asked) as server:
        lookup.target = server.target
        answer = asyncio.run(lookup.why_not(question(**{"grpc-timeout": "99999999H"})))
    assert answer.status_code == 200
    assert asked.seconds < MOST_SECONDS + 1  # gRPC rounds up


def test_a_server_that_was_away_is_asked_soon_after_its_return() -> None:
    lookup, away = Lookup(), AwayServer()
    lookup.target = away.target

    def status() -> int:
        return asyncio.run(lookup.why_not(question())).status_code

    with away:
        assert away.sought(status)
        assert status() == 503
    with InProcessServer(Asked(), port=away.port):
        assert within_seconds(lambda: status() == 200)


@pytest.mark.parametrize(("elsewhere", "target", "told"), [
    (False, "10.0.0.5:7", True), (True, "127.0.0.1:7", True), (True, "[::1]:7", True), (True, "localhost:7", True),
    (True, "10.0.0.5:7", False), (True, "rank.example.com:7", False)])
def test_a_token_goes_to_no_other_machine(elsewhere: bool, target: str, told: bool) -> None:
    lookup = Lookup(elsewhere)
    lookup.target = target
    found = dict(lookup.metadata(question(authorization="Bearer t", traceparent="00-1-1-01")))
    assert found == {"traceparent": "00-1-1-01"} | ({"authorization": "Bearer t"} if told else {})


def test_a_token_that_grpc_does_not_carry_is_refused() -> None:
    lookup = Lookup()
    lookup.target = "127.0.0.1:1"
    assert asyncio.run(lookup.why_not(question(authorization="\xe9"))).status_code == 400
