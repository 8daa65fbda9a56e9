from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from contracts.artifacts import ROW
from contracts.errors import DataError
from contracts.features.encoding import bin_ids
from pipelines.encoding.fit_bins import CONSTANT, fit, sample

finite = st.floats(-1e6, 1e6)


@given(values=st.lists(finite, min_size=1, max_size=200), granularity=st.integers(1, 20))
def test_edges_increase_strictly_and_leave_no_bin_of_the_sample_empty(values, granularity):
    sorted_values = np.sort(np.array(values))
    edges = fit(sorted_values, [granularity], False, "x").edges[granularity]
    assert len(edges) < granularity
    assert list(edges) == sorted(set(edges))
    assert set(bin_ids(sorted_values, edges).tolist()) == set(range(2, len(edges) + 3))


def test_distinct_values_are_cut_into_equal_shares():
    values = np.arange(1000, dtype=float)
    counts = np.bincount(bin_ids(values, fit(values, [10], False, "x").edges[10]))[2:]
    assert len(counts) == 10
    assert np.abs(counts - 100).max() <= 1


@given(values=st.lists(finite, min_size=1, max_size=50), log=st.booleans())
def test_mean_and_std_are_those_of_the_scaled_values_to_six_digits(values, log):
    sorted_values = np.sort(np.array(values))
    bins = fit(sorted_values, [2], log, "x")
    scaled = np.log1p(np.maximum(sorted_values, 0)) if log else sorted_values
    assert bins.mean == float(f"{scaled.mean():.6g}")
    constant = np.ptp(scaled) <= CONSTANT * np.abs(scaled).max()
    assert bins.std == ((0.0 if constant else float(f"{scaled.std():.6g}")) or 1.0)
    assert bins.default in values


def test_a_constant_and_an_empty_column_have_no_edges_and_std_one():
    assert fit(np.full(9, 3.5), [4], False, "x") == ({4: ()}, 3.5, 1.0, 3.5)
    assert fit(np.full(1000, 0.0488913), [4], False, "x").std == 1.0  # whose computed deviation is 7e-18, not 0
    assert fit(np.array([]), [4, 8], True, "x") == ({4: (), 8: ()}, 0.0, 1.0, 0.0)


def test_values_too_wide_to_scale_are_refused():
    with pytest.raises(DataError, match=r"'x' lies in .* set log = true"):
        fit(np.array([-1e300, 1e300]), [2], False, "x")


def test_the_sample_is_bounded_sorted_finite_and_the_same_for_any_partitioning(spark, tmp_path):
    def drawn(partitions, rows):
        df = spark.range(0, 4000, 1, partitions).withColumn(ROW, F.xxhash64("id"))
        rest = F.col("id") % 5
        value = F.when(rest == 0, F.lit(None)).when(rest == 1, F.lit(float("inf"))).otherwise(F.col("id"))
        return sample(df.withColumn("x", value.cast("double")), 4000, ["x"], tmp_path, rows)["x"]

    assert drawn(2, 5000).tolist() == [i for i in range(4000) if i % 5 > 1]
    assert 400 < len(drawn(2, 1000)) < 800
    assert drawn(2, 1000).tolist() == drawn(7, 1000).tolist()
    assert sample(spark.range(1), 1, [], tmp_path) == {}
    assert list(tmp_path.iterdir()) == []
