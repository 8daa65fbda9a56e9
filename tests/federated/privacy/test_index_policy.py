from __future__ import annotations

import pytest

from contracts.errors import ConfigError
from federated.privacy.index_policy import POLICIES, IndexPolicy


def test_a_probability_beyond_one_is_refused():
    with pytest.raises(ConfigError, match=r"1\.5"):
        IndexPolicy("mine", p1=1.5)


def test_only_answers_that_never_differ_share_a_scope():
    assert {name for name, policy in POLICIES.items() if policy.whole_scope} == {"all", "scope", "cpp5"}
