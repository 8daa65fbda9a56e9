"""The tensors of a training run that a checkpoint keeps, and how they come back, in as many processes as there are now.

Moments, parameters, running statistics, the best weights so far, and the states of torch's random generators, so that a
run taken up by as many processes on a like machine ends in the bits of an undisturbed one. Another number of processes
has no states to go on from: what chance draws after the checkpoint (dropout, ids made unknown) is drawn anew.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from models.distributed.kept_tensor import kept_copy
from models.distributed.run_checkpoint import Kept, Progress, RunCheckpoint, State
from models.distributed.world import World
from models.optimisation.optimisers import Optimisers

BEST, BUFFER = "best.", "buffer."
RANDOM, RANDOM_GPU = "random", "random_gpu"


def random_states() -> dict[str, Tensor]:
    """Of torch's global generators, uint8: those of the CPU and, where it is in use, of this process's GPU."""
    states = {RANDOM: torch.get_rng_state()}
    return states | {RANDOM_GPU: torch.cuda.get_rng_state()} if torch.cuda.is_initialized() else states


def restore_random_states(kept: RunCheckpoint, world: World) -> None:
    """As `random_states` had them; a run that goes on on another device draws anew there."""
    torch.set_rng_state(kept.read_own(RANDOM, world))
    if torch.cuda.is_initialized() and kept.has_own(RANDOM_GPU, world):
        torch.cuda.set_rng_state(kept.read_own(RANDOM_GPU, world))


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
        own = buffers if self.world.size > 1 else {}
        return State(rows, dense | buffers, random_states() | own)

    def take_up(self, kept: RunCheckpoint | None, best: dict[str, Tensor], seed: int) -> Progress:
        """Takes over the newest checkpoint and fills `best`; returns where it stands, the start where there is none."""
        found = kept.latest(Progress) if kept else None
        if kept is None or found is None:
            return Progress()
        torch.manual_seed(seed + self.world.rank + 1000 * (found.batch + 1))
        self.load(kept, found, best)
        return found

    @torch.no_grad()
    def load(self, kept: RunCheckpoint, found: Kept, best: dict[str, Tensor]) -> dict[str, Tensor]:
        """Takes over all but where the newest checkpoint stands, and returns its dense tensors."""
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
        if found.processes == self.world.size:
            self._restore_own(kept)
        return dense

    def _restore_own(self, kept: RunCheckpoint) -> None:
        """What differs from process to process: generators, and in the middle of an epoch running statistics, which
        each takes of its own rows (another number of processes goes on with those of the first)."""
        restore_random_states(kept, self.world)
        for name, buffer in self._buffers().items() if self.world.size > 1 else ():
            buffer.copy_(kept.read_own(BUFFER + name, self.world))

    def _tables(self) -> set[str]:
        weights = [adam.weight for adam in self.optimisers.row_adams]
        return {name for name, parameter in self.loss.named_parameters() if any(parameter is w for w in weights)}

    def _buffers(self) -> dict[str, Tensor]:
        return {name: buffer for name, buffer in self.loss.named_buffers() if buffer.is_floating_point()}
