from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.config.training import PairRates, Train
from contracts.errors import DataError
from contracts.features.feature_spec import FIRST_ID, FeatureSpec, PairModel
from models.networks import registry
from models.pair_rates import weights as pair_weights
from models.pair_rates.graph import PairGraph

TRAIN = Train(embedding_dim=4, hidden=(8,), dropout=0.0)
NO_SMOOTHING, SMOOTHING = PairRates(smoothing=0.0), PairRates(smoothing=50.0)


def test_naming_pair_rates_twice_names_the_last_ones(pair_spec: FeatureSpec) -> None:
    first = pair_weights.with_pair_rates(pair_spec, [("city", "brand"), ("age", "tags")], PairModel(head="dot", dim=3))
    again = pair_weights.with_pair_rates(first, [("city", "brand")], PairModel(head="dot", dim=5))
    assert [field.name for field in again.pair_rates()] == ["city_x_brand_rate"]
    assert again.pair_model == PairModel(head="dot", dim=5)
    assert pair_weights.without_pair_rates(again) == pair_spec


@pytest.mark.parametrize("settings", [NO_SMOOTHING, SMOOTHING])
def test_the_table_s_rates_are_clicks_over_impressions_drawn_to_the_prior(
    settings: PairRates, pair_graph: PairGraph, pair_spec: FeatureSpec
) -> None:
    made = pair_weights.table(pair_graph, pair_spec, settings)
    edges = pair_graph.edges.take(pair_graph.targets)
    left = edges.left.numpy() - pair_graph.starts["city"]
    right = edges.right.numpy() - pair_graph.starts["brand"]
    shown, clicks = edges.exposure.numpy(), edges.clicks.numpy()
    prior = float(pair_graph.priors[0])
    rate = (clicks + settings.smoothing * prior) / (shown + settings.smoothing)
    expected = np.clip(rate, 0.5 / (shown + 1), 1 - 0.5 / (shown + 1))
    np.testing.assert_allclose(made.rates(0, left, right), expected, rtol=1e-4)
    assert (left >= FIRST_ID).all()


def test_published_weights_come_back_into_a_ranker_and_others_are_refused(
    pair_graph: PairGraph, pair_spec: FeatureSpec, tmp_path: Path
) -> None:
    made = pair_weights.table(pair_graph, pair_spec, SMOOTHING)
    spec = pair_weights.publish(made, pair_spec, pair_weights.pairs_of(pair_graph), SMOOTHING, tmp_path)
    ranker = registry.build("dnn", spec, TRAIN)
    pair_weights.load_into(ranker, spec, tmp_path)
    loaded = ranker.embedding.pair_rates.state_dict()  # type: ignore[union-attr]
    assert all(torch.equal(loaded[name], tensor) for name, tensor in made.state_dict().items())
    with pytest.raises(DataError, match="sluice pretrain"):
        pair_weights.load_into(ranker, spec, tmp_path / "elsewhere")
