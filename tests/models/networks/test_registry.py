from __future__ import annotations

from typing import get_args

import pytest

from contracts.config.section import ModelName
from contracts.config.training import Train
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from models.networks import registry


def test_there_is_a_network_for_every_name_of_the_configuration() -> None:
    assert set(registry.names()) == set(get_args(ModelName))


def test_an_unknown_name_is_refused_with_the_nearest(spec: FeatureSpec) -> None:
    with pytest.raises(ConfigError, match="did you mean 'dcn_v2'"):
        registry.build("dcnv2", spec, Train())
