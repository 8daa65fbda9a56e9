"""Batches of counted pairs in which every relation has its say.

Relations of groups have a few dozen edges that were shown thousands of times, those of cities and brands tens of
thousands that were shown once or twice. Drawn as they come, most batches lack the first ones, whose heads then have a
dozen updates in all, and where one comes it outweighs the rest. So the edges of every relation are dealt out over all
batches, at least FEWEST a batch (and no more than half of them, which speak to the others meanwhile), and in the loss
of a batch all relations weigh the same.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

FEWEST = 8
SCHEME = 2  # of the batches; 1 took the edges as they came


def edge_batches(edges: Tensor, relation: Tensor, size: int, generator: torch.Generator) -> list[Tensor]:
    """Of edges [E] of the relations [E], about `size` each; every edge is in one of them, in several where its relation
    has few."""
    kinds = relation.unique().tolist()
    if len(kinds) == 1:
        return list(_shuffled(edges, generator).split(size))
    count = math.ceil(len(edges) / size)
    dealt = [_dealt(edges[relation == kind], count, generator) for kind in kinds]
    return [torch.cat(parts) for parts in zip(*dealt, strict=True)]


def _dealt(edges: Tensor, batches: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    wanted = max(len(edges), batches * min(FEWEST, math.ceil(len(edges) / 2)))
    rounds = math.ceil(wanted / len(edges))
    order = torch.cat([_shuffled(edges, generator) for _ in range(rounds)])[:wanted]
    return order.tensor_split(batches)


def _shuffled(edges: Tensor, generator: torch.Generator) -> Tensor:
    return edges[torch.randperm(len(edges), generator=generator).to(edges.device)]


def shares(weight: Tensor, relation: Tensor) -> Tensor:
    """[E] that add up to 1 over the batch, and to the same over each relation in it; within one they are as
    `weight`."""
    sums = weight.new_zeros(int(relation.max()) + 1).index_add_(0, relation.long(), weight)
    return weight / sums[relation.long()] / (sums > 0).sum()
