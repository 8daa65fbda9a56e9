from __future__ import annotations

from typing import get_args

import pytest
import torch

from contracts.config.section import ModelName
from contracts.config.training import NEED_HIDDEN, Train
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch
from models.networks import registry


def test_there_is_a_network_for_every_name_of_the_configuration() -> None:
    assert set(registry.names()) == set(get_args(ModelName))


def test_an_unknown_name_is_refused_with_the_nearest(spec: FeatureSpec) -> None:
    with pytest.raises(ConfigError, match="did you mean 'dcn_v2'"):
        registry.build("dcnv2", spec, Train())


@pytest.mark.parametrize("name", registry.names())
def test_without_hidden_layers_a_network_works_or_says_what_it_needs(
    name: str, spec: FeatureSpec, batch: Batch
) -> None:
    settings = Train(hidden=(), embedding_dim=4)
    if name in NEED_HIDDEN:
        with pytest.raises(ConfigError, match=f"train.hidden is empty, and {name} .* 1 width at least"):
            registry.build(name, spec, settings)
    else:
        logits = registry.build(name, spec, settings).eval()(batch.request, batch.candidate)
        assert logits.shape == batch.label.shape
        assert torch.isfinite(logits).all()
