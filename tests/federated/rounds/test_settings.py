"""A setting is a policy, masks and an averaging rule; what does not fit is refused."""

from __future__ import annotations

import pytest

from contracts.errors import ConfigError
from federated.clients.networks import FederatedNetworks
from federated.clients.row_space import RowSpace
from federated.rounds.settings import plan_of, server_optimizer
from tests.federated import small_world


def test_a_setting_that_the_clients_configuration_lacks_is_refused():
    """Whoever starts a run names the setting: it must not be one without masks that nobody agreed to."""
    config, spec = small_world.config(settings=("cpp2",), served="cpp2"), small_world.spec()
    networks, space = FederatedNetworks(spec, config), RowSpace(spec, 10)
    for other in ("cpp1-none-plain", "all-none-plain", "fedavg", "cpp9"):
        with pytest.raises(ConfigError, match="not among"):
            plan_of(other, config, space, networks)


def test_a_scope_needs_its_buckets():
    config = small_world.config(settings=("scope-union-holders",), served="scope-union-holders")
    spec = small_world.spec()
    networks = FederatedNetworks(spec, config)
    with pytest.raises(ConfigError, match="scope_buckets"):
        plan_of("scope-union-holders", config, RowSpace(spec, 10), networks)


def test_everybodys_latest_gradients_take_no_optimiser_of_the_server():
    config = small_world.config(settings=("cpp5", "fedlaavg"), server_optimizer="adam", server_rate=0.02)
    assert server_optimizer("cpp5", config).rate == 0.02
    spec = small_world.spec()
    space, networks = RowSpace(spec, 10), FederatedNetworks(spec, config)
    plan_of("cpp5", config, space, networks)
    with pytest.raises(ConfigError, match=r"federated.overrides.fedlaavg\]"):
        plan_of("fedlaavg", config, space, networks)
