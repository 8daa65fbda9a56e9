from __future__ import annotations

import numpy as np
import pytest
import torch

from contracts.config.training import PairRates
from contracts.features.feature_spec import FIRST_ID, FeatureSpec
from models.pair_rates.baselines import BASELINES, OVERRIDES, made_by
from models.pair_rates.graph import PairGraph

SETTINGS = PairRates(dim=4, layers=2, epochs=1, batch_size=32)


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "none"])
def test_every_baseline_returns_a_rate_for_every_pair(
    name: str, pair_graph: PairGraph, pair_spec: FeatureSpec, pair_rates: np.ndarray
) -> None:
    made = made_by(name, pair_graph, pair_spec, SETTINGS, seed=1)
    indices: np.ndarray = np.indices(pair_rates.shape) + FIRST_ID
    city, brand = indices[0], indices[1]
    rates = made.rates(0, city, brand)
    assert rates.shape == pair_rates.shape
    assert ((rates > 0) & (rates < 1)).all()
    assert (made.scorer.channels > 1) == (name in ("table", "posterior"))  # they say what was counted


def test_one_seed_one_result(pair_graph: PairGraph, pair_spec: FeatureSpec) -> None:
    first, second = (made_by("pcf_gnn", pair_graph, pair_spec, SETTINGS, seed=2).state_dict() for _ in range(2))
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def test_overrides_of_a_baseline_are_settings_of_pair_rates() -> None:
    for settings in OVERRIDES.values():
        assert settings.keys() <= PairRates.model_fields.keys()
        PairRates.model_validate(settings)
