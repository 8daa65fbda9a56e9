"""The candidates of every process's share of a batch, brought together, so that a softmax over them sees as many
negatives in several processes as in one.

    forward     Z = [Z_0; ...; Z_P-1], each process's vectors in the order of their numbers, in every process
    backward    dL/dZ_r = sum over processes p of dL_p/dZ_r, for the losses L_p of their own terms

Bytes that leave a process of B rows of vectors [B, D] with three int64 each: 8 + B (8 D + 24) for every other one (4 D
there, 4 D of gradients back). All processes call it together, also for none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import FunctionCtx

from models.distributed.world import World


class Shared(NamedTuple):
    """vectors [N, D] and numbers [N, n] of all processes; those of this one begin at row `first`."""

    vectors: Tensor
    numbers: Tensor
    first: int


class SharedCandidates:
    """Of the processes of `world`."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __call__(self, vectors: Tensor, numbers: Tensor) -> Shared:
        """vectors [B, D], which may want gradients, and numbers int64 [B, n]; B differs from process to process."""
        own = torch.full((self.world.size,), len(vectors), device=vectors.device)
        answer = torch.empty_like(own)
        dist.all_to_all_single(answer, own)
        counts = answer.tolist()
        return Shared(_Vectors.apply(vectors, counts), _to_all(numbers, counts),  # type: ignore[no-untyped-call]
                      sum(counts[: self.world.rank]))


class _Vectors(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, vectors: Tensor, counts: list[int]) -> Tensor:
        context.counts, context.own = counts, len(vectors)
        return _to_all(vectors, counts)

    @staticmethod
    def backward(context: FunctionCtx, *gradients: Tensor) -> tuple[Tensor, None]:
        counts, own = context.counts, context.own  # type: ignore[attr-defined]
        found = gradients[0].new_empty(len(counts) * own, *gradients[0].shape[1:])
        dist.all_to_all_single(found, gradients[0].contiguous(), [own] * len(counts), counts)
        return found.view(len(counts), own, *gradients[0].shape[1:]).sum(0), None


def _to_all(values: Tensor, counts: list[int]) -> Tensor:
    """[B, ...] of this process -> [sum of counts, ...] of all."""
    out = values.new_empty(sum(counts), *values.shape[1:])
    dist.all_to_all_single(out, values.repeat(len(counts), 1), counts, [len(values)] * len(counts))
    return out
