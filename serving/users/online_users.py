"""What is known of a user beyond the bundle: the row of a store, and after it the events of the host.

    values    counters of events where they are whole, else the store's row, else the bundle's
    recent    clicks learned since the tables were published that their list lacks, then the list
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from serving.events.event_users import NAME, EventUsers
from serving.request.query import Fallback, FreshUser, StageReport, StageStatus
from serving.users.user_reader import UserLookup, UserReader


class OnlineUsers:
    """`events` None: this server keeps none."""

    def __init__(self, tables: UserReader, events: EventUsers | None) -> None:
        self._tables, self._events = tables, events

    async def read(self, user: str, left: float = math.inf, who: Callable[[], str] = str) -> FreshUser:
        """Never raises: what cannot be read within `left` seconds is the bundle's row, and the report says why. `who`
        names the caller."""
        begun = time.perf_counter()
        looked = await self._tables.read(user, left)
        fresh = FreshUser(StageReport(NAME, 0, 0, 0))
        if self._events is not None:
            left -= time.perf_counter() - begun
            fresh = await self._events.read(user, left, who, looked.published if looked.stored else None)
        report = _joined(looked, fresh.report, round((time.perf_counter() - begun) * 1e6))
        return replace(fresh, report=report, stored=looked.stored)


def _joined(looked: UserLookup, events: StageReport, microseconds: int) -> StageReport:
    """Of both reads; the age is of the newest that was read."""
    cause = "; ".join(part for part in (looked.cause, events.cause) if part)
    ages = [age for age in (events.age, _age(looked)) if age is not None]
    status, fallback = (StageStatus.DEGRADED, Fallback.BUNDLE_ROW) if cause else (StageStatus.COMPLETE, Fallback.NONE)
    return StageReport(NAME, 0, 0, microseconds, status, cause, fallback, min(ages, default=None))


def _age(looked: UserLookup) -> float | None:
    if looked.stored is None or looked.published is None:
        return None
    return max((datetime.now(UTC) - looked.published).total_seconds(), 0.0)
