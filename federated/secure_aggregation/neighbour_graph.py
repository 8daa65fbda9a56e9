"""Who masks with whom (SecAgg+, Bell et al. 2020): a ring in random order, each joined to the k nearest, k = O(log n).

The threshold is floor(k / 2) + 1 of the k neighbours, so that two disjoint halves of a client's neighbours can never be
told contradictory stories and both open it.

Whoever has more than half of a client's neighbours on its side uncovers it. The order follows from all that the clients
of a round announced, fresh keys of every one of them: nobody can seek a round's number beforehand that puts a client
among its own. Who sees the others' announcements before it makes those of its own can still draw them again and again;
each try then costs a memory-hard hash, and clients wait no longer than twice a phase's time limit for the roster.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from functools import lru_cache
from math import comb

SCRYPT_COST, SCRYPT_BLOCK = 2**14, 8  # 16 MiB and some 40 ms a try


@lru_cache(maxsize=8)
def graph_seed(context: bytes) -> int:
    """Of the order. `context`: the round, its roster and what all of it announced."""
    return int.from_bytes(hashlib.scrypt(context, salt=b"sluice neighbours", n=SCRYPT_COST, r=SCRYPT_BLOCK, p=1))


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


def uncovered_odds(clients: int, neighbours: int, in_league: int) -> tuple[float, float]:
    """Probability that in one drawn order those in league are enough of one given client's neighbours to uncover it,
    and a bound on the probability that they are of any client's (the sum over all others)."""
    k = degree(clients, neighbours)
    ways = sum(comb(in_league, bad) * comb(clients - 1 - in_league, k - bad) for bad in range(threshold(k), k + 1))
    one = ways / comb(clients - 1, k)
    return one, min(1.0, one * (clients - in_league))
