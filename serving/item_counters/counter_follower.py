"""Keeps the items' counters of one worker as the host's events have them: a thread that reads on from the last event
that it has seen, and moves all windows on to the present.

    what is read    every event once, by its number; an impression costs the same however many the item has
    when            at a pace (serving/item_counters/pace.py): every tenth of a second, in a lull of requests
    how much        EVENTS a look, the oldest first: where more events come than a quarter of a core can count, the age
                    of the counters grows, and is told
    what is seen    by a request that begins after the look: the events that were read, and windows as they stand then

Nothing is written to requests before all that was recorded within the windows has been read: until then they have the
bundle's tables, and so they have of a counter whose window began before the folder did. Where counting fails halfway,
all is counted anew from the store: until that is done requests have what was shown last, and the failure is told.

Why not as changes of items (serving/catalogue): a counter moves with each impression, again when its label window
closes, and again when its own window ends; and of what was not shown it is 0, of all those items at once, from the
moment on at which the window is whole. So many rows, vectors and parts of first layers are not written in every worker:
a request reads the counters of the items that it ranks, and puts their part of the first layer right
(models/inference/item_part.py). Retrieval and pre-ranking have the bundle's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from contracts.features.event_clock import SECOND
from contracts.features.event_features import EventFeatures
from contracts.shown import short
from contracts.thread_name import name_thread
from serving.bundle.loaded_bundle import LoadedBundle
from serving.events.event_servicer import now_micros
from serving.events.event_store import Clock, EventStore
from serving.item_counters.counter_features import features_of
from serving.item_counters.counter_state import CounterState
from serving.item_counters.group_slots import GroupSlots
from serving.item_counters.item_slots import ItemSlots
from serving.item_counters.key_counters import KeyCounters
from serving.item_counters.live_columns import LiveColumns
from serving.item_counters.pace import Pace
from serving.item_counters.recorded_impressions import NOTHING, Recorded, RecordedImpressions
from serving.request.lulls import Lulls

EVENTS = 500  # of a look: some four milliseconds, much of it without the interpreter
CATCH_UP_SECONDS = 2.0  # before the first request; what is left is read beside requests
log = logging.getLogger("sluice.serving")


class CounterFollower:
    """Of the items of `bundle`. `catch_up` first, then `start`; `columns` is what requests read. `lulls` are those of
    the requests that are answered from it. Raises DataError where the store cannot be opened."""

    def __init__(
        self, bundle: LoadedBundle, features: EventFeatures, opened: Callable[[], EventStore], clock: Clock
    ) -> None:
        self._clock, self._store, self.lulls = clock, opened(), Lulls()
        self._counters = counters_of(bundle, features)
        self._read = RecordedImpressions(self._store, features)
        self._since, self._longest = self._store.since, max(counters.longest for counters in self._counters)
        self._seen = 0  # before the first event
        self._moment, self._known, self._whole, self._failure = 0, 0, False, ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="counters", daemon=True)

    @property
    def columns(self) -> list[LiveColumns]:
        return [counters.columns for counters in self._counters]

    @property
    def held(self) -> int:
        """Entries in memory: up to three an impression of the longest window, and key, of 13 bytes once they count."""
        return sum(len(counters.counts) for counters in self._counters)

    @property
    def state(self) -> CounterState:
        age = (self._clock() - self._known) / SECOND if self._known else None
        return CounterState(age, max(counters.alive for counters in self._counters), self._failure)

    def catch_up(self, seconds: float = CATCH_UP_SECONDS) -> None:
        """What is recorded, as far as it is read in that time; what cannot be read is tried again once it follows."""
        end = time.monotonic() + seconds
        while self._try() and time.monotonic() < end:
            pass

    def look(self) -> bool:
        """Reads what is next, and shows it to requests once all has been read that there was before them; whether
        there is more. Raises sqlite3.Error."""
        moment = max(self._clock(), self._moment)
        newest = self._store.newest  # after the moment: what is known by then is among them
        first = self._seen or self._read.first_after(moment - self._longest * SECOND)
        last = max(first, min(newest, first + EVENTS))
        recorded = self._read.between(first, last) if last > first else NOTHING
        behind = last < newest
        known = self._read.known(last) if behind else moment
        self._count(recorded, moment, shown=self._whole or not behind)
        self._seen, self._moment, self._whole = last, moment, self._whole or not behind
        if self._whole:
            self._known = max(known, self._known)
        return behind

    def _count(self, recorded: Recorded, moment: int, shown: bool) -> None:
        """All or nothing: what is counted in part begins again with the first event."""
        try:
            for counters in self._counters:
                counters.add(recorded)
                counters.advance(moment)
                if shown:
                    counters.publish(moment, self._since)
        except Exception:
            self._seen, self._whole = 0, False
            for counters in self._counters:
                counters.begin_again()
            raise

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._store.close()

    def _follow(self) -> None:
        name_thread()
        pace = Pace()
        while not self._stopping.wait(pace.rest):
            asked = time.monotonic()
            with self.lulls.turn(pace.patience):
                waited, begun = time.monotonic() - asked, time.thread_time()
                behind = self._try()
                spent = time.thread_time() - begun
            pace.looked(waited, spent, behind)

    def _try(self) -> bool:
        """A look. A failure is told until requests have all that was recorded again."""
        try:
            behind = self.look()
            self._failure = "" if self._whole else self._failure
        except Exception as error:  # whatever it is, the next try may succeed
            if not self._failure:
                log.error("events are not counted into the items' counters", exc_info=error)
            self._failure, behind = short(f"{type(error).__name__}: {error}", 200), False
        return behind


def counters_of(bundle: LoadedBundle, features: EventFeatures) -> list[KeyCounters]:
    """A set for each key of items whose counters are event-fresh and read by the bundle's networks: those of the item
    itself together, those of each group by themselves."""
    if not features.fresh:
        return []
    own = features_of(features.of_side("item"), bundle.encoder)
    found = [KeyCounters(own, features, bundle.encoder, ItemSlots(bundle.items))] if own else []
    for counter in features.groups:
        of_group = features_of([counter], bundle.encoder)
        if of_group:
            slots = GroupSlots(bundle.items, np.asarray(bundle.groups[counter.name]))
            found.append(KeyCounters(of_group, features, bundle.encoder, slots))
    return found


def followed(bundle: LoadedBundle, folder: Path) -> CounterFollower | None:
    """Of the events in `folder`, caught up and not started; None where no network of the bundle reads a counter of an
    item that is event-fresh. Raises DataError where the store cannot be opened."""
    features = bundle.event_features
    if features is None or not counters_of(bundle, features):
        return None
    found = CounterFollower(bundle, features, lambda: EventStore(folder, features, now_micros), now_micros)
    found.catch_up()
    return found
