from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import ConfigError, ProtocolError
from federated.secure_aggregation.fixed_point import FixedPoint, as_words, signed


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20))
def test_words_keep_signed_integers(integers):
    assert signed(as_words(np.array(integers, dtype=np.int64))).tolist() == integers


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.integers(1, 1000))
def test_a_weighted_value_is_within_half_a_step(values, weight):
    fixed = FixedPoint(clip=1.0)
    decoded = fixed.decode(fixed.encode(np.array(values), weight))
    assert np.abs(decoded - np.array(values) * weight).max() <= fixed.step / 2 + 1e-9


def test_sums_of_the_largest_values_fit_where_room_was_asked_for():
    fixed = FixedPoint(clip=0.5)
    fixed.require_room(100, 1310)
    total = np.add.reduce([fixed.encode(np.full(3, -0.5), 1310) for _ in range(100)], axis=0, dtype=np.uint32)
    assert np.allclose(fixed.decode(total), -0.5 * 1310 * 100)
    with pytest.raises(ConfigError, match="1310 is possible"):
        fixed.require_room(100, 1311)


def test_values_beyond_the_clip_are_clipped():
    fixed = FixedPoint(clip=0.5)
    assert fixed.decode(fixed.encode(np.array([3.0, -3.0]))) == pytest.approx([0.5, -0.5])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_update_that_is_not_finite_is_refused(bad):
    with pytest.raises(ProtocolError, match="NaN"):
        FixedPoint(1.0).encode(np.array([0.0, bad]))
