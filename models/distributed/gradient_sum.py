"""Gradients of all processes added up: dense ones in one flat exchange that travels while embedding rows find owners.

Each process adds up losses and divides by nothing; here sums become means over the terms of all processes, so that a
process without a term (no click for the towers) weighs nothing, and the update is that of one process with the whole
batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from models.distributed.sharded_table import ShardedTable
from models.distributed.world import World


class Summed(NamedTuple):
    """Of all processes: losses and terms, wishes (models/distributed/run_checkpoint.py), and for each table the own
    rows and their gradients, not yet one per row."""

    loss: float
    terms: int
    wishes: float
    rows: list[tuple[Tensor, Tensor]]


class GradientSum:
    """`dense` are replicated parameters. `traffic` counts the bytes that left this process for them, by a ring."""

    def __init__(self, dense: Sequence[nn.Parameter], tables: Sequence[ShardedTable], world: World) -> None:
        self.dense, self.tables, self.world, self.traffic = list(dense), list(tables), world, 0

    def __call__(self, value: Tensor, terms: int, wish: float = 0.0) -> Summed:
        """What is said in `Summed`.

        Called by all processes after each backward pass; `value` and `terms` are this process's own. Gradients of
        dense parameters are left in them; one that has none anywhere, or here, keeps none.
        """
        parts = [p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in self.dense]
        said = torch.stack([value.detach().float(), *torch.tensor([float(terms), wish], device=value.device)])
        flat = torch.cat([*parts, said])
        handle = dist.all_reduce(flat, async_op=True)
        found = [table.gradient() for table in self.tables]
        handle.wait()
        self.traffic += 2 * flat.numel() * flat.element_size() * (self.world.size - 1) // self.world.size
        loss, count, wishes = flat[-3:].tolist()
        scale = 1.0 / max(count, 1.0)
        means = flat[:-3].mul_(scale).split([p.numel() for p in self.dense])
        for parameter, part in zip(self.dense, means, strict=True):
            if parameter.grad is not None:
                parameter.grad = part.view_as(parameter)
        return Summed(loss, round(count), wishes, [(rows, gradient.mul_(scale)) for rows, gradient in found])


def summed(own: Tensor) -> Tensor:
    """The scalar, added up over all processes in place."""
    dist.all_reduce(own)
    return own
