from __future__ import annotations

import numpy as np
import pytest

from contracts.artifacts import LABEL
from pipelines.quality.day_profile import QUANTILES, TOP_KEYS, profile


def test_a_profile_counts_rows_labels_nulls_and_keys(spark):
    rows = [
        (1.0, "a", ["x", "y"], 1.5, 7), (0.0, "a", [], None, 7), (0.0, None, None, float("nan"), 8),
        (1.0, "b", ["x"], 2.5, None),
    ]
    schema = f"{LABEL} double, city string, tags array<string>, price double, hour bigint"
    found = profile(spark.createDataFrame(rows, schema), "2026-01-01", ["city", "tags", "price", "hour"], {"price"})
    assert (found.rows, found.label_rate) == (4, 0.5)
    assert {name: one.null_rate for name, one in found.columns.items()} == {
        "city": 0.25, "tags": 0.5, "price": 0.5, "hour": 0.25}
    assert found.columns["city"].keys == {"a": 2, "b": 1}
    assert found.columns["tags"].keys == {"x": 2, "y": 1}
    assert found.columns["hour"].keys == {"7": 2, "8": 1}
    assert not found.columns["price"].keys


def test_what_is_no_finite_number_is_null_and_no_quantile(spark):
    rows = [(0.0, value, value) for value in (1.5, float("nan"), float("inf"), float("-inf"), None, 2.5)]
    frame = spark.createDataFrame([*rows, (0.0, 3.5, None)], f"{LABEL} double, price double, short float")
    found = profile(frame, "2026-01-01", ["price", "short"], {"price", "short"}).columns
    assert (found["price"].null_rate, found["short"].null_rate) == pytest.approx((4 / 7, 5 / 7))
    assert found["price"].quantiles[:: QUANTILES // 2] == (1.5, 2.5, 3.5)
    assert found["short"].quantiles[:: QUANTILES // 2] == (1.5, 2.0, 2.5)


def test_quantiles_are_those_of_the_column(spark):
    values = np.random.default_rng(1).normal(size=5000)
    frame = spark.createDataFrame([(0.0, float(value)) for value in values], f"{LABEL} double, price double")
    found = profile(frame, "2026-01-01", ["price"], {"price"}).columns["price"].quantiles
    assert len(found) == QUANTILES
    assert found == pytest.approx(np.quantile(values, np.linspace(0, 1, QUANTILES)), abs=0.05, rel=0.05)


def test_rare_keys_are_counted_together(spark):
    rows = [(0.0, f"k{n}") for n in range(TOP_KEYS + 20)] + [(0.0, "often")] * 5
    found = profile(spark.createDataFrame(rows, f"{LABEL} double, city string"), "d", ["city"], set()).columns["city"]
    assert found.keys["often"] == 5
    assert len(found.keys) == TOP_KEYS
    assert found.other == 21
    assert found.values == TOP_KEYS + 25
