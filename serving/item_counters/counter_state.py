"""How the event-fresh counters of items of one process stand, for who asks the server how it is."""

from __future__ import annotations

from typing import NamedTuple


class CounterState(NamedTuple):
    """`age` in seconds: all events that were known so long ago are in what requests read; None while they have the
    bundle's. `items` have a counter above 0, groups of them where none
    goes by the item itself; `failure` says why events cannot be counted, until requests read all of them again."""

    age: float | None
    items: int
    failure: str


NO_COUNTERS = CounterState(None, 0, "")
