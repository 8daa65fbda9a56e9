"""The order of a slate under rules: of each capped value at most so many, and pinned items at their positions.

Slot after slot the best one is taken of which the caps admit another; who would have come there without it is its
runner-up. Pinned items count for the caps, which do not hold them back; their places are nobody's else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from serving.bundle.filter_column import as_text
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.rules.rules import ActiveRules

NOBODY = -1


class Cap(NamedTuple):
    """At most so many of one of the `values` [K], None of a candidate without one."""

    values: Sequence[str | None]
    most: int


class Room:
    """How much of each cap is left."""

    def __init__(self, caps: Sequence[Cap]) -> None:
        self._caps = [(cap, Counter[str]()) for cap in caps]

    def admits(self, place: int) -> bool:
        return all(cap.values[place] is None or taken[str(cap.values[place])] < cap.most for cap, taken in self._caps)

    def closed(self, places: np.ndarray) -> np.ndarray:
        """bool, of those of these that it does not admit."""
        return np.array([not self.admits(place) for place in places.tolist()], dtype=bool)

    def take(self, place: int) -> None:
        for cap, taken in self._caps:
            if cap.values[place] is not None:
                taken[str(cap.values[place])] += 1


class Slots(NamedTuple):
    """Of n slots: `order` [n] positions among the candidates, `runners` [n] those of the runners-up, NOBODY where there
    is none, as of every pinned one."""

    order: np.ndarray
    runners: np.ndarray


def caps_of(active: ActiveRules, candidates: Candidates, bundle: LoadedBundle) -> list[Cap]:
    """As the items are now, and as the request describes its own."""
    return [Cap(_values(str(one.rule.cap), candidates, bundle), int(one.rule.most or 0)) for one in active.caps]


def _values(name: str, candidates: Candidates, bundle: LoadedBundle) -> list[str | None]:
    given, rows = candidates.given, candidates.rows
    if given is None:
        return bundle.filters[name].values_of(rows)
    found = bundle.filters[name].values_of(np.where(rows < given.first, rows, 0))
    for where, which in zip(*(part.tolist() for part in given.places(rows)), strict=True):
        told = given.described[which].get(name)
        found[where] = None if told is None or isinstance(told, tuple | float) else as_text(told)
    return found


def pinned_places(candidates: Candidates, slots: int) -> list[int]:
    """By their positions, then as they come; no more than there are slots."""
    if candidates.pins is None:
        return []
    order = np.argsort(candidates.pins, kind="stable").tolist()
    return [place for place in order if candidates.pins[place] > 0][:slots]


def fill(order: np.ndarray, candidates: Candidates, room: Room, slots: int) -> Slots:
    """`order` are the positions that may be shown, best first."""
    pinned = pinned_places(candidates, slots)
    for place in pinned:
        room.take(place)
    held, free = set(pinned), []
    free = [place for place in order.tolist() if place not in held]
    chosen: list[tuple[int, int]] = []
    for at, place in enumerate(free):
        if len(chosen) == slots - len(pinned):
            break
        if room.admits(place):
            chosen.append((place, next(filter(room.admits, islice(free, at + 1, None)), NOBODY)))
            room.take(place)
    return with_pinned(chosen, pinned, candidates)


def with_pinned(chosen: Sequence[tuple[int, int]], pinned: Sequence[int], candidates: Candidates) -> Slots:
    """Position and runner-up of each of the others, in their order -> all slots. A position beyond them is the next."""
    slots, others = list[tuple[int, int]](), list(chosen)
    for place in pinned:
        assert candidates.pins is not None
        while others and len(slots) + 1 < candidates.pins[place]:
            slots.append(others.pop(0))
        slots.append((place, NOBODY))
    slots += others
    found = np.array(slots, dtype=np.int64).reshape(-1, 2)
    return Slots(found[:, 0], found[:, 1])
