"""What is near as of a midnight, against counting by hand, and of what nothing of it depends."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import ITEM, ROW, USER
from pipelines.negatives.catalogue import Catalogue
from pipelines.negatives.neighbours import (
    DAY_LENGTH,
    NEAREST,
    WINDOW,
    Neighbours,
    beginnings,
    fit_neighbours,
    grown,
    midnight,
    needed,
)
from pipelines.windows.publish_clock import ENTER

DAYS, TAKES, ITEMS = 6, 500, 40
START = beginnings(["2026-01-05"])[0]
BEGINNINGS = START + DAY_LENGTH * np.arange(DAYS)


def takes(last: int = DAYS) -> pa.Table:
    """Twelve users keep to a neighbourhood of items each; those of the first `last` days."""
    random = np.random.default_rng(2)
    user = random.integers(0, 12, TAKES)
    item = (3 * user + random.geometric(0.25, TAKES)) % ITEMS
    enter = np.sort(random.integers(0, DAYS * DAY_LENGTH, TAKES)) + START
    table = pa.table({ROW: random.permutation(TAKES), USER: [f"u{n}" for n in user], ITEM: [f"i{n}" for n in item],
                      ENTER: enter})
    return table.filter(pa.array(enter < START + last * DAY_LENGTH))


def catalogue(table: pa.Table, folder: Path) -> Catalogue:
    rows = table.to_pylist()
    first = [row for place, row in enumerate(rows) if row[ITEM] not in {other[ITEM] for other in rows[:place]}]
    made = Catalogue.of(pa.Table.from_pylist(first))
    made.write(folder)
    return made


def fitted(spark: SparkSession, table: pa.Table, days: np.ndarray, folder: Path) -> tuple[Neighbours, list[str]]:
    known = catalogue(table, folder)
    fit_neighbours(spark.createDataFrame(table), days, known, folder)
    return Neighbours.read(folder), known.names.to_pylist()


def by_hand(at: int, names: list[str]) -> dict[str, list[str]]:
    """The nearest of each item of the takes that count at a moment."""
    rows = sorted((row for row in takes().to_pylist() if row[ENTER] <= at), key=lambda row: (row[ENTER], row[ROW]))
    histories: dict[str, list[str]] = {}
    for row in rows:
        histories.setdefault(row[USER], []).append(row[ITEM])
    single, both = Counter(row[ITEM] for row in rows), Counter[tuple[str, str]]()
    for history in histories.values():
        for place, item in enumerate(history):
            for other in history[max(place - WINDOW, 0) : place]:
                both.update([(item, other), (other, item)] if item != other else [])
    weight = {(i, j): count / np.sqrt(single[i] * single[j]) for (i, j), count in both.items()}
    return {i: sorted((j for left, j in weight if left == i), key=lambda j: (-round(weight[i, j], 12), names.index(j)))
            [:NEAREST] for i in names}


def named(found: np.ndarray, names: list[str]) -> list[str]:
    return [names[place] for place in found.tolist() if place >= 0]


@pytest.mark.every_engine
def test_the_nearest_are_those_of_the_largest_cosine_before_the_day(spark: SparkSession, tmp_path: Path) -> None:
    near, names = fitted(spark, takes(), BEGINNINGS, tmp_path)
    assert near.fits.tolist() == sorted(set(near.fits.tolist()) & set(BEGINNINGS.tolist()))
    assert len(near.fits) > 2
    for begins in BEGINNINGS.tolist():
        fits = near.fits[near.fits <= begins]
        expected = by_hand(fits[-1], names) if len(fits) else {name: [] for name in names}
        found = near.as_of(np.arange(len(names)), np.full(len(names), begins + DAY_LENGTH - 1))
        assert {name: named(row, names) for name, row in zip(names, found, strict=True)} == expected


def test_a_day_alone_and_a_shorter_log_find_the_same(spark: SparkSession, tmp_path: Path) -> None:
    whole, names = fitted(spark, takes(), BEGINNINGS, tmp_path / "whole")
    part, fewer = fitted(spark, takes(last=4), BEGINNINGS[[3]], tmp_path / "part")
    assert names[: len(fewer)] == fewer
    assert len(part.fits) == 1
    items, at = np.arange(len(fewer)), np.full(len(fewer), BEGINNINGS[3] + 7)
    np.testing.assert_array_equal(part.as_of(items, at), whole.as_of(items, at))


def test_before_the_first_fit_nothing_is_near(spark: SparkSession, tmp_path: Path) -> None:
    near, _ = fitted(spark, takes(), BEGINNINGS[:1], tmp_path)
    assert not len(near.fits)
    assert (near.as_of(np.arange(3), np.full(3, BEGINNINGS[0] + 5)) == -1).all()


def test_a_fit_is_made_when_the_log_has_grown_by_a_quarter() -> None:
    counts = np.array([4, 0, 1, 1, 1, 10])
    found = grown(np.arange(6), counts).tolist()
    total = np.cumsum(counts)
    assert found[0] == 0
    assert all(total[later] >= 1.25 * total[before] for before, later in pairwise(found))
    assert all(total[day] < 1.25 * total[max(f for f in found if f < day)] for day in range(1, 6) if day not in found)


def test_a_day_reads_the_last_fit_before_it() -> None:
    assert needed(np.array([10, 20, 30]), np.array([5, 25, 27, 30])).tolist() == [20, 30]
    assert midnight(np.array([-1, 0, DAY_LENGTH - 1, DAY_LENGTH])).tolist() == [-DAY_LENGTH, 0, 0, DAY_LENGTH]
