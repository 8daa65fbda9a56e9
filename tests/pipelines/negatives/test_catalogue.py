"""What there was at every moment, and how often each item can be drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import ITEM, ROW
from pipelines.negatives.catalogue import Catalogue, raising, tickets
from pipelines.windows.publish_clock import ENTER


def takes() -> pa.Table:
    """Fifty takes of six items, one a moment."""
    item = [f"i{n}" for n in np.random.default_rng(1).geometric(0.4, 50).clip(1, 6)]
    return pa.table({ITEM: item, ENTER: np.arange(50), ROW: np.arange(50) * 7 % 50})


def catalogue(power: float) -> Catalogue:
    table = takes()
    return Catalogue.of(raising(table, np.unique(table[ITEM].to_pylist(), return_inverse=True)[1], power))


def test_tickets_rise_with_the_power_of_the_takes() -> None:
    table = pa.table({ITEM: ["a"] * 10, ENTER: np.arange(10), ROW: np.arange(10)})
    group = np.zeros(10, np.int64)
    for power, expected in ((0.0, [0]), (0.5, [0, 3, 8]), (1.0, list(range(10)))):
        assert raising(table, group, power).column(ENTER).to_pylist() == expected


def test_a_catalogue_comes_back_as_it_was_written(tmp_path: Path) -> None:
    made = catalogue(0.75)
    made.write(tmp_path)
    known = Catalogue.read(tmp_path)
    assert known.names.equals(made.names)
    at = np.arange(60)
    np.testing.assert_array_equal(known.tickets(at), made.tickets(at))
    items = np.arange(len(made.names))
    for held in (known.tickets(items), made.tickets(items)):
        np.testing.assert_array_equal(known.tickets_of(items, held), made.tickets_of(items, held))


@pytest.mark.parametrize("power", [0.0, 0.5, 0.75, 1.0])
def test_an_item_has_the_power_of_its_takes_in_tickets(power: float) -> None:
    made, table = catalogue(power), takes().to_pylist()
    for at in (0, 7, 30, 49):
        counts = {name: sum(row[ITEM] == name and row[ENTER] <= at for row in table) for name in made.names.to_pylist()}
        expected = [np.floor(count**power + 1e-9) if count else 0 for count in counts.values()]
        held = made.tickets(np.array([at]))
        found = made.tickets_of(np.arange(len(made.names)), np.repeat(held, len(made.names)))
        assert found.tolist() == expected
        assert held[0] == sum(expected)
    assert made.first.tolist() == [min(row[ENTER] for row in table if row[ITEM] == name)
                                   for name in made.names.to_pylist()]


@pytest.mark.parametrize("power", [0.0, 0.75])
def test_the_engine_makes_the_same_tickets(spark: SparkSession, power: float) -> None:
    found = Catalogue.of(tickets(spark.createDataFrame(takes()), power).toArrow())
    np.testing.assert_array_equal(found.moments, catalogue(power).moments)
    np.testing.assert_array_equal(found.items, catalogue(power).items)
