"""A shared store of users that stops, dies and comes back under load: no failed request, degraded answers that say why,
and whole ones again by themselves. A real server, a real Redis."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from benchmarks.freshness.redis_process import RedisProcess
from contracts.artifacts import Artifacts
from contracts.config.stages import Serve
from serving.bundle.loaded_bundle import LoadedBundle
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.client import RankingClient
from serving.server.entry import add_to_server
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from serving.users.circuit_breaker import LIMIT
from serving.users.online_users import OnlineUsers
from serving.users.redis_tables import RedisTables
from serving.users.user_publisher import publish_users
from serving.users.user_reader import NOT_IN_TIME, UserReader
from sluice.demo.server_process import ServerProcess
from tests.serving.running_redis import needs_redis

pytestmark = needs_redis
PATIENCE = 60.0


class Asking:
    """Asks all the time while it is open; `causes` are those of the stage `user`, an answer each, "" where it was
    whole."""

    def __init__(self, target: str) -> None:
        self._target, self._stop = target, threading.Event()
        self.causes, self.failed = list[str](), list[Exception]()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Asking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def until(self, holds: Callable[[str], bool]) -> None:
        """An answer that comes from now on has such a cause."""
        seen, end = len(self.causes), time.monotonic() + PATIENCE
        while not any(holds(cause) for cause in self.causes[seen:]):
            assert time.monotonic() < end, self.causes[-1:]
            time.sleep(0.01)

    def _ask(self) -> None:
        with RankingClient(self._target) as client:
            while not self._stop.is_set():
                try:
                    answer = client.rank("u01", seconds=5.0)
                except Exception as error:
                    self.failed.append(error)
                    continue
                (user,) = (stage for stage in answer.stages if stage.name == "user")
                assert (user.fallback == pb.StageReport.BUNDLE_ROW) == bool(user.cause)
                self.causes.append(user.cause)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RedisProcess]:
    with RedisProcess(tmp_path) as running:
        yield running


def test_no_request_fails_while_the_store_stops_dies_and_comes_back(
    store: RedisProcess, bundle_folder: Path, trained: Artifacts, tmp_path: Path
) -> None:
    publish_users(trained, store.address)
    server = ServerProcess(bundle_folder, tmp_path / "server.log",
                           options=("--workers", "1", "--user-store", store.address))
    try:
        with Asking(server.target) as asking:
            asking.until(lambda cause: not cause)
            store.stop()
            asking.until(lambda cause: "did not answer in time" in cause)
            store.go_on()
            asking.until(lambda cause: not cause)
            store.kill()
            asking.until(lambda cause: "cannot be read" in cause)
            store.start()
            asking.until(lambda cause: "holds no tables" in cause)
            publish_users(trained, store.address)
            asking.until(lambda cause: not cause)
        assert asking.failed == []
    finally:
        assert server.stop() == 0


def test_a_caller_in_a_hurry_is_answered_in_time_and_closes_the_store_to_nobody(
    store: RedisProcess, loaded: LoadedBundle, trained: Artifacts
) -> None:
    """The store's own budget is longer than the deadlines; nobody looks whether it has healed."""
    publish_users(trained, store.address)

    async def run() -> None:
        users = UserReader(RedisTables(store.address, PATIENCE), loaded.encoder, None, PATIENCE)
        await users.look()
        serve = Serve(deadline_ms=round(1000 * PATIENCE), max_deadline_ms=round(1000 * PATIENCE))
        servicer = RankingServicer(Funnel(loaded), loaded.manifest, serve, users=OnlineUsers(users, None))
        server = grpc.aio.server()
        add_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            ranking = sluice_pb2_grpc.RankingStub(channel)

            async def asked(seconds: float) -> pb.StageReport:
                answer = await ranking.Rank(pb.RankRequest(user_id="u01"), timeout=seconds)
                assert answer.items
                [user] = (stage for stage in answer.stages if stage.name == "user")
                return user

            assert (await asked(PATIENCE)).status == pb.StageReport.COMPLETE
            store.stop()
            for _ in range(LIMIT + 1):
                found = await asked(0.6)
                assert (found.fallback, found.cause) == (pb.StageReport.BUNDLE_ROW, NOT_IN_TIME)
            scored = await ranking.Score(pb.ScoreRequest(user_id="u01", item_ids=["i01"]), timeout=0.6)
            assert scored.probabilities
            store.go_on()
            assert (await asked(PATIENCE)).status == pb.StageReport.COMPLETE
        await server.stop(None)
        servicer.close()
        await users.close()

    asyncio.run(run())
