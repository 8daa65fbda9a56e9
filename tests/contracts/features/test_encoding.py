"""Encoding against its definition, value by value."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from contracts.features.encoding import Encoder, bin_ids, number, radix_code, scale
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary

integers = st.integers(-(2**63), 2**63 - 1)
anything = st.one_of(st.none(), st.floats())


@given(values=st.lists(anything, min_size=1), edges=st.sets(st.floats(allow_nan=False, allow_infinity=False)))
def test_a_bin_counts_the_edges_at_or_below_the_value(values, edges):
    expected = [1 if v is None or math.isnan(v) else 2 + sum(edge <= v for edge in edges) for v in values]
    assert bin_ids(number(values), sorted(edges)).tolist() == expected


@given(values=st.lists(anything, min_size=1), log=st.booleans())
def test_scaled_values_are_finite_and_missing_ones_take_the_default(values, log):
    field = FeatureField(name="x", kind="numeric", side="item", log=log, mean=0.5, std=2.0, default=3.0)
    scaled = scale(number(values), field)
    for value, found in zip(values, scaled.tolist(), strict=True):
        filled = 3.0 if value is None or not math.isfinite(value) else value
        z = ((math.log1p(max(filled, 0.0)) if log else filled) - 0.5) / 2.0
        assert found == pytest.approx(max(-1e6, min(1e6, z)), rel=1e-6)


def test_text_is_no_number():
    with pytest.raises(DataError, match="'a' is a str, a number is needed"):
        number([1.0, "a"])


@given(sizes=st.lists(st.integers(1, 2**15), min_size=2, max_size=4), draw=st.data())
def test_codes_differ_where_any_part_does(sizes, draw):
    rows = draw.draw(st.lists(st.tuples(*[st.integers(0, size - 1) for size in sizes]), min_size=1, unique=True))
    codes = radix_code([np.array(column, dtype=np.int32) for column in zip(*rows, strict=True)], sizes)
    assert len(set(codes.tolist())) == len(rows)
    assert all(0 <= code < math.prod(sizes) for code in codes.tolist())


SPEC = FeatureSpec(fields=(
    FeatureField(name="tags", kind="multi_valued", side="user", vocabulary="tags", size=4, length=3),
    FeatureField(name="price", kind="numeric", side="item", edges={2: (1.0,)}),
    FeatureField(name="city", kind="categorical", side="user", vocabulary="city", size=3),
    FeatureField(name="fitted", kind="cross", side="cross", parts=("city", "price#2"), vocabulary="fitted", size=3),
    FeatureField(name="hashed", kind="cross", side="cross", parts=("city", "price#2"), buckets=3, size=5),
))
STORED = {"tags": Vocabulary.of(["a", "b"], "string"), "city": Vocabulary.of(["z"], "string"),
          "fitted": Vocabulary.of([2 * 4 + 3], "int64")}


def test_lists_are_cut_and_padded_on_the_right():
    rows = [None, [], ["b"], ["a", "?", None, "a"], np.array(["b", "a"], dtype=object)]
    ids = Encoder(SPEC, STORED).encode({"tags": rows, "city": ["z", None, "y", "z", "z"]}, "user").ids
    assert ids[:, :3].tolist() == [[0, 0, 0], [0, 0, 0], [3, 0, 0], [2, 1, 1], [3, 2, 0]]
    assert ids[:, 3].tolist() == [2, 1, 1, 2, 2]


def test_crosses_broadcast_a_part_that_is_there_once():
    """price#2 has 4 ids (padding, unknown and two bins), so the codes are 2 * 4 + price: 9, 10, 11."""
    parts = {"city": np.array([2]), "price#2": np.array([1, 2, 3])}
    assert Encoder(SPEC, STORED).cross_ids(parts).tolist() == [[1, 2], [1, 3], [2, 4]]


def test_an_absent_column_is_missing_throughout():
    encoded = Encoder(SPEC, STORED).encode({"price": [1.0, 2.0]}, "user", "item")
    assert encoded.ids.tolist() == [[0, 0, 0, 1, 3]] * 2
    assert encoded.dense.tolist() == [[1.0], [2.0]]


def test_a_missing_vocabulary_is_named():
    with pytest.raises(DataError, match="'city' of the feature spec is not among"):
        Encoder(SPEC, {name: keys for name, keys in STORED.items() if name != "city"})


