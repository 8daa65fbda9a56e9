"""What one search for crosses looks at, and what it found there, before anything is compared with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from contracts.features.found_crosses import FoundCross, cross_name
from contracts.summaries.crosses import SearchEpoch
from models.cross_search.columns import CrossColumns
from models.cross_search.derivation import Cross
from models.cross_search.pruning import Fold, Selected


@dataclass(frozen=True, kw_only=True)
class SearchSpace:
    """`allowed` bool [S, S] over the slots of `columns`; `folds` judge a cross. Known before the search."""

    columns: CrossColumns
    folds: list[Fold]
    allowed: np.ndarray


@dataclass(frozen=True, kw_only=True)
class SearchOutcome(SearchSpace):
    """`adjacency` [S, S] per layer over the slots of `columns`; `proposals` maps crosses to importance, most important
    first; `selected` by falling gain; `seconds` by phase."""

    adjacency: list[np.ndarray]
    proposals: dict[Cross, float]
    selected: list[Selected]
    min_count: int
    representation: Literal["embedding", "product"]
    history: tuple[SearchEpoch, ...]
    rows_per_second: float
    seconds: dict[str, float]

    def parts(self, cross: Cross) -> tuple[str, ...]:
        """Names of the cross's slots, in the order of the columns."""
        return tuple(self.columns.slots[place].name for place in sorted(cross))

    def found(self) -> list[FoundCross]:
        """As `crosses.json` holds them."""
        return [
            FoundCross(
                name=cross_name(self.parts(selected.cross)), parts=self.parts(selected.cross),
                importance=round(self.proposals[selected.cross], 6), gain=round(selected.gain, 3),
                support=selected.support, min_count=self.min_count, representation=self.representation,
            )
            for selected in self.selected
        ]
