"""The side port over HTTP, from files as a worker leaves them; and that of a real `sluice serve`."""

from __future__ import annotations

import json
import os
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.parser import text_string_to_metric_families

from contracts.errors import SluiceError
from serving.console.side_port import side_app, side_port
from serving.gateway.http_server import Address
from serving.server.client import RankingClient
from sluice.demo.server_process import ServerProcess


def console_of(log: Path) -> int:
    return int(log.read_text().partition("metrics on http://127.0.0.1:")[2].partition("/")[0])


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def post(port: int, body: object) -> str:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/why-not", json.dumps(body).encode(),
                                   {"Grpc-Timeout": "20S", "Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return answer.read().decode()


def say(folder: Path, workers: int) -> None:
    held = MmapedDict(str(folder / f"gauge_livesum_{os.getpid()}.db"))
    held.write_value(mmap_key("sluice_workers", "sluice_workers", [], [], "help"), workers, 0.0)
    held.close()


def test_it_is_ready_while_somebody_serves(tmp_path: Path) -> None:
    with side_port(side_app(tmp_path), Address(port=0)) as port:
        assert get(port, "/healthz")[0] == 200
        assert get(port, "/readyz")[0] == 503
        say(tmp_path, 1)
        assert get(port, "/readyz")[0] == 200
        assert "sluice_workers 1.0" in get(port, "/metrics")[1]
        say(tmp_path, 0)
        assert get(port, "/readyz")[0] == 503


def test_a_port_that_is_taken_is_said_with_its_option(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with (pytest.raises(SluiceError, match="another --metrics-port"),
              side_port(side_app(tmp_path), Address(port=other.getsockname()[1]))):
            pass


@pytest.mark.parametrize("more", [(), pytest.param(("--follow",), marks=pytest.mark.slow)])
def test_a_server_that_stops_is_ready_for_nobody(more: tuple[str, ...], bundle_folder: Path, tmp_path: Path) -> None:
    """While a call is under way that it waits for; the side port closes after the server."""
    log = tmp_path / "server.log"
    server = ServerProcess(bundle_folder, log, options=("--workers", "1", "--metrics-port", "0", *more))
    try:
        port = console_of(log)
        while get(port, "/readyz")[0] != 200:
            time.sleep(0.01)
        with grpc.insecure_channel(server.target) as channel:
            next(health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=60))
            server.process.terminate()
            while (said := get(port, "/readyz")[0]) == 200:
                time.sleep(0.01)
            assert said == 503
            assert server.process.poll() is None
    finally:
        assert server.stop() == 0


@pytest.mark.slow
def test_two_workers_of_a_server_are_one_page(bundle_folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    server = ServerProcess(bundle_folder, log, options=("--workers", "2", "--metrics-port", "0"))
    try:
        port = console_of(log)
        for _ in range(6):  # of a connection each, so that both may be asked
            with RankingClient(server.target) as client:
                client.rank("u", limit=2, seconds=20)
        status, text = get(port, "/metrics")
        found = {(one.name, *sorted(one.labels.values())): one.value
                 for metric in text_string_to_metric_families(text) for one in metric.samples}
        assert status == 200
        assert found["sluice_requests_total", "OK", "Rank"] >= 5  # the last may not have been told yet
        fate = json.loads(post(port, {"request": {"user_id": "u", "limit": 2}, "item_ids": ["none"]}))["items"][0]
        assert (fate["item_id"], fate["stage"], fate["cause"]) == ("none", "retrieve", "the bundle does not know it")
        assert get(port, "/readyz") == (200, '{"status":"SERVING","workers":2}')
    finally:
        assert server.stop() == 0
