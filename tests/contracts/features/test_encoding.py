"""Encoding and vocabularies against their definitions, value by value."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from contracts.features import vocabulary
from contracts.features.encoding import Encoder, bin_ids, number, radix_code, scale
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.vocabulary import fit_order, look_up, typed_keys

texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=5)
integers = st.integers(-(2**63), 2**63 - 1)
anything = st.one_of(st.none(), st.floats())


@given(known=st.sets(texts, max_size=30), asked=st.lists(st.one_of(st.none(), texts), min_size=1, max_size=30))
def test_the_id_of_a_text_is_its_rank_among_the_bytes(known, asked):
    ranked = sorted(text.encode() for text in known)
    expected = [ranked.index(text.encode()) + 2 if text in known else 1 for text in asked]
    stored = fit_order(np.array([text.encode() for text in known], dtype=np.bytes_))
    assert look_up(stored, *typed_keys(asked, "string")).tolist() == expected


@given(known=st.sets(texts, min_size=1, max_size=9), tail=st.text(max_size=3), cut=st.integers(0, 5))
def test_prefixes_longer_keys_and_trailing_nuls_are_found_only_where_they_are_keys(known, tail, cut):
    """Keys longer than the stored width must not be cut to a match, nor a NUL dropped to one."""
    longest = max(known, key=lambda text: len(text.encode()))
    asked = [key for text in known for key in (text, text[:cut], text + tail, text + "\0", text + "\0" + tail)]
    asked += [longest + "x", longest + tail + longest, "\0"]
    ranked = sorted(text.encode() for text in known)
    expected = [ranked.index(key.encode()) + 2 if key in known else 1 for key in asked]
    stored = fit_order(np.array([text.encode() for text in known], dtype=np.bytes_))
    assert look_up(stored, *typed_keys(asked, "string")).tolist() == expected
    assert [look_up(stored, *typed_keys([key], "string")).item() for key in asked] == expected


def test_a_longer_key_copies_no_vocabulary():
    stored = np.arange(10**8, 10**8 + 200_000).astype("S9")
    tracemalloc.start()
    found = look_up(stored, *typed_keys(["100000007", "100000007-and-more"], "string"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.tolist() == [9, 1]
    assert peak < stored.nbytes / 10


@given(known=st.sets(integers, max_size=30), asked=st.lists(st.one_of(st.none(), integers), min_size=1, max_size=30))
def test_the_id_of_an_integer_is_its_rank(known, asked):
    stored = fit_order(np.array(sorted(known, reverse=True), dtype=np.int64))
    expected = [sorted(known).index(key) + 2 if key in known else 1 for key in asked]
    assert look_up(stored, *typed_keys(asked, "int64")).tolist() == expected


@pytest.mark.parametrize(
    ("value", "key_type"),
    [(1.0, "int64"), (True, "int64"), (1, "bool"), (1, "string"), ("1", "int64"), (b"a", "string")],
)
def test_keys_of_another_type_are_refused(value, key_type):
    with pytest.raises(DataError, match=f"is a {type(value).__name__}, the vocabulary holds"):
        typed_keys([None, value], key_type)


def test_a_nul_character_is_refused():
    with pytest.raises(DataError, match="NUL"):
        fit_order(np.array([b"a\0b"]))


def test_vocabularies_survive_their_files(tmp_path):
    stored = {"words": np.array([b"", b"a", "é".encode()]), "whole": np.array([-5, 2**63 - 1])}
    for name, keys in stored.items():
        vocabulary.write(tmp_path, name, keys)
    found = vocabulary.read_all(tmp_path)
    assert found.keys() == stored.keys()
    assert all(found[name].tolist() == keys.tolist() for name, keys in stored.items())


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
STORED = {"tags": np.array([b"a", b"b"]), "city": np.array([b"z"]), "fitted": np.array([2 * 4 + 3])}


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
