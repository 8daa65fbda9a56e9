"""What only a file can do: be missing, be locked, be damaged, be replaced."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.users import embedded_publisher
from serving.users.embedded_tables import FILE, EmbeddedTables
from serving.users.published_users import UserRow, Version, write_row
from serving.users.user_reader import UserLookup, UserReader
from tests.serving import user_stores
from tests.serving.user_stores import PUBLISHED, EmbeddedStore

MANY = 2_000


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    return EmbeddedStore(tmp_path)


def asked(
    store: EmbeddedStore, loaded: LoadedBundle, work: Callable[[UserReader], Awaitable[None]], expected: bool = True
) -> None:
    user_stores.asked(lambda: EmbeddedTables(Path(store.place), 0.05, expected), loaded, work)


def publish(folder: Path, name: str, rows: int = MANY) -> None:
    """Each user's row names the version."""
    version = Version(name=name, buckets=1, rows=rows, published=datetime.now(UTC))
    told = write_row(UserRow({}, [name] * 10))
    embedded_publisher.publish(folder, version, iter([[(b"u%d" % user, told) for user in range(rows)]]))


async def first_item(users: UserReader, user: str = "u01") -> str | None:
    found = (await users.read(user)).stored
    return found.recent[0] if found else None


def test_no_file_is_nothing_to_complain_of_where_none_is_expected(store: EmbeddedStore, loaded: LoadedBundle) -> None:
    async def work(users: UserReader) -> None:
        assert await users.read("u01") == UserLookup()
        assert users.state == (None, 0, False)
        store.put("u01", write_row(UserRow({}, ["i"])))
        await users.look()
        assert await first_item(users) == "i"
        store.file.unlink()
        await users.look()
        assert await users.read("u01") == UserLookup()

    asked(store, loaded, work, expected=False)
    assert not store.file.exists()  # who reads makes none


def test_a_file_that_is_there_and_has_nothing_in_it_yet_is_empty(store: EmbeddedStore, loaded: LoadedBundle) -> None:
    store.file.touch()

    async def work(users: UserReader) -> None:
        assert await users.read("u01") == UserLookup()

    asked(store, loaded, work, expected=False)


def test_a_file_put_in_place_of_another_is_read(store: EmbeddedStore, loaded: LoadedBundle, tmp_path: Path) -> None:
    store.put("u01", write_row(UserRow({}, ["old"])))
    other = EmbeddedStore(tmp_path / "other")
    other.put("u01", write_row(UserRow({}, ["new"])))

    async def work(users: UserReader) -> None:
        assert await first_item(users) == "old"
        other.file.replace(store.file)
        await users.look()
        assert await first_item(users) == "new"

    asked(store, loaded, work)


def test_a_locked_file_is_the_bundles_row_until_it_is_let_go(store: EmbeddedStore, loaded: LoadedBundle) -> None:
    store.put("u01", write_row(UserRow({}, ["i"])))

    async def work(users: UserReader) -> None:
        assert "locked" in (await users.read("u01")).cause
        holder.close()
        await users.look()
        assert await first_item(users) == "i"

    with closing(sqlite3.connect(store.file, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        asked(store, loaded, work)


def test_damaged_pages_are_the_bundles_row_until_users_are_published_into_a_new_file(
    store: EmbeddedStore, loaded: LoadedBundle, tmp_path: Path
) -> None:
    publish(tmp_path, "old")
    size = store.file.stat().st_size
    with store.file.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * (size - 3 * 4096))

    async def work(users: UserReader) -> None:
        causes = [(await users.read(f"u{user}")).cause for user in range(10)]
        assert all("malformed" in cause for cause in causes)
        store.file.unlink()
        publish(tmp_path, "new")
        await users.look()
        assert await first_item(users, "u1") == "new"

    asked(store, loaded, work)


def test_rows_are_of_one_version_whoever_publishes_meanwhile(
    store: EmbeddedStore, loaded: LoadedBundle, tmp_path: Path
) -> None:
    """Each version is published later than the one before: what a read says of both never disagrees."""
    publish(tmp_path, "0")

    def publishing() -> None:
        for name in range(1, 6):
            publish(tmp_path, str(name))
        done.set()

    async def work(users: UserReader) -> None:
        thread.start()
        seen: dict[str, set[datetime]] = {}
        while not done.is_set():
            found = await users.read("u7")
            assert found.stored is not None
            assert found.published is not None
            seen.setdefault(found.stored.recent[0], set()).add(found.published)
        thread.join()
        found = await users.read("u7")
        assert found.stored is not None
        assert found.stored.recent[0] == "5"
        assert all(len(moments) == 1 for moments in seen.values())

    done, thread = threading.Event(), threading.Thread(target=publishing)
    asked(store, loaded, work)


def test_the_file_lies_where_the_server_keeps_the_rest(store: EmbeddedStore) -> None:
    store.put("u01", "{}", PUBLISHED)
    assert [path.name for path in Path(store.place).iterdir()] == [FILE]  # nothing is left beside it
