"""Items whose last description cannot be shown: there is no room for them, or a value that the bundle cannot encode."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from contracts.shown import short, shown

MOST = 10_000  # that are kept by name
log = logging.getLogger("sluice.serving")


class UnshownState(NamedTuple):
    """How many they are, MOST at most, and of the latest its id and why; "" without any."""

    items: int = 0
    last: str = ""


class UnshownItems:
    """For one thread, but for `state`. The log tells the first, and again when they have become twice as many."""

    def __init__(self) -> None:
        self._why: dict[str, str] = {}
        self._told, self.state = 0, UnshownState()

    def add(self, item: str, why: str) -> None:
        """Beyond MOST the first of them is no longer known."""
        self._why.pop(item, None)
        self._why[item] = why
        if len(self._why) > MOST:
            del self._why[next(iter(self._why))]

    def remove(self, items: Iterable[str]) -> None:
        """Those that are shown, or withdrawn."""
        for item in items if self._why else ():
            self._why.pop(item, None)

    def publish(self) -> None:
        """As it is now."""
        count = len(self._why)
        item, why = next(reversed(self._why.items()), ("", ""))
        self.state = UnshownState(count, short(f"{shown(item)}: {why}", 300) if count else "")
        if count >= max(2 * self._told, 1):
            log.error("items that cannot be shown as they are described: %d, the last %s", count, self.state.last)
            self._told = count
        elif not count:
            self._told = 0
