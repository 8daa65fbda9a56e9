from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import ConfigError
from contracts.sections.federated import Federated
from federated import simulate, skellam
from federated.fixed_point import as_words, signed
from federated.local_update import shortened
from federated.networks import FederatedNetworks
from federated.row_space import RowSpace
from federated.settings import plan_of
from federated.training import FederatedRun
from tests.federated import small_world
from tests.federated.test_secure_round import DENSE, SPACE, WIDTH, plan


@given(st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=40), st.floats(1.0, 2.0**22))
def test_no_upload_is_longer_than_agreed_and_short_ones_stay(integers, norm):
    words = as_words(np.array(integers))
    found = signed(shortened(words, norm))
    assert np.linalg.norm(found) <= norm * (1 + 1e-12)
    if np.linalg.norm(integers) <= norm:
        assert found.tolist() == integers


def test_a_shortened_row_over_its_weight_stays_what_it_was():
    words = as_words(np.array([60_000, -30_000, 3_000]))
    found = signed(shortened(words, 20_000.0))
    assert found[0] / found[2] == pytest.approx(20.0, rel=1e-3)
    assert found[1] / found[2] == pytest.approx(-10.0, rel=1e-3)


def test_epsilon_of_the_noise_is_that_of_all_rounds_with_the_smallest_one(tmp_path):
    config = small_world.config(noise=1e6, noise_norm=2000.0, delta=1e-6)
    of = plan("union", "cpp5", noise=1e6, noise_norm=2000.0)
    run = FederatedRun(of, lambda phase, messages: {}, 9, tmp_path, 1, np.zeros((SPACE, WIDTH)), np.zeros(DENSE))
    run.history = [{"clients": clients} for clients in (9, 6, 8)]
    words = DENSE + 4 + SPACE * (WIDTH + 1)
    expected = skellam.epsilon(5 * 1e6, 2000.0, 2000.0 * words**0.5, 3, 1e-6)
    assert simulate._noise_epsilon(run, config) == pytest.approx(expected)
    run.plan = plan("union", "cpp5")
    assert simulate._noise_epsilon(run, config) is None


def test_noise_without_a_bound_is_refused():
    with pytest.raises(ValueError, match="noise_norm"):
        Federated(noise=4.0)


def test_settings_are_named_or_spelled_out():
    Federated(settings=("cpp2", "scope-union-holders", "fedlaavg"))
    for wrong in ("cpp9", "cpp2-none", "cpp2-none-mean", "none-cpp2-plain"):
        with pytest.raises(ValueError, match="is no setting"):
            Federated(settings=("cpp2", wrong))
    own = Federated(own={"cpp2": {"learning_rate": 0.7}}).of("cpp2")
    assert own.learning_rate == 0.7
    assert own.batch_size == Federated().of("fedavg").batch_size


def test_a_scope_needs_its_buckets():
    config = small_world.config(settings=("scope-union-holders",), served="scope-union-holders")
    spec = small_world.spec()
    networks = FederatedNetworks(spec, config)
    with pytest.raises(ConfigError, match="scope_buckets"):
        plan_of("scope-union-holders", config, RowSpace(spec, 10), networks)
