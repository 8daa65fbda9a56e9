"""The weights of the best epoch so far, kept while training goes on."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from models.distributed.kept_tensor import kept_copy


class BestWeights:
    """Of `module`; `epoch` is 0 before the first. Large tensors are kept in files of `folder`, where there is one."""

    def __init__(self, module: nn.Module, folder: Path | None) -> None:
        self.module, self.folder = module, folder
        self.weights: dict[str, Tensor] = {}
        self.epoch, self._score = 0, -float("inf")

    def seen(self, score: float, epoch: int) -> bool:
        """Whether `epoch` is the best now; of equal scores the first."""
        better = score > self._score
        if better:
            self._score, self.epoch = score, epoch
        return better

    def offer(self, score: float, epoch: int) -> None:
        """Keeps the weights as they stand, where the score, the larger the better, is above all before."""
        if self.seen(score, epoch):
            for name, tensor in self.module.state_dict().items():
                self.weights[name] = kept_copy(tensor, self.weights.get(name), self.folder)

    def restore(self) -> None:
        """Gives them back to the module."""
        self.module.load_state_dict(self.weights)
