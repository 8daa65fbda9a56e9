from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from contracts.features.down_sampling import undo


@given(positives=st.integers(1, 1000), negatives=st.integers(1, 100_000), rate=st.floats(1e-3, 1.0))
def test_gives_the_share_of_positives_before_sampling(positives, negatives, rate):
    sampled = positives / (positives + rate * negatives)
    np.testing.assert_allclose(undo(np.array([sampled]), rate), positives / (positives + negatives), rtol=1e-9)


def test_keeps_certainty_and_order():
    undone = undo(np.linspace(0, 1, 11), 0.1)
    assert undone[0] == 0
    assert undone[-1] == 1
    assert (np.diff(undone) > 0).all()


@pytest.mark.parametrize("rate", [0.0, -0.5, 1.5, float("nan")])
def test_refuses_a_rate_that_is_no_share(rate):
    with pytest.raises(DataError, match=r"\(0, 1\]"):
        undo(np.array([0.5]), rate)
