"""A run's table into stores of every kind."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contracts.artifacts import Artifacts
from contracts.config.stages import Retrieve
from contracts.errors import ConfigError, DataError
from contracts.features.event_features import ToldEvents
from serving.users.published_users import Version, key_of, read_row
from serving.users.user_publisher import publish_users
from serving.users.user_tables import Found
from tests.serving.conftest import Market, told_users, write_table
from tests.serving.running_redis import needs_redis
from tests.serving.user_stores import EmbeddedStore, RedisStore, UserStore

KINDS: dict[str, Callable[[Path], UserStore]] = {"redis": RedisStore, "embedded": EmbeddedStore}


@pytest.fixture(params=[pytest.param("redis", marks=needs_redis), "embedded"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UserStore]:
    place = tmp_path / "store"
    place.mkdir()
    made = KINDS[request.param](place)
    yield made
    made.close()


def found(store: UserStore, users: list[str]) -> tuple[Version | None, list[Found]]:
    async def run() -> tuple[Version | None, list[Found]]:
        tables = store.tables(5.0)
        version = await tables.current()
        rows = [await tables.row(version, key_of(user)) for user in users] if version else []
        await tables.close()
        return version, rows

    return asyncio.run(run())


def test_every_user_of_the_run_has_its_row(store: UserStore, trained: Artifacts, market: Market) -> None:
    told, users = publish_users(trained, store.place), list(market.users["_user"])
    version, rows = found(store, users)
    assert version is not None
    assert (told.version, told.published, told.rows, told.replaces) == (
        version.name, version.published, len(users), None)
    for number, one in enumerate(rows):
        assert one.row is not None
        row = read_row(one.row)
        assert row.values == {name: market.users[name][number] for name in ("taste", "visits", "history")}
        assert row.recent == market.users["_recent_items"][number]


def test_what_is_told_of_histories_goes_along(store: UserStore, market: Market, tmp_path: Path) -> None:
    out = Artifacts(tmp_path / "out")
    users = told_users(market, Retrieve.model_validate({"events": ["time", "kind"], "channels": {"sasrec": {}}}))
    write_table(out.online_users, users)
    out.encoding.mkdir(parents=True)
    market.spec.write(out.encoding)
    publish_users(out, store.place)
    number = 4
    _, (one,) = found(store, [users["_user"][number]])
    assert one.row is not None
    kinds = users["_recent_value_kind"][number]
    assert read_row(one.row).told == ToldEvents(users["_recent_times"][number], {"kind": kinds})


def test_a_version_replaces_the_one_before(store: UserStore, trained: Artifacts) -> None:
    first, second = (publish_users(trained, store.place) for _ in range(2))
    assert second.replaces == first.version != second.version
    assert found(store, ["u01"])[1][0].version.name == second.version


def test_a_table_that_is_not_whole_changes_nothing(store: UserStore, trained: Artifacts, tmp_path: Path) -> None:
    first = publish_users(trained, store.place)
    twice = Artifacts(Path(shutil.copytree(trained.out, tmp_path / "out")))
    part = next(twice.online_users.rglob("*.parquet"))
    shutil.copy(part, part.with_name("again.parquet"))
    with pytest.raises(DataError, match="a key twice"):
        publish_users(twice, store.place)
    version, [row] = found(store, ["u01"])
    assert version is not None
    assert version.name == first.version
    assert row.row is not None


def test_a_run_without_users_and_what_is_no_store_are_told(trained: Artifacts, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sluice features"):
        publish_users(Artifacts(tmp_path), str(tmp_path))
    with pytest.raises(ConfigError, match="no address"):
        publish_users(trained, "localhost")
