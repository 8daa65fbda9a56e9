"""Whose the next connections are, so that all workers come to have as many.

    first     one after the other to whoever has the fewest, until all have as many as the busiest
    then      all in turn (serving/server/port_takeover.py)
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

MOST_AHEAD = 64  # connections; what is left of a larger difference is seen when they are counted next
Worker = TypeVar("Worker", bound=Hashable)


def levelling(connections: Mapping[Worker, int]) -> list[Worker]:
    """The workers of the next connections, in their order; none where all have as many."""
    had, following = dict(connections), list[Worker]()
    most = max(had.values(), default=0)
    while len(following) < MOST_AHEAD and min(had.values(), default=most) < most:
        fewest = min(had, key=lambda worker: had[worker])
        had[fewest] += 1
        following.append(fewest)
    return following
