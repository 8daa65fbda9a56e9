"""Channels of `retrieve.channels` beside items that change: they know the bundle's own items, and no others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serving.bundle.channel import Channel
from serving.bundle.item_set import ItemSet
from serving.histories.recent_events import RecentEvents


@dataclass(frozen=True, eq=False, kw_only=True)
class OfStored(Channel):
    """`channel`, which knows the first `count` items."""

    channel: Channel
    count: int

    @property
    def reads_history(self) -> bool:
        return self.channel.reads_history

    def best(
        self, recent: np.ndarray, count: int, allowed: ItemSet | None, by_value: bool = False,
        events: RecentEvents | None = None,
    ) -> np.ndarray:
        cut, stored = None if allowed is None else allowed.cut(self.count), recent < self.count
        return self.channel.best(recent[stored], count, cut, by_value, events and events.at(stored))

    def scores(self, recent: np.ndarray, rows: np.ndarray, events: RecentEvents | None = None) -> np.ndarray:
        """NaN for other items."""
        found, known, stored = np.full(len(rows), np.nan), rows < self.count, recent < self.count
        found[known] = self.channel.scores(recent[stored], rows[known], events and events.at(stored))
        return found


def of_stored(channels: tuple[Channel, ...], count: int) -> tuple[Channel, ...]:
    return tuple(OfStored(name=one.name, parity=one.parity, channel=one, count=count) for one in channels)
