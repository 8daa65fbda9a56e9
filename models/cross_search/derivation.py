"""From adjacency to explicit crosses (FIVES, figure 2).

    carry_i = {{i}}
    layer k: J = {j : A_ij(k) above the layer's threshold}
             J empty: carry_i stays, nothing is emitted
             else:    carry_i = {c + {j} : c in carry_i, j in J}, and all of carry_i is emitted

A cross is a set: duplicates from different starts merge, and a field joined with itself adds nothing. Its importance is
the largest product, over its ways of coming about, of the soft entries on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

Cross = frozenset[int]


def derive(
    adjacency: Sequence[np.ndarray], thresholds: Sequence[float], allowed: np.ndarray | None = None,
    limit: int | None = None,
) -> dict[Cross, float]:
    """Soft [N, N] per layer -> importance of each cross, the most important first.

    `allowed` [N, N] bool drops crosses with a pair inside that is not crossable; `limit` keeps so many of the most
    important ones per start node and layer, which bounds the growth of a dense tensor.
    """
    found: dict[Cross, float] = {}
    for start in range(len(adjacency[0])):
        carried: dict[Cross, float] = {frozenset((start,)): 1.0}
        for soft, threshold in zip(adjacency, thresholds, strict=True):
            joined = np.flatnonzero(soft[start] > threshold)
            if not len(joined):
                continue
            carried = _extended(carried, joined, soft[start], allowed, limit)
            for cross, importance in carried.items():
                if len(cross) > 1:
                    found[cross] = max(found.get(cross, 0.0), importance)
    return _largest(found.items(), None)


def _extended(
    carried: dict[Cross, float], joined: np.ndarray, soft: np.ndarray, allowed: np.ndarray | None, limit: int | None,
) -> dict[Cross, float]:
    made: dict[Cross, float] = {}
    for cross, importance in carried.items():
        for node in joined.tolist():
            if allowed is None or all(allowed[node, other] for other in cross if other != node):
                longer = cross | {node}
                made[longer] = max(made.get(longer, 0.0), importance * float(soft[node]))
    return _largest(made.items(), limit)


def _largest(items: Iterable[tuple[Cross, float]], limit: int | None) -> dict[Cross, float]:
    """Ties go by the members, so that the order never depends on a set's own order."""
    return dict(sorted(items, key=lambda item: (-item[1], len(item[0]), sorted(item[0])))[:limit])
