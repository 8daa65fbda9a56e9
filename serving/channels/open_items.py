"""Which items the channels of retrieval may still bring for one request."""

from __future__ import annotations

import numpy as np

from serving.bundle.item_set import ItemSet


def distinct(rows: np.ndarray) -> np.ndarray:
    """Without repetitions, in the order of first appearance."""
    first = np.unique(rows, return_index=True)[1]
    first.sort()
    return rows[first]


class OpenItems:
    """Items that may still come: those admitted, less those that were seen or have come. Flags `closed` bool [I] come
    from a `pool` of such that are all False and go back as they came, so that nobody clears a million of them for a
    thousand candidates."""

    def __init__(self, pool: list[np.ndarray], items: int, allowed: ItemSet | None, seen: np.ndarray) -> None:
        try:
            self._closed = pool.pop()  # each thread takes one
        except IndexError:
            self._closed = np.zeros(items, dtype=bool)
        self._pool, self.allowed, self._taken = pool, allowed, [seen]
        self._closed[seen] = True

    def __enter__(self) -> OpenItems:
        return self

    def __exit__(self, *error: object) -> None:
        for rows in self._taken:
            self._closed[rows] = False
        self._pool.append(self._closed)

    def has(self, rows: np.ndarray) -> np.ndarray:
        """bool [len(rows)]."""
        open_ = ~self._closed[rows]
        return open_ if self.allowed is None else open_ & self.allowed.contains(rows)

    def take(self, rows: np.ndarray, quota: int) -> np.ndarray:
        """The first `quota` of the distinct `rows` that are open; they are closed for the channels that follow."""
        return self.close(rows[self.has(rows)][:quota])

    def close(self, rows: np.ndarray) -> np.ndarray:
        """Distinct `rows` that are open, as they are taken."""
        taken = rows.astype(np.int64)
        self._closed[taken] = True
        self._taken.append(taken)
        return taken
