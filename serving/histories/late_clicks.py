"""Clicks that a host has learned after its tables were published, though they were made before. Another host may have
learned them in time and landed them: then the tables list them already.

Tables and hosts list clicks in one order, by when they were made (contracts/features/event_clock.py). So a late click
is in the tables' row if its item is, between those clicks next to it that the host had learned in time. The row may
know more clicks than the host, and lack some: what has no place in it is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence


def listed(row: Sequence[int], clicks: Sequence[tuple[int, bool]]) -> list[bool]:
    """Of each late one among `clicks` (item, is it late), newest first, whether the items of `row`, newest first, have
    it."""
    found, between, end = list[bool](), list[int](), len(row)
    for item, late in reversed(clicks):
        if late:
            between.append(item)
        elif (place := _last(row[:end], item)) >= 0:
            found += _placed(row[place + 1 : end], between)
            between, end = [], place
    return [*found, *_placed(row[:end], between)][::-1]


def _placed(row: Sequence[int], items: Sequence[int]) -> list[bool]:
    """Whether each of `items`, oldest first, is in the row, newest first, before those ahead of it."""
    found, end = list[bool](), len(row)
    for item in items:
        place = _last(row[:end], item)
        found.append(place >= 0)
        end = place if place >= 0 else end
    return found


def _last(row: Sequence[int], item: int) -> int:
    return max((place for place, one in enumerate(row) if one == item), default=-1)
