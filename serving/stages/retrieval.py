"""Retrieval: from all items to at most `retrieve.candidates`, by channels or by the request's own list.

    two_tower      nearest items to the user's vector by inner product (plus the bid's dimension where value counts)
    item_to_item   neighbours of the recent items: the nearest of each first, newer before older
    NAME           those of `retrieve.channels`: what followed the recent items in training, or is popular of late
    popularity     most popular items; fills what the other channels leave free

A channel adds up to its quota of items that no earlier one brought. Filters hold for every channel and for explicit
candidates; recent items are not shown again unless asked for explicitly, or users take items again (`repeat`). A
requester of whom nothing is known (no stored row, no recent items) gets what the tower makes of the context, where
validation has found that better (`cold`), else the popular items alone, of late and ever.

Business rules (serving/rules/rules.py) forbid items as filters do, and bring pinned ones before all channels.

A channel of `retrieve.channels` is left out of a request that has no time for it, by what it took lately, or when it
raises; popularity fills its quota, and `dropped` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np

from serving.bundle.item_index import search, with_bid_weight
from serving.bundle.item_set import ItemSet
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.vector_rows import VectorRows
from serving.channels.further_channels import FurtherChannels
from serving.channels.open_items import OpenItems, distinct
from serving.request.candidates import CHANNELS, Candidates
from serving.request.deadline import Deadline
from serving.request.given_items import GivenItems, ItemDescriber
from serving.request.query import RankQuery
from serving.request.request_features import Requester
from serving.request.stage_clock import StageClock
from serving.rules.rules import Rules

CODES = {name: place for place, name in enumerate(CHANNELS)}
NO_VECTOR = np.empty(0, dtype=np.float32)
NO_ROWS, NO_DEADLINE = np.empty(0, dtype=np.int64), Deadline(None)


class Retrieved(NamedTuple):
    """`unknown` are explicit candidates that the bundle does not hold; `offered` counts what the channels brought.
    `dropped` says which channels were left out, and why; `aside` seconds went into those of `retrieve.channels`."""

    candidates: Candidates
    unknown: list[str]
    offered: int
    dropped: str = ""
    aside: float = 0.0


def _joined(channels: dict[str, np.ndarray]) -> Candidates:
    """Item rows per channel, in the order of preference."""
    joined, end = np.concatenate(list(channels.values())), 0
    channel = np.empty(len(joined), dtype=np.int8)
    for name, rows in channels.items():
        begin, end = end, end + len(rows)
        channel[begin:end] = CODES[name]
    return Candidates(joined, channel)


class RetrievalStage:
    """Fills the quotas of `retrieve` in the bundle's settings, channel after channel."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._bundle, self.rules = bundle, Rules(bundle)
        self._settings, self._describer = bundle.settings.retrieve, ItemDescriber(bundle)
        self._item_vectors = VectorRows(bundle.item_vectors)
        self._neighbours, self._popularity = np.asarray(bundle.neighbours), np.asarray(bundle.popularity)
        self._places = np.empty_like(self._popularity)
        self._places[self._popularity] = np.arange(len(self._popularity))
        self._flags: list[np.ndarray] = []  # of requests that have ended
        self._clock = StageClock([channel.name for channel in bundle.channels])

    def run(
        self, query: RankQuery, requester: Requester, user_vector: np.ndarray, by_value: bool,
        deadline: Deadline = NO_DEADLINE,
    ) -> Retrieved:
        """`user_vector` [d], or NO_VECTOR for a requester that asks no tower; `by_value` lets the bid count in the
        search."""
        allowed = self.allowed(query)
        if query.candidates is not None:
            listed = self._listed(query, query.candidates, allowed)
            return listed._replace(candidates=self.with_tower_score(listed.candidates, user_vector))
        further = FurtherChannels(self._bundle.channels, self._settings, self._clock, deadline)
        channels = self._channels(query, requester, user_vector, allowed, by_value, further)
        found = self._with_pinned(_joined(channels), query, allowed)
        return Retrieved(self.with_tower_score(found, user_vector), [], self._offered,
                         "; ".join(further.dropped), further.seconds)

    def forget_times(self) -> None:
        """Of the further channels."""
        self._clock.forget()

    def timed_by(self, now: Callable[[], float]) -> AbstractContextManager[None]:
        """They are, in its block."""
        return self._clock.timed_by(now)

    def asks_tower(self, requester: Requester) -> bool:
        """Whether the two towers have something to say of them."""
        return not requester.cold or self._settings.cold == "two_tower"

    def popular(self, query: RankQuery, requester: Requester) -> Retrieved:
        """Without a search and without scores: the most popular items that the filters admit, or the request's own
        candidates as they came."""
        allowed = self.allowed(query)
        if query.candidates is not None:
            return self._listed(query, query.candidates, allowed)
        with self._open(allowed, self._seen(query, requester)) as items:
            found = _joined({"popularity": self._popular(self._settings.candidates, items)})
        return Retrieved(self._with_pinned(found, query, allowed), [], self._offered)

    def _with_pinned(self, found: Candidates, query: RankQuery, allowed: ItemSet | None) -> Candidates:
        """And no more than `retrieve.candidates`."""
        active = self.rules.active(query)
        if active.pins:
            found = self.rules.with_pinned(found, self.rules.pinned(active, query, allowed))
        return found.first(self._settings.candidates)

    @property
    def _offered(self) -> int:
        return self._bundle.shown().count if self._bundle.shown else len(self._item_vectors)

    def _channels(
        self, query: RankQuery, requester: Requester, user_vector: np.ndarray, allowed: ItemSet | None, by_value: bool,
        further: FurtherChannels,
    ) -> dict[str, np.ndarray]:
        """New item rows per channel."""
        settings, recent, seen = self._settings, requester.recent, self._seen(query, requester)
        cold = not self.asks_tower(requester)
        found = {"two_tower": NO_ROWS}
        with self._open(allowed, seen) as items:
            if settings.two_tower and not cold:
                near = self._near(user_vector, settings.two_tower + len(seen), allowed, by_value)
                found["two_tower"] = items.take(near, settings.two_tower)
            if settings.item_to_item and len(recent):
                found["item_to_item"] = self._similar(settings.item_to_item, recent, items)
            brought = sum(map(len, found.values()))
            found |= further.take(items, requester, len(seen) + brought, allowed, by_value)
            if settings.popularity or cold or further.dropped:
                found["popularity"] = self._popular(settings.candidates - sum(map(len, found.values())), items)
        return found

    def _open(self, allowed: ItemSet | None, seen: np.ndarray) -> OpenItems:
        return OpenItems(self._flags, len(self._item_vectors), allowed, seen)

    def _near(self, user_vector: np.ndarray, count: int, allowed: ItemSet | None, by_value: bool) -> np.ndarray:
        """An auction's index has the bid's dimension besides; its weight is 1, or 0 where clicks count."""
        index = self._bundle.index
        width, query = index.vectors.shape[1], user_vector
        if width > len(user_vector):
            query = with_bid_weight(user_vector[None], float(by_value), width)[0]
        return search(index, query, count, allowed).rows

    def _similar(self, quota: int, recent: np.ndarray, items: OpenItems) -> np.ndarray:
        """Reads the lists of neighbours only as far as needed."""
        known = self._neighbours.shape[1]
        for each in (min(-(-2 * quota // len(recent)), known), known):
            similar = self._neighbours[recent, :each].T.ravel()
            similar = distinct(similar[similar >= 0])
            free = similar[items.has(similar)]
            if len(free) >= quota or each == known:
                break
        return items.close(free[:quota])

    def _popular(self, quota: int, items: OpenItems) -> np.ndarray:
        """Reads the popularity list only as far as needed; of few items that are allowed, their places in it."""
        few = items.allowed
        if few is not None and few.count**2 < quota * len(self._popularity):
            rows = few.rows()
            rows = rows[rows < len(self._places)]
            return items.take(rows[np.argsort(self._places[rows])], quota)
        quota, scan = max(quota, 0), 2 * max(quota, 0)
        while True:
            popular = self._popularity[:scan]
            free = popular[items.has(popular)]
            if len(free) >= quota or scan >= len(self._popularity):
                return items.close(free[:quota])
            scan *= 4

    def _seen(self, query: RankQuery, requester: Requester) -> np.ndarray:
        """Rows that are not shown: recent items unless they come again, and what other slates of the request show."""
        recent = requester.recent[:0] if self._settings.repeat else requester.recent
        if not query.shown:
            return recent
        rows = self._bundle.items.rows(query.shown)
        return np.concatenate([recent, rows[rows >= 0]])

    def _listed(self, query: RankQuery, keys: tuple[str, ...], allowed: ItemSet | None) -> Retrieved:
        found, given = self._describer.rows(keys, query.features, query.bids)
        unknown = [keys[place] for place in np.flatnonzero(found < 0).tolist()]
        if query.shown:
            found = found[~np.isin(np.array(keys), np.array(query.shown))]
        rows = distinct(found[found >= 0])
        rows = rows if allowed is None else rows[self._admitted(rows, given, allowed, query)]
        channel = np.full(len(rows), CODES["explicit"], dtype=np.int8)
        return Retrieved(Candidates(rows, channel, given=given), unknown, len(keys))

    def with_tower_score(self, candidates: Candidates, user_vector: np.ndarray) -> Candidates:
        """Inner product for every candidate, whichever channel brought it; the bid plays no part in it. There is none
        without a vector."""
        if not len(user_vector):
            return candidates
        vectors = candidates.vectors_of(self._item_vectors.take)
        scores = {**candidates.scores, "retrieve": vectors @ user_vector}
        return Candidates(candidates.rows, candidates.channels, scores, vectors, candidates.given)

    def allowed(self, query: RankQuery) -> ItemSet | None:
        """The items that may be shown, and that the request's filters and the rules admit; None when all may come."""
        allowed = self._bundle.shown() if self._bundle.shown else None
        for name, values in query.filters.items():
            mask = self._bundle.filters[name].items(values)
            allowed = mask if allowed is None else allowed & mask
        forbidding = (mask for _, mask in self.rules.forbidding(self.rules.active(query)))
        for mask in (*excluded_and_within(self._bundle, query), *forbidding):
            allowed = mask if allowed is None else allowed & mask
        return allowed

    def _admitted(self, rows: np.ndarray, given: GivenItems | None, allowed: ItemSet, query: RankQuery) -> np.ndarray:
        """bool [K]: those that pass the request's filters and the rules."""
        if given is None:
            return allowed.contains(rows)
        admitted = given.admitted(query) & self.rules.given_admitted(self.rules.active(query), given)
        return given.read(allowed.contains, rows, admitted)


def excluded_and_within(bundle: LoadedBundle, query: RankQuery) -> Iterator[ItemSet]:
    """The sets that `excluded` and `ranges` admit."""
    for name, values in query.excluded.items():
        yield bundle.filters[name].items(values).complement()
    for name, (least, most) in query.ranges.items():
        yield bundle.within(name, least, most)
