"""What the events of the host say of a user now, beyond the bundle's tables."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from contracts.features.event_clock import SECOND
from contracts.features.event_features import NOTHING_TOLD, RECENT, EventFeatures
from contracts.shown import short
from contracts.thread_name import name_thread
from serving.batches.places import NoPlace, Places
from serving.events.event_store import Clock, EventStore
from serving.request.query import ContextValue, Fallback, FreshUser, StageReport, StageStatus

NAME = "user"
FEW = 200  # impressions that are read at once, which takes half a millisecond
NOT_IN_TIME = "the events of the user were not read in time"
MOST_WAITING = 32  # reads of more, beside the event loop, of all callers: some ten milliseconds each


class EventUsers:
    """Reads the file as it is: what any process of the host has committed, the next request knows. Its store waits for
    others no more, and a file that is locked is one that cannot be read. Belongs to one event loop, beside which a
    thread reads what takes longer, with a store of its own.

    A counter is served event-fresh where the models were trained on such, and once the file holds its whole window.
    """

    def __init__(self, opened: Callable[[], EventStore], features: EventFeatures, clock: Clock) -> None:
        self._features, self._clock = features, clock
        self._store, self._beside = _impatient(opened()), _impatient(opened())
        self._since = self._store.since
        self.thread = ThreadPoolExecutor(1, "users", name_thread)
        self._places = Places(MOST_WAITING, "users of many events are being read", "ask again later")
        published = features.published
        self._published = 0 if published is None else _micros(published)

    async def read(
        self, user: str, left: float = math.inf, who: Callable[[], str] = str, published: datetime | None = None
    ) -> FreshUser:
        """Never raises: what cannot be read is the bundle's row, and the report says why; so is what takes more than
        `left` seconds beside the event loop, and what the caller, named by `who`, has too much of there. `published` of
        a row that stands in place of the bundle's."""
        begun = time.perf_counter()
        try:
            since = self._published if published is None else _micros(published)
            if not self._store.has_more(user, FEW):
                return self._read(self._store, user, begun, since)
            async with asyncio.timeout(None if math.isinf(left) else left):
                return await self._read_beside(user, who(), begun, since)
        except TimeoutError:
            return _unread(NOT_IN_TIME, begun)
        except sqlite3.Error as error:
            return _unread(f"the events cannot be read ({short(str(error))})", begun)
        except NoPlace as error:
            return _unread(f"the events of the user were not read: {error}", begun)

    async def _read_beside(self, user: str, who: str, begun: float, published: int) -> FreshUser:
        """Raises NoPlace."""
        self._places.take(who)
        done = asyncio.get_running_loop().run_in_executor(self.thread, self._read, self._beside, user, begun, published)
        done.add_done_callback(lambda _: self._places.leave(who))
        return await asyncio.shield(done)

    def _read(self, store: EventStore, user: str, begun: float, published: int) -> FreshUser:
        moment = self._clock()
        names = self._features.event_columns
        shown = store.of_user(user, moment, told=bool(names))
        recent = shown.history(moment, RECENT, after=published)
        told = shown.told(names, moment, RECENT, after=published) if self._features.reads_events else NOTHING_TOLD
        values: dict[str, ContextValue] = {}
        for field in self._features.of_side("user") if self._features.fresh else ():
            found = shown.counters(field, moment, self._features.prior)
            values |= {name: found[name] for name, _, window in field.counters()
                       if moment - window * SECOND >= self._since}
        age = (moment - int(shown.newest)) / SECOND if len(shown.items) else None
        return FreshUser(StageReport(NAME, 0, 0, _spent(begun), age=age), recent, values, told=told,
                         overlap=shown.overlap(moment, RECENT, published))

    def close(self) -> None:
        """Waits for what is being read."""
        self.thread.shutdown(wait=True)
        for store in (self._store, self._beside):
            store.close()


def _impatient(store: EventStore) -> EventStore:
    store.connection.execute("PRAGMA busy_timeout = 0")  # a wait would be the event loop's, or everybody's behind it
    return store


def _unread(cause: str, begun: float) -> FreshUser:
    return FreshUser(StageReport(NAME, 0, 0, _spent(begun), StageStatus.DEGRADED, cause, Fallback.BUNDLE_ROW))


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * SECOND)


def _spent(begun: float) -> int:
    return round((time.perf_counter() - begun) * 1e6)
