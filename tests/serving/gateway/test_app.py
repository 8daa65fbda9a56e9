"""The gateway before a real gRPC server, asked over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import HealthServicer

from serving.access.client_credentials import ClientCredentials
from serving.access.tls import server_credentials
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.catalog_servicer import CatalogServicer
from serving.events.event_room import EventRoom
from serving.gateway.app import Upstream
from serving.gateway.body import BodyBounds
from serving.metrics.call_log import MOST, CallLog
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.bundle_health import BundleHealth
from serving.server.client import RankingClient
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.access.certificates import Authority
from tests.serving.away_server import AwayServer, within_seconds
from tests.serving.gateway.running_gateway import RunningGateway
from tests.serving.in_process_server import InProcessServer

TIMEOUT = {"Grpc-Timeout": "20S"}


class Slow(sluice_pb2_grpc.RankingServicer):
    """Answers nobody; says when it was asked, by whom, and when the caller had gone."""

    def __init__(self) -> None:
        self.asked, self.gone = threading.Event(), threading.Event()
        self.metadata: dict[str, str] = {}
        self.left: float | None = None

    async def Rank(self, request: pb.RankRequest, context: grpc.aio.ServicerContext) -> pb.RankResponse:
        self.metadata = {key: str(value) for key, value in context.invocation_metadata() or ()}
        self.left = context.time_remaining()
        self.asked.set()
        try:
            await asyncio.sleep(60)
        finally:
            self.gone.set()
        raise AssertionError("nobody waited so long")


@pytest.fixture(scope="module")
def served(loaded: LoadedBundle) -> Iterator[tuple[RunningGateway, RankingClient]]:
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve)
    health = BundleHealth(loaded.manifest, None, servicer.load)
    events = EventRoom(None, None, loaded.settings.serve)
    catalog = CatalogServicer(None, loaded.settings.serve)
    with InProcessServer(servicer, health, also=[events.add_to, catalog.add_to]) as server, \
            RunningGateway(Upstream(server.target)) as http, RankingClient(server.target) as client:
        client.wait_ready(20)
        yield http, client
    servicer.close()


def test_an_answer_over_http_is_the_one_over_grpc(
    served: tuple[RunningGateway, RankingClient], loaded: LoadedBundle
) -> None:
    http, client = served
    user = loaded.users.key(0)
    expected = client.rank(user, limit=3, seconds=20, context={"device": "phone"})
    heard = http.post("/v1/rank", {"user_id": user, "limit": 3, "context": {"device": "phone"}}, **TIMEOUT)
    assert heard.status == 200
    assert [item["item_id"] for item in heard.body["items"]] == [item.item_id for item in expected.items]
    assert [item["probability"] for item in heard.body["items"]] == [item.probability for item in expected.items]
    assert heard.body["bundle_version"] == loaded.manifest.version


def test_scores_of_unknown_items_are_null(
    served: tuple[RunningGateway, RankingClient], loaded: LoadedBundle
) -> None:
    http, _ = served
    heard = http.post("/v1/score", {"user_id": "new", "item_ids": [loaded.items.key(0), "never-seen"]}, **TIMEOUT)
    known, unknown = heard.body["probabilities"]
    assert 0 < known < 1
    assert unknown is None
    assert heard.body["unknown_items"] == ["never-seen"]


@pytest.mark.parametrize(("path", "body", "field"), [
    ("/v1/rank", {"user_id": ""}, "user_id"), ("/v1/rank", {"user_id": "u", "limit": 100_000}, "limit"),
    ("/v1/rank", b"no json", "body"), ("/v1/rank", {"user": "u"}, "body"), ("/v1/rank", [], "body"),
    ("/v1/score", {"user_id": "u", "item_ids": []}, "item_ids")])
def test_what_is_wrong_is_said_by_field(
    served: tuple[RunningGateway, RankingClient], path: str, body: object, field: str
) -> None:
    heard = served[0].post(path, body)
    assert heard.status == 400
    assert heard.body["error"]["status"] == "INVALID_ARGUMENT"
    assert field in heard.body["error"]["fields"]


@pytest.mark.parametrize("path", ["/v1/events", "/v1/catalog/upsert", "/v1/catalog/status"])
def test_a_server_that_keeps_no_changes_says_so(served: tuple[RunningGateway, RankingClient], path: str) -> None:
    heard = served[0].post(path, {}, **TIMEOUT)
    assert (heard.status, heard.body["error"]["status"]) == (400, "FAILED_PRECONDITION")
    assert "--fresh" in heard.body["error"]["message"]


def test_a_deadline_that_has_passed_is_504_and_no_time_400(
    served: tuple[RunningGateway, RankingClient]
) -> None:
    http, _ = served
    assert http.post("/v1/rank", {"user_id": "u"}, **{"Grpc-Timeout": "1n"}).status == 504
    assert http.post("/v1/rank", {"user_id": "u"}, **{"Grpc-Timeout": "soon"}).status == 400


def test_the_longest_deadline_that_can_be_written_is_a_long_one(served: tuple[RunningGateway, RankingClient]) -> None:
    assert served[0].post("/v1/rank", {"user_id": "u"}, **{"Grpc-Timeout": "99999999H"}).status == 200


@pytest.mark.parametrize("name", ["Authorization", "traceparent"])
def test_a_header_that_grpc_does_not_carry_is_400(served: tuple[RunningGateway, RankingClient], name: str) -> None:
    heard = served[0].post("/v1/rank", {"user_id": "u"}, **{name: "Bearer \xe9"})
    assert heard.status == 400
    assert name.lower() in heard.body["error"]["fields"]


@pytest.mark.parametrize(("site", "status"), [
    ("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)])
def test_a_browser_asks_for_no_page_of_another_site(
    served: tuple[RunningGateway, RankingClient], site: str, status: int
) -> None:
    """Which could not read the answer, and could record events."""
    headers = {**TIMEOUT, "Sec-Fetch-Site": site, "Content-Type": "text/plain"}
    assert served[0].post("/v1/rank", {"user_id": "u"}, **headers).status == status


def test_a_large_body_is_refused_before_it_is_read(served: tuple[RunningGateway, RankingClient]) -> None:
    heard = served[0].post("/v1/rank", b" " * ((1 << 20) + 1))
    assert heard.status == 413


def test_a_body_of_many_parts_is_parsed_and_one_of_too_many_refused(
    served: tuple[RunningGateway, RankingClient]
) -> None:
    items = [{"change": {"item_id": "i", "version": 1}, "values": {f"field {n}": n for n in range(10)}}] * 50
    many = served[0].post("/v1/catalog/upsert", {"items": items}, **TIMEOUT)
    assert (many.status, many.body["error"]["status"]) == (400, "FAILED_PRECONDITION")
    too_many = served[0].post("/v1/catalog/upsert", {"items": [{}] * 30_000}, **TIMEOUT)
    assert too_many.status == 413
    assert "the limit is 50000; send less at once" in too_many.body["error"]["message"]


def test_a_body_that_does_not_come_is_408_and_ends_the_connection() -> None:
    with RunningGateway(Upstream("127.0.0.1:1", bodies=BodyBounds(most_seconds=0.01))) as http, \
            socket.create_connection(("127.0.0.1", http.port), timeout=20) as caller:
        caller.sendall(b"POST /v1/rank HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
        heard = caller.makefile("rb").read()  # to the end
    assert heard.startswith(b"HTTP/1.1 408")
    assert b"send less at once, or faster" in heard


def test_who_hangs_up_before_the_body_is_there_leaves_nothing_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with RunningGateway(Upstream("127.0.0.1:1")) as http:
        logging.getLogger("uvicorn.error").addHandler(caplog.handler)  # which it does not hand on
        with socket.create_connection(("127.0.0.1", http.port), timeout=20) as caller:
            caller.sendall(b"POST /v1/rank HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
            assert caller.recv(100).startswith(b"HTTP/1.1 100")  # the body is being read
            caller.sendall(b"{")
    logging.getLogger("uvicorn.error").removeHandler(caplog.handler)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_health_page_and_description(served: tuple[RunningGateway, RankingClient]) -> None:
    http, _ = served
    assert http.get("/healthz").body == {"status": "SERVING"}
    assert "/v1/rank" in http.get("/openapi.json").body["paths"]
    assert "POST /v1/rank" in http.get("/").body
    assert http.get("/v1/rank").status == 405
    assert http.get("/nothing").status == 404


def test_who_calls_goes_along_and_one_who_hangs_up_is_not_worked_for() -> None:
    slow = Slow()
    with InProcessServer(slow) as server, RunningGateway(Upstream(server.target)) as gateway:
        caller = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
        caller.request("POST", "/v1/rank", json.dumps({"user_id": "u"}),
                       {"Authorization": "Bearer t", "Sluice-Tenant": "shop", "Grpc-Timeout": "50S"})
        assert slow.asked.wait(20)
        assert slow.metadata["authorization"] == "Bearer t"
        assert slow.metadata["sluice-tenant"] == "shop"
        caller.close()
        assert slow.gone.wait(20)


def test_without_a_deadline_the_gateway_waits_so_long_and_tells_the_server_none() -> None:
    """Which would take it for the caller's, and its own default for none."""
    slow = Slow()
    with InProcessServer(slow) as server, RunningGateway(Upstream(server.target, patience=0.5)) as gateway:
        heard = gateway.post("/v1/rank", {"user_id": "u"})
        assert (heard.status, heard.body["error"]["status"]) == (504, "DEADLINE_EXCEEDED")
        assert "no answer in 0.5 s; send a Grpc-Timeout" in heard.body["error"]["message"]
        assert slow.gone.wait(20)
        assert slow.left is None


