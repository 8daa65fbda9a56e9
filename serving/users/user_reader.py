"""Users of a later day, read from a store within a budget, or the bundle's row.

    follow      every LOOK_SECONDS: which version is read now? the same look finds a dead store, and one that has healed
    read        one question of the version found last; not asked while the store is known to be down, or knows less
                than the bundle. A caller in a hurry waits less, and says nothing of the store's health by that
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from contracts.errors import SluiceError
from contracts.features.encoding import Encoder
from contracts.features.event_features import RECENT
from contracts.shown import short
from serving.request.query import StoredUser
from serving.users.circuit_breaker import CircuitBreaker, StoreState
from serving.users.published_users import Version, key_of, read_row
from serving.users.user_tables import Found, UserTables

LOOK_SECONDS, LOOK_PATIENCE = 0.5, 1.0  # a healed store is found within their sum, and a half of the first
NOT_IN_TIME = "the store of users did not answer in time"


class UserLookup(NamedTuple):
    """`stored` None: the bundle's row is the best there is, because of `cause` where that is not empty. `published` of
    the tables that were read."""

    stored: StoredUser | None = None
    published: datetime | None = None
    cause: str = ""


class UserReader:
    """For one event loop, in which `follow` runs. Tables published at or before `known` are not read: the bundle knows
    as much. `seconds` is the budget of a read."""

    def __init__(self, tables: UserTables, encoder: Encoder, known: datetime | None, seconds: float) -> None:
        self._tables, self._encoder, self._known, self._seconds = tables, encoder, known, seconds
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
                self._version = await self._tables.current()
            self._breaker.looked("" if self._version else self._tables.empty)
        except Exception as error:  # even what answers and is no such store: nobody else would look again
            self._breaker.looked(_cause(error))

    async def read(self, user: str, left: float = math.inf) -> UserLookup:
        """Raises nothing: what cannot be read is the bundle's row. Ends within `left` seconds, and its own budget."""
        version = self._version
        if self._breaker.cause or version is None:
            return UserLookup(cause=self._breaker.cause)
        if not self._is_later(version):
            return UserLookup()
        try:
            async with asyncio.timeout(min(self._seconds, left)):
                found = await self._tables.row(version, key_of(user))
        except Exception as error:  # whatever a store raises
            if left >= self._seconds or not isinstance(error, TimeoutError):
                self._breaker.failed(_cause(error))
            return UserLookup(cause=_cause(error))
        self._breaker.answered()
        return self._lookup(found) if self._is_later(found.version) else UserLookup()

    async def close(self) -> None:
        """Ends what it reads through."""
        await self._tables.close()

    def _is_later(self, version: Version) -> bool:
        return self._known is None or version.published > self._known

    def _lookup(self, found: Found) -> UserLookup:
        published = found.version.published
        if found.row is None:
            return UserLookup(None, published)
        try:
            row = read_row(found.row)
            inputs = self._encoder.encode(self._columns(row.values), "user")
            return UserLookup(StoredUser(inputs, tuple(row.recent[:RECENT]), row.told.first(RECENT)), published)
        except Exception as error:  # whoever writes to the store writes anything
            return UserLookup(cause=f"the store's row does not fit the bundle ({short(str(error))})")

    def _columns(self, values: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Of one row; an empty row has one, too."""
        return {name: [values.get(name)] for name in self._fields}


def _cause(error: Exception) -> str:
    if isinstance(error, SluiceError):
        return str(error)
    if isinstance(error, TimeoutError):
        return NOT_IN_TIME
    return f"the store of users cannot be read ({short(str(error))})"


def known_until(published: datetime | None, data_until: datetime | None) -> datetime | None:
    """The moment as of which a bundle knows its users, in UTC: of its tables, else of the end of its log."""
    found = published or data_until
    return None if found is None else (found if found.tzinfo else found.replace(tzinfo=UTC))
