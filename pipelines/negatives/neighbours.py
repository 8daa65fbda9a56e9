"""Which items are taken near each other: an item-to-item retrieval as it stood at midnights of the log.

    w_ij = n_ij / sqrt(n_i n_j)      cosine (Sarwar et al., WWW 2001)

n_ij counts takes of i and j by one user with less than WINDOW others between them, n_i takes of i; of all that count
(ENTER, pipelines/windows/publish_clock.py) at the midnight of the fit, one behind the other as they came to count. The
first midnight with any take is a fit, then each at which the log has grown by a quarter since the fit before: a long
log has some dozens. A moment is answered by the last fit at or before the midnight that began its day, so that no take
of that day or later has a say, and what is learned later changes nothing of it.

    FOLDER/fits.npy       int64 [fits]: microseconds, ascending
           counts.npy     int64 [fits, items]: n_i
           nearest.npy    int32 [fits, items, NEAREST]: numbers in the catalogue, the largest weight first and of equal
                          ones what was there first; -1: there are no more
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from contracts.artifacts import ITEM, ROW, USER
from contracts.atomic_write import aside
from contracts.features.event_clock import SECOND
from pipelines.engine.by_pairs import by_pairs
from pipelines.engine.key_batches import per_key
from pipelines.engine.step import step
from pipelines.negatives.catalogue import Catalogue
from pipelines.windows.publish_clock import ENTER, PublishClock

WINDOW, NEAREST, GROWTH = 10, 20, 1.25
DAY_LENGTH = 86_400 * SECOND
FITS, COUNTS, LISTS = "fits.npy", "counts.npy", "nearest.npy"
FIT, LEFT, RIGHT, NUMBER, PLACE = "_fit", "_left", "_right", "_number", "_place"
PAIRS = StructType([
    *(StructField(name, IntegerType()) for name in (LEFT, RIGHT, FIT)), StructField(NUMBER, LongType())])
NEIGHBOURS = StructType([StructField(name, IntegerType()) for name in (FIT, LEFT, PLACE, RIGHT)])


@dataclass(frozen=True)
class Neighbours:
    """`fits` and `nearest` as the files hold them."""

    fits: np.ndarray
    nearest: np.ndarray

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Mapped, so that the tasks of a machine share them."""
        return cls(np.load(folder / FITS), np.load(folder / LISTS, mmap_mode="r"))

    def as_of(self, items: np.ndarray, at: np.ndarray) -> np.ndarray:
        """int32 [n, NEAREST] of items [n] at moments [n]; all -1 before the first fit."""
        if not len(self.fits):
            return np.full((len(items), NEAREST), -1, np.int32)
        fit = np.searchsorted(self.fits, midnight(at), side="right") - 1
        return np.where(fit[:, None] >= 0, self.nearest[np.maximum(fit, 0), items], -1)


def midnight(at: np.ndarray) -> np.ndarray:
    """UTC, at or before."""
    return at - at % DAY_LENGTH


def fit_neighbours(takes: DataFrame, days: np.ndarray, catalogue: Catalogue, folder: Path) -> None:
    """Writes the fits that the days beginning at `days` [D] read, beside the catalogue, which lies in `folder`."""
    fits = needed(_fits(takes), days)
    dated = takes.withColumn(FIT, fit_of(fits))
    _save(folder / FITS, fits)
    _save(folder / COUNTS, _counts(dated, fits, catalogue.names))
    nearest = np.full((len(fits), len(catalogue.names), NEAREST), -1, np.int32)
    if len(fits):
        found = neighbours(pairs(dated, folder, len(fits)), folder).toArrow()
        fit, left, at, right = (found.column(name).to_numpy() for name in NEIGHBOURS.names)
        nearest[fit, left, at] = right
    _save(folder / LISTS, nearest)


def _save(path: Path, values: np.ndarray) -> None:
    with aside(path) as draft, draft.open("wb") as file:
        np.save(file, values)


def _fits(takes: DataFrame) -> np.ndarray:
    visible = PublishClock(DAY_LENGTH).visible(F.col(ENTER))
    counted = takes.groupBy(visible.alias(ENTER)).agg(F.count(F.lit(1)).alias(NUMBER)).toArrow().sort_by(ENTER)
    return grown(counted.column(ENTER).to_numpy(), counted.column(NUMBER).to_numpy())


def grown(midnights: np.ndarray, takes: np.ndarray) -> np.ndarray:
    """Of midnights [D], ascending, and the takes that count from each on: those at which a fit is made."""
    found, fitted = [], 0
    for moment, total in zip(midnights.tolist(), np.cumsum(takes).tolist(), strict=True):
        if total >= GROWTH * fitted:
            found.append(moment)
            fitted = total
    return np.array(found, np.int64)


def needed(fits: np.ndarray, days: np.ndarray) -> np.ndarray:
    """Those that a day beginning at one of `days` reads."""
    read = np.unique(np.searchsorted(fits, days, side="right")) - 1
    return fits[read[read >= 0]]


def fit_of(fits: np.ndarray) -> Column:
    """The first of the fits that a take counts in, by its place; their number where there is none."""
    return by_pairs(add, [F.lit(0), *((F.col(ENTER) > F.lit(moment)).cast("int") for moment in fits.tolist())])