def test_a_deadline_of_the_callers_counts_though_it_is_longer() -> None:
    with InProcessServer(Slow()) as server, RunningGateway(Upstream(server.target, patience=0.01)) as gateway:
        heard = gateway.post("/v1/rank", {"user_id": "u"}, **{"Grpc-Timeout": "500m"})
    assert heard.status == 504
    assert "no answer in" not in heard.body["error"]["message"]


def test_a_server_behind_mutual_tls_is_asked_with_a_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    shown, caller = authority.server(client_ca=authority.file), authority.pair("caller", "gateway@example.com")
    server = grpc.server(ThreadPoolExecutor(1))
    health = HealthServicer()
    health.set("sluice.v1.Ranking", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_secure_port("127.0.0.1:0", server_credentials(shown))
    server.start()
    try:
        for credentials, status in (
                (ClientCredentials(ca=authority.file, certificate=caller.certificate, key=caller.key), 200),
                (ClientCredentials(ca=authority.file), 503)):
            with RunningGateway(Upstream(f"localhost:{port}", credentials.of_channel())) as http:
                assert http.get("/readyz").status == status
    finally:
        server.stop(None).wait()


def test_the_lines_of_all_paths_together_are_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sluice.calls")
    monkeypatch.setattr("serving.gateway.app.call_log_of_process", lambda: CallLog(True, clock=lambda: 7.0))
    with RunningGateway(Upstream("127.0.0.1:1")) as http:
        heard = [http.post(path, b"no json").status for _ in range(MOST // 2 + 3) for path in ("/v1/rank", "/v1/score")]
    assert set(heard) == {400}
    told = [record for record in caplog.records if record.name == "sluice.calls"]
    assert len(told) == MOST < len(heard)


def test_a_server_that_is_not_there_is_503() -> None:
    with RunningGateway(Upstream("127.0.0.1:1")) as http:
        heard = http.post("/v1/rank", {"user_id": "u"}, **TIMEOUT)
        assert (heard.status, heard.headers["retry-after"]) == (503, "1")
        assert http.get("/readyz").status == 503
        assert http.get("/healthz").status == 200


def test_a_server_that_was_away_is_asked_soon_after_its_return(loaded: LoadedBundle) -> None:
    servicer, away = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve), AwayServer()

    def status(http: RunningGateway) -> int:
        return http.post("/v1/rank", {"user_id": "u"}, **TIMEOUT).status

    with RunningGateway(Upstream(away.target)) as http:
        with away:
            assert away.sought(lambda: status(http))
            assert status(http) == 503
        with InProcessServer(servicer, port=away.port):
            assert within_seconds(lambda: status(http) == 200)
    servicer.close()
