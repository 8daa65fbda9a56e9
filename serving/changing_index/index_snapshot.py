"""What a search of changing items reads: sets and vectors of one moment, replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from serving.bundle.item_set import ItemSet


class OpenParts(NamedTuple):
    """Items that a search may find: all, those whose vector the base has, and those whose vector the merged index
    has."""

    all: ItemSet
    base: ItemSet
    merged: ItemSet


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """`shown`: items that may be; `in_base`, `in_merged`: those whose vector is the one that the index holds; `whole`:
    where the shown ones lie; `rows` [L] of the latest, -1 where a later one of the same item follows; `vectors` [L, d];
    `base` items have the base."""

    base: int
    shown: ItemSet
    in_base: ItemSet
    in_merged: ItemSet
    merged: Any
    whole: OpenParts
    rows: np.ndarray
    vectors: np.ndarray

    @cached_property
    def living(self) -> np.ndarray:
        """Where among the latest those lie that may be shown."""
        return living_places(self.rows, self.shown)

    def parts(self, allowed: ItemSet | None) -> OpenParts:
        """Where the shown items lie that are `allowed`; None: all of them."""
        if allowed is None or allowed is self.shown:
            return self.whole
        return open_parts(allowed & self.shown, self.in_base, self.in_merged, self.base)


def open_parts(open_: ItemSet, in_base: ItemSet, in_merged: ItemSet, base: int) -> OpenParts:
    """Where the `open_` items lie; `base` items have the base."""
    found = OpenParts(open_, (open_ & in_base).cut(base), open_ & in_merged)
    _ = [part.count for part in found]  # kept: counted once, and not by every request
    return found


def living_places(rows: np.ndarray, open_: ItemSet) -> np.ndarray:
    """Where among the rows [L] of the latest, -1 where a later one follows, those of the set lie."""
    return np.flatnonzero((rows >= 0) & open_.contains(rows))
