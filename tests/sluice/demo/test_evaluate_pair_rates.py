from __future__ import annotations

import numpy as np
import pytest

from contracts.config.training import PairRates
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.pair_graph import Relation
from models.pair_rates import weights as pair_weights
from models.pair_rates.graph import PairGraph
from sluice.demo.evaluate_pair_rates import zero_bucket_mse


def test_the_error_is_that_of_pairs_never_seen_and_of_no_others():
    """Three of four pairs were seen; of the fourth, each rival's rate is known by hand."""
    spec = FeatureSpec(fields=(
        FeatureField(name="city", kind="categorical", side="user", vocabulary="city", size=4),
        FeatureField(name="brand", kind="categorical", side="item", vocabulary="brand", size=4),
    ))
    shown, clicks = np.array([1000, 1000, 1000]), np.array([100, 100, 100])
    graph = PairGraph.of({"city": 4, "brand": 4}, [Relation("city", "brand", "pair")], np.zeros(3, int),
                         np.array([2, 2, 3]), np.array([2, 3, 2]), shown, clicks, shown)
    table = pair_weights.table(graph, spec, PairRates(smoothing=0.0))
    truth = np.array([[0.9, 0.9], [0.9, 0.3]])
    found = zero_bucket_mse({"table": table}, graph, (np.array([2, 3]), np.array([2, 3]), truth))
    assert found == pytest.approx({"mean": (0.3 - 0.1) ** 2, "table": (0.3 - 0.1) ** 2}, rel=1e-2)
