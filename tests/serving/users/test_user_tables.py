"""What stores of every kind answer alike."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from contracts.errors import DataError
from serving.users.published_users import key_of
from serving.users.user_tables import UserTables
from tests.serving.running_redis import needs_redis
from tests.serving.user_stores import OF_ANOTHER_RELEASE, PUBLISHED, EmbeddedStore, RedisStore, UserStore

KINDS: dict[str, Callable[[Path], UserStore]] = {"redis": RedisStore, "embedded": EmbeddedStore}


@pytest.fixture(params=[pytest.param("redis", marks=needs_redis), "embedded"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UserStore]:
    made = KINDS[request.param](tmp_path)
    yield made
    made.close()


def asked(store: UserStore, work: Callable[[UserTables], Awaitable[None]]) -> None:
    async def run() -> None:
        tables = store.tables(5.0)
        try:
            await work(tables)
        finally:
            await tables.close()

    asyncio.run(run())


def test_a_row_is_found_as_it_was_put_with_its_version_and_nobody_elses(store: UserStore) -> None:
    async def work(tables: UserTables) -> None:
        assert await tables.current() is None
        for day, user in enumerate(("ü", "b")):
            store.put(user, f'{{"row of": "{user}"}}', PUBLISHED + timedelta(days=day), name=user)
            version = await tables.current()
            assert version is not None
            found = await tables.row(version, key_of(user))
            assert found == (version, f'{{"row of": "{user}"}}'.encode())
            assert (version.name, version.published) == (user, PUBLISHED + timedelta(days=day))
            assert (await tables.row(version, b"stranger")).row is None
        assert version is not None
        assert (await tables.row(version, key_of("ü"))).row is None

    asked(store, work)


def test_what_another_release_wrote_is_refused(store: UserStore) -> None:
    store.put_version(OF_ANOTHER_RELEASE)

    async def work(tables: UserTables) -> None:
        with pytest.raises(DataError, match="format 9"):
            await tables.current()

    asked(store, work)


def test_a_store_without_tables_has_a_word_for_it(store: UserStore) -> None:
    async def work(tables: UserTables) -> None:
        assert "publish-features" in tables.empty

    asked(store, work)
