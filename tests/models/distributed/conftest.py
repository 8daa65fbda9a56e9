"""Starts tests/models/distributed/worker.py in several processes, as torchrun does for users."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.distributed.run_checkpoint import RunCheckpoint
from models.examples.batches import ExampleSet
from models.networks import registry
from models.training import fitting

EXACT = {"batch_norm": False, "unknown_ids": False, "epochs": 2}
Start = Callable[[int], Path]


@pytest.fixture(scope="session")
def exact_settings(settings: Train) -> Train:
    """Nothing in them is drawn at random, or looks at a process's share alone."""
    return settings.model_copy(update=EXACT)


@pytest.fixture(scope="session")
def in_processes(
    item_world: Any, spec: FeatureSpec, exact_settings: Train, tmp_path_factory: pytest.TempPathFactory
) -> Start:
    """The folder of what so many processes wrote."""
    def start(count: int) -> Path:
        folder = tmp_path_factory.mktemp(f"processes{count}")
        spec.write(folder)
        (folder / "settings.json").write_text(exact_settings.model_dump_json(), encoding="utf-8")
        if count == 2:
            with contextlib.suppress(InterruptedError):
                left_in_the_middle(item_world, spec, exact_settings, folder / "kept")
        worker = Path(__file__).with_name("worker.py")
        arguments = [folder, item_world.train.folder, item_world.validation.folder]
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}",
                   str(worker), *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return folder

    return start


def left_in_the_middle(
    item_world: Any, spec: FeatureSpec, settings: Train, folder: Path, how: Callable[[], None] | None = None
) -> None:
    """One process that keeps a checkpoint after every batch and ends in its second epoch."""
    done: list[int] = []

    def end(batch: int, _: int) -> None:
        done.append(batch)
        if done.count(1) == 2 and batch == 5:
            if how is None:
                raise InterruptedError
            how()

    torch.manual_seed(1)
    network = registry.build("dnn", spec, settings)
    train, validation = (ExampleSet(part.folder, spec) for part in (item_world.train, item_world.validation))
    fitting.fit(network, train, validation, settings, 1, positions=4, on_batch=end,
                      kept=RunCheckpoint(folder, 0.0 if how is None else 3600.0, {"run": "1"}))


@pytest.fixture
def leave(item_world: Any, spec: FeatureSpec, exact_settings: Train) -> Callable[..., None]:
    """`left_in_the_middle` of these examples: folder, how."""
    return lambda folder, how=None: left_in_the_middle(item_world, spec, exact_settings, folder, how)


@pytest.fixture(scope="session")
def alone(item_world: Any, spec: FeatureSpec, exact_settings: Train) -> tuple[list[list[float]], dict[str, np.ndarray]]:
    """Losses and weights of one process that nothing disturbs."""
    torch.manual_seed(1)
    network = registry.build("dnn", spec, exact_settings)
    train, validation = (ExampleSet(part.folder, spec) for part in (item_world.train, item_world.validation))
    result = fitting.fit(network, train, validation, exact_settings, 1, positions=4)
    losses = [[epoch.train_loss, epoch.validation_loss] for epoch in result.history]
    return losses, {name: tensor.numpy() for name, tensor in network.state_dict().items()}


@pytest.fixture
def group_of_one(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture(scope="session")
def of_two(in_processes: Start) -> Path:
    """The folder of two processes."""
    return in_processes(2)
