from __future__ import annotations

from collections import Counter

import pyarrow as pa

from pipelines.encoding.fit_vocabulary import fit_lists, fit_scalar


def frame(spark, values, kind):
    return spark.createDataFrame(pa.table({"x": pa.array(values, kind)}))


def test_strings_of_enough_rows_in_byte_order(spark):
    values = ["b", "a", "é", "😀", "", " ", "rare", None, None, "Z"] * 2 + ["b"]
    found = fit_scalar(frame(spark, [*values, "once"], pa.string()), "x", "string", 2)
    counts = Counter(value for value in values if value is not None)
    assert found.keys().to_pylist() == sorted((key for key, count in counts.items() if count >= 2), key=str.encode)


def test_integers_at_the_ends_of_their_range(spark):
    values = [2**63 - 1, -(2**63), 0, None, -1]
    found = fit_scalar(frame(spark, values, pa.int64()), "x", "int64", 1)
    assert found.keys().to_pylist() == [-(2**63), -1, 0, 2**63 - 1]


def test_booleans_are_zero_and_one(spark):
    found = fit_scalar(frame(spark, [True, None, False, True], pa.bool_()), "x", "bool", 2)
    assert found.keys().to_pylist() == [1]


def test_a_row_counts_once_for_each_key_among_those_kept(spark):
    rows = [["a", "a"], ["a", "b"], ["b", "x", "cut"], ["c", None, "cut"], None, []]
    found = fit_lists(frame(spark, rows, pa.list_(pa.string())), "x", "string", 2, 2)
    assert found.keys().to_pylist() == ["a", "b"]


def test_nothing_frequent_gives_an_empty_vocabulary(spark):
    assert len(fit_scalar(frame(spark, ["a", None], pa.string()), "x", "string", 2)) == 0


def test_a_nul_character_is_a_character(spark):
    keys = ["a\0b", "a\0", "a"]
    assert fit_scalar(frame(spark, keys, pa.string()), "x", "string", 1).keys().to_pylist() == sorted(keys)
