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
What is held at a moment can be kept, and another process goes on from there (serving/counter_snapshots).

Why not as changes of items (serving/catalogue): a counter moves with each impression, again when its label window
closes, and again when its own window ends; and of what was not shown it is 0, of all those items at once, from the
moment on at which the window is whole. So many rows, vectors and parts of first layers are not written in every worker:
a request reads the counters of the items that it ranks, and puts their part of the first layer right
(models/inference/item_part.py). Retrieval and pre-ranking have the bundle's.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable

import numpy as np

from contracts.features.event_clock import SECOND
from contracts.features.event_features import EventFeatures
from contracts.shown import short
from contracts.thread_name import name_thread
from serving.bundle.loaded_bundle import LoadedBundle
from serving.events.event_store import Clock, EventStore
from serving.item_counters.counter_features import features_of
from serving.item_counters.counter_standing import HeldCounters, Standing, definitions_of
from serving.item_counters.counter_state import CounterState
from serving.item_counters.group_slots import GroupSlots
from serving.item_counters.item_slots import ItemSlots
from serving.item_counters.key_counters import KeyCounters
from serving.item_counters.live_columns import LiveColumns
from serving.item_counters.pace import Pace
from serving.item_counters.recorded_impressions import NOTHING, Recorded, RecordedImpressions
from serving.request.lulls import Lulls

EVENTS = 500  # of a look: some four milliseconds, much of it without the interpreter
AHEAD_SECONDS = 60.0  # that the clock may have been set back since counters were kept: windows stand still as long
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
        self._waiting, self.passed_over = 0, 0  # events, as of the last look; snapshots that it could not go on from
        self._definitions = definitions_of(self._store, features, self._counters)
        self._stopping, self._turn = threading.Event(), threading.Lock()
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
        items = max(counters.alive for counters in self._counters)
        return CounterState(age, items, self._failure, self._waiting, self.passed_over)

    @property
    def seen(self) -> int:
        """The number of the last event that is counted; 0 before the first."""
        return self._seen

    def holding(self) -> HeldCounters:
        """All that is counted, to go on from elsewhere; takes no longer for much than for little. Raises
        sqlite3.Error."""
        with self._turn:
            return HeldCounters(self._standing(), [counters.held() for counters in self._counters])

    def misfit(self, kept: Standing) -> str:
        """Why nobody may go on from what was kept at that standing; empty where this may. Raises sqlite3.Error."""
        with self._turn:
            return self._misfit(kept)

    def _misfit(self, kept: Standing) -> str:
        if kept.definitions != self._definitions:
            return "it counts by other definitions"
        if kept.log != self._store.mark:
            return "it is of another log of events"
        if self._store.newest < kept.seen or self._read.known(kept.seen) > kept.known:
            return "the log of events was cut since"
        if kept.moment > self._clock() + AHEAD_SECONDS * SECOND:
            return "it is of a moment that this host's clock has not come to"
        return ""

    def resume(self, held: HeldCounters) -> None:
        """Goes on from there, before the first look. Raises whatever does not fit; then nothing is counted."""
        try:
            for counters, of_key in zip(self._counters, held.keys, strict=True):
                counters.resume(of_key)
            oldest = self._store.first_after(self._clock() - self._longest * SECOND)
        except BaseException:
            self._begin_again()
            raise
        self._seen, self._moment = max(held.standing.seen, oldest), held.standing.moment

    def _standing(self) -> Standing:
        known = self._read.known(self._seen)
        return Standing(self._definitions, self._store.mark, self._seen, known, self._moment)

    def catch_up(self, seconds: float = CATCH_UP_SECONDS) -> None:
        """What is recorded, as far as it is read in that time; what cannot be read is tried again once it follows."""
        end = time.monotonic() + seconds
        while self._try() and time.monotonic() < end:
            pass

    def look(self) -> bool:
        """Reads what is next, and shows it to requests once all has been read that there was before them; whether
        there is more. Raises sqlite3.Error."""
        with self._turn:
            return self._look()

    def _look(self) -> bool:
        moment = max(self._clock(), self._moment)
        newest = self._store.newest  # after the moment: what is known by then is among them
        first = self._seen or self._store.first_after(moment - self._longest * SECOND)  # before: no window reaches it
        last = max(first, min(newest, first + EVENTS))
        recorded = self._read.between(first, last) if last > first else NOTHING
        behind = last < newest
        known = self._read.known(last) if behind else moment
        self._count(recorded, moment, shown=self._whole or not behind)
        self._seen, self._moment, self._whole = last, moment, self._whole or not behind
        self._waiting = max(newest - last, 0)
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
            self._begin_again()
            raise

    def _begin_again(self) -> None:
        self._seen, self._whole = 0, False
        for counters in self._counters:
            counters.begin_again()

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
                waited, begun, whole = time.monotonic() - asked, time.thread_time(), self._whole
                behind = self._try()
                spent = time.thread_time() - begun
            pace.looked(waited, spent, behind)
            if self._whole and not whole:
                log.info("all events of the windows are in the items' counters again, up to number %d", self._seen)

    def _try(self) -> bool:
        """A look. A failure is told until requests have all that was recorded again."""
        try:
            behind = self.look()
            self._store.connection.check_in_place()
            self._failure = "" if self._whole else self._failure
        except Exception as error:  # whatever it is, the next try may succeed
            if not self._failure:
                log.error("events are not counted into the items' counters (%s)", short(str(error)),
                          exc_info=None if isinstance(error, sqlite3.Error) else error)
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
