"""Dense gradients of all processes added up in buckets, each of which travels as soon as the backward pass has made it.

Buckets hold the last parameters first, in about the order in which a backward pass ends with them. They leave in one
order in every process, whatever the batches hold: a bucket waits for those before it, and what no gradient came to
leaves as zeros when the pass has ended (Li et al., PyTorch Distributed, VLDB 2020).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from models.distributed.world import World

BUCKET = 1 << 18  # numbers


class GradientBuckets:
    """`dense` are replicated parameters. `traffic` counts the bytes that left this process, by a ring; `sent` are the
    buckets of this pass that have left."""

    def __init__(self, dense: Sequence[nn.Parameter], world: World) -> None:
        self.dense, self.world, self.traffic = list(dense), world, 0.0
        self._buckets = _cut(self.dense)
        self._bucket = {parameter: number for number, part in enumerate(self._buckets) for parameter in part}
        self._hooks = [p.register_post_accumulate_grad_hook(self._made) for p in self.dense] if world.size > 1 else []
        self._begin()

    def _begin(self) -> None:
        self._missing = [len(bucket) for bucket in self._buckets]
        self.sent: list[tuple[Tensor, dist.Work]] = []

    def _made(self, parameter: Tensor) -> None:
        self._missing[self._bucket[parameter]] -= 1  # type: ignore[index]
        while len(self.sent) < len(self._buckets) and not self._missing[len(self.sent)]:
            self._send()

    def _send(self) -> None:
        bucket = self._buckets[len(self.sent)]
        flat = torch.cat([p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in bucket])
        self.sent.append((flat, self.reduced(flat)))

    def send_rest(self) -> list[bool]:
        """After the backward pass; returns which of `dense` have a gradient here."""
        while len(self.sent) < len(self._buckets):
            self._send()
        return [parameter.grad is not None for parameter in self.dense]

    def take(self, scale: float, there: Sequence[float]) -> None:
        """Waits, and leaves `scale` times the sums in the parameters, but for those not `there` in any process."""
        has = dict(zip(self.dense, there, strict=True))
        for bucket, (flat, handle) in zip(self._buckets, self.sent, strict=True):
            handle.wait()
            for parameter, part in zip(bucket, flat.mul_(scale).split([p.numel() for p in bucket]), strict=True):
                parameter.grad = part.view_as(parameter) if has[parameter] else None
        self._begin()

    def reduced(self, own: Tensor) -> dist.Work:
        """Starts to add up a tensor over all processes, in place."""
        self.traffic += 2 * own.numel() * own.element_size() * (self.world.size - 1) / self.world.size
        return dist.all_reduce(own, async_op=True)  # type: ignore[return-value]

    def close(self) -> None:
        """No further backward pass is of this run."""
        for hook in self._hooks:
            hook.remove()


def _cut(dense: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    buckets: list[list[nn.Parameter]] = []
    numbers = BUCKET
    for parameter in reversed(dense):
        if numbers >= BUCKET:
            buckets.append([])
            numbers = 0
        buckets[-1].append(parameter)
        numbers += parameter.numel()
    return buckets
