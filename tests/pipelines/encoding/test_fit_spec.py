from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from contracts.artifacts import POSITION, ROW, USER
from contracts.config.config import Config
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureField, FeatureSpec
from pipelines.encoding.fit_spec import check_codes, dense_features, fit_fields

FIELDS = [
    {"name": "city", "kind": "categorical", "side": "user"},
    {"name": "brand", "kind": "categorical", "side": "item", "key_type": "int64", "min_count": 1},
    {"name": "price", "kind": "numeric", "side": "item", "granularities": [2, 4], "log": True},
    {"name": "tags", "kind": "multi_valued", "side": "item", "length": 2, "min_count": 1},
    {"name": "seen", "kind": "sequence", "side": "user", "of": "brand", "length": 3},
    {"name": "clicks", "kind": "counter", "side": "user", "by": ["city"], "windows": ["7d"]},
    {"name": "pair", "kind": "cross", "side": "cross", "parts": ["city", "price#4"]},
    {"name": "hashed", "kind": "cross", "side": "cross", "parts": ["city", "brand"], "buckets": 5},
]


def config(*fields):
    log = {"path": "x", "user_id": "user", "item_id": "item", "event_time": "time"}
    return Config.model_validate({"name": "t", "log": log, "label": {"expression": "y"}, "fields": fields})


@pytest.fixture(scope="module")
def rows():
    cities = ["a"] * 4 + ["b"] * 2 + ["rare", None]
    return pa.table({
        ROW: pa.array(range(8), pa.int64()), USER: ["u", "v"] * 4,
        POSITION: pa.array([1, 2, 3, 4, 5, 2, 1, 1], pa.int32()),
        "city": cities, "brand": pa.array([7, 7, -1, -1, 3, 3, None, 9], pa.int64()),
        "price": pa.array([1.0, 2, 3, 4, 5, 6, 7, None]),
        "tags": [["x"], ["y", "x", "cut"], None, [], ["z"], [None], [], []],
        "seen": pa.array([[7], [], None, [9, 1000], [], [], [], []], pa.list_(pa.int64())),
        "clicks_count_7d": pa.array([0.0] * 6 + [9.0, None]), "clicks_rate_7d": pa.array([0.1] * 8),
    })


@pytest.fixture(scope="module")
def fitted(spark, rows, tmp_path_factory):
    return fit_fields(spark.createDataFrame(rows), config(*FIELDS), tmp_path_factory.mktemp("encoding"))


def test_fields_come_in_the_configured_order_and_counters_expand(fitted):
    names = [field.name for field in fitted[0].fields]
    assert names == ["city", "brand", "price", "tags", "seen", "clicks_count_7d", "clicks_rate_7d", "pair", "hashed"]
    assert {name: len(field.edges) for name, field in fitted[0].by_name.items() if field.dense} == {
        "price": 2, "clicks_count_7d": 1, "clicks_rate_7d": 1,
    }


def test_vocabularies_hold_the_frequent_keys(fitted):
    spec, vocabularies = fitted
    assert vocabularies["city"].keys().to_pylist() == ["a", "b"]
    assert vocabularies["brand"].keys().to_pylist() == [-1, 3, 7, 9]
    assert vocabularies["tags"].keys().to_pylist() == ["x", "y", "z"]
    assert {f.vocabulary for f in spec.fields if f.vocabulary} == set(vocabularies)
    assert all(field.size == len(vocabularies[field.vocabulary]) + 2 for field in spec.fields if field.vocabulary)


def test_a_sequence_shares_the_vocabulary_and_key_type_of_its_target(fitted):
    seen, brand = fitted[0].by_name["seen"], fitted[0].by_name["brand"]
    assert (seen.vocabulary, seen.size, seen.key_type, seen.length) == ("brand", brand.size, "int64", 3)


def test_a_cross_knows_the_codes_of_enough_rows(fitted, rows):
    """city ids: a 2, b 3, else 1; price#4 ids: bins of 1..7, null 1."""
    spec, vocabularies = fitted
    edges, width = spec.by_name["price"].edges[4], spec.slot("price#4").size
    cities = [{"a": 2, "b": 3}.get(city, 1) for city in rows["city"].to_pylist()]
    prices = [1 if x is None else 2 + sum(edge <= x for edge in edges) for x in rows["price"].to_pylist()]
    codes, counts = np.unique(np.array(cities) * width + np.array(prices), return_counts=True)
    assert len(codes[counts >= 2])
    assert vocabularies["pair"].keys().to_pylist() == codes[counts >= 2].tolist()
    assert (spec.by_name["hashed"].size, spec.by_name["hashed"].vocabulary) == (7, None)


def test_roles_and_positions_are_those_of_the_log(fitted):
    spec = fitted[0]
    assert (spec.has_users, spec.has_items, spec.has_bid) == (True, False, False)
    assert (spec.has_position, spec.positions) == (True, 5)


def test_the_same_rows_give_the_same_spec_and_it_survives_its_file(spark, rows, fitted, tmp_path):
    shuffled = spark.createDataFrame(rows.take(np.random.default_rng(1).permutation(len(rows)))).repartition(3)
    spec, vocabularies = fit_fields(shuffled, config(*FIELDS), tmp_path)
    assert spec == fitted[0]
    assert vocabularies == fitted[1]
    spec.write(tmp_path)
    assert FeatureSpec.read(tmp_path) == spec


def test_counts_are_logged_and_rates_are_not():
    assert dense_features(config(*FIELDS).fields[5]) == [("clicks_count_7d", True), ("clicks_rate_7d", False)]


def test_a_cross_with_too_many_codes_is_refused():
    parts = [FeatureField(name=n, kind="categorical", side="item", vocabulary=n, size=2**21) for n in ("a", "b", "c")]
    names = [part.name for part in parts]
    plain = [{"name": n, "kind": "categorical", "side": "item"} for n in names]
    cross = config(*plain, {"name": "x", "kind": "cross", "side": "cross", "parts": names}).fields[-1]
    with pytest.raises(ConfigError, match=r"cross 'x' of a, b, c has 9\.22e"):
        check_codes(cross, FeatureSpec(fields=tuple(parts)))
    smaller = parts[0].model_copy(update={"size": 2**21 - 1})
    check_codes(cross, FeatureSpec(fields=(smaller, *parts[1:])))
