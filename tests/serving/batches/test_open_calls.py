"""Callers who take no answers, over sockets, beside one who does: each is its token's owner."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from serving.access.caller_name import caller_name
from serving.access.gate import Gate
from serving.access.new_token import entry
from serving.batches.open_calls import OpenCalls
from serving.bundle.loaded_bundle import LoadedBundle
from serving.metrics.request_observer import EndedCall, RequestObserver
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.bundle_health import BundleHealth
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.in_process_server import InProcessServer
from tests.serving.silent_caller import SilentCaller

MOST = 12
EACH = MOST // 4
SECONDS = 20.0
RANK, CHECK = "sluice.v1.Ranking/Rank", "grpc.health.v1.Health/Check"


class Heard(RequestObserver):
    """Of the calls that were refused."""

    def __init__(self) -> None:
        super().__init__()
        self.exhausted = 0

    def ended(self, call: EndedCall) -> None:
        self.exhausted += call.status == "RESOURCE_EXHAUSTED"


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def server(loaded: LoadedBundle, heard: Heard, tmp_path: Path) -> Iterator[InProcessServer]:
    access = tmp_path / "access.toml"
    access.write_text("".join(entry(f"{name}-secret", name, ["ranking"], None) for name in ("greedy", "quiet")))
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, loaded.settings.serve, observer=heard)
    calls, health = OpenCalls(MOST, caller_name(Gate(access))), BundleHealth(loaded.manifest, None)
    with InProcessServer(servicer, health, admit=calls.take) as server:
        yield server
    servicer.close()


def by(name: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {name}-secret"),)


@pytest.mark.parametrize(("method", "user"), [(RANK, "u01"), (CHECK, "")])
def test_who_takes_no_answers_holds_a_quarter_of_the_calls(
    server: InProcessServer, heard: Heard, method: str, user: str
) -> None:
    """On as many connections as it likes, and whatever it asks; and has them back once it is gone."""
    port = int(server.target.rpartition(":")[2])
    with grpc.insecure_channel(server.target) as channel:
        rank, check = sluice_pb2_grpc.RankingStub(channel).Rank, health_pb2_grpc.HealthStub(channel).Check
        asked = pb.RankRequest(user_id="u01")
        with SilentCaller(port) as one, SilentCaller(port) as two:
            for silent in (one, two):
                for _ in range(EACH):
                    silent.ask(user, 1, method, **dict(by("greedy")))
            time.sleep(1.0)  # they are there by then: a call of the same owner's meanwhile would take their place
            refusal = refused(lambda: rank(asked, timeout=SECONDS, metadata=by("greedy")))
            assert f"{EACH} calls are open of this caller alone" in refusal
            assert rank(asked, timeout=SECONDS, metadata=by("quiet")).items
            check(health_pb2.HealthCheckRequest(), timeout=SECONDS, metadata=by("quiet"))
            assert heard.exhausted > 0
        assert let_in(lambda: rank(asked, timeout=SECONDS, metadata=by("greedy")))


def refused(call: Callable[[], object]) -> str:
    """Why, as soon as the calls of the silent one are there."""
    end = time.monotonic() + SECONDS

    def until_refused() -> None:
        while time.monotonic() < end:
            call()

    with pytest.raises(grpc.RpcError) as caught:
        until_refused()
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return str(caught.value.details())


def let_in(call: Callable[[], object]) -> bool:
    """As soon as the server has heard that the silent one is gone."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(grpc.RpcError):
            return bool(call())
    return False
