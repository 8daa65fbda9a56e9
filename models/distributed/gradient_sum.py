"""Gradients of all processes added up: dense ones in buckets that travel while others are made and rows find owners.

Each process adds up losses and divides by nothing; here sums become means over the terms of all processes, so that a
process without a term (no click for the towers) weighs nothing, and the update is that of one process with the whole
batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.distributed.gradient_buckets import GradientBuckets
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
    """Of replicated parameters and of tables. `traffic` counts the bytes that left this process for the former."""

    def __init__(self, dense: Sequence[nn.Parameter], tables: Sequence[ShardedTable], world: World) -> None:
        self.tables, self._buckets = list(tables), GradientBuckets(dense, world)

    @property
    def traffic(self) -> float:
        return self._buckets.traffic

    def __call__(self, value: Tensor, terms: int, wish: float = 0.0) -> Summed:
        """What is said in `Summed`.

        Called by all processes after each backward pass; `value` and `terms` are this process's own. Gradients of
        dense parameters are left in them; one that has none anywhere keeps none.
        """
        own = torch.tensor([float(terms), wish, *map(float, self._buckets.send_rest())], device=value.device)
        said = torch.cat([value.detach().float()[None], own])
        handle = self._buckets.reduced(said)
        found = [table.gradient() for table in self.tables]
        handle.wait()
        loss, count, wishes, *there = said.tolist()
        scale = 1.0 / max(count, 1.0)
        self._buckets.take(scale, there)
        return Summed(loss, round(count), wishes, [(rows, gradient.mul_(scale)) for rows, gradient in found])

    def added(self, own: Tensor) -> Tensor:
        """The tensor, added up over all processes in place."""
        self._buckets.reduced(own).wait()
        return own

    def close(self) -> None:
        """No further backward pass is of this run."""
        self._buckets.close()
