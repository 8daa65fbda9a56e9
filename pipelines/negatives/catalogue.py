"""What there was to choose from, at every moment of a log of positives alone.

An item is there from the moment on at which its first take counts: max(event_time + 1 us, known_time), see
pipelines/windows/publish_clock.py. Of its n takes so far floor(n ^ power) are tickets. A ticket drawn uniformly among
those there are at t is of item i with probability

    q_i(t) = floor(n_i(t) ^ power) / sum over j of floor(n_j(t) ^ power)        power 0: uniform over the items

Tickets are in the order of their moments, so that what is learned later changes nothing of what was drawn before.

    FOLDER/moments.npy   items.npy    per ticket int64 microseconds, and the number of its item
           by_item.npy                item * tickets + ticket, ascending: which tickets are an item's
           names.parquet              the items; a number is a place in it
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from contracts.artifacts import ITEM, ROW
from contracts.atomic_write import aside
from pipelines.engine.key_batches import per_key
from pipelines.engine.step import step
from pipelines.windows.publish_clock import ENTER

NAMES, ARRAYS = "names.parquet", ("moments", "items", "by_item")
ROUNDING = 1e-9  # so that a whole power is whole, whatever the last digit says


@dataclass(frozen=True)
class Catalogue:
    """`moments` [T] ascending, `items` [T] and `by_item` [T] of the tickets; `names` of the items."""

    moments: np.ndarray
    items: np.ndarray
    by_item: np.ndarray
    names: pa.Array

    @classmethod
    def of(cls, tickets: pa.Table) -> Self:
        """From columns ITEM and ENTER in any order; ties are broken by the item."""
        plain = pa.table({ITEM: tickets.column(ITEM).cast(pa.string()), ENTER: tickets.column(ENTER)})
        ordered = plain.sort_by([(ENTER, "ascending"), (ITEM, "ascending")]).combine_chunks()
        coded = ordered.column(ITEM).combine_chunks().dictionary_encode()
        items = coded.indices.to_numpy().astype(np.int64)
        by_item = np.sort(items * len(items) + np.arange(len(items)))
        return cls(ordered.column(ENTER).to_numpy(), items, by_item, coded.dictionary)

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ARRAYS:
            with aside(folder / f"{name}.npy") as draft, draft.open("wb") as file:
                np.save(file, getattr(self, name))
        with aside(folder / NAMES) as draft:
            pq.write_table(pa.table({ITEM: self.names}), draft)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Mapped, so that the tasks of a machine share the tickets."""
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
        return cls(**arrays, names=pq.read_table(folder / NAMES).column(ITEM).combine_chunks())

    @cached_property
    def first(self) -> np.ndarray:
        """int64 [items]: since when each is there."""
        found: np.ndarray = np.zeros(len(self.names), np.int64)
        found[self.items[::-1]] = self.moments[::-1]
        return found

    def tickets(self, at: np.ndarray) -> np.ndarray:
        """How many there are at these moments."""
        return np.searchsorted(self.moments, at, side="right")

    def tickets_of(self, items: np.ndarray, tickets: np.ndarray) -> np.ndarray:
        """How many of the first `tickets` are of each item."""
        first = items * len(self.items)
        return np.searchsorted(self.by_item, first + tickets) - np.searchsorted(self.by_item, first)


@step(needs={ITEM: "string", ENTER: "bigint", ROW: "bigint"}, gives={ITEM: "string", ENTER: "bigint"})
def tickets(takes: DataFrame, power: float) -> DataFrame:
    """The tickets of all items."""
    if power == 0:
        return takes.groupBy(ITEM).agg(F.min(ENTER).alias(ENTER))
    schema = StructType([takes.schema[ITEM], StructField(ENTER, LongType())])
    return per_key(takes.select(ITEM, ENTER, ROW), [ITEM], partial(raising, power=power), schema)


def raising(table: pa.Table, group: np.ndarray, power: float) -> pa.Table:
    """The takes that raise floor(n ^ power) of their item, n counting from its first."""
    enter, row = (table.column(name).to_numpy() for name in (ENTER, ROW))
    order = np.lexsort([row, enter, group])
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    count = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order)))) + 1
    now, before = (np.floor(n.astype(np.float64) ** power + ROUNDING) for n in (count, count - 1))
    return table.select([ITEM, ENTER]).take(pa.array(order[(count == 1) | (now > before)]))
