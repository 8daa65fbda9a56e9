"""Users as a shared Redis or Valkey knows them: one round trip a request, within a budget, or the bundle's row.

    follow      every LOOK_SECONDS: which version is read now? the same look finds a dead store, and one that has healed
    read        one HGET of the version found last; not asked while the store is known to be down, or knows less than
                the bundle. A caller in a hurry waits less, and says nothing of the store's health by that
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from redis.exceptions import RedisError

from contracts.errors import SluiceError
from contracts.features.encoding import Encoder
from contracts.features.event_features import RECENT
from contracts.shown import short
from serving.redis_store.address import loop_client
from serving.request.query import StoredUser
from serving.users.circuit_breaker import CircuitBreaker, StoreState
from serving.users.published_users import CURRENT, Version, key_of, read_row, read_version

LOOK_SECONDS, LOOK_PATIENCE = 0.5, 1.0  # a healed store is found within their sum, and a half of the first
CONNECTIONS = 16
FAILURES = (RedisError, OSError, TimeoutError)
NO_TABLES = "the store of users holds no tables; `sluice publish-features` writes them"
NOT_IN_TIME = "the store of users did not answer in time"


class UserLookup(NamedTuple):
    """`stored` None: the bundle's row is the best there is, because of `cause` where that is not empty. `published` of
    the tables that were read."""

    stored: StoredUser | None = None
    published: datetime | None = None
    cause: str = ""


class RedisUsers:
    """For one event loop, in which `follow` runs. Tables published at or before `known` are not read: the bundle knows
    as much. `seconds` is the budget of a read."""

    def __init__(self, address: str, encoder: Encoder, known: datetime | None, seconds: float) -> None:
        self._client = loop_client(address, CONNECTIONS, seconds)
        self._encoder, self._known, self._seconds = encoder, known, seconds
        self._fields = [field.name for field in encoder.spec.of_side("user")]
        self._version: Version | None = None
        self._breaker = CircuitBreaker()

    @property
    def state(self) -> StoreState:
        published = None if self._version is None else self._version.published
        return StoreState(published, self._breaker.failures, bool(self._breaker.cause))

    async def follow(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS * random.uniform(0.5, 1.5))  # many servers, one store

    async def look(self) -> None:
        """Finds the version, and whether the store answers. Raises nothing."""
        try:
            async with asyncio.timeout(LOOK_PATIENCE):
                told = await self._client.get(CURRENT)
            self._version = None if told is None else read_version(told)
            self._breaker.looked("" if told else NO_TABLES)
        except FAILURES as error:
            self._breaker.looked(_cause(error))
        except SluiceError as error:
            self._breaker.looked(str(error))
        except Exception as error:  # what answers is no such store: nobody else would look again
            self._breaker.looked(_cause(error))

    async def read(self, user: str, left: float = math.inf) -> UserLookup:
        """Raises nothing: what cannot be read is the bundle's row. Ends within `left` seconds, and its own budget."""
        version = self._version
        if self._breaker.cause or version is None:
            return UserLookup(cause=self._breaker.cause)
        if self._known is not None and version.published <= self._known:
            return UserLookup()
        key = key_of(user)
        try:
            async with asyncio.timeout(min(self._seconds, left)):
                told = await self._client.hget(version.bucket(key), key)  # type: ignore[misc, arg-type]
        except FAILURES as error:
            if left >= self._seconds or not isinstance(error, TimeoutError):
                self._breaker.failed(_cause(error))
            return UserLookup(cause=_cause(error))
        self._breaker.answered()
        return UserLookup(None, version.published) if told is None else self._found(told, version)

    async def close(self) -> None:
        """Ends its connections."""
        await self._client.aclose(close_connection_pool=True)

    def _found(self, told: bytes, version: Version) -> UserLookup:
        try:
            row = read_row(told)
            inputs = self._encoder.encode(self._columns(row.values), "user")
            return UserLookup(StoredUser(inputs, tuple(row.recent[:RECENT])), version.published)
        except Exception as error:  # whoever writes to the store writes anything
            return UserLookup(cause=f"the store's row does not fit the bundle ({short(str(error))})")

    def _columns(self, values: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Of one row; an empty row has one, too."""
        return {name: [values.get(name)] for name in self._fields}


def _cause(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return NOT_IN_TIME
    return f"the store of users cannot be read ({short(str(error))})"


def known_until(published: datetime | None, data_until: datetime | None) -> datetime | None:
    """The moment as of which a bundle knows its users, in UTC: of its tables, else of the end of its log."""
    found = published or data_until
    return None if found is None else (found if found.tzinfo else found.replace(tzinfo=UTC))
