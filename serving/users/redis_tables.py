"""Tables of users in a Redis or Valkey that hosts share: a user's row is one HGET of the version found last."""

from __future__ import annotations

from serving.redis_store.address import loop_client
from serving.users.published_users import CURRENT, Version, read_version
from serving.users.user_tables import NO_TABLES, Found

CONNECTIONS = 16


class RedisTables:
    """`seconds` that a question waits for a connection. Raises ConfigError where `address` is none."""

    def __init__(self, address: str, seconds: float) -> None:
        self._client = loop_client(address, CONNECTIONS, seconds)
        self.empty = NO_TABLES

    async def current(self) -> Version | None:
        told = await self._client.get(CURRENT)
        return None if told is None else read_version(told)

    async def row(self, version: Version, user: bytes) -> Found:
        """A version that was replaced stays for a while."""
        return Found(version, await self._client.hget(version.bucket(user), user))  # type: ignore[misc, arg-type]

    async def close(self) -> None:
        """Ends its connections."""
        await self._client.aclose(close_connection_pool=True)
