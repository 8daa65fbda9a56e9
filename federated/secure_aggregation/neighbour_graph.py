"""Who masks with whom (SecAgg+, Bell et al. 2020): a ring in random order, each joined to the k nearest, k = O(log n).

The threshold is floor(k / 2) + 1 of the k neighbours, so that two disjoint halves of a client's neighbours can never be
told contradictory stories and both open it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence


def ring(clients: Sequence[int], neighbours: int, seed: int) -> dict[int, list[int]]:
    """Client -> its neighbours, sorted; symmetric. All others where there are no more than `neighbours` of them.

    The order is public and hides nothing, so an ordinary seeded generator draws it.
    """
    order = sorted(clients)
    random.Random(seed).shuffle(order)
    count, reach = len(order), neighbours // 2
    if count - 1 <= neighbours:
        return {client: sorted(set(order) - {client}) for client in order}
    return {
        client: sorted({order[(place + step) % count] for step in range(-reach, reach + 1)} - {client})
        for place, client in enumerate(order)
    }


def degree(clients: int, neighbours: int) -> int:
    """How many neighbours each has."""
    return clients - 1 if clients - 1 <= neighbours else neighbours // 2 * 2


def threshold(neighbours: int) -> int:
    """Shares needed to open a secret that was split among so many neighbours."""
    return neighbours // 2 + 1
