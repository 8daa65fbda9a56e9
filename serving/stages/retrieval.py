"""Retrieval: from all items to at most `retrieve.candidates`, by three channels or by the request's own list.

    two_tower      nearest items to the user's vector by inner product (plus the bid's dimension where value counts)
    item_to_item   neighbours of the recent items: the nearest of each first, newer before older
    popularity     most popular items; fills what the other channels leave free

A channel adds up to its quota of items that no earlier one brought. Filters hold for every channel and for explicit
candidates; recent items are not shown again unless asked for explicitly. A requester of whom nothing is known (no
stored row, no recent items) gets the popular items alone: a tower that saw no user has nothing to say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from serving.bundle.item_index import search
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import CHANNELS, Candidates
from serving.request.query import RankQuery
from serving.request.request_features import Requester

NO_ROWS = np.empty(0, dtype=np.int64)


class Retrieved(NamedTuple):
    """`unknown` are explicit candidates that the bundle does not hold; `offered` counts what the channels brought."""

    candidates: Candidates
    unknown: list[str]
    offered: int


def distinct(rows: np.ndarray) -> np.ndarray:
    """Without repetitions, in the order of first appearance."""
    first = np.unique(rows, return_index=True)[1]
    first.sort()
    return rows[first]


def close(rows: np.ndarray, closed: np.ndarray, quota: int) -> np.ndarray:
    """The first `quota` of the distinct `rows` that are open; they are closed for the channels that follow."""
    taken = rows[~closed[rows]][:quota].astype(np.int64)
    closed[taken] = True
    return taken


def _joined(channels: list[np.ndarray]) -> Candidates:
    """Item rows per channel, in the order of CHANNELS."""
    channel = np.repeat(np.arange(len(channels), dtype=np.int8), [len(rows) for rows in channels])
    return Candidates(np.concatenate(channels), channel)


class RetrievalStage:
    """Fills the quotas of `retrieve` in the bundle's settings, channel after channel."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._bundle = bundle
        self._settings = bundle.settings.retrieve
        self._item_vectors = np.asarray(bundle.item_vectors)
        self._neighbours, self._popularity = np.asarray(bundle.neighbours), np.asarray(bundle.popularity)

    def run(self, query: RankQuery, requester: Requester, user_vector: np.ndarray, by_value: bool) -> Retrieved:
        """`user_vector` [d]; `by_value` lets the bid count in the search."""
        allowed = self._allowed(query)
        if query.candidates is not None:
            return self._explicit(query.candidates, allowed, user_vector)
        channels = self._channels(requester, user_vector, allowed, by_value)
        found = _joined(channels).take(slice(self._settings.candidates))
        return Retrieved(self.with_tower_score(found, user_vector), [], len(self._item_vectors))

    def popular(self, query: RankQuery, requester: Requester) -> Retrieved:
        """Without a search and without scores: the most popular items that the filters admit, or the request's own
        candidates as they came."""
        allowed = self._allowed(query)
        if query.candidates is not None:
            return self._listed(query.candidates, allowed)
        closed = self._closed(requester, allowed)
        found = _joined([NO_ROWS, NO_ROWS, self._popular(self._settings.candidates, closed)])
        return Retrieved(found, [], len(self._item_vectors))

    def _closed(self, requester: Requester, allowed: np.ndarray | None) -> np.ndarray:
        """bool [I]: what may not come (any more)."""
        closed = np.zeros(len(self._item_vectors), dtype=bool) if allowed is None else ~allowed
        closed[requester.recent] = True
        return closed

    def _channels(
        self, requester: Requester, user_vector: np.ndarray, allowed: np.ndarray | None, by_value: bool
    ) -> list[np.ndarray]:
        """New item rows per channel, in the order of CHANNELS; `closed` [I] marks what may not come any more."""
        settings, seen = self._settings, requester.recent
        cold = not requester.known and not len(seen)
        closed = self._closed(requester, allowed)
        near = similar = popular = NO_ROWS
        if settings.two_tower and not cold:
            near = self._near(user_vector, settings.two_tower + len(seen), allowed, by_value)
            near = close(near, closed, settings.two_tower)
        if settings.item_to_item and len(seen):
            similar = self._neighbours[seen].T.ravel()
            similar = close(distinct(similar[similar >= 0]), closed, settings.item_to_item)
        if settings.popularity or cold:
            popular = self._popular(settings.candidates - len(near) - len(similar), closed)
        return [near, similar, popular]

    def _near(self, user_vector: np.ndarray, count: int, allowed: np.ndarray | None, by_value: bool) -> np.ndarray:
        """An auction's index has one dimension more, the bid's; its weight is 1, or 0 where clicks count."""
        index = self._bundle.index
        has_bid = index.vectors.shape[1] > len(user_vector)
        query = np.append(user_vector, np.float32(by_value)) if has_bid else user_vector
        return search(index, query, count, allowed).rows

    def _popular(self, quota: int, closed: np.ndarray) -> np.ndarray:
        """Reads the popularity list only as far as needed."""
        scan = 2 * max(quota, 0)
        while scan < len(self._popularity) and np.count_nonzero(~closed[self._popularity[:scan]]) < quota:
            scan *= 4
        return close(self._popularity[:scan], closed, max(quota, 0))

    def _explicit(self, keys: tuple[str, ...], allowed: np.ndarray | None, user_vector: np.ndarray) -> Retrieved:
        listed = self._listed(keys, allowed)
        return listed._replace(candidates=self.with_tower_score(listed.candidates, user_vector))

    def _listed(self, keys: tuple[str, ...], allowed: np.ndarray | None) -> Retrieved:
        found = self._bundle.items.rows(keys).astype(np.int64)
        unknown = [key for key, row in zip(keys, found.tolist(), strict=True) if row < 0]
        rows = distinct(found[found >= 0])
        rows = rows if allowed is None else rows[allowed[rows]]
        channel = np.full(len(rows), CHANNELS.index("explicit"), dtype=np.int8)
        return Retrieved(Candidates(rows, channel), unknown, len(keys))

    def with_tower_score(self, candidates: Candidates, user_vector: np.ndarray) -> Candidates:
        """Inner product for every candidate, whichever channel brought it; the bid plays no part in it."""
        return candidates.scored("retrieve", self._item_vectors[candidates.rows] @ user_vector)

    def _allowed(self, query: RankQuery) -> np.ndarray | None:
        """bool [I]; None when the request filters nothing."""
        allowed = None
        for name, values in query.filters.items():
            mask = self._bundle.filters[name].passing(values)
            allowed = mask if allowed is None else allowed & mask
        return allowed
