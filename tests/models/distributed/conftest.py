"""Starts tests/models/distributed/worker.py in several processes, as torchrun does for users."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec

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
        worker = Path(__file__).with_name("worker.py")
        arguments = [folder, item_world.train.folder, item_world.validation.folder]
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}",
                   str(worker), *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return folder

    return start


@pytest.fixture(scope="session")
def of_two(in_processes: Start) -> Path:
    """The folder of two processes."""
    return in_processes(2)
