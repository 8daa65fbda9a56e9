"""What a store of a later day's users is asked: the one interface of all of them.

    RedisTables       a Redis or Valkey that hosts share
    EmbeddedTables    a file of the host's own, which its workers share
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from serving.users.published_users import Version

NO_TABLES = "the store of users holds no tables; `sluice publish-features` writes them"


class Found(NamedTuple):
    """A user's row as it lies in the store, None where it has none, and the version that it is of."""

    version: Version
    row: bytes | None


class UserTables(Protocol):
    """For one event loop. Both questions may raise whatever the store does, and may be cancelled. `empty` says what a
    store without tables means, "" where none are expected."""

    empty: str

    async def current(self) -> Version | None:
        """The version that is read now, None without any."""
        ...

    async def row(self, version: Version, user: bytes) -> Found:
        """Of `version`, or of one that has replaced it."""
        ...

    async def close(self) -> None: ...
