"""How the event-fresh counters of items of one process stand, for who asks the server how it is."""

from __future__ import annotations

from typing import NamedTuple


class CounterState(NamedTuple):
    """`age` in seconds: all events that were known so long ago are in what requests read; None while they have the
    bundle's. `items` have a counter above 0, groups of them where none
    goes by the item itself; `failure` says why events cannot be counted, until requests read all of them again.
    `waiting` events were recorded and not yet counted at the last look; of what was kept for a start, `passed_over` was
    of no use to this process."""

    age: float | None
    items: int
    failure: str
    waiting: int = 0
    passed_over: int = 0


NO_COUNTERS = CounterState(None, 0, "")
