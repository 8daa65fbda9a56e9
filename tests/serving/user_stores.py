"""Stores of users of every kind, by the same words: filled, stopped, broken, mended."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from benchmarks.freshness.redis_process import RedisProcess
from serving.bundle.loaded_bundle import LoadedBundle
from serving.users import embedded_publisher
from serving.users.embedded_tables import FILE, EmbeddedTables
from serving.users.published_users import CURRENT, Version, key_of
from serving.users.redis_tables import RedisTables
from serving.users.user_reader import UserReader
from serving.users.user_tables import UserTables

PUBLISHED = datetime(2026, 1, 5, tzinfo=UTC)
OF_ANOTHER_RELEASE = '{"format": 9, "name": "v", "buckets": 1, "rows": 1, "published": "2026-01-05T00:00:00Z"}'


def asked(
    tables: Callable[[], UserTables], loaded: LoadedBundle, work: Callable[[UserReader], Awaitable[None]],
    known: datetime | None = None, seconds: float = 5.0,
) -> None:
    """Done with a reader of these tables that has looked once."""
    async def run() -> None:
        users = UserReader(tables(), loaded.encoder, known, seconds)
        try:
            await users.look()
            await work(users)
        finally:
            await users.close()

    asyncio.run(run())


class UserStore(Protocol):
    """`place` is what `--user-store` names."""

    place: str

    def tables(self, seconds: float) -> UserTables: ...

    def put(self, user: str, told: str, published: datetime = PUBLISHED, name: str = "v") -> None:
        """A version of one user."""
        ...

    def put_version(self, told: str) -> None: ...

    def stop(self) -> None:
        """It is there and does not answer."""
        ...

    def go_on(self) -> None: ...

    def ruin(self) -> None:
        """Nothing can be read any more."""
        ...

    def mend(self) -> None:
        """It is there again, empty."""
        ...

    def close(self) -> None: ...


class RedisStore:
    def __init__(self, folder: Path) -> None:
        self.process = RedisProcess(folder)
        self.place = self.process.address
        self.stop, self.go_on, self.ruin = self.process.stop, self.process.go_on, self.process.kill
        self.mend, self.close = self.process.start, self.process.kill

    def tables(self, seconds: float) -> UserTables:
        return RedisTables(self.place, seconds)

    def put(self, user: str, told: str, published: datetime = PUBLISHED, name: str = "v") -> None:
        version = Version(name=name, buckets=1, rows=1, published=published)
        with self.process.client() as client:
            client.hset(version.bucket(key_of(user)), user, told)
        self.put_version(version.model_dump_json())

    def put_version(self, told: str) -> None:
        with self.process.client() as client:
            client.set(CURRENT, told)


class EmbeddedStore:
    """Stopped as by a disk that hangs: the thread that reads does not come back. Ruined by another file in place of
    its own."""

    def __init__(self, folder: Path) -> None:
        self.place, self.file = str(folder), folder / FILE
        self._going = threading.Event()
        self._tables: list[EmbeddedTables] = []

    def tables(self, seconds: float) -> UserTables:
        self._tables.append(EmbeddedTables(Path(self.place), seconds))
        return self._tables[-1]

    def put(self, user: str, told: str, published: datetime = PUBLISHED, name: str = "v") -> None:
        version = Version(name=name, buckets=1, rows=1, published=published)
        embedded_publisher.publish(Path(self.place), version, iter([[(key_of(user), told)]]), older=True)

    def put_version(self, told: str) -> None:
        self.put("u01", "{}")
        with closing(sqlite3.connect(self.file)) as database, database:
            database.execute("UPDATE version SET told = ?", (told,))

    def stop(self) -> None:
        self._going.clear()
        for tables in self._tables:
            tables.thread.submit(self._going.wait)

    def go_on(self) -> None:
        self._going.set()

    def ruin(self) -> None:
        other = self.file.with_name("other")
        other.write_bytes(b"no data base" * 1000)
        other.replace(self.file)

    def mend(self) -> None:
        self.file.unlink()

    def close(self) -> None:
        self._going.set()
