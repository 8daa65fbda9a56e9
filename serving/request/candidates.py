"""The candidates of one request as parallel arrays; every stage takes a subset, reorders it and adds its scores."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

CHANNELS = ("two_tower", "item_to_item", "popularity", "explicit")


@dataclass(frozen=True)
class Candidates:
    """`rows` [K] item rows, `channels` [K] indices into CHANNELS, `scores` [K] float per stage name; `vectors` [K, d]
    are the items' while somebody has just read them, and are not kept by `take`.

    The order is the order of preference so far: a stage that is cut short loses the tail.
    """

    rows: np.ndarray
    channels: np.ndarray
    scores: dict[str, np.ndarray] = field(default_factory=dict)
    vectors: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, order: np.ndarray | slice) -> Candidates:
        """Those at the positions `order`, in that order, with their scores."""
        scores = {stage: values[order] for stage, values in self.scores.items()}
        return Candidates(self.rows[order], self.channels[order], scores)

    def scored(self, stage: str, values: np.ndarray) -> Candidates:
        """The same candidates with one more column of scores."""
        return Candidates(self.rows, self.channels, {**self.scores, stage: values}, self.vectors)
