from __future__ import annotations

import pytest

from pipelines.cooccurrence.exposure import EXPOSURE, SMOOTHING, exposures, with_exposure

SCHEMA = "_position int, _label float"


def test_a_slot_counts_by_its_rate_over_that_of_the_first(spark):
    rows = [(1, 1.0)] * 300 + [(1, 0.0)] * 700 + [(2, 1.0)] * 100 + [(2, 0.0)] * 900
    frame = spark.createDataFrame(rows, SCHEMA)
    overall = 400 / 2000
    expected = (100 + SMOOTHING * overall) / (300 + SMOOTHING * overall)
    assert exposures(frame) == pytest.approx({1: 1.0, 2: expected})
    found = {(row["_position"], row[EXPOSURE]) for row in with_exposure(frame).distinct().collect()}
    assert dict(found) == pytest.approx({1: 1.0, 2: expected})


@pytest.mark.parametrize("rows", [[(1, 0.0), (2, 0.0)], [(2, 1.0), (3, 0.0)]], ids=["no click", "no first slot"])
def test_without_a_rate_of_the_first_slot_every_slot_counts_one(spark, rows):
    assert set(exposures(spark.createDataFrame(rows, SCHEMA)).values()) == {1.0}


def test_a_log_without_positions_counts_impressions(spark):
    frame = with_exposure(spark.createDataFrame([(1.0,), (0.0,)], "_label float"))
    assert [row[EXPOSURE] for row in frame.collect()] == [1.0, 1.0]
