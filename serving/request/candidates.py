"""The candidates of one request as parallel arrays; every stage takes a subset, reorders it and adds its scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

import numpy as np

from contracts.config.section import ChannelName
from serving.bundle.feature_store import FeatureStore
from serving.request.given_items import GivenItems

CHANNELS = ("two_tower", "item_to_item", "popularity", "explicit", *get_args(ChannelName), "rule")
BOOST, PIN = "boost", "pin"  # what business rules say of candidates, beside the stages' scores


@dataclass(eq=False, slots=True)
class Candidates:
    """`rows` [K] item rows, `channels` [K] indices into CHANNELS, `scores` [K] float per stage name; `vectors` [K, d]
    are the items' while somebody has just read them, and are not kept by `take`. Rows beyond the bundle's are those of
    `given`. Nothing of it is changed once it is made (a frozen one would take five times as long to make).

    The order is the order of preference so far: a stage that is cut short loses the tail.
    """

    rows: np.ndarray
    channels: np.ndarray
    scores: dict[str, np.ndarray] = field(default_factory=dict)
    vectors: np.ndarray | None = None
    given: GivenItems | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, order: np.ndarray | slice) -> Candidates:
        """Those at the positions `order`, in that order, with their scores."""
        scores = {stage: values[order] for stage, values in self.scores.items()}
        return Candidates(self.rows[order], self.channels[order], scores, given=self.given)

    def first(self, count: int) -> Candidates:
        """So many of them, from the head of their order."""
        return self if count >= len(self.rows) else self.take(slice(count))

    def scored(self, stage: str, values: np.ndarray) -> Candidates:
        """The same candidates with one more column of scores."""
        return Candidates(self.rows, self.channels, {**self.scores, stage: values}, self.vectors, self.given)

    @property
    def boosts(self) -> np.ndarray | None:
        """[K] how many times each one's score counts; None where no rule boosts."""
        return self.scores.get(BOOST)

    @property
    def pins(self) -> np.ndarray | None:
        """[K] the position that a rule pins each to, 0 for none; None where no rule pins."""
        return self.scores.get(PIN)

    def weighed(self, objective: np.ndarray) -> np.ndarray:
        """[K] what the candidates are ordered by, as rules want it: boosted, and pinned ones before all."""
        return self._first_pinned(objective if self.boosts is None else objective * self.boosts)

    def weighed_log(self, scores: np.ndarray, scale: float) -> np.ndarray:
        """The same of logarithms of it, `scale` to one of e."""
        return self._first_pinned(scores if self.boosts is None else scores + scale * np.log(self.boosts))

    def _first_pinned(self, scores: np.ndarray) -> np.ndarray:
        return scores if self.pins is None else np.where(self.pins > 0, np.inf, scores)

    def bids_of(self, bids: np.ndarray) -> np.ndarray:
        """[K] of the items' `bids` [I]."""
        return bids[self.rows] if self.given is None else self.given.read(bids.__getitem__, self.rows, self.given.bids)

    def vectors_of(self, take: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """[K, d], where `take` reads the vectors of rows of the bundle."""
        return take(self.rows) if self.given is None else self.given.read(take, self.rows, self.given.vectors)

    def keys_of(self, items: FeatureStore) -> list[str]:
        """As callers name them."""
        if self.given is None:
            return items.keys_of(self.rows)
        keys = items.keys_of(np.where(self.rows < self.given.first, self.rows, 0))
        for where, which in zip(*(part.tolist() for part in self.given.places(self.rows)), strict=True):
            keys[where] = self.given.keys[which]
        return keys
