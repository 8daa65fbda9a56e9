from __future__ import annotations

import secrets

import pytest

from contracts.errors import RoundAbandoned
from federated.secure_aggregation.secret_sharing import combine, split


def test_any_threshold_shares_open_the_seed_and_fewer_do_not():
    seed = secrets.token_bytes(16)
    shares = dict(enumerate(split(seed, 4, 9), start=1))
    for chosen in ((1, 2, 3, 4), (6, 7, 8, 9), (2, 5, 7, 9)):
        assert combine({number: shares[number] for number in chosen}, 4) == seed
    with pytest.raises(RoundAbandoned, match="3 shares"):
        combine({number: shares[number] for number in (1, 2, 3)}, 4)
    assert combine({number: shares[number] for number in (1, 2, 3)}, 3) != seed
