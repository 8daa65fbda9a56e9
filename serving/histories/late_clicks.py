"""Clicks that a host has learned after its tables were published, though they were made before. Another host may have
learned them in time and landed them: then the tables list them already.

Tables and hosts list clicks in one order, by when they were made (contracts/features/event_clock.py). So a late click
is in the tables' row if its item is, between those clicks next to it that the host had learned in time. The row may
know more clicks than the host, and lack some: what has no place in it is passed over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence


def listed(row: Sequence[int], clicks: Sequence[tuple[int, bool]]) -> list[bool]:
    """Of each late one among `clicks` (item, is it late), newest first, whether the items of `row`, newest first, have
    it."""
    places: dict[int, list[int]] = {}
    for place, item in enumerate(row):
        places.setdefault(item, []).append(place)
    found, between, end = list[bool](), list[int](), len(row)
    for item, late in reversed(clicks):
        if late:
            between.append(item)
        elif (place := _last(places, item, 0, end)) >= 0:
            found += _placed(places, between, place + 1, end)
            between, end = [], place
    return [*found, *_placed(places, between, 0, end)][::-1]


def _placed(places: Mapping[int, Sequence[int]], items: Sequence[int], begin: int, end: int) -> list[bool]:
    """Whether each of `items`, oldest first, is in the row from `begin` to `end`, before those ahead of it."""
    found = list[bool]()
    for item in items:
        place = _last(places, item, begin, end)
        found.append(place >= 0)
        end = place if place >= 0 else end
    return found


def _last(places: Mapping[int, Sequence[int]], item: int, begin: int, end: int) -> int:
    """The item's last place from `begin` on and before `end`; -1 where it has none there."""
    known = places.get(item, ())
    before = bisect_left(known, end)
    return known[before - 1] if before and known[before - 1] >= begin else -1
