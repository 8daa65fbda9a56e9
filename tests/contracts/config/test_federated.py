"""What the federated section refuses, and how one setting overrides it."""

from __future__ import annotations

import pytest

from contracts.config.federated import Federated


def test_noise_without_a_bound_is_refused():
    with pytest.raises(ValueError, match="noise_norm"):
        Federated(noise=4.0)


@pytest.mark.parametrize("name", ["contributors", "min_clients"])
def test_more_than_a_round_has_is_refused(name):
    Federated(clients=8, **{name: 8})
    with pytest.raises(ValueError, match=f"{name} is 9, a round has 8"):
        Federated(clients=8, **{name: 9})


def test_settings_are_named_or_spelled_out():
    Federated(settings=("cpp2", "scope-union-holders", "fedlaavg"))
    for wrong in ("cpp9", "cpp2-none", "cpp2-none-mean", "none-cpp2-plain"):
        with pytest.raises(ValueError, match="is no setting"):
            Federated(settings=("cpp2", wrong))
    chosen = Federated(overrides={"cpp2": {"learning_rate": 0.7}}).of("cpp2")
    assert chosen.learning_rate == 0.7
    assert chosen.batch_size == Federated().of("fedavg").batch_size
