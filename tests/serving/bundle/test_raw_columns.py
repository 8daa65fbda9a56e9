"""Arrow columns reach the encoder with missing values told apart."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from contracts.errors import SchemaError
from contracts.features.feature_spec import FeatureField
from serving.bundle.raw_columns import column, raw_columns


def test_missing_numbers_are_nan_and_missing_keys_none() -> None:
    fields = [FeatureField(name="n", kind="numeric", side="item"),
              FeatureField(name="k", kind="categorical", side="item", key_type="int64")]
    found = raw_columns(pa.table({"n": [1, None], "k": [2**60 + 1, None]}), fields, "here")
    assert found["n"][0] == 1
    assert math.isnan(found["n"][1])
    assert found["k"] == [2**60 + 1, None]


def test_missing_column_is_named_with_its_place() -> None:
    with pytest.raises(SchemaError, match="here has no column 'x', it has a, b"):
        column(pa.table({"a": [1], "b": [2]}), "x", "here")
