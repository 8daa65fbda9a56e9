from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.distributed.run_checkpoint import Progress, RunCheckpoint
from models.layers.losses import ClickLoss
from models.layers.position_bias import PositionBias
from models.networks import registry
from models.training.loop import Loop
from models.training.run_state import RunState


def made(spec: FeatureSpec, settings: Train, seed: int) -> Loop:
    torch.manual_seed(seed)
    network = registry.build("dnn", spec, settings)
    return Loop(ClickLoss(network, PositionBias(0)), [network], settings, seed, 1)


def test_what_is_kept_comes_back_and_learns_on_alike(
    item_world: Any, spec: FeatureSpec, settings: Train, tmp_path: Path
) -> None:
    one, other = made(spec, settings, 1), made(spec, settings, 2)
    batches = [*item_world.train.batches(256)][:4]
    for batch in batches[:2]:
        one.step(batch)
    best = {name: tensor.clone() for name, tensor in one.loss.state_dict().items()}
    one.step(batches[2])
    kept = RunCheckpoint(tmp_path, 0.0, {"run": "1"}, resume=True)
    progress = Progress(epoch=3, batch=3, total=5.0, count=9.0)
    kept.write(progress, RunState(one.loss, one.optimisers, one.world).of(best), one.world)
    found: dict[str, torch.Tensor] = {}
    reached = RunState(other.loss, other.optimisers, other.world).take_up(kept, found, 1)
    assert reached == progress.model_copy(update={"identity": {"run": "1"}})
    assert found.keys() == best.keys()
    assert all(torch.equal(found[name], best[name]) for name in best)
    for loop in (one, other):
        loop.step(batches[3])
    torch.testing.assert_close(other.loss.state_dict(), one.loss.state_dict(), rtol=0, atol=0)


def test_what_chance_draws_next_comes_back(item_world: Any, spec: FeatureSpec, settings: Train, tmp_path: Path) -> None:
    loop = made(spec, settings, 1)
    state = RunState(loop.loss, loop.optimisers, loop.world)
    kept = RunCheckpoint(tmp_path, 0.0, {}, resume=True)
    kept.write(Progress(), state.of({}), loop.world)
    drawn = torch.rand(3)
    state.take_up(kept, {}, 1)
    assert torch.equal(torch.rand(3), drawn)
