"""Vocabularies against their definition: the id of a key is its rank among the sorted keys, plus 2."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from contracts.features import vocabulary
from contracts.features.vocabulary import fit_order, look_up, typed_keys

texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=5)
integers = st.integers(-(2**63), 2**63 - 1)


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


def test_ranks_say_which_keys_are_there():
    place, found = vocabulary.ranks(np.array([3, 7, 9]), np.array([[7, 8], [3, 9]]))
    assert found.tolist() == [[True, False], [True, True]]
    assert place[found].tolist() == [1, 0, 2]
    assert not vocabulary.ranks(np.array([], dtype=np.int64), np.array([1, 2]))[1].any()
