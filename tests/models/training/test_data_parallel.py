from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from contracts.bundle.bundle import load_weights
from contracts.config.training import Train
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from models.training.data_parallel import World, join, resolve_device

WORKER = """
import sys
from pathlib import Path
import torch
from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.networks import registry
from models.training import checkpoint
from models.training import loop as training_loop
from models.examples.batches import ExampleSet

out, train, validation, settings = map(Path, sys.argv[1:])
spec, settings = FeatureSpec.read(out), Train.model_validate_json(settings.read_text())
network = registry.build("dnn", spec, settings)
result = training_loop.fit(network, ExampleSet(train, spec), ExampleSet(validation, spec), settings, 1, positions=4)
assert result.history[-1].train_loss < result.history[0].train_loss, result.history
checkpoint.save(network, out / f"rank{torch.distributed.get_rank()}.safetensors")
torch.distributed.barrier()  # nobody hangs up on a peer that is still talking
torch.distributed.destroy_process_group()
"""


def test_auto_takes_what_there_is() -> None:
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="use 'auto'"):
        resolve_device(name)


def test_one_process_joins_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert join(torch.device("cpu")) == World(0, 1)


def test_two_processes_end_with_the_same_weights(
    item_world: Any, spec: FeatureSpec, settings: Train, tmp_path: Path
) -> None:
    spec.write(tmp_path)
    (tmp_path / "settings.json").write_text(settings.model_dump_json(), encoding="utf-8")
    (tmp_path / "worker.py").write_text(WORKER, encoding="utf-8")
    arguments = [tmp_path, item_world.train.folder, item_world.validation.folder, tmp_path / "settings.json"]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
               str(tmp_path / "worker.py"), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    left, right = (load_weights(tmp_path / f"rank{rank}.safetensors") for rank in (0, 1))
    assert all((left[name] == right[name]).all() for name in left)
