"""What is told of a requester's recent items beside the items: when each was taken, and values of columns of the log
(`retrieve.events`), as the server looks them up and as encoders read them.

    tables/users_recent_times.npy      int64 [U, R] microseconds, 0 where unknown
    tables/users_recent_values.npy     int32 [U, R, C] ids of `retrieve.event_columns`
    tables/vocabularies/event_NAME     their values; ids are the encoders' own
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contracts.bundle.bundle import load_array
from contracts.config.stages import Retrieve
from contracts.features import vocabulary
from contracts.features.event_features import EVENT, ToldEvents
from contracts.features.feature_spec import UNKNOWN
from contracts.features.vocabulary import Vocabulary
from models.interactions import told_events

TIMES, VALUES = "users_recent_times.npy", "users_recent_values.npy"


class RecentEvents(NamedTuple):
    """Of n recent items, newest first: `times` int64 [n], `values` int32 [n, C], asked at `now` (microseconds, 0
    unknown)."""

    times: np.ndarray
    values: np.ndarray
    now: int = 0

    def at(self, places: np.ndarray | slice) -> RecentEvents:
        """Of a mask, places or a slice of the items."""
        return RecentEvents(self.times[places], self.values[places], self.now)

    def before(self, older: RecentEvents) -> RecentEvents:
        """These, then older ones."""
        return RecentEvents(np.concatenate([self.times, older.times]), np.concatenate([self.values, older.values]),
                            self.now)

    def inputs(self, gaps: bool) -> np.ndarray:
        """int64 [n, E], oldest first, as an encoder reads them."""
        return told_events.inputs(self.times[::-1] if gaps else None, self.values[::-1].astype(np.int64), self.now)


class EventTables(NamedTuple):
    """Of a bundle: `vocabularies` by column in the order of the settings; `times` [U, R] and `values` [U, R, C] of its
    users."""

    vocabularies: Mapping[str, Vocabulary]
    times: np.ndarray
    values: np.ndarray

    def row(self, user: int) -> RecentEvents:
        """Of a user's row; of none where it is -1."""
        if user < 0:
            return self.untold(0)
        return RecentEvents(np.asarray(self.times[user]), np.asarray(self.values[user]))

    def untold(self, count: int) -> RecentEvents:
        """Of items of which nothing is told."""
        return RecentEvents(np.zeros(count, np.int64), np.full((count, len(self.vocabularies)), UNKNOWN, np.int32))

    def of(self, count: int, told: ToldEvents) -> RecentEvents:
        """Of `count` items; columns and times that are not told are unknown, and values that training did not see."""
        found = self.untold(count)
        if len(told.times) == count:
            found.times[:] = told.times
        for place, (name, known) in enumerate(self.vocabularies.items()):
            if len(told.columns.get(name, ())) == count:
                found.values[:, place] = known.look_up(told.columns[name], "string")
        return found


def load(tables: Path, retrieve: Retrieve) -> EventTables | None:
    """None where `retrieve.events` asks for nothing."""
    if not retrieve.events:
        return None
    known = {name: vocabulary.read(tables, EVENT + name) for name in retrieve.event_columns}
    return EventTables(known, np.asarray(load_array(tables / TIMES)), np.asarray(load_array(tables / VALUES)))
