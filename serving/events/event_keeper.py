"""The thread that lands events and lets go of what nobody reads any more, beside the requests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from contracts.features.event_clock import SECOND
from contracts.features.event_features import EventFeatures
from contracts.thread_name import name_thread
from serving.embedded_store.database import transaction
from serving.events.event_store import Clock, EventStore
from serving.events.landing import LANDED, alone, land

LAND_SECONDS = 30.0
PAUSE = 0.9  # of these, after which the next process of the host may land
KEPT_SECONDS = 7 * 86_400  # longer than the longest window: repeats are known as such, and histories are whole
ROWS_AT_ONCE = 5_000
log = logging.getLogger("sluice.serving")


class EventKeeper:
    """`close` lands what is left. Raises DataError where the store cannot be opened."""

    def __init__(
        self, opened: Callable[[], EventStore], features: EventFeatures, folder: Path, clock: Clock,
        seconds: float = LAND_SECONDS,
    ) -> None:
        self._store, self._features, self._folder, self._clock = opened(), features, folder, clock
        self._seconds, self._stop = seconds, threading.Event()
        self._thread = threading.Thread(target=self._keep, name="landing", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _keep(self) -> None:
        name_thread()
        while not self._stop.wait(self._seconds):
            self._turn(PAUSE * self._seconds)
        self._turn(0.0)
        self._store.close()

    def _turn(self, pause: float) -> None:
        try:
            land(self._store, self._features, self._folder, now=self._clock(), pause=pause)
            let_go(self._store, self._features, self._folder, self._clock())
        except Exception as error:  # what is not landed now is landed later, whatever it was
            log.error("events could not be landed in %s (%s); it is tried again", self._folder, error)


def let_go(store: EventStore, features: EventFeatures, folder: Path, now: int) -> int:
    """Forgets landed events that were recorded before any window, whatever their own time; returns how many. Nothing
    where another process is at it: others write beside what is looked for."""
    horizon, gone = now - (features.longest + features.label_window + KEPT_SECONDS) * SECOND, 0
    with alone(folder) as mine:
        if not mine:
            return 0
        last = min(store.first_after(horizon - 1), store.fact(LANDED))
        for first in range(store.forgotten, last, ROWS_AT_ONCE):
            with transaction(store.connection):
                up_to = min(first + ROWS_AT_ONCE, last)
                gone += store.connection.execute("DELETE FROM events WHERE seq <= ?", [up_to]).rowcount
                if horizon > store.since:
                    store.set_fact("since", horizon)
    return gone
