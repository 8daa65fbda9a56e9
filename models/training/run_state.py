"""The tensors of a training run that a checkpoint keeps, and how they come back, in as many processes as there are now.

Moments, parameters, running statistics, and the best weights so far. What chance draws after a checkpoint (dropout,
ids made unknown) is drawn anew, so that a run taken up is an undisturbed one but for that.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from models.distributed.kept_tensor import kept_copy
from models.distributed.run_checkpoint import Progress, RunCheckpoint, State
from models.distributed.world import World
from models.optimisation.optimisers import Optimisers

BEST, BUFFER = "best.", "buffer."


class RunState:
    """Of `loss`, the module with all that is trained, and its optimisers."""

    def __init__(self, loss: nn.Module, optimisers: Optimisers, world: World) -> None:
        self.loss, self.optimisers, self.world = loss, optimisers, world

    def of(self, best: Mapping[str, Tensor]) -> State:
        """The tensors themselves and no copies; `best` are the best weights so far by name, empty before the first."""
        tables = self._tables()
        rows = self.optimisers.rows_state() | {BEST + name: best[name] for name in tables & set(best)}
        dense = self.optimisers.dense_state() | {BEST + name: best[name] for name in set(best) - tables}
        buffers = {BUFFER + name: buffer for name, buffer in self._buffers().items()}
        return State(rows, dense | buffers)

    @torch.no_grad()
    def take_up(self, kept: RunCheckpoint | None, best: dict[str, Tensor], seed: int) -> Progress:
        """Takes over the newest checkpoint and fills `best`; returns where it stands, the start where there is none."""
        found = kept.latest() if kept else None
        if kept is None or found is None:
            if kept:
                kept.clear()
            return Progress()
        dense = kept.read_dense()
        self.optimisers.load_dense(dense)
        for name, buffer in self._buffers().items():
            buffer.copy_(dense[BUFFER + name])
        stored = {name.removeprefix(BEST): tensor for name, tensor in dense.items() if name.startswith(BEST)}
        if stored:
            best.update({name: stored[name] if name in stored else kept_copy(tensor)
                         for name, tensor in self.loss.state_dict().items()})
        for name, target in self.of(best).rows.items():
            kept.read_rows(name, target, found.processes, self.world)
        torch.manual_seed(seed + self.world.rank + 1000 * (found.batch + 1))
        return found

    def _tables(self) -> set[str]:
        weights = [adam.weight for adam in self.optimisers.row_adams]
        return {name for name, parameter in self.loss.named_parameters() if any(parameter is w for w in weights)}

    def _buffers(self) -> dict[str, Tensor]:
        return {name: buffer for name, buffer in self.loss.named_buffers() if buffer.is_floating_point()}
