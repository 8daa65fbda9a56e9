from __future__ import annotations

import numpy as np
import pytest

from models.examples.hashed_share import hashed_share


def test_the_hash_is_even() -> None:
    shares = hashed_share(np.arange(20_000))
    assert np.histogram(shares, bins=10, range=(0, 1))[0] == pytest.approx(2000, rel=0.1)


def test_a_key_has_one_share_below_one_whatever_is_beside_it() -> None:
    keys = np.array([-(2**63), -1, 0, 1, 2**63 - 1])
    shares = hashed_share(keys)
    assert ((shares >= 0) & (shares < 1)).all()
    assert [hashed_share(keys[place : place + 1])[0] for place in range(5)] == shares.tolist()
