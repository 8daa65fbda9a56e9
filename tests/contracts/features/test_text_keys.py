"""Texts by bisection and by hash, which must agree, also where all hashes are one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.errors import DataError
from contracts.features import text_keys
from contracts.features.text_hash import text_hashes
from contracts.features.text_keys import TextKeys

texts = st.text("ab\0é", max_size=4)


def stored(known: set[str]) -> TextKeys:
    return TextKeys.of(pa.array(sorted(known, key=str.encode), pa.large_string()))


@pytest.mark.parametrize("hashes", [1, 3, 2**64], ids=["one hash", "three hashes", "hashes"])
@pytest.mark.parametrize("sample", [1, 3, 8192])
@given(known=st.sets(texts, max_size=30), asked=st.lists(texts, max_size=20))
@settings(max_examples=30)
def test_bisection_and_hashing_find_what_a_dictionary_finds(hashes, sample, known, asked):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_keys, "SAMPLE", sample)
        patch.setattr(text_keys, "text_hashes", lambda keys: text_hashes(keys) % np.uint64(hashes) if hashes < 2**64
                      else text_hashes(keys))
        keys, wanted = stored(known), [*asked, *known, *(key + "a" for key in known)]
        place = {key: at for at, key in enumerate(sorted(known, key=str.encode))}
        expected = [place.get(key, -1) for key in wanted]
        assert [keys.place(key) for key in wanted] == expected
        assert keys.places_arrow(pa.array(wanted, pa.large_string())).tolist() == expected
        assert keys.places([*wanted, None]).tolist() == [*expected, -1]


def test_many_keys_and_few_take_the_same_places():
    keys = stored({f"key {number}" for number in range(3000)})
    wanted = [None if number % 7 == 0 else f"key {number}" for number in range(0, 6000, 11)]
    assert len(wanted) > text_keys.FEW_OF_SAMPLE
    assert keys.places(wanted).tolist() == [keys.places([key])[0] for key in wanted]
    assert keys.texts(5, 8).to_pylist() == keys.texts().to_pylist()[5:8]


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="2 offsets"):
        TextKeys(np.array([0, 1]), np.zeros(2, np.uint8), np.zeros(1, np.uint64), np.zeros(1, np.int32))
