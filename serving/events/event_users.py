"""What the events of the host say of a user now, beyond the bundle's tables."""

from __future__ import annotations

import sqlite3
import time

from contracts.features.event_clock import SECOND
from contracts.features.event_features import RECENT, EventFeatures
from contracts.shown import short
from serving.events.event_store import Clock, EventStore
from serving.request.query import ContextValue, Fallback, FreshUser, StageReport, StageStatus

NAME = "user"


class EventUsers:
    """Reads the file as it is: what any process of the host has committed, the next request knows. For one thread; its
    store waits for others no more, and a file that is locked is one that cannot be read.

    A counter is served event-fresh where the models were trained on such, and once the file holds its whole window.
    """

    def __init__(self, store: EventStore, features: EventFeatures, clock: Clock) -> None:
        self._store, self._features, self._clock, self._since = store, features, clock, store.since
        published = features.published
        store.connection.execute("PRAGMA busy_timeout = 0")  # a wait would be the event loop's
        self._published = 0 if published is None else round(published.timestamp() * SECOND)

    async def read(self, user: str) -> FreshUser:
        """Never raises: what cannot be read is the bundle's row, and the report says why."""
        begun = time.perf_counter()
        try:
            return self._read(user, begun)
        except sqlite3.Error as error:
            cause = f"the events cannot be read ({short(str(error))})"
            return FreshUser(StageReport(NAME, 0, 0, _spent(begun), StageStatus.DEGRADED, cause, Fallback.BUNDLE_ROW))

    def _read(self, user: str, begun: float) -> FreshUser:
        moment = self._clock()
        shown = self._store.of_user(user, moment)
        recent = shown.history(moment, RECENT, after=self._published)
        values: dict[str, ContextValue] = {}
        for field in self._features.of_side("user") if self._features.fresh else ():
            found = shown.counters(field, moment, self._features.prior)
            values |= {name: found[name] for name, _, window in field.counters()
                       if moment - window * SECOND >= self._since}
        age = (moment - int(shown.newest)) / SECOND if len(shown.items) else None
        return FreshUser(StageReport(NAME, 0, 0, _spent(begun), age=age), recent, values)


def _spent(begun: float) -> int:
    return round((time.perf_counter() - begun) * 1e6)
