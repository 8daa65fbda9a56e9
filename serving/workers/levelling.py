"""Whose the next connections are, so that all workers come to have as many.

    first     one after the other to whoever has the fewest, until all have as many as the busiest
    then      all in turn (serving/server/port_takeover.py)
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

MOST_AHEAD = 64  # connections, and two of each worker where those are more
Worker = TypeVar("Worker", bound=Hashable)


class Order(NamedTuple, Generic[Worker]):
    """`first` the workers of the next connections; `seen` what all had, where these make up for a part of the
    difference alone: an order that is the same but for them is another one, and is to be told again."""

    first: list[Worker]
    seen: tuple[int, ...] = ()


def ordered(connections: Mapping[Worker, int]) -> Order[Worker]:
    """By what each worker has now."""
    first = levelling(connections)
    return Order(first, tuple(connections.values()) if len(first) == most_ahead(len(connections)) else ())


def most_ahead(workers: int) -> int:
    """Connections of one order; what is left of a larger difference is seen when they are counted next."""
    return max(MOST_AHEAD, 2 * workers)


def levelling(connections: Mapping[Worker, int]) -> list[Worker]:
    """The workers of the next connections, in their order; none where all have as many."""
    had, following = dict(connections), list[Worker]()
    most = max(had.values(), default=0)
    while len(following) < most_ahead(len(had)) and min(had.values(), default=most) < most:
        fewest = min(had, key=lambda worker: had[worker])
        had[fewest] += 1
        following.append(fewest)
    return following
