"""Compiled look-ups beside a dictionary and beside TextKeys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from contracts.features.text_hash import text_hashes
from contracts.features.text_keys import TextKeys
from models.compiled import kernels
from models.inference.text_places import TextPlaces, compiled

TEXTS = st.text("ab\0é", max_size=4) | st.text(max_size=40)


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    if kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")


def keys_of(known: set[str]) -> TextKeys:
    return TextKeys.of(pa.array(sorted(known, key=str.encode), pa.large_string()))


def places_of(keys: TextKeys) -> TextPlaces:
    found = compiled(keys)
    assert found is not None
    return found


@given(known=st.sets(TEXTS, max_size=40), asked=st.lists(TEXTS | st.none(), max_size=20))
def test_it_finds_what_a_dictionary_finds(known: set[str], asked: list[str | None]) -> None:
    place: dict[str | None, int] = {key: at for at, key in enumerate(sorted(known, key=str.encode))}
    wanted = [*asked, *known, *(key + "a" for key in known), *(key[:-1] for key in known)]
    assert places_of(keys_of(known))(wanted).tolist() == [place.get(key, -1) for key in wanted]


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 4097])
def test_of_many_texts_it_finds_all(count: int) -> None:
    texts = [f"i{number * 7}" for number in range(count)]
    keys = keys_of(set(texts))
    wanted = [*texts, *(f"i{number}" for number in range(0, 7 * count, 5))]
    assert places_of(keys)(wanted).tolist() == keys.places_arrow(pa.array(wanted, pa.large_string())).tolist()


def test_of_texts_with_one_hash_each_is_found() -> None:
    texts = pa.array(["a", "b", "c"], pa.large_string())
    plain = TextKeys.of(texts)
    own = int(text_hashes(texts)[2])
    alike = TextKeys(plain.offsets, plain.blob, np.full(3, own, dtype=np.uint64), np.array([1, 0, 2], dtype=np.int32))
    assert places_of(alike)(["c", "d"]).tolist() == [2, -1]


@pytest.mark.parametrize(("array", "place", "value"), [("ranks", 1, 3), ("ranks", 0, -1), ("offsets", 1, 9)])
def test_arrays_that_lead_out_of_one_another_are_refused(array: str, place: int, value: int) -> None:
    keys = keys_of({"a", "bb", "c"})
    broken = getattr(keys, array).copy()
    broken[place] = value
    setattr(keys, array, broken)
    with pytest.raises(DataError, match="assemble it again"):
        places_of(keys)


def test_a_slice_of_a_larger_array_will_do() -> None:
    texts = pa.array(["z", "a", "bb", "c"], pa.large_string())[1:]
    assert places_of(TextKeys.of(texts))(["c", "z", "bb", "a"]).tolist() == [2, -1, 1, 0]


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(DataError, match="no texts"):
        places_of(keys_of({"1"}))([1])  # type: ignore[list-item]
