"""A bounded sample of encoded examples as plain arrays, and the codes of crosses in it.

Pruning, baselines and comparisons all look at crosses one by one: they need columns, not batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from contracts.artifacts import LABEL, POSITION, ROW, USER
from contracts.features.encoding import radix_code
from contracts.features.feature_spec import FeatureSpec, IdSlot
from models.examples.batches import ExampleSet

LARGEST_TABLE = 65_536  # codes up to here, or up to the number of rows, are counted in place; sparser ones are numbered


@dataclass(frozen=True)
class CrossColumns:
    """ids [N, slots] int32, column by column in memory, label [N] float64, position [N] (1 where the log has none);
    rows lie in time order of days. `user` [N] is one value per user, None in a log without users.
    """

    slots: tuple[IdSlot, ...]
    ids: np.ndarray
    label: np.ndarray
    position: np.ndarray
    row: np.ndarray
    user: np.ndarray | None = None

    @property
    def rows(self) -> int:
        """N."""
        return len(self.label)

    def take(self, rows: np.ndarray) -> CrossColumns:
        """The given rows (indices or mask)."""
        return replace(
            self, ids=self.ids[rows], label=self.label[rows], position=self.position[rows], row=self.row[rows],
            user=None if self.user is None else self.user[rows])

    def codes(self, cross: Sequence[int]) -> tuple[np.ndarray, int]:
        """(code [N] below `size`, size) of the cross of these columns, by their sorted numbers."""
        parts = sorted(cross)
        sizes = [self.slots[part].size for part in parts]
        code = radix_code([self.ids[:, part] for part in parts], sizes)
        size = math.prod(sizes)
        if size <= max(LARGEST_TABLE, self.rows):
            return code, size
        distinct, numbered = np.unique(code, return_inverse=True)
        return numbered, len(distinct)


def crossable(spec: FeatureSpec) -> tuple[IdSlot, ...]:
    """Slots of one column that are no cross themselves."""
    blocks = (*spec.block_ids("request"), *spec.block_ids("candidate"))
    return tuple(s for s in blocks if s.width == 1 and s.side != "cross" and not s.sequence)


def read(examples: ExampleSet, spec: FeatureSpec, limit: int, seed: int) -> CrossColumns:
    """All rows of the examples, or a uniform sample of `limit` of them in file order."""
    slots = crossable(spec)
    kept = np.arange(examples.rows)
    if limit < examples.rows:
        kept = np.sort(np.random.default_rng(seed).choice(examples.rows, limit, replace=False))
    ids = np.empty((len(kept), len(slots)), dtype=np.int32, order="F")
    for column, slot in enumerate(slots):
        ids[:, column] = examples.column(slot.name)[kept]
    position = examples.column(POSITION)[kept] if spec.has_position else np.ones(len(kept), dtype=np.int32)
    return CrossColumns(slots, ids, examples.column(LABEL)[kept].astype(np.float64), position.astype(np.int64),
                        examples.column(ROW)[kept], examples.column(USER)[kept] if spec.has_users else None)


def joined(parts: Sequence[CrossColumns]) -> CrossColumns:
    """The rows of all parts, one below the other."""
    names = ("ids", "label", "position", "row", *(() if parts[0].user is None else ("user",)))
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return CrossColumns(parts[0].slots, **columns)
