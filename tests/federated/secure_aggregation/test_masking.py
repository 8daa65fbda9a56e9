"""Masks of pairs cancel in the sum, whatever rows the two have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.errors import ProtocolError
from federated.secure_aggregation.mask_stream import words
from federated.secure_aggregation.masking import Layout, PairMask, Total, masked

SPACE, WIDTH, COMMON = 12, 3, 4
BASE = Layout(np.uint32, COMMON, WIDTH, SPACE)
ROWS = st.sets(st.integers(0, SPACE - 1)).map(lambda rows: np.array(sorted(rows), dtype=np.int64))


def values(layout, seed):
    return np.random.default_rng(seed).integers(0, 2**32, layout.size, dtype=np.uint32)


@settings(max_examples=30, deadline=None)
@given(ROWS, ROWS)
def test_two_uploads_add_up_to_the_sum_of_their_words(mine, theirs):
    key, layouts = bytes(32), (BASE.with_rows(mine), BASE.with_rows(theirs))
    _, here, there = np.intersect1d(mine, theirs, return_indices=True)
    total, plain = Total(BASE), Total(BASE)
    for number, (layout, both) in enumerate(zip(layouts, (here, there), strict=True)):
        total.add(layout, masked(layout, values(layout, number), None, [PairMask(key, 1 - 2 * number, both)]))
        plain.add(layout, values(layout, number))
    assert (total.common == plain.common).all()
    assert (total.rows == plain.rows).all()


def test_a_self_mask_covers_every_word_and_comes_off_again():
    layout = BASE.with_rows(np.array([2, 5]))
    upload = masked(layout, values(layout, 1), bytes(32), [])
    assert (upload != values(layout, 1)).all()
    total, plain = Total(BASE), Total(BASE)
    total.add(layout, upload)
    total.subtract(layout, words(bytes(32), layout.size, np.uint32))
    plain.add(layout, values(layout, 1))
    assert (total.rows == plain.rows).all()
    assert (total.common == plain.common).all()


def test_rows_that_the_other_lacks_are_left_to_the_self_mask():
    layout = BASE.with_rows(np.array([2, 5, 7]))
    upload = masked(layout, values(layout, 1), None, [PairMask(bytes(32), 1, np.array([1]))])
    changed = (upload != values(layout, 1))[COMMON:].reshape(-1, WIDTH)
    assert changed.all(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize("wrong", [np.zeros(3, np.uint32), np.zeros(COMMON, np.uint16)])
def test_words_of_another_shape_or_type_are_refused(wrong):
    with pytest.raises(ProtocolError, match="its layout says 4 of uint32"):
        masked(BASE, wrong, None, [])
