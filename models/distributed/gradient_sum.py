"""Gradients of all processes added up: dense ones in buckets that travel while others are made and rows find owners.

Each process adds up losses and divides by nothing; here sums become means over the terms of all processes, so that a
process without a term (no click for the towers) weighs nothing, and the update is that of one process with the whole
batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.distributed.gradient_buckets import GradientBuckets
from models.distributed.sharded_table import ShardedTable
from models.distributed.world import World

RowSums = tuple[Tensor, Tensor]  # distinct rows [U] and one gradient each [U, D]
Summing = Callable[[Tensor, Tensor], RowSums]


class Summed(NamedTuple):
    """Of all processes: losses and terms, wishes (models/distributed/run_checkpoint.py), for each table the own rows
    with one gradient each, and the norm of the gradients of all rows of all processes."""

    loss: float
    terms: int
    wishes: float
    rows: list[RowSums]
    row_norm: float


class GradientSum:
    """Of replicated parameters and of tables, each with what makes one sum per row of its gradients. `traffic` counts
    the bytes that left this process for the former."""

    def __init__(self, dense: Sequence[nn.Parameter], tables: Sequence[tuple[ShardedTable, Summing]], world: World
                 ) -> None:
        self.tables, self._buckets = list(tables), GradientBuckets(dense, world)

    @property
    def traffic(self) -> float:
        return self._buckets.traffic

    def __call__(self, value: Tensor, terms: int, wish: float = 0.0) -> Summed:
        """What is said in `Summed`.

        Called by all processes after each backward pass; `value` and `terms` are this process's own. Gradients of
        dense parameters are left in them; one that has none anywhere keeps none. Rows go to their owners before the
        last bucket leaves, so that their norm travels with it, and after all others, whether or not a backward pass
        sent these here.
        """
        self._buckets.send_made()
        found = [summed(*table.gradient()) for table, summed in self.tables]
        squares = sum((values.square().sum() for _, values in found), value.new_zeros(()))
        numbers = value.new_tensor([float(terms), wish])
        self._buckets.send_rest(torch.cat([torch.stack([value.detach(), squares]), numbers]).float())
        loss, squared, count, wishes = self._buckets.said()
        scale = 1.0 / max(count, 1.0)
        self._buckets.take(scale)
        rows = [(own, values.mul_(scale)) for own, values in found]
        return Summed(loss, round(count), wishes, rows, scale * squared**0.5)

    def close(self) -> None:
        """No further backward pass is of this run."""
        self._buckets.close()
