"""A process of test_elastic_restart.py: a checkpoint after each batch, and it takes up what is there."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.distributed import data_parallel
from models.distributed.run_checkpoint import RunCheckpoint
from models.examples.batches import ExampleSet
from models.networks import registry
from models.training import fitting


def main(folder: Path, train: Path, validation: Path) -> None:
    spec, settings = FeatureSpec.read(folder), Train.model_validate_json((folder / "settings.json").read_text())
    world = data_parallel.join(torch.device("cpu"))

    def note(batch: int, _: int) -> None:
        time.sleep(0.05)  # so that there is a middle to be killed in
        if world.rank == 0:
            with (folder / "batches").open("a") as file:
                file.write(f"{batch}\n")

    torch.manual_seed(1)
    network = registry.build("dnn", spec, settings)
    result = fitting.fit(
        network, ExampleSet(train, spec), ExampleSet(validation, spec), settings, 1, positions=4, on_batch=note,
        kept=RunCheckpoint(folder / "kept", 0.0, "run", resume=True))
    losses = [[epoch.train_loss, epoch.validation_loss] for epoch in result.history]
    data_parallel.by_first(lambda: (folder / "losses.json").write_text(json.dumps(losses)))
    data_parallel.leave()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
