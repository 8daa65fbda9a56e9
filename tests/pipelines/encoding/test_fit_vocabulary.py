from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from contracts.features.vocabulary import Vocabulary
from pipelines.encoding.fit_vocabulary import CountedField, fit_vocabularies
from tests.pipelines.queries import counted_queries


def frame(spark, values, kind):
    return spark.createDataFrame(pa.table({"x": pa.array(values, kind)}))


def fitted(df, key_type, min_count, length=None):
    with tempfile.TemporaryDirectory() as folder:
        found = fit_vocabularies(df, [CountedField("x", key_type, min_count, length)], Path(folder))["x"]
        return Vocabulary.of(found.keys(), "string" if key_type == "string" else "int64")


def test_strings_of_enough_rows_in_byte_order(spark):
    values = ["b", "a", "é", "😀", "", " ", "rare", None, None, "Z"] * 2 + ["b"]
    found = fitted(frame(spark, [*values, "once"], pa.string()), "string", 2)
    counts = Counter(value for value in values if value is not None)
    assert found.keys().to_pylist() == sorted((key for key, count in counts.items() if count >= 2), key=str.encode)


def test_all_vocabularies_are_one_query(spark, tmp_path):
    rows = pa.table({"x": ["a", "b"], "n": [7, 7], "many": [["c", "d"], None]})
    fields = [CountedField("x", "string", 1), CountedField("n", "int64", 2), CountedField("many", "string", 1, 1)]
    with counted_queries(spark) as queries:
        found = fit_vocabularies(spark.createDataFrame(rows), fields, tmp_path)
    assert len(queries) == 1
    assert {name: made.keys().to_pylist() for name, made in found.items()} == {"x": ["a", "b"], "n": [7], "many": ["c"]}


def test_integers_at_the_ends_of_their_range(spark):
    values = [2**63 - 1, -(2**63), 0, None, -1]
    found = fitted(frame(spark, values, pa.int64()), "int64", 1)
    assert found.keys().to_pylist() == [-(2**63), -1, 0, 2**63 - 1]


def test_booleans_are_zero_and_one(spark):
    found = fitted(frame(spark, [True, None, False, True], pa.bool_()), "bool", 2)
    assert found.keys().to_pylist() == [1]


def test_a_row_counts_once_for_each_key_among_those_kept(spark):
    rows = [["a", "a"], ["a", "b"], ["b", "x", "cut"], ["c", None, "cut"], None, []]
    found = fitted(frame(spark, rows, pa.list_(pa.string())), "string", 2, 2)
    assert found.keys().to_pylist() == ["a", "b"]


def test_nothing_frequent_gives_an_empty_vocabulary(spark):
    assert len(fitted(frame(spark, ["a", None], pa.string()), "string", 2)) == 0


def test_a_nul_character_is_a_character(spark):
    keys = ["a\0b", "a\0", "a"]
    assert fitted(frame(spark, keys, pa.string()), "string", 1).keys().to_pylist() == sorted(keys)


def test_no_row_passes_through_the_session_of_the_driver(spark, monkeypatch):
    values = frame(spark, ["b", "a", "b"], pa.string())
    for name in ("collect", "toArrow", "toPandas", "toLocalIterator", "head", "take"):
        monkeypatch.setattr(type(values), name, None)
    with pytest.raises(TypeError):
        values.collect()
    assert fitted(values, "string", 1).keys().to_pylist() == ["a", "b"]


def test_fields_are_counted_apart_over_all_batches(spark, tmp_path):
    table = pa.table({"x": ["a", "b", "a", None], "y": pa.array([[1, 1], [1], [2], None], pa.list_(pa.int64()))})
    fields = [CountedField("y", "int64", 2, 5), CountedField("x", "string", 2)]
    found = fit_vocabularies(spark.createDataFrame(table).repartition(3), fields, tmp_path)
    assert {name: keys.keys().to_pylist() for name, keys in found.items()} == {"y": [1], "x": ["a"]}
    assert [path.name for path in tmp_path.iterdir()] == ["vocabularies"]
