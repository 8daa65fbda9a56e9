"""Counters of one key of the items: what is counted of each, and the columns of the items' inputs that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from contracts.features.encoding import Encoder
from contracts.features.event_clock import SECOND, Event, Measure
from contracts.features.event_features import EventFeatures
from serving.item_counters.counter_features import CounterEncoder, CounterFeature, measures_of
from serving.item_counters.item_slots import Slots
from serving.item_counters.live_columns import LiveColumns
from serving.item_counters.recorded_impressions import Recorded, Row
from serving.item_counters.running_counts import NEVER, Impressions, RunningCounts
from serving.item_counters.slot_numbers import SlotNumbers
from serving.item_counters.sorted_runs import Columns
from serving.item_counters.timeline import Held

ROOM = 1024  # rows at first


class HeldKey(NamedTuple):
    """What the counters of one key hold; `names` makes the items of their slots, as Slots says."""

    names: Callable[[], Sequence[str]]
    timelines: Mapping[Event, Held]


class KeyCounters:
    """Of `features`; for one thread, but for `columns`, which requests read."""

    def __init__(
        self, features: Sequence[CounterFeature], known: EventFeatures, encoder: Encoder, slots: Slots
    ) -> None:
        self._features, self._slots, self._active = tuple(features), slots, tuple[CounterFeature, ...]()
        self._label_window = known.label_window
        self.counts = RunningCounts(measures_of(features), known.label_window, ROOM, slots.counted)
        self.columns = LiveColumns(features, CounterEncoder(features, encoder, known.prior), slots)
        self._alive, self.alive = np.zeros(ROOM, dtype=bool), 0
        self._changed = [np.empty(0, dtype=np.int32)]

    @property
    def longest(self) -> int:
        """Seconds of the longest window."""
        return max(one.window for one in self._features)

    @property
    def definition(self) -> Sequence[Measure]:
        """What is counted: held counters of another one mean something else."""
        return measures_of(self._features)

    def held(self) -> HeldKey:
        """To go on from elsewhere."""
        return HeldKey(self._slots.names(), self.counts.held())

    def resume(self, held: HeldKey) -> None:
        """Goes on from there, where nothing was counted before; items of which nothing is held get no slot. Raises
        KeyError, IndexError where it is not of this definition."""
        numbers = SlotNumbers(held.names(), self._slots)
        self.counts.resume({event: Held(moment, self._with_room(numbers.waiting(waiting)),
                                        self._with_room(numbers.leaving(leaving)))
                            for event, (moment, waiting, leaving) in held.timelines.items()})
        self._alive[:] = self.counts.counts.any(axis=1)
        self.alive = int(self._alive.sum())
        self._changed = [np.arange(len(self._alive), dtype=np.int32)]

    def _with_room(self, runs: Iterable[Columns]) -> Iterator[Columns]:
        for run in runs:
            self._make_room()
            yield run

    def add(self, recorded: Recorded) -> None:
        """As the store has them."""
        self._slots.link()
        for rows, add in ((recorded.shown, self.counts.show), (recorded.clicked, self.counts.click)):
            if rows:
                found = self._impressions(rows)
                self._make_room()
                add(found)

    def advance(self, moment: int) -> None:
        """What enters and leaves until then, in microseconds."""
        self._make_room()
        changed = self.counts.advance(moment)
        alive = self.counts.counts[changed].any(axis=1)
        self.alive += int(alive.sum()) - int(self._alive[changed].sum())
        self._alive[changed] = alive
        self._changed.append(changed)

    def publish(self, moment: int, since: int) -> None:
        """To requests, as of the last `advance`: the counters whose whole window is known, since everything from
        `since` on is."""
        active = tuple(one for one in self._features if moment - one.window * SECOND >= since)
        if active:
            self.columns.publish(self.counts.counts, np.unique(np.concatenate(self._changed)), active)
        self._changed = [np.empty(0, dtype=np.int32)]

    def begin_again(self) -> None:
        """Nothing is counted, and all slots have changed: requests read what was published until the next time."""
        size = len(self.counts.counts)
        self.counts = RunningCounts(measures_of(self._features), self._label_window, size, self._slots.counted)
        self._alive, self.alive = np.zeros(size, dtype=bool), 0
        self._changed = [np.arange(size, dtype=np.int32)]

    def _impressions(self, rows: Sequence[Row]) -> Impressions:
        items, at, known, clicked = zip(*rows, strict=True)
        first = [NEVER if one is None else one for one in clicked]
        times = [np.array(part, dtype=np.int64) for part in (at, known, first)]
        return Impressions(times[0], times[1], times[2], self._slots.of(items)).of_somebody()

    def _make_room(self) -> None:
        size = len(self.counts.counts)
        if self._slots.count > size:
            self.counts.grow(max(self._slots.count, 2 * size))
            self._alive = np.concatenate([self._alive, np.zeros(len(self.counts.counts) - size, dtype=bool)])
