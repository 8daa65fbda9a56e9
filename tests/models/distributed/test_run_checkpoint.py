from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contracts.bundle.bundle import load_weights
from contracts.config.training import Train
from contracts.errors import SluiceError
from contracts.features.feature_spec import FeatureSpec
from models.distributed.run_checkpoint import KEPT, RunCheckpoint, deal
from models.distributed.world import World
from models.examples.batches import ExampleSet
from models.networks import registry
from models.training import fitting

Leave = Callable[..., None]
Finish = Callable[..., tuple[dict[str, Any], list[int]]]


@pytest.fixture
def finish(item_world: Any, spec: FeatureSpec, exact_settings: Train) -> Finish:
    """Runs to the end from what the folder keeps: weights, and the batches that were done."""
    def run(folder: Path, digest: str = "run", resume: bool = True) -> tuple[dict[str, Any], list[int]]:
        done: list[int] = []
        torch.manual_seed(1)
        network = registry.build("dnn", spec, exact_settings)
        train, validation = (ExampleSet(part.folder, spec) for part in (item_world.train, item_world.validation))
        fitting.fit(network, train, validation, exact_settings, 1, positions=4,
                          on_batch=lambda batch, _: done.append(batch),
                          kept=RunCheckpoint(folder, 3600.0, digest, resume))
        return {name: tensor.numpy() for name, tensor in network.state_dict().items()}, done

    return run


def equal(found: dict[str, Any], wanted: dict[str, Any], tolerance: float = 0.0) -> None:
    for name, tensor in wanted.items():
        np.testing.assert_allclose(found[name], tensor, rtol=0, atol=tolerance, err_msg=name)


def test_a_run_taken_up_ends_as_if_undisturbed(leave: Leave, finish: Finish, alone: Any, tmp_path: Path) -> None:
    with pytest.raises(InterruptedError):
        leave(tmp_path / "kept")
    assert len([*(tmp_path / "kept").glob("[0-9]*")]) == KEPT
    weights, done = finish(tmp_path / "kept")
    assert done[0] == 5
    assert 1 not in done
    equal(weights, alone[1])
    assert not (tmp_path / "kept").exists()


def test_a_sigterm_leaves_a_checkpoint(leave: Leave, finish: Finish, alone: Any, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SluiceError, match=r"SIGTERM.*batch 6 of epoch 2.*--resume"):
        leave(tmp_path / "kept", lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) == before
    weights, done = finish(tmp_path / "kept")
    assert done[0] == 7
    equal(weights, alone[1])


@pytest.mark.parametrize(("digest", "resume"), [("another", True), ("run", False)])
def test_another_run_or_a_new_start_takes_nothing_up(
    leave: Leave, finish: Finish, alone: Any, tmp_path: Path, digest: str, resume: bool
) -> None:
    with contextlib.suppress(InterruptedError):
        leave(tmp_path / "kept")
    weights, done = finish(tmp_path / "kept", digest, resume)
    assert done.count(1) == 2
    equal(weights, alone[1])


def test_two_processes_take_up_what_one_left(of_two: Path, alone: Any) -> None:
    for rank in (0, 1):
        equal(load_weights(of_two / f"resumed{rank}.safetensors"), alone[1], 5e-3)


@pytest.mark.parametrize("before", [1, 2, 3, 4])
@pytest.mark.parametrize("after", [1, 2, 3, 4, 6])
def test_rows_are_dealt_anew_to_another_number_of_processes(before: int, after: int) -> None:
    table = torch.arange(23 * 2).view(23, 2)
    for rank in range(after):
        target = torch.full_like(World(rank, after).own(table), -1).contiguous()
        for part in range(before):
            deal(World(part, before).own(table).numpy(), part, before, target, World(rank, after))
        assert torch.equal(target, World(rank, after).own(table))
