from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pipelines.features.latest_attributes import latest_attributes
from pipelines.features.source_columns import Located

SEEN = "_row bigint, _item string, _at bigint, place string, _bid double"
ROWS = [(1, "i1", 10, "x", 1.0), (2, "i1", 30, None, 2.0), (3, "i1", 20, "y", 3.0), (5, "i2", 20, "a", 4.0),
        (4, "i2", 20, "b", None), (6, None, 90, "z", 9.0)]
OF_LOG = Located("log", "place", "place", T.StringType())


def test_the_latest_present_value_counts_and_the_row_id_breaks_ties(spark: SparkSession) -> None:
    known = spark.createDataFrame(ROWS, SEEN)
    found = {row["_item"]: row for row in latest_attributes(known, None, "_item", [OF_LOG], ["_bid"]).collect()}
    assert {item: (row["place"], row["_bid"]) for item, row in found.items()} == {"i1": ("y", 2.0), "i2": ("a", 4.0)}


def test_a_table_brings_its_columns_and_the_keys_that_the_log_never_saw(spark: SparkSession) -> None:
    known = spark.createDataFrame(ROWS, SEEN)
    table = spark.createDataFrame([("i1", 5.0), ("i3", 7.0)], "_item string, price double")
    price = Located("items", "price", "_items_price", T.DoubleType())
    found = latest_attributes(known, table, "_item", [price, OF_LOG])
    assert {(row["_item"], row["_items_price"], row["place"]) for row in found.collect()} == {
        ("i1", 5.0, "y"), ("i2", None, "a"), ("i3", 7.0, None)}


def test_without_attributes_there_are_the_keys_alone(spark: SparkSession) -> None:
    found = latest_attributes(spark.createDataFrame(ROWS, SEEN), None, "_item", [])
    assert sorted(row["_item"] for row in found.collect()) == ["i1", "i2"]


def test_times_before_1970_and_ids_of_either_sign_have_their_order(spark: SparkSession) -> None:
    early, late = -2_000_000_000_000_000, 250_000_000_000_000_000
    rows = [(2**63 - 1, "i1", early, "a", None), (-(2**63), "i1", early + 1, "b", None),
            (-5, "i2", late, "c", None), (3, "i2", late, "d", None), (2**63 - 1, "i2", late - 1, "e", None)]
    found = latest_attributes(spark.createDataFrame(rows, SEEN), None, "_item", [OF_LOG]).collect()
    assert {row["_item"]: row["place"] for row in found} == {"i1": "b", "i2": "d"}


def test_keys_by_the_hundred_thousand_fit_where_each_came_once(spark: SparkSession) -> None:
    keys, key = 100_000, F.col("id").cast("string").alias("_item")
    known = spark.range(0, keys).select(
        key, F.col("id").alias("_at"), F.xxhash64("id").alias("_row"), (F.col("id") % 7).cast("string").alias("place"))
    found = latest_attributes(known, None, "_item", [OF_LOG])
    assert found.agg(F.sum(F.col("place").cast("bigint"))).collect()[0][0] == sum(place % 7 for place in range(keys))
