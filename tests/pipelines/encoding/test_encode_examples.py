from __future__ import annotations

import pyarrow as pa

from contracts.artifacts import FRESH, LABEL, POSITION, ROW, USER
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from pipelines.encoding.encode_examples import encode, twin_fields

SPEC = FeatureSpec(fields=(
    FeatureField(name="city", kind="categorical", side="user", vocabulary="city", size=3),
    FeatureField(name="clicks", kind="counter", side="user", edges={2: (5.0,)}),
    FeatureField(name="price", kind="numeric", side="item", edges={2: (1.0,)}),
    FeatureField(name="stale", kind="cross", side="cross", parts=("city", "price#2"), buckets=50, size=52),
    FeatureField(name="moving", kind="cross", side="cross", parts=("city", "clicks#2"), buckets=50, size=52),
))
STORED = {"city": Vocabulary.of(["a"], "string")}
TABLE = pa.table({
    ROW: pa.array([1, 2], pa.int64()), LABEL: pa.array([0, 1], pa.float32()), POSITION: pa.array([3, 1], pa.int32()),
    USER: ["u", "v"], "city": ["a", None], "price": [0.5, None], "clicks": [4.0, 5.0], f"clicks{FRESH}": [6.0, None],
})


def test_twins_are_encoded_for_what_moves_and_crosses_read_them(spark):
    df = spark.createDataFrame(TABLE)
    assert twin_fields(df, SPEC) == {"clicks", "moving"}
    found = encode(df, SPEC, STORED).frame().orderBy(ROW).toArrow()
    assert {name for name in found.column_names if name.endswith(FRESH)} == {
        f"clicks#2{FRESH}", f"clicks{FRESH}", f"moving{FRESH}",
    }
    assert (found["clicks#2"].to_pylist(), found[f"clicks#2{FRESH}"].to_pylist()) == ([2, 3], [3, 1])
    assert found["moving"].to_pylist() == [2 + 2 * 4 + 2, 2 + 1 * 4 + 3]
    assert found[f"moving{FRESH}"].to_pylist() == [2 + 2 * 4 + 3, 2 + 1 * 4 + 1]
    assert found[f"clicks{FRESH}"].to_pylist() == [6.0, None]


def test_reserved_columns_have_their_types_and_users_are_hashed(spark):
    df = spark.createDataFrame(TABLE.append_column("day", TABLE["city"]))
    found = encode(df, SPEC, STORED, keep=["day"]).frame().toArrow()
    kinds = {LABEL: "float", POSITION: "int32", USER: "int64", ROW: "int64", "price": "double", "price#2": "int32",
             "stale": "int32", "day": "string"}
    assert {name: str(found.schema.field(name).type) for name in kinds} == kinds
    assert len(set(found[USER].to_pylist())) == 2