def _counts(dated: DataFrame, fits: np.ndarray, names: pa.Array) -> np.ndarray:
    found = dated.groupBy(ITEM, FIT).agg(F.count(F.lit(1)).alias(NUMBER)).toArrow()
    items = pc.index_in(found.column(ITEM).combine_chunks().cast(pa.string()), value_set=names).to_numpy()
    counts = np.zeros((len(fits) + 1, len(names)), np.int64)
    counts[found.column(FIT).to_numpy(), items] = found.column(NUMBER).to_numpy()
    return np.cumsum(counts, axis=0)[:-1]


@step(needs={ROW: "bigint", USER: "string", ITEM: "string", ENTER: "bigint", FIT: "int"},
      gives={LEFT: "int", RIGHT: "int", FIT: "int", NUMBER: "bigint"})
def pairs(dated: DataFrame, folder: Path, fits: int) -> DataFrame:
    """How many pairs of takes of two items count from each fit on, both ways round, some rows to a pair; `folder` has
    the catalogue."""
    return per_key(dated.select(ROW, USER, ITEM, ENTER, FIT), [USER], partial(_pairs, folder=folder, fits=fits), PAIRS)


def _pairs(table: pa.Table, user: np.ndarray, folder: Path, fits: int) -> pa.Table:
    return counted_pairs(table, user, Catalogue.read(folder).names, fits)


def counted_pairs(table: pa.Table, user: np.ndarray, names: pa.Array, fits: int) -> pa.Table:
    """As `pairs`, of all takes of some users, whom `user` numbers."""
    item = pc.index_in(table.column(ITEM).combine_chunks(), value_set=names).to_numpy().astype(np.int64)
    enter, row = (table.column(name).to_numpy() for name in (ENTER, ROW))
    order = np.lexsort([row, enter, user])
    user, item, fit = user[order], item[order], table.column(FIT).to_numpy().astype(np.int64)[order]
    codes: list[np.ndarray] = []
    for apart in range(1, min(WINDOW, len(order) - 1) + 1):
        both = (user[apart:] == user[:-apart]) & (item[apart:] != item[:-apart]) & (fit[apart:] < fits)
        first, second = item[:-apart][both], item[apart:][both]
        codes += [(one * len(names) + other) * fits + fit[apart:][both]
                  for one, other in ((first, second), (second, first))]
    found, number = np.unique(np.concatenate([*codes, np.zeros(0, np.int64)]), return_counts=True)
    pair, begins = np.divmod(found, max(fits, 1))
    left, right = np.divmod(pair, len(names))
    return pa.table({**_whole({LEFT: left, RIGHT: right, FIT: begins}), NUMBER: number.astype(np.int64)})


def _whole(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values.astype(np.int32) for name, values in columns.items()}


@step(needs={LEFT: "int", RIGHT: "int", FIT: "int", NUMBER: "bigint"},
      gives={FIT: "int", LEFT: "int", PLACE: "int", RIGHT: "int"})
def neighbours(counted: DataFrame, folder: Path) -> DataFrame:
    """The NEAREST of each item at each fit; `folder` has the counts of the items."""
    return per_key(counted, [LEFT], partial(_nearest, folder=folder), NEIGHBOURS)


def _nearest(table: pa.Table, left: np.ndarray, folder: Path) -> pa.Table:
    return nearest_items(table, np.load(folder / COUNTS, mmap_mode="r"))


def nearest_items(table: pa.Table, counts: np.ndarray) -> pa.Table:
    """As `neighbours`, of all pairs of some items on the left; counts [fits, items]."""
    left, right, fit, number = (table.column(name).to_numpy() for name in PAIRS.names)
    pair, place = np.unique(left.astype(np.int64) * counts.shape[1] + right, return_inverse=True)
    left, right = np.divmod(pair, counts.shape[1])
    together = np.zeros(len(pair), np.int64)
    parts = []
    for at in range(len(counts)):
        now = fit == at
        together += np.bincount(place[now], number[now], len(pair)).astype(np.int64)
        parts.append(_largest(at, left, right, together, counts[at]))
    return pa.concat_tables(parts)


def _largest(at: int, left: np.ndarray, right: np.ndarray, together: np.ndarray, counts: np.ndarray) -> pa.Table:
    """n_ij^2 / n_j is in the order of the weights of an item. Pairs come by `left` and then `right`, and stay so among
    equal weights."""
    some = np.flatnonzero(together)
    left, right, weight = left[some], right[some], together[some] ** 2 / counts[right[some]]
    order = np.lexsort([-weight, left])
    left, right = left[order], right[order]
    begins = np.flatnonzero(np.diff(left, prepend=-1))
    rank = np.arange(len(left)) - np.repeat(begins, np.diff(np.append(begins, len(left))))
    kept = rank < NEAREST
    return pa.table(_whole({FIT: np.full(kept.sum(), at), LEFT: left[kept], PLACE: rank[kept], RIGHT: right[kept]}))


def beginnings(days: Sequence[str]) -> np.ndarray:
    """int64 [D]: microseconds at which days such as 2026-01-05 begin."""
    return np.array(days, "datetime64[us]").astype(np.int64)
