from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from contracts.config.config import parse
from sluice.init.column_types import typed_columns
from sluice.init.config_text import config_text
from sluice.init.role_guess import guess
from sluice.init.text_numbers import as_numbers
from sluice.table_samples.table_sample import read_sample


def test_label_bid_and_position_of_text_are_derived_as_numbers(spark: SparkSession, tmp_path: Path) -> None:
    rows = 600
    table = pa.table({
        "item_id": [f"i{row % 30}" for row in range(rows)], "rating": [f"{row % 5 + 1}.0" for row in range(rows)],
        "position": [str(row % 9 + 1) for row in range(rows)],
        "bid": [f"{row % 7}.5" for row in range(rows)], "size": [str(row % 50) for row in range(rows)]})
    pq.write_table(table, tmp_path / "t.parquet")
    sample = read_sample(tmp_path / "t.parquet")
    found = as_numbers(guess(typed_columns(sample), None))
    assert (found.label.expression, found.position in found.columns, found.bid in found.columns) == (
        "rating >= 4", True, True)
    derive = parse(config_text("t", sample, found), "t.toml").log.derive
    cells = [("5.0", "3", "1.5"), ("rating", "position", "bid")]
    read = spark.createDataFrame(cells, "rating string, position string, bid string")
    for name in ("rating", "position", "bid"):
        read = read.withColumn(name, F.expr(derive[name]))
    assert [tuple(row) for row in read.collect()] == [(5.0, 3, 1.5), (None, None, None)]
