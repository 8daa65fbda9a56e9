"""Every registered ranker goes from training's files through a bundle to answers over the wire."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from contracts.artifacts import CALIBRATION, TEST_LOGITS, TEST_ROWS, WEIGHTS, Artifacts
from contracts.bundle import bundle
from contracts.bundle.bundle import save_array, save_weights
from contracts.config.training import Train
from contracts.summaries import summary
from contracts.summaries.train import TrainSummary
from models.evaluation import calibration
from models.examples.batches import FeatureBlock
from models.inference.ensemble import Ensemble
from models.networks import registry
from models.training import checkpoint
from serving.assembly.assemble import assemble
from serving.bundle.loaded_bundle import LoadedBundle
from serving.server.client import RankingClient
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.conftest import PARITY_ROWS, Market, encode_events, make_config
from tests.serving.in_process_server import InProcessServer


def network(name: str, market: Market, settings: Train) -> Any:
    """With random weights."""
    made: Any = registry.build(name, market.spec, settings).eval()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.3)
    if hasattr(made, "embedding"):
        with torch.no_grad():
            made.embedding.weight[0] = 0.0
    return made


def publish(
    market: Market, trained: Artifacts, name: str, folder: Path, members: int = 1, **settings: object
) -> Path:
    """A bundle of one network, or of an ensemble; the ranker's files are as `sluice train` writes them."""
    config = make_config(train={"ranker": name, "models": [name], **settings})
    out = Artifacts(shutil.copytree(trained.out, folder / "out"))
    torch.manual_seed(1)
    networks = [network(name, market, config.train) for _ in range(members)]
    ranker = networks[0] if members == 1 else Ensemble(networks)
    blocks = [FeatureBlock(torch.from_numpy(part.ids), torch.from_numpy(part.dense)) for part in encode_events(market)]
    with torch.inference_mode():
        logits = ranker(*blocks).double().numpy()
    checkpoint.save(ranker, out.model(name) / WEIGHTS)
    save_weights(out.model(name) / CALIBRATION, calibration.identity(1.0).arrays())
    save_array(out.model(name) / TEST_LOGITS, logits[:PARITY_ROWS])
    save_array(out.model(name) / TEST_ROWS, np.arange(PARITY_ROWS)[::-1])
    summary.write(out.out / "models", TrainSummary(ranker=name))
    metrics = assemble(config, out, folder / "build")
    bundle.publish(folder / "build", folder / "bundle", config.name, metrics=metrics)
    return folder / "bundle"


VARIANTS = [("dnn", {"numbers": "piecewise_linear"}), ("din", {"numbers": "periodic"}),
            ("logistic_regression", {"numbers": "piecewise_linear"}), ("dcn_v2", {"cross_structure": "stacked"})]


@pytest.mark.parametrize(("name", "members", "settings"), [
    *((name, 1, {}) for name in registry.names()), ("dnn", 2, {}), *((name, 1, changed) for name, changed in VARIANTS)])
def test_what_was_trained_is_what_answers(
    market: Market, trained: Artifacts, name: str, members: int, settings: dict[str, str], tmp_path: Path
) -> None:
    """Parity at load compares logits; ranking and scoring are two ways to one probability."""
    loaded = LoadedBundle.load(publish(market, trained, name, tmp_path, members, **settings))
    assert loaded.manifest.ranker == name
    servicer = RankingServicer(Funnel(loaded), loaded.manifest, make_config().serve)
    with InProcessServer(servicer) as server, RankingClient(server.target) as client:
        slate = client.rank("u01", context={"device": "phone", "hour": 9.0}, seconds=20)
        items = [item.item_id for item in slate.items]
        scored = client.score("u01", items, context={"device": "phone", "hour": 9.0}, seconds=20)
    servicer.close()
    assert (len(items), slate.degraded) == (5, False)
    np.testing.assert_allclose([item.probability for item in slate.items], scored.probabilities, atol=1e-5)
