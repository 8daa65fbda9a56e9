"""Channels of `retrieve.channels` beside items that change: they know the bundle's own items, and no others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serving.bundle.channel import Channel
from serving.bundle.item_set import ItemSet


@dataclass(frozen=True, eq=False, kw_only=True)
class OfStored(Channel):
    """`channel`, which knows the first `count` items."""

    channel: Channel
    count: int

    @property
    def reads_history(self) -> bool:
        return self.channel.reads_history

    def best(self, recent: np.ndarray, count: int, allowed: ItemSet | None, by_value: bool = False) -> np.ndarray:
        cut = None if allowed is None else allowed.cut(self.count)
        return self.channel.best(recent[recent < self.count], count, cut, by_value)

    def scores(self, recent: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """NaN for other items."""
        found, known = np.full(len(rows), np.nan), rows < self.count
        found[known] = self.channel.scores(recent[recent < self.count], rows[known])
        return found


def of_stored(channels: tuple[Channel, ...], count: int) -> tuple[Channel, ...]:
    return tuple(OfStored(name=one.name, parity=one.parity, channel=one, count=count) for one in channels)