KEYS = ["a", "a\0", "ab", "é", "x" * 300, ""]
WIDE = FeatureSpec(fields=(
    FeatureField(name="text", kind="categorical", side="user", vocabulary="text", size=9),
    FeatureField(name="whole", kind="categorical", side="user", key_type="int64", vocabulary="whole", size=4),
    FeatureField(name="flag", kind="categorical", side="context", key_type="bool", vocabulary="flag", size=4),
    FeatureField(name="texts", kind="multi_valued", side="user", vocabulary="text", size=9, length=3),
    FeatureField(name="wholes", kind="sequence", side="user", key_type="int64", vocabulary="whole", size=4, length=2),
    FeatureField(name="price", kind="numeric", side="item", edges={2: (1.0,), 4: (-1.0, 0.0, 2.5)}, log=True),
    FeatureField(name="none", kind="numeric", side="item", edges={2: (1.0,)}),
    FeatureField(name="pair", kind="cross", side="cross", parts=("text", "price#4"), vocabulary="pair", size=40),
    FeatureField(name="hashed", kind="cross", side="cross", parts=("whole", "flag"), buckets=3, size=5),
))
KNOWN = {"text": Vocabulary.of(KEYS, "string"), "whole": Vocabulary.of([-5, 2**62], "int64"),
         "flag": Vocabulary.of([0, 1], "int64"), "pair": Vocabulary.of(np.arange(10, 40, 3), "int64")}
TYPES = {"text": pa.string(), "whole": pa.int64(), "flag": pa.bool_(), "texts": pa.list_(pa.string()),
         "wholes": pa.list_(pa.int32()), "price": pa.float64(), "none": pa.null()}
some_text = st.one_of(st.none(), st.sampled_from([*KEYS, *(key + "?" for key in KEYS)]), st.text(max_size=3))
some_whole = st.one_of(st.none(), st.sampled_from([-5, 2**62]), integers)
row = st.fixed_dictionaries({
    "text": some_text, "whole": some_whole, "flag": st.one_of(st.none(), st.booleans()),
    "texts": st.one_of(st.none(), st.lists(some_text, max_size=5)),
    "wholes": st.one_of(st.none(), st.lists(st.one_of(st.none(), st.just(-5), st.integers(0, 9)), max_size=4)),
    "price": anything, "none": st.none(),
})


@given(rows=st.lists(row, min_size=1, max_size=12), cut=st.integers(0, 4), chunk=st.integers(0, 5))
def test_arrow_columns_become_the_ids_of_the_same_lists(rows, cut, chunk):
    """Nulls, NaN, empty lists, unknown and long keys, text beyond ASCII, NUL; sliced arrays and chunks."""
    lists = {name: [entry[name] for entry in rows] for name in TYPES}
    table = pa.table({name: pa.array(values, TYPES[name]) for name, values in lists.items()})
    table = pa.concat_tables([table[:chunk], table[chunk:]])[cut:]
    lists = {name: values[cut:] for name, values in lists.items()}
    encoder = Encoder(WIDE, KNOWN)
    expected, found = encoder.slot_ids(lists), encoder.slot_ids(table)
    assert list(found) == ["text", "whole", "flag", "texts", "wholes", "price#2", "price#4", "none#2", "pair", "hashed"]
    for name, ids in found.items():
        assert (ids.dtype, ids.tolist()) == (np.int32, expected[name].tolist())
    if len(table):
        arrays = dict(zip(table.column_names, table.columns, strict=True))
        blocks = [encoder.encode(columns, "user", "item") for columns in (lists, arrays)]
        np.testing.assert_array_equal(blocks[0].ids, blocks[1].ids)
        np.testing.assert_array_equal(blocks[0].dense, blocks[1].dense)


def test_wanted_fields_bring_their_parts_and_leave_them_out():
    rows = {"text": ["a", "b"], "price": [0.5, None]}
    found = Encoder(WIDE, KNOWN).slot_ids(rows, {"pair"})
    assert list(found) == ["pair"]
    assert found["pair"].tolist() == Encoder(WIDE, KNOWN).slot_ids({
        name: pa.array(values) for name, values in rows.items()}, ["pair"])["pair"].tolist()
    with pytest.raises(DataError, match="the raw column 'price' is not among the given ones: text"):
        Encoder(WIDE, KNOWN).slot_ids({"text": ["a"]}, {"pair"})
