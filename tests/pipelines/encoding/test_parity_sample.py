from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import ITEM, ROW, USER, Artifacts
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from pipelines.encoding import parity_sample
from pipelines.windows.windows import WINDOW

SPEC = FeatureSpec(fields=(FeatureField(name="city", kind="categorical", side="user", vocabulary="city", size=4),))
STORED = {"city": Vocabulary.of(["a", "b"], "string")}
ROWS = 90


def windowed(spark, partitions):
    """Every third row is of the test window."""
    table = pa.table({
        ROW: pa.array(range(ROWS), pa.int64()), WINDOW: ["train", "validation", "test"] * (ROWS // 3),
        USER: [f"u{i}" for i in range(ROWS)], ITEM: ["i"] * ROWS, "city": ["a", "b", "b", "c", "c", "c"] * (ROWS // 6),
    })
    return spark.createDataFrame(table).repartition(partitions)


def drawn(spark, out, partitions, rows):
    count = parity_sample.write(windowed(spark, partitions), SPEC, STORED, rows, out)
    found = pq.read_table(out.parity).to_pydict()
    assert len(found[ROW]) == count
    return found


def test_draws_test_rows_by_hash_whatever_the_partitioning(spark, tmp_path):
    out = Artifacts(tmp_path)
    found = drawn(spark, out, 1, 12)
    assert found == drawn(spark, out, 4, 12)
    assert len(found[ROW]) == 12
    assert all(row % 3 == 2 for row in found[ROW])
    assert found[ROW] != list(range(2, 38, 3))
    assert len(drawn(spark, out, 2, 1000)[ROW]) == ROWS // 3


def test_rows_hold_keys_raw_values_and_ids(spark, tmp_path):
    found = drawn(spark, Artifacts(tmp_path), 2, 30)
    assert list(found) == [ROW, USER, ITEM, "city", "id:city"]
    assert found[USER] == [f"u{row}" for row in found[ROW]]
    assert found["id:city"] == [{"b": 3, "c": 1}[city] for city in found["city"]]
