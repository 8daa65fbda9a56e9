"""The parent's weights, handed to a network in the moment between preparing and training it."""

from __future__ import annotations

import torch

from contracts.config.config import Config
from contracts.features import vocabulary
from contracts.summaries.train import WarmStartFigures
from models.jobs.training_task import TrainingTask
from models.training.warm_start import Build, WarmStart


class CarriedWeights:
    """The `start` of `fitting.fit`. Nothing is carried to or from an ensemble, whose members would be as one;
    `ensembled` says whether the model is one where `train.ensemble` asks for it.

    `figures` say afterwards what was carried, or why nothing was; None where there is nothing to carry.

    `build` makes the parent's network from its spec and configuration.
    """

    def __init__(self, task: TrainingTask, name: str, build: Build, ensembled: bool = False) -> None:
        self._task, self._name, self._build, self._ensembled = task, name, build, ensembled
        self.figures: WarmStartFigures | None = None

    def __call__(self, network: torch.nn.Module) -> WarmStartFigures | None:
        """None where training starts cold."""
        task = self._task
        if task.parent is not None and not (self._ensembled and _one_is_an_ensemble(task.config, task.parent.config)):
            keys = vocabulary.read_all(task.out.encoding)
            carry = WarmStart(task.parent, task.spec, keys, task.config.train)
            self.figures = carry(network, self._name, self._build)
        return self.figures if self.figures is not None and self.figures.cold is None else None


def _one_is_an_ensemble(*configs: Config) -> bool:
    return any(config.train.ensemble > 1 for config in configs)
