from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federated.privacy.private_set_union import (
    BloomCode,
    DirectCode,
    from_digits,
    membership,
    nonzero_words,
    smallest_code,
    to_digits,
)

ROWS = 5000


def total(code, sets):
    return np.sum([membership(code, np.array(sorted(s), dtype=np.int64)) for s in sets], axis=0, dtype=np.uint32)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sets(st.integers(0, ROWS - 1), min_size=1, max_size=30), min_size=1, max_size=6))
def test_a_direct_union_loses_no_single_holder(sets):
    found = set(DirectCode(ROWS).decode(total(DirectCode(ROWS), sets)).tolist())
    single = {row for row in set.union(*sets) if sum(row in s for s in sets) == 1}
    assert single <= found <= set.union(*sets)


def test_a_bloom_union_holds_every_row_of_a_single_client_and_few_others():
    held = np.sort(np.random.default_rng(1).choice(ROWS, 200, replace=False))
    code = BloomCode(ROWS, 200)
    found = code.decode(membership(code, held))
    assert set(held) <= set(found)
    assert len(found) < 200 + 0.05 * ROWS


def test_nobody_holding_anything_is_an_empty_union():
    for code in (DirectCode(ROWS), BloomCode(ROWS, 100)):
        assert not len(code.decode(np.zeros(code.size, dtype=np.uint32)))


def test_the_smaller_code_is_taken():
    assert smallest_code(143_534, 24_000) == DirectCode(143_534)
    large = smallest_code(10_000_000, 24_000)
    assert isinstance(large, BloomCode)
    assert large.size < 10_000_000


def test_counted_membership_says_how_many_hold_a_row():
    code = DirectCode(6)
    counts = membership(code, np.array([1, 2]), counted=True) + membership(code, np.array([2]), counted=True)
    assert counts.tolist() == [0, 1, 2, 0, 0, 0]
    assert code.decode(counts, 2).tolist() == [2]


def test_words_are_never_zero_and_otherwise_uniform():
    drawn = nonzero_words(200_000)
    assert drawn.min() > 0
    assert drawn.mean() == pytest.approx(2**31, rel=0.01)


def test_samples_are_added_digit_by_digit():
    numbers = [0, 1, 17, 1000, 65_535, 1_048_575]
    words = np.sum([to_digits(number).astype(np.int64) for number in numbers], axis=0)
    assert from_digits(words) == sum(numbers)
