from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.errors import SchemaError
from pipelines.features.source_columns import Located, SourceColumns, typed

pytestmark = pytest.mark.usefixtures("spark")  # Spark's own parser reads the schemas


def schema(ddl: str) -> T.StructType:
    made = T.StructType.fromDDL(ddl)
    assert isinstance(made, T.StructType)
    return made


def columns() -> SourceColumns:
    config = Config.model_validate(
        {
            "name": "t",
            "log": {"path": "log", "user_id": "uid", "item_id": "iid"},
            "label": {"expression": "clicked"},
            "users": {"path": "users", "key": "id"},
            "items": {"path": "items", "key": "id"},
            "fields": [{"name": "age", "kind": "numeric", "side": "user"}],
        }
    )
    log = schema("_user string, _item string, age int, place string")
    users, items = (schema(ddl) for ddl in ("_user string, age bigint", "_item string, price double"))
    return SourceColumns(config, log, users, items)


@pytest.mark.parametrize(
    ("side", "column", "origin", "name"),
    [
        ("user", "age", "users", "_users_age"),
        ("item", "age", "log", "age"),
        ("context", "age", "log", "age"),
        ("user", "place", "log", "place"),
        ("user", "uid", "log", "_user"),
        ("user", "id", "log", "_user"),
        ("item", "id", "log", "_item"),
        ("context", "iid", "log", "_item"),
    ],
)
def test_a_column_comes_from_its_sides_table_before_the_log(side: Any, column: str, origin: str, name: str) -> None:
    located = columns().locate("field", side, column)
    assert (located.origin, located.name) == (origin, name)


def test_a_missing_column_is_named_with_its_field_and_the_nearest_column() -> None:
    with pytest.raises(SchemaError, match=r"field 'cost'.*'prise'.*'price'"):
        columns().locate("cost", "item", "prise")


VALUES: list[tuple[str, dict[str, str], str, object, object]] = [
    ("numeric", {}, "int", 3, 3.0), ("numeric", {}, "boolean", True, 1.0), ("categorical", {}, "int", 3, "3"),
    ("categorical", {"key_type": "int64"}, "int", 3, 3),
    ("categorical", {"key_type": "bool"}, "boolean", True, True),
    ("categorical", {"key_type": "int64"}, "string", "12", 12),
    ("multi_valued", {"separator": "|"}, "string", "a.b||c", ["a.b", "c"]),
    ("multi_valued", {"separator": ".", "key_type": "int64"}, "string", "1.2", [1, 2]),
    ("multi_valued", {}, "array<int>", [1, None, 2], ["1", "2"]),
]


@pytest.mark.parametrize(("kind", "more", "found", "value", "feature"), VALUES)
def test_values_get_the_type_of_their_kind(
    spark: SparkSession, kind: Any, more: dict[str, Any], found: str, value: object, feature: object
) -> None:
    frame = spark.createDataFrame([(value,)], f"x {found}")
    field = FieldConfig(name="x", kind=kind, side="item", **more)
    row = frame.select(typed(field, Located("log", "x", "x", frame.schema["x"].dataType))).first()
    assert row is not None
    assert row[0] == feature
    assert type(row[0]) is type(feature)


@pytest.mark.parametrize(
    ("kind", "found", "cure"),
    [
        ("numeric", "string", "CAST"),
        ("categorical", "double", "kind 'numeric'"),
        ("categorical", "array<string>", "derive"),
        ("multi_valued", "string", "separator"),
        ("multi_valued", "array<double>", "derive"),
    ],
)
def test_a_type_that_the_kind_cannot_have_is_refused(spark: SparkSession, kind: Any, found: str, cure: str) -> None:
    kept = schema(f"x {found}")["x"].dataType
    with pytest.raises(SchemaError, match=cure):
        typed(FieldConfig(name="x", kind=kind, side="item"), Located("log", "x", "x", kept))
