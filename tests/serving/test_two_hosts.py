"""Two supervisors with folders of their own, as two hosts would be, and the Redis that they share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.freshness.redis_process import RedisProcess
from contracts.artifacts import Artifacts
from serving.events.event_stream import STREAM
from serving.proto import sluice_pb2 as pb
from serving.server.catalog_client import CatalogClient, ItemChange
from serving.server.client import RankingClient
from serving.users.user_publisher import publish_users
from sluice.demo.server_process import ServerProcess
from sluice.release.catalogue_shipping import ship
from tests.serving.recorded_events import recordable
from tests.serving.running_redis import needs_redis

pytestmark = needs_redis
PATIENCE = 60.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RedisProcess]:
    with RedisProcess(tmp_path) as running:
        yield running


class Host:
    """A supervisor of two workers."""

    def __init__(self, bundle: Path, folder: Path, store: RedisProcess) -> None:
        self._bundle, self.folder, self._store = bundle, folder, store
        folder.mkdir()
        self.start()

    def start(self) -> None:
        self.server = ServerProcess(self._bundle, self.folder / "server.log", options=(
            "--workers", "2", "--fresh", str(self.folder / "fresh"), "--user-store", self._store.address,
            "--event-stream", self._store.address))

    def kill(self) -> None:
        self.server.process.kill()
        self.server.process.wait()

    def until(self, user: str, holds: Callable[[pb.RankResponse], bool]) -> None:
        """An answer that holds comes."""
        end = time.monotonic() + PATIENCE
        with RankingClient(self.server.target) as client:
            while not holds(client.rank(user, seconds=5.0)):
                assert time.monotonic() < end
                time.sleep(0.02)


def is_known(answer: pb.RankResponse) -> bool:
    """An event of the user, or a row of the store."""
    return any(stage.HasField("age_seconds") for stage in answer.stages)


def has_store(answer: pb.RankResponse) -> bool:
    return all(not stage.cause for stage in answer.stages if stage.name == "user")


def add_shown(store: RedisProcess, user: str) -> None:
    event = pb.Event(event_id=user, kind=pb.Event.IMPRESSION, user_id=user, item_id="i01", request_id=user, position=1,
                     bid=0.5)
    with store.client() as client:
        client.xadd(STREAM, {"event": event.SerializeToString()})


def ship_a_withdrawal(hosts: list[Host]) -> None:
    """One host is told, while the other is away."""
    with RankingClient(hosts[0].server.target) as client:
        item = client.rank("u01", seconds=5.0).items[0].item_id
    hosts[1].kill()
    with CatalogClient(hosts[0].server.target) as client:
        client.withdraw([ItemChange(item=item, version=1)])
    hosts[1].start()
    with CatalogClient(hosts[1].server.target) as client:
        assert ship(hosts[0].folder / "fresh", hosts[1].server.target, client) == {"applied": 1}
    for host in hosts:
        host.until("u01", lambda answer: item not in {one.item_id for one in answer.items})


@pytest.mark.slow
def test_two_hosts_know_the_same_users_and_events_and_one_that_was_away_catches_up(
    store: RedisProcess, bundle_folder: Path, trained: Artifacts, tmp_path: Path
) -> None:
    bundle = recordable(bundle_folder, tmp_path)
    hosts = [Host(bundle, tmp_path / name, store) for name in ("a", "b")]
    try:
        publish_users(trained, store.address)
        add_shown(store, "first")
        for host in hosts:
            host.until("u01", has_store)
            host.until("u01", is_known)
            host.until("first", is_known)
        hosts[1].kill()
        add_shown(store, "second")
        hosts[0].until("second", is_known)
        hosts[1].start()
        for user in ("first", "second"):
            hosts[1].until(user, is_known)
        ship_a_withdrawal(hosts)
    finally:
        for host in hosts:
            host.server.stop()
