"""Shows what the store holds: a thread of every worker that reads on from the last number it has seen."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from contracts.shown import short
from contracts.thread_name import name_thread
from serving.catalogue.change import Change
from serving.catalogue.change_store import ChangeStore
from serving.catalogue.fresh_bundle import FreshBundle
from serving.changing_index.changing_index import QUERIES
from serving.request.lulls import Lulls

POLL_SECONDS = 0.05
AT_ONCE = 5000  # changes
STEADY_SECONDS = 0.15  # between looks while changes come: what a look costs beside its changes is not small
TURN, DESCRIPTION = 48, 1.5  # bids; of items that are described 32: what a turn of them costs at all, many share
PATIENCE_SECONDS = 0.3  # a change waits so long for lulls of requests, from its arrival on
PAUSE_SECONDS = 0.005  # of a measurement that has waited long enough
LEAST_WAIT_SECONDS, MOST_WAIT_SECONDS = 0.001, 1.0  # before a turn of older changes; of a measurement
P99_SECONDS = 0.5  # how often the delays are looked at
RECALL_SECONDS, RECALL_AT = 5.0, 100  # how often one user's recall is measured
RECALL_PRIORITY = 10  # Linux's nice value
LATEST = 10_000  # of which the delay is known
log = logging.getLogger("sluice.serving")


def turns(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    """All of them in their order, as many at once as are a turn's work."""
    start, work = 0, 0.0
    for place, change in enumerate(changes):
        work += DESCRIPTION if change.kind == "item" and not change.withdraws else 1
        if work >= TURN:
            yield changes[start : place + 1]
            start, work = place + 1, 0.0
    if start < len(changes):
        yield changes[start:]


class Follower:
    """Of one bundle's items, by the `store`, which it closes. `catch_up` first, then `start`; `applied` is the last
    sequence number that is shown. `lulls` are those of the requests that are answered from it; `visible_p99` seconds go
    from a change's arrival to its being shown."""

    def __init__(self, fresh: FreshBundle, store: ChangeStore) -> None:
        self._fresh, self._store, self.lulls = fresh, store, Lulls()
        self.applied, self.failure, self._current = 0, "", time.monotonic()
        self._recalls: deque[float] = deque(maxlen=QUERIES)
        self._delays: deque[float] = deque(maxlen=LATEST)
        self.visible_p99, self._p99_due = 0.0, 0.0
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=work, name=name, daemon=True)
                         for name, work in (("catalogue", self._follow), ("recall-measure", self._measure))]

    @property
    def lag(self) -> float:
        """Seconds since all that was stored was known to be shown."""
        return time.monotonic() - self._current

    @property
    def recall(self) -> float | None:
        """Share of the exact search's best items that the search found, over the latest measurements; None before the
        first."""
        return float(np.mean(list(self._recalls))) if self._recalls else None

    def catch_up(self) -> None:
        """All that is stored, before anything is served."""
        while self._step(self._fresh.apply):
            pass
        self._delays.clear()
        self.visible_p99 = self._p99_due = 0.0

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self._store.close()

    def _follow(self) -> None:
        name_thread()
        pause = POLL_SECONDS
        while not self._stopping.wait(pause):
            try:
                before = self.applied
                while self._step(self._show):
                    pass
                self.failure, pause = "", STEADY_SECONDS if self.applied > before else POLL_SECONDS
            except Exception as error:  # whatever it is, the next try may succeed
                if not self.failure:
                    log.error("changes of items are not shown (%s)", short(str(error)),
                              exc_info=None if isinstance(error, sqlite3.Error) else error)
                self.failure = short(f"{type(error).__name__}: {error}", 200)

    def _measure(self) -> None:
        """Recall, now and then and with low priority: requests go first."""
        name_thread()
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), RECALL_PRIORITY)
        index, failing = self._fresh.index, False
        while not self._stopping.wait(RECALL_SECONDS):
            try:
                if index.asked:
                    self._recalls.append(index.recall(index.asked[-1].copy(), RECALL_AT, self._measuring()))
                failing = False
            except Exception as error:  # whatever it is, the next try may succeed
                if not failing:
                    log.error("the recall of searches is not measured", exc_info=error)
                failing = True

    def _show(self, changes: Sequence[Change]) -> None:
        """A few at a time, between requests, for which they wait until the oldest has waited long enough."""
        until = min(change.arrived for change in changes) / 1e6 + PATIENCE_SECONDS
        for turn in turns(changes):
            with self.lulls.turn(_left(until)):
                self._fresh.write(turn)
        with self.lulls.turn(_left(until)):
            self._fresh.publish()

    def _measuring(self) -> Callable[[], None]:
        """Waits for a lull, in all its calls no longer than MOST_WAIT_SECONDS."""
        left = MOST_WAIT_SECONDS

        def wait() -> None:
            nonlocal left
            begun = time.monotonic()
            if left > 0:
                self.lulls.wait(left)
                left -= time.monotonic() - begun
            else:
                time.sleep(PAUSE_SECONDS)

        return wait

    def _step(self, show: Callable[[Sequence[Change]], None]) -> bool:
        """Whether there may be more."""
        asked = time.monotonic()
        found: Sequence[tuple[int, Change]] = self._store.after(self.applied, AT_ONCE)
        if not found:
            self._store.check_in_place()
            self._current = asked
            return False
        show([change for _, change in found])
        self._note_delays([change for _, change in found])
        self.applied = found[-1][0]
        if len(found) < AT_ONCE:
            self._current = asked
        return len(found) == AT_ONCE

    def _note_delays(self, changes: Sequence[Change]) -> None:
        now = time.time()
        self._delays.extend(now - change.arrived / 1e6 for change in changes)
        if time.monotonic() >= self._p99_due:
            self.visible_p99 = float(np.quantile(self._delays, 0.99))
            self._p99_due = time.monotonic() + P99_SECONDS


def _left(until: float) -> float:
    """Seconds to wait; the clock that stamped a change may be ahead of this one."""
    return min(max(until - time.time(), LEAST_WAIT_SECONDS), PATIENCE_SECONDS)
