"""Against stores of every kind: a real Redis, and a file of the host."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from contracts.artifacts import Artifacts
from contracts.features.event_features import RECENT
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.query import FreshUser, RankQuery, StageReport
from serving.request.request_features import RequestFeatures
from serving.users.circuit_breaker import LIMIT
from serving.users.published_users import LARGEST_ROW, UserRow, write_row
from serving.users.user_publisher import publish_users
from serving.users.user_reader import NOT_IN_TIME, UserLookup, UserReader, known_until
from serving.users.user_tables import NO_TABLES
from tests.serving import user_stores
from tests.serving.conftest import Market
from tests.serving.running_redis import needs_redis
from tests.serving.user_stores import OF_ANOTHER_RELEASE, PUBLISHED, EmbeddedStore, RedisStore, UserStore

KINDS: dict[str, Callable[[Path], UserStore]] = {"redis": RedisStore, "embedded": EmbeddedStore}
NEXT_DAY = PUBLISHED + timedelta(days=1)


@pytest.fixture(params=[pytest.param("redis", marks=needs_redis), "embedded"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UserStore]:
    made = KINDS[request.param](tmp_path)
    yield made
    made.close()


def asked(
    store: UserStore, loaded: LoadedBundle, work: Callable[[UserReader], Awaitable[None]],
    known: datetime | None = None, seconds: float = 5.0,
) -> None:
    user_stores.asked(lambda: store.tables(seconds), loaded, work, known, seconds)


def test_a_published_row_is_what_the_bundle_would_have_stored(
    store: UserStore, loaded: LoadedBundle, trained: Artifacts, market: Market
) -> None:
    publish_users(trained, store.place)
    features = RequestFeatures(loaded)

    async def every(users: UserReader) -> None:
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


def test_an_empty_store_is_told(store: UserStore, loaded: LoadedBundle) -> None:
    async def work(users: UserReader) -> None:
        assert await users.read("u01") == UserLookup(cause=NO_TABLES)
        assert users.state == (None, 0, True)

    asked(store, loaded, work)


def test_tables_that_know_no_more_than_the_bundle_are_not_read(store: UserStore, loaded: LoadedBundle) -> None:
    store.put("u01", write_row(UserRow({}, [])))

    async def has_nothing(users: UserReader) -> None:
        assert await users.read("u01") == UserLookup()

    async def has_a_row(users: UserReader) -> None:
        assert (await users.read("u01")).stored is not None

    asked(store, loaded, has_nothing, known=PUBLISHED)
    asked(store, loaded, has_a_row, known=PUBLISHED - timedelta(microseconds=1))


def test_a_new_version_is_read_from_the_next_look_on_if_not_before(store: UserStore, loaded: LoadedBundle) -> None:
    days = {"old": PUBLISHED, "new": NEXT_DAY}
    store.put("u01", write_row(UserRow({}, ["old"])))

    async def work(users: UserReader) -> None:
        store.put("u01", write_row(UserRow({}, ["new"])), NEXT_DAY, "w")
        before = await users.read("u01")
        await users.look()
        after = await users.read("u01")
        assert before.stored is not None
        assert after.stored is not None
        assert before.published == days[before.stored.recent[0]]
        assert after.stored.recent == ("new",)
        assert after.published == users.state.published == NEXT_DAY

    asked(store, loaded, work)


def test_tables_that_are_set_back_behind_the_bundle_are_not_read(store: UserStore, loaded: LoadedBundle) -> None:
    store.put("u01", write_row(UserRow({}, ["new"])), NEXT_DAY)

    async def work(users: UserReader) -> None:
        assert (await users.read("u01")).stored is not None
        store.put("u01", write_row(UserRow({}, ["old"])), PUBLISHED, "w")
        await users.look()
        assert await users.read("u01") == UserLookup()

    asked(store, loaded, work, known=PUBLISHED)


@pytest.mark.parametrize("told", [
    "{", '{"values": {"visits": "many"}, "recent": []}', '{"values": {"visits": 1%s}, "recent": []}' % ("0" * 400),
    "[" * 100_000, write_row(UserRow({}, ["i" * LARGEST_ROW]))], ids=["cut", "text", "large", "deep", "long"])
def test_a_row_that_does_not_fit_is_the_bundles_row(store: UserStore, loaded: LoadedBundle, told: str) -> None:
    store.put("u01", told)

    async def work(users: UserReader) -> None:
        found = await users.read("u01")
        assert found.stored is None
        assert "does not fit" in found.cause
        assert not users.state.is_down

    asked(store, loaded, work)


def test_a_stopped_store_is_asked_a_few_times_and_again_once_it_has_gone_on(
    store: UserStore, loaded: LoadedBundle
) -> None:
    store.put("u01", write_row(UserRow({}, [])))

    async def work(users: UserReader) -> None:
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


def test_a_ruined_store_is_found_by_a_look_and_so_is_its_successor(store: UserStore, loaded: LoadedBundle) -> None:
    store.put("u01", write_row(UserRow({}, [])))

    async def work(users: UserReader) -> None:
        store.ruin()
        await users.look()
        assert "cannot be read" in (await users.read("u01")).cause
        store.mend()
        await users.look()
        assert (await users.read("u01")).cause == NO_TABLES
        store.put("u01", write_row(UserRow({}, ["i01"])))
        await users.look()
        found = await users.read("u01")
        assert found.stored is not None
        assert found.stored.recent == ("i01",)

    asked(store, loaded, work)


def test_following_looks_by_itself_until_it_is_cancelled(store: UserStore, loaded: LoadedBundle) -> None:
    async def work(users: UserReader) -> None:
        following = asyncio.create_task(users.follow())
        store.put("u01", write_row(UserRow({}, [])))
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


def test_items_are_as_many_as_a_bundle_keeps(store: UserStore, loaded: LoadedBundle) -> None:
    store.put("u01", write_row(UserRow({}, [f"i{place}" for place in range(2 * RECENT)])))

    async def work(users: UserReader) -> None:
        found = (await users.read("u01")).stored
        assert found is not None
        assert found.recent == tuple(f"i{place}" for place in range(RECENT))

    asked(store, loaded, work)


def test_a_version_of_another_release_is_told(store: UserStore, loaded: LoadedBundle) -> None:
    store.put_version(OF_ANOTHER_RELEASE)

    async def work(users: UserReader) -> None:
        assert "format 9" in (await users.read("u01")).cause

    asked(store, loaded, work)
