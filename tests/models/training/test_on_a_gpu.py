"""Updates on a GPU: as on a CPU within rounding, and nobody waits for the device. Skipped where there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from contracts.config.training import PairRates, Train
from contracts.features.feature_spec import FeatureSpec
from models.examples.prefetch import arriving
from models.jobs.retrieval_training import build_towers
from models.layers.losses import ClickLoss, RetrievalLoss
from models.layers.position_bias import PositionBias
from models.networks import registry
from models.pair_rates import network as pair_network
from models.pair_rates import pretraining
from models.pair_rates.graph import PairGraph
from models.training.loop import Loop

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
NETWORKS = sorted({*registry.names()} - {"popularity"})


@contextlib.contextmanager
def nobody_waits() -> Iterator[None]:
    """Raises RuntimeError at whatever makes the host wait for the device."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def loop_of(name: str, spec: FeatureSpec, settings: Train, examples: Any, device: str) -> Loop:
    torch.manual_seed(1)
    chosen = settings.model_copy(update={"device": device})
    if name == "towers":
        towers = build_towers(spec, chosen)
        towers.prepare(examples)
        return Loop(RetrievalLoss(towers), [towers], chosen, 1, 1)
    network = registry.build(name, spec, chosen)
    network.prepare(examples)  # type: ignore[operator]
    bias = PositionBias(spec.positions)
    return Loop(ClickLoss(network, bias), [network, bias], chosen, 1, 1)


@pytest.mark.parametrize("name", [*NETWORKS, "towers"])
def test_updates_are_those_of_a_cpu_and_nobody_waits(
    item_world: Any, spec: FeatureSpec, settings: Train, name: str
) -> None:
    here, there = (loop_of(name, spec, settings, item_world.train, device) for device in ("cpu", "cuda"))
    batches = list(item_world.train.batches(256))[:6]
    waiting = list(arriving(batches, there.device))
    there.loss.train()
    here.loss.train()
    there.step(waiting[0])  # allocates, chooses kernels
    with nobody_waits():
        for batch in waiting[1:]:
            there.step(batch)
    for batch in batches:
        here.step(batch)
    expected = here.loss.state_dict()
    for part, tensor in there.loss.state_dict().items():
        torch.testing.assert_close(tensor.cpu(), expected[part], atol=2e-3, rtol=2e-2, msg=part)


def test_pair_rates_learn_on_a_gpu_as_on_a_cpu(pair_graph: PairGraph) -> None:
    settings = PairRates(dim=8, epochs=6, patience=6, batch_size=16, learning_rate=5e-3)
    losses = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(1)
        network = pair_network.build(settings, pair_graph)
        found = pretraining.fit(network, pair_graph, settings, 1, device=torch.device(device))
        losses.append(min(entry.validation_loss for entry in found.history))
        assert not any(tensor.is_cuda for tensor in network.state_dict().values())
    assert losses[1] == pytest.approx(losses[0], rel=0.1)
