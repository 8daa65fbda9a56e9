"""How many impressions of each key count now, for every measure of its counters: running sums, as the pipelines have
them (pipelines/features/running_counters.py), moved on from moment to moment instead of sorted by key.

An impression costs its entry and its exit of each window, whatever else there is of its key; a key costs nothing while
nothing of it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from contracts.features.event_clock import Event, Measure, closed, counted, entered, learned
from serving.item_counters.timeline import Change, Held, Timeline

NEVER = np.iinfo(np.int64).max


class Impressions(NamedTuple):
    """N impressions; int64 [N] microseconds: shown `at`, `known`, their first click `clicked` (known then; NEVER where
    there is none); `slots` int32 [N] say whose they are, below 0 of nobody's."""

    at: np.ndarray
    known: np.ndarray
    clicked: np.ndarray
    slots: np.ndarray

    def of_somebody(self) -> Impressions:
        """Without those of nobody."""
        return Impressions(*(part[self.slots >= 0] for part in self))


def each(slots: np.ndarray) -> np.ndarray:
    """A row for every slot."""
    return slots


class RunningCounts:
    """`counts` int32 [rows, measures], in the order of `measures`. `label_window` in seconds; `counted` says in which
    rows slots count."""

    def __init__(
        self, measures: Sequence[Measure], label_window: int, rows: int = 1,
        counted: Callable[[np.ndarray], np.ndarray] = each,
    ) -> None:
        self._counted = counted
        self._columns = {(measure.event, measure.window): place for place, measure in enumerate(measures)}
        windows: dict[Event, list[int]] = {}
        for event, window in self._columns:
            assert window is not None  # a counter's measures have one
            windows.setdefault(event, []).append(window)
        self._timelines = {event: Timeline(found) for event, found in windows.items()}
        self._label_window = label_window
        self.counts = np.zeros((rows, len(measures)), dtype=np.int32)

    def __len__(self) -> int:
        """Entries that are held: up to three an impression."""
        return sum(map(len, self._timelines.values()))

    def show(self, found: Impressions) -> None:
        """Impressions that were not known, clicked or not."""
        entries = self._entries(found)
        for event in ("shown", "closed"):
            self._add(event, found, entries[event])
        self._add_clicked(found, entries["clicked"])

    def click(self, found: Impressions) -> None:
        """First clicks of impressions that were shown before."""
        self._add_clicked(found, self._entries(found)["clicked"])

    def advance(self, moment: int) -> np.ndarray:
        """To `moment`, in microseconds; the rows whose counts have changed, each once."""
        touched = [np.empty(0, dtype=np.int32)]
        for event, timeline in self._timelines.items():
            for change in timeline.advance(moment):
                if len(change.slots):
                    touched.append(self._apply(event, change))
        return np.unique(np.concatenate(touched))

    def held(self) -> Mapping[Event, Held]:
        """To go on from elsewhere, by the same measures."""
        return {event: timeline.held() for event, timeline in self._timelines.items()}

    def resume(self, held: Mapping[Event, Held]) -> None:
        """Goes on from there, where nothing was counted before. There is room for the rows of a run once the run is
        taken. Raises KeyError where an event is missing."""
        for event, timeline in self._timelines.items():
            for change in timeline.resume(held[event]):
                self._apply(event, change)

    def grow(self, rows: int) -> None:
        """Room for so many."""
        more = np.zeros((rows - len(self.counts), self.counts.shape[1]), dtype=np.int32)
        self.counts = np.concatenate([self.counts, more])

    def _apply(self, event: Event, change: Change) -> np.ndarray:
        """The rows in which it counts."""
        rows = self._counted(change.slots)
        np.add.at(self.counts[:, self._columns[event, change.window]], rows, np.int32(change.by))
        return rows

    def _entries(self, found: Impressions) -> dict[Event, np.ndarray]:
        enters = entered(found.at, found.known, np.maximum)
        closes = closed(found.at, enters, self._label_window, np.maximum)
        learns = learned(enters, np.maximum(found.clicked, found.known), np.maximum)
        return {"shown": enters, "closed": closes, "clicked": counted(closes, learns, np.maximum)}

    def _add_clicked(self, found: Impressions, entry: np.ndarray) -> None:
        clicked = found.clicked < NEVER
        self._add("clicked", Impressions(*(part[clicked] for part in found)), entry[clicked])

    def _add(self, event: Event, found: Impressions, entry: np.ndarray) -> None:
        if event in self._timelines:
            self._timelines[event].add(found.at, entry, found.slots)
