"""What a plan refuses, and which rows are whose."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ConfigError
from federated.privacy.index_policy import POLICIES
from tests.federated.small_rounds import CLIENTS, SPACE, plan


def test_masking_one_vector_needs_one_set_of_rows():
    with pytest.raises(ConfigError, match="per_row"):
        plan("union", "cpp2")
    assert CLIENTS > 3


@pytest.mark.parametrize(("masking", "policy", "rule"), [
    ("per_row", "cpp2", "plain"), ("none", "all", "plain"), ("union", "cpp5", "holders"), ("union", "cpp5", "heat")])
def test_noise_that_would_not_lie_on_every_row_or_would_drown_weights_is_refused(masking, policy, rule):
    with pytest.raises(ConfigError, match="all-union-plain"):
        plan(masking, policy, rule=rule, noise=1e6, noise_norm=2000.0)


def test_noise_would_stay_in_the_mean_for_ever():
    with pytest.raises(ConfigError, match="adds up"):
        plan("union", "all", rule="latest", noise=4.0)


def test_a_public_scope_is_one_bucket_of_rows_the_same_for_all(tmp_path):
    of = plan("union", "scope", buckets=4)
    scopes = [of.public_scope(number) for number in range(40)]
    for scope in scopes:
        private = np.intersect1d(scope, of.private_places)
        assert set(of.public_places) <= set(scope.tolist())
        assert len(private) == pytest.approx(len(of.private_places) / 4, abs=1)
    assert len({tuple(scope) for scope in scopes}) == 4
    assert (np.unique(np.concatenate(scopes)) == np.arange(SPACE)).all()
    assert POLICIES["scope"].public_rows
