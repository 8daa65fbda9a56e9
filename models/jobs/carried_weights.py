"""The parent's weights, handed to a network in the moment between preparing and training it."""

from __future__ import annotations

import torch

from contracts.features import vocabulary
from contracts.summaries.train import WarmStartFigures
from models.jobs.training_task import TrainingTask
from models.training.warm_start import Build, WarmStart


class CarriedWeights:
    """The `start` of `fitting.fit`. Nothing is carried to or from an ensemble, whose members would be as one.

    `figures` say afterwards what was carried; None where training starts cold.

    `build` makes the parent's network from its spec and configuration.
    """

    def __init__(self, task: TrainingTask, name: str, build: Build) -> None:
        self._task, self._name, self._build = task, name, build
        self.figures: WarmStartFigures | None = None

    def __call__(self, network: torch.nn.Module) -> WarmStartFigures | None:
        task = self._task
        if task.parent is not None and task.config.train.ensemble == task.parent.config.train.ensemble == 1:
            keys = vocabulary.read_all(task.out.encoding)
            carry = WarmStart(task.parent, task.spec, keys, task.config.train)
            self.figures = carry(network, self._name, self._build)
        return self.figures
