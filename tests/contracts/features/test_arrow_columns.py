"""Arrow columns against the Python lists that they show."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from contracts.features.arrow_columns import arrow_numbers, distinct_keys, first_entries

texts = st.one_of(st.none(), st.text(max_size=3))
KINDS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(rows=st.lists(texts), start=st.integers(0, 3))
def test_distinct_keys_and_their_places_give_the_column_back(kind, rows, start):
    keys, places = distinct_keys(pa.array(rows, pa.string()).cast(kind)[start:], "string")
    assert [keys[place].as_py() if place >= 0 else None for place in places] == rows[start:]
    assert keys.null_count == 0


def test_a_null_of_the_dictionary_is_no_key():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([None, "a"]))
    assert distinct_keys(column, "string").places.tolist() == [-1, 0, -1]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint32()], ids=str)
def test_integers_and_truth_values_become_int64(kind):
    keys, places = distinct_keys(pa.array([3, None, 3], kind), "int64")
    assert (keys.type, keys.to_pylist(), places.tolist()) == (pa.int64(), [3], [0, -1, 0])
    assert distinct_keys(pa.array([True, False]), "bool").keys.to_pylist() == [1, 0]


@pytest.mark.parametrize(("kind", "key_type"), [
    (pa.float64(), "int64"), (pa.bool_(), "int64"), (pa.uint64(), "int64"), (pa.int64(), "bool"),
    (pa.int64(), "string"), (pa.string(), "int64"), (pa.binary(), "string")])
def test_keys_of_another_type_are_refused(kind, key_type):
    with pytest.raises(DataError, match=f"{kind} is given, the vocabulary holds {key_type} keys"):
        distinct_keys(pa.nulls(1, kind), key_type)


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64())], ids=str)
@given(rows=st.lists(st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=4))), start=st.integers(0, 3),
       length=st.integers(1, 4))
def test_entries_are_those_of_each_list_cut(kind, rows, start, length):
    found = first_entries(pa.array(rows, kind)[start:], length)
    made: list[list[int]] = [[] for _ in rows[start:]]
    for row, place, entry in zip(found.rows, found.places, found.entries.to_pylist(), strict=True):
        assert place == len(made[row])
        made[row].append(entry)
    assert made == [(row or [])[:length] for row in rows[start:]]


def test_entries_under_a_null_list_are_not_there():
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3]), pa.array([1, 2, 3]), mask=pa.array([True, False]))
    assert first_entries(lists, 2).entries.to_pylist() == [3]
    fixed = pa.array([None, [1, 2], [3, 4]], pa.list_(pa.int64(), 2))
    assert first_entries(fixed[1:], 1).entries.to_pylist() == [1, 3]
    assert first_entries(fixed, 1).rows.tolist() == [1, 2]


def test_what_is_no_list_is_refused():
    with pytest.raises(DataError, match="int64 is given, lists are needed"):
        first_entries(pa.array([1]), 2)


def test_numbers_are_correctly_rounded():
    whole = [2**63 - 1, 2**53 + 1, None]
    np.testing.assert_array_equal(arrow_numbers(pa.array(whole)), [float(2**63 - 1), float(2**53 + 1), np.nan])
    exact = [Decimal("0.1"), Decimal("12345678901234567.89"), None]
    np.testing.assert_array_equal(arrow_numbers(pa.array(exact)), [0.1, 12345678901234567.89, np.nan])
    assert arrow_numbers(pa.array([True, False])).tolist() == [1.0, 0.0]
    assert arrow_numbers(pa.array([1.5, 1.5]).dictionary_encode()).tolist() == [1.5, 1.5]


def test_text_is_no_number():
    with pytest.raises(DataError, match="string is given, a number is needed"):
        arrow_numbers(pa.array(["1"]))
