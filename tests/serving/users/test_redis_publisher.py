"""Against a real Redis."""

from __future__ import annotations

import contextlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.freshness.redis_process import RedisProcess
from contracts.artifacts import Artifacts
from contracts.errors import DataError
from serving.users import redis_publisher, user_publisher
from serving.users.published_users import (
    CURRENT,
    DRAFT,
    LOCK,
    Rows,
    UserRow,
    Version,
    key_of,
    read_row,
    read_version,
    write_row,
)
from serving.users.redis_publisher import DRAFT_SECONDS, publish
from serving.users.user_publisher import publish_users
from tests.serving.conftest import Market
from tests.serving.running_redis import needs_redis

pytestmark = needs_redis


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with RedisProcess(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture(autouse=True)
def _empty(store: RedisProcess) -> None:
    with store.client() as client:
        client.flushall()


def current(store: RedisProcess) -> Version:
    with store.client() as client:
        told = client.get(CURRENT)
    assert isinstance(told, bytes)
    return read_version(told)


def drafts(store: RedisProcess) -> list[bytes]:
    """Hashes of versions that are not read."""
    with store.client() as client:
        told = client.get(CURRENT)
        read = read_version(told).hashes() if isinstance(told, bytes) else []
        return [key for key in client.keys("sluice:users:*:*") if key.decode() not in read]  # type: ignore[union-attr]


def test_every_user_can_be_read_and_nothing_expires(store: RedisProcess, trained: Artifacts, market: Market) -> None:
    found, version = publish_users(trained, store.address), current(store)
    assert (found.version, found.rows, found.replaces) == (version.name, len(market.users["_user"]), None)
    with store.client() as client:
        for number, user in enumerate(market.users["_user"]):
            told = client.hget(version.bucket(key_of(user)), user)
            assert isinstance(told, bytes)
            row = read_row(told)
            assert row.values == {name: market.users[name][number] for name in ("taste", "visits", "history")}
            assert row.recent == market.users["_recent_items"][number]
        assert [client.ttl(key) for key in version.hashes()] == [-1] * version.buckets


def test_the_version_before_stays_for_a_while(store: RedisProcess, trained: Artifacts) -> None:
    first = publish_users(trained, store.address)
    before = current(store)
    second = publish_users(trained, store.address, keep=50)
    assert second.replaces == first.version != second.version
    with store.client() as client:
        assert all(0 < int(client.ttl(key)) <= 50 for key in before.hashes())  # type: ignore[arg-type]


def test_one_publishes_at_a_time(store: RedisProcess, trained: Artifacts) -> None:
    with store.client() as client, client.lock(LOCK, timeout=60), pytest.raises(DataError, match="another"):
        publish_users(trained, store.address)
    publish_users(trained, store.address)


def test_a_store_that_is_emptied_meanwhile_is_not_another_that_publishes(
    store: RedisProcess, trained: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def emptied(row: UserRow) -> str:
        with store.client() as client:
            client.flushall()
        return write_row(row)

    monkeypatch.setattr(user_publisher, "write_row", emptied)
    with pytest.raises(DataError, match="emptied"):
        publish_users(trained, store.address)


def test_a_table_that_is_not_whole_is_not_switched_to(store: RedisProcess, trained: Artifacts, tmp_path: Path) -> None:
    publish_users(trained, store.address)
    before = current(store)
    twice = Artifacts(Path(shutil.copytree(trained.out, tmp_path / "out")))
    part = next(twice.online_users.rglob("*.parquet"))
    shutil.copy(part, part.with_name("again.parquet"))
    with pytest.raises(DataError, match="a key twice"):
        publish_users(twice, store.address)
    assert current(store) == before
    assert drafts(store) == []


@pytest.fixture
def little_memory(store: RedisProcess) -> Iterator[None]:
    """The store takes four megabytes more, and evicts nothing."""
    with store.client() as client:
        used = client.info("memory")["used_memory"]  # type: ignore[index]
        client.config_set("maxmemory", used + (4 << 20))
        client.config_set("maxmemory-policy", "noeviction")
        yield
        client.config_set("maxmemory", 0)


def version(name: str, rows: int, day: int = 5) -> Version:
    return Version(name=name, buckets=rows, rows=rows, published=datetime(2026, 1, day, tzinfo=UTC))


def large_rows(count: int) -> Iterator[Rows]:
    """A megabyte in ten."""
    yield from ([(b"u%d" % user, "x" * 100_000)] for user in range(count))


@pytest.mark.usefixtures("little_memory")
def test_a_version_that_the_memory_does_not_hold_leaves_room_for_events_and_the_next(store: RedisProcess) -> None:
    publish(store.address, version("small", 10), large_rows(10), 60)
    for _ in range(2):
        with pytest.raises(DataError, match="the store failed"):
            publish(store.address, version("large", 200), large_rows(200), 60)
        assert drafts(store) == []
        with store.client() as client:
            assert client.xadd("sluice:events", {"event": "e"})
    assert publish(store.address, version("next", 10), large_rows(10), 60) == "small"


def test_rows_that_cannot_be_made_leave_nothing(store: RedisProcess) -> None:
    def broken() -> Iterator[Rows]:
        yield from large_rows(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(store.address, version("new", 5), broken(), 60)
    assert drafts(store) == []


DYING = """
import os, signal, sys
from datetime import UTC, datetime
from serving.users.published_users import Version
from serving.users.redis_publisher import DRAFT_SECONDS, publish

def rows():
    yield [(b"u%d" % user, "x") for user in range(50)]
    os.kill(os.getpid(), signal.SIGKILL)

publish(sys.argv[1], Version(name="dying", buckets=9, rows=100, published=datetime(2026, 1, 5, tzinfo=UTC)), rows(), 60)
"""


def test_the_next_removes_what_one_that_was_killed_has_left(store: RedisProcess) -> None:
    """Once the dead one's turn is over; what nobody removes expires within minutes."""
    publish(store.address, version("before", 3), large_rows(3), 60)
    done = subprocess.run([sys.executable, "-c", DYING, store.address], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert len(drafts(store)) == 9
    with store.client() as client:
        assert all(0 < client.ttl(key) <= DRAFT_SECONDS for key in drafts(store))  # type: ignore[operator]
        client.delete(LOCK)
    with pytest.raises(DataError, match="later than"):
        publish(store.address, version("older", 2, day=4), large_rows(2), 60)
    assert (current(store).name, drafts(store)) == ("before", [])


def test_a_writer_says_that_it_lives_of_all_its_rows(store: RedisProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_publisher, "RENEWED_SECONDS", 0.0)

    def slow() -> Iterator[Rows]:
        yield from large_rows(2)
        with store.client() as client:
            for key in drafts(store):
                client.expire(key, 5)
            yield [(b"u2", "x")]
            assert min(client.ttl(key) for key in drafts(store)) > 5  # type: ignore[type-var, operator]

    publish(store.address, version("new", 3), slow(), 60)


def test_one_whose_turn_another_has_taken_does_not_switch(store: RedisProcess) -> None:
    """It stood still after its last row; what it has written the other has removed."""
    def overtaken() -> Iterator[Rows]:
        yield from large_rows(2)
        with store.client() as client:
            client.set(DRAFT, version("other", 2).model_dump_json())

    with pytest.raises(DataError, match="has begun meanwhile"):
        publish(store.address, version("new", 2), overtaken(), 60)
    assert drafts(store) == []
    with store.client() as client:
        assert client.get(CURRENT) is None


@contextlib.contextmanager
def cut_behind_the_switch(store: RedisProcess) -> Iterator[str]:
    """The address of a way to the store whose first transaction is carried out there, and ends its connection before
    the answer."""
    host, port = store.address.removeprefix("redis://").split("/")[0].split(":")
    cut = threading.Event()

    def pass_on(caller: socket.socket) -> None:
        with caller, socket.create_connection((host, int(port))) as there:
            while select.select([caller, there], [], [])[0]:
                for one, other in ((caller, there), (there, caller)):
                    if not select.select([one], [], [], 0)[0]:
                        continue
                    told = one.recv(1 << 16)
                    if not told:
                        return
                    other.sendall(told)
                    if b"EXEC" in told and not cut.is_set():
                        there.recv(1 << 16)
                        cut.set()
                        return

    def listen(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=pass_on, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=listen, args=(server,), daemon=True).start()
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        assert cut.is_set()


def test_a_switch_whose_answer_is_lost_is_asked_for_and_not_undone(store: RedisProcess) -> None:
    publish(store.address, version("before", 2, day=4), large_rows(2), 60)
    with cut_behind_the_switch(store) as address:
        assert publish(address, version("new", 3), large_rows(3), 60) == "before"
    assert current(store).name == "new"
    with store.client() as client:
        hashes = [key for key in version("new", 3).hashes() if client.exists(key)]
        assert sum(client.hlen(key) for key in hashes) == 3  # type: ignore[misc]
        assert {client.ttl(key) for key in hashes} == {-1}
        assert client.get(DRAFT) is None


def test_an_older_version_replaces_a_later_one_only_where_it_is_to(store: RedisProcess) -> None:
    publish(store.address, version("later", 2, day=6), large_rows(2), 60)
    with pytest.raises(DataError, match=r"as of 2026-01-06 00:00:00 UTC, later than .* --older"):
        publish(store.address, version("older", 2), large_rows(2), 60)
    assert (current(store).name, drafts(store)) == ("later", [])
    assert publish(store.address, version("older", 2), large_rows(2), 60, older=True) == "later"
    assert current(store).name == "older"


def test_a_later_version_that_comes_while_rows_are_written_stays(store: RedisProcess) -> None:
    later = version("later", 1, day=6)

    def overtaken() -> Iterator[Rows]:
        yield from large_rows(2)
        with store.client() as client:
            client.set(CURRENT, later.model_dump_json())

    with pytest.raises(DataError, match="later than"):
        publish(store.address, version("older", 2), overtaken(), 60)
    assert (current(store).name, drafts(store)) == ("later", [])


def test_a_store_that_is_gone_and_a_run_without_users_are_told(
    store: RedisProcess, trained: Artifacts, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="the store failed"):
        publish_users(trained, "redis://127.0.0.1:1/0")
    with pytest.raises(DataError, match="sluice features"):
        publish_users(Artifacts(tmp_path), store.address)
