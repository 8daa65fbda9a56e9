"""The hash of a text, against its formula in Python's own integers; it must never change, as it is stored."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from contracts.features.text_hash import text_hashes

FULL, GOLDEN = 2**64, 0x9E3779B97F4A7C15


def finalised(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % FULL
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % FULL
    return word ^ (word >> 31)


def by_hand(text: str) -> int:
    raw = text.encode()
    words = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, len(raw) + 1, 8)]
    summed = sum(finalised((word + (j + 1) * GOLDEN) % FULL) for j, word in enumerate(words))
    return finalised((summed + len(raw) * GOLDEN) % FULL)


@given(st.lists(st.text(max_size=30)), st.integers(0, 3))
def test_hashes_of_an_array_and_of_a_slice_are_those_of_the_formula(texts, start):
    assert text_hashes(pa.array(texts, pa.large_string())[start:]).tolist() == [by_hand(text) for text in texts[start:]]


def test_texts_that_differ_by_a_nul_or_far_apart_differ():
    texts = ["", "\0", "\0\0", "a", "a\0", "a" * 8, "a" * 8 + "\0", *(f"{n:08d}{n % 7:08d}" for n in range(5000))]
    assert len(set(text_hashes(pa.array(texts, pa.large_string())).tolist())) == len(texts)


def test_a_known_value():
    assert text_hashes(pa.array(["sluice"], pa.large_string())).tolist() == [by_hand("sluice")]
