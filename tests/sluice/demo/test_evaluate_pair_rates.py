from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.artifacts import Artifacts
from contracts.config.config import parse
from contracts.config.training import PairRates
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.pair_graph import GraphManifest, Relation
from models.pair_rates import job as pretrain_job
from models.pair_rates import weights as pair_weights
from models.pair_rates.baselines import made_by
from models.pair_rates.graph import PairGraph
from sluice.demo.evaluate_pair_rates import rates_of, zero_bucket_mse
from tests.models.stored_graph import store

SPEC = FeatureSpec(fields=(
    FeatureField(name="city", kind="categorical", side="user", vocabulary="city", size=4),
    FeatureField(name="brand", kind="categorical", side="item", vocabulary="brand", size=4),
))
CONFIG = parse("""
name = "t"
log = { path = "p" }
label = { expression = "y" }
pair_rates = { dim = 4, epochs = 2, batch_size = 32 }
fields = [{ name = "city", kind = "categorical", side = "user" }]
""")


def observed() -> PairGraph:
    """Three of four pairs, each with a tenth of clicks."""
    shown, clicks = np.array([1000, 1000, 1000]), np.array([100, 100, 100])
    return PairGraph.of({"city": 4, "brand": 4}, [Relation("city", "brand", "pair")], np.zeros(3, int),
                        np.array([2, 2, 3]), np.array([2, 3, 2]), shown, clicks, shown)


@pytest.mark.slow
def test_pair_rates_of_the_run_are_those_that_would_be_fitted(tmp_path: Path) -> None:
    out, graph = Artifacts(tmp_path), observed()
    out.encoding.mkdir()
    SPEC.write(out.encoding)
    store(graph, out.pair_rates)
    pretrain_job.pretrain(CONFIG, out, GraphManifest.read(out.pair_rates))
    named = FeatureSpec.read(out.encoding)
    kept = rates_of(CONFIG.pair_rates.model, graph, named, CONFIG, out).state_dict()
    fitted = made_by(CONFIG.pair_rates.model, graph, named, CONFIG.pair_rates, CONFIG.seed).state_dict()
    assert kept.keys() == fitted.keys()
    assert all(torch.equal(kept[name], tensor) for name, tensor in fitted.items())


def test_the_error_is_that_of_pairs_never_seen_and_of_no_others():
    """Three of four pairs were seen; of the fourth, each rival's rate is known by hand."""
    graph = observed()
    table = pair_weights.table(graph, SPEC, PairRates(smoothing=0.0))
    truth = np.array([[0.9, 0.9], [0.9, 0.3]])
    found = zero_bucket_mse({"table": table}, graph, (np.array([2, 3]), np.array([2, 3]), truth))
    assert found == pytest.approx({"mean": (0.3 - 0.1) ** 2, "table": (0.3 - 0.1) ** 2}, rel=1e-2)
