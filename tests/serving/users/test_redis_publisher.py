"""Against a real Redis."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.freshness.redis_process import RedisProcess
from contracts.artifacts import Artifacts
from contracts.errors import DataError
from serving.users import user_publisher
from serving.users.published_users import CURRENT, LOCK, UserRow, Version, key_of, read_row, read_version, write_row
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
    with store.client() as client:  # what was written goes by itself
        assert all(int(client.ttl(key)) > 0 for key in client.keys("sluice:users:2*")  # type: ignore[arg-type]
                   if key.decode() not in before.hashes())


def test_a_store_that_is_gone_and_a_run_without_users_are_told(
    store: RedisProcess, trained: Artifacts, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="the store failed"):
        publish_users(trained, "redis://127.0.0.1:1/0")
    with pytest.raises(DataError, match="sluice features"):
        publish_users(Artifacts(tmp_path), store.address)
