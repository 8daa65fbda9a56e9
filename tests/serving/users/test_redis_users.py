"""Against a real Redis, which is stopped, killed and started again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.freshness.redis_process import RedisProcess
from contracts.artifacts import Artifacts
from contracts.features.event_features import RECENT
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.query import FreshUser, RankQuery, StageReport
from serving.request.request_features import RequestFeatures
from serving.users.circuit_breaker import LIMIT
from serving.users.published_users import CURRENT, LARGEST_ROW, UserRow, Version, key_of, write_row
from serving.users.redis_users import NO_TABLES, NOT_IN_TIME, RedisUsers, UserLookup, known_until
from serving.users.user_publisher import publish_users
from tests.serving.conftest import Market
from tests.serving.running_redis import needs_redis

pytestmark = needs_redis
PUBLISHED = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    with RedisProcess(tmp_path_factory.mktemp("redis")) as running:
        yield running


def asked(
    store: RedisProcess, loaded: LoadedBundle, work: Callable[[RedisUsers], Awaitable[None]],
    known: datetime | None = None, seconds: float = 5.0,
) -> None:
    async def run() -> None:
        users = RedisUsers(store.address, loaded.encoder, known, seconds)
        try:
            await users.look()
            await work(users)
        finally:
            await users.close()

    asyncio.run(run())


def put(store: RedisProcess, user: str, told: str, published: datetime = PUBLISHED, name: str = "v") -> None:
    """A version of one user."""
    version = Version(name=name, buckets=1, rows=1, published=published)
    with store.client() as client:
        client.hset(version.bucket(key_of(user)), user, told)
        client.set(CURRENT, version.model_dump_json())


def test_a_published_row_is_what_the_bundle_would_have_stored(
    store: RedisProcess, loaded: LoadedBundle, trained: Artifacts, market: Market
) -> None:
    publish_users(trained, store.address)
    features = RequestFeatures(loaded)

    async def every(users: RedisUsers) -> None:
        for user in market.users["_user"]:
            found = await users.read(user)
            assert found.stored is not None
            assert found.cause == ""
            fresh = FreshUser(StageReport("user", 0, 0, 0), stored=found.stored)
            ours, theirs = (features.requester(RankQuery(user, 5, fresh=one)) for one in (fresh, None))
            assert ours.known
            assert ours.inputs.ids.tolist() == theirs.inputs.ids.tolist()
            assert ours.inputs.dense.tolist() == theirs.inputs.dense.tolist()
            assert ours.recent.tolist() == theirs.recent.tolist()
        assert (await users.read("stranger")).stored is None

    asked(store, loaded, every)


def test_an_empty_store_is_told(store: RedisProcess, loaded: LoadedBundle) -> None:
    async def work(users: RedisUsers) -> None:
        assert await users.read("u01") == UserLookup(cause=NO_TABLES)
        assert users.state == (None, 0, True)

    asked(store, loaded, work)


def test_tables_that_know_no_more_than_the_bundle_are_not_read(store: RedisProcess, loaded: LoadedBundle) -> None:
    put(store, "u01", write_row(UserRow({}, [])))

    async def has_nothing(users: RedisUsers) -> None:
        assert await users.read("u01") == UserLookup()

    async def has_a_row(users: RedisUsers) -> None:
        assert (await users.read("u01")).stored is not None

    asked(store, loaded, has_nothing, known=PUBLISHED)
    asked(store, loaded, has_a_row, known=PUBLISHED - timedelta(microseconds=1))


def test_a_new_version_is_read_from_the_next_look_on(store: RedisProcess, loaded: LoadedBundle) -> None:
    put(store, "u01", write_row(UserRow({}, ["old"])))

    async def work(users: RedisUsers) -> None:
        put(store, "u01", write_row(UserRow({}, ["new"])), PUBLISHED + timedelta(days=1), "w")
        before = await users.read("u01")
        await users.look()
        after = await users.read("u01")
        assert before.stored is not None
        assert after.stored is not None
        assert (before.stored.recent, after.stored.recent) == (("old",), ("new",))
        assert after.published == users.state.published == PUBLISHED + timedelta(days=1)

    asked(store, loaded, work)


@pytest.mark.parametrize("told", [
    "{", '{"values": {"visits": "many"}, "recent": []}', '{"values": {"visits": 1%s}, "recent": []}' % ("0" * 400),
    "[" * 100_000, write_row(UserRow({}, ["i" * LARGEST_ROW]))], ids=["cut", "text", "large", "deep", "long"])
def test_a_row_that_does_not_fit_is_the_bundles_row(store: RedisProcess, loaded: LoadedBundle, told: str) -> None:
    put(store, "u01", told)

    async def work(users: RedisUsers) -> None:
        found = await users.read("u01")
        assert found.stored is None
        assert "does not fit" in found.cause
        assert not users.state.is_down

    asked(store, loaded, work)


def test_a_stopped_store_is_asked_a_few_times_and_again_once_it_has_gone_on(
    store: RedisProcess, loaded: LoadedBundle
) -> None:
    put(store, "u01", write_row(UserRow({}, [])))

    async def work(users: RedisUsers) -> None:
        store.stop()
        causes = [(await users.read("u01")).cause for _ in range(5 * LIMIT)]
        assert causes == [NOT_IN_TIME] * 5 * LIMIT
        assert tuple(users.state) == (PUBLISHED, LIMIT, True)
        store.go_on()
        assert (await users.read("u01")).stored is None
        await users.look()
        assert (await users.read("u01")).stored is not None
        assert not users.state.is_down

    asked(store, loaded, work, seconds=0.05)


def test_a_killed_store_is_found_by_a_look_and_so_is_its_successor(store: RedisProcess, loaded: LoadedBundle) -> None:
    put(store, "u01", write_row(UserRow({}, [])))

    async def work(users: RedisUsers) -> None:
        store.kill()
        await users.look()
        assert "cannot be read" in (await users.read("u01")).cause
        store.start()
        put(store, "u01", write_row(UserRow({}, ["i01"])))
        await users.look()
        found = await users.read("u01")
        assert found.stored is not None
        assert found.stored.recent == ("i01",)

    asked(store, loaded, work)


def test_following_looks_by_itself_until_it_is_cancelled(store: RedisProcess, loaded: LoadedBundle) -> None:
    async def work(users: RedisUsers) -> None:
        following = asyncio.create_task(users.follow())
        put(store, "u01", write_row(UserRow({}, [])))
        async with asyncio.timeout(60):
            while users.state.is_down:
                await asyncio.sleep(0.01)
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following

    asked(store, loaded, work)


def test_a_bundle_knows_its_users_until_its_tables_were_published_or_its_log_ends() -> None:
    later = PUBLISHED + timedelta(days=1)
    assert known_until(PUBLISHED, later) == PUBLISHED
    assert known_until(None, later.replace(tzinfo=None)) == later
    assert known_until(None, None) is None


def test_what_answers_and_is_no_store_is_told(loaded: LoadedBundle) -> None:
    async def garbled(asked: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        while await asked.read(1 << 16):
            answer.write(b":one\r\n" * 20)
        answer.close()

    async def run() -> None:
        async with await asyncio.start_server(garbled, "127.0.0.1", 0) as server:
            users = RedisUsers(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", loaded.encoder, None, 5.0)
            await users.look()
            assert "cannot be read" in (await users.read("u01")).cause
            await users.close()

    asyncio.run(run())


def test_items_are_as_many_as_a_bundle_keeps(store: RedisProcess, loaded: LoadedBundle) -> None:
    put(store, "u01", write_row(UserRow({}, [f"i{place}" for place in range(2 * RECENT)])))

    async def work(users: RedisUsers) -> None:
        found = (await users.read("u01")).stored
        assert found is not None
        assert found.recent == tuple(f"i{place}" for place in range(RECENT))

    asked(store, loaded, work)


def test_a_version_of_another_release_is_told(store: RedisProcess, loaded: LoadedBundle) -> None:
    with store.client() as client:
        client.set(CURRENT, '{"format": 9, "name": "v", "buckets": 1, "rows": 1, "published": "2026-01-05T00:00:00Z"}')

    async def work(users: RedisUsers) -> None:
        assert "format 9" in (await users.read("u01")).cause

    asked(store, loaded, work)
