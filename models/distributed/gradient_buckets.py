"""Dense gradients of all processes added up in buckets, each of which travels as soon as the backward pass has made it.

Buckets hold the last parameters first, in about the order in which a backward pass ends with them. They leave in one
order in every process, whatever the batches hold: a bucket waits for those before it, and what no gradient came to
leaves as zeros when the pass has ended (Li et al., PyTorch Distributed, VLDB 2020). The last bucket leaves after the
pass, with what else is to be added up: an exchange costs more than the numbers in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from models.distributed import exchange
from models.distributed.exchange import Pending
from models.distributed.world import World

BUCKET = 1 << 20  # numbers


class GradientBuckets:
    """`dense` are replicated parameters. `traffic` counts the bytes that left this process, by a ring; `sent` are the
    buckets of this pass that have left."""

    def __init__(self, dense: Sequence[nn.Parameter], world: World) -> None:
        self.dense, self.world, self.traffic = list(dense), world, 0.0
        self._buckets = _cut(self.dense)
        self._bucket = {parameter: number for number, part in enumerate(self._buckets) for parameter in part}
        several = world.size > 1 and len(self._buckets) > 1
        self._hooks = [p.register_post_accumulate_grad_hook(self._made) for p in self.dense] if several else []
        self._begin()

    def _begin(self) -> None:
        self._missing = [len(bucket) for bucket in self._buckets]
        self.sent: list[tuple[Tensor, Pending]] = []

    def _made(self, parameter: Tensor) -> None:
        self._missing[self._bucket[parameter]] -= 1  # type: ignore[index]
        while len(self.sent) < len(self._buckets) - 1 and not self._missing[len(self.sent)]:
            self._send()

    def _send(self, *further: Tensor) -> None:
        bucket = self._buckets[len(self.sent)]
        parts = [p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in bucket]
        self.sent.append(exchange.current().add([*parts, *further]))
        flat, _ = self.sent[-1]
        self.traffic += 2 * flat.numel() * flat.element_size() * (self.world.size - 1) / self.world.size

    def send_made(self) -> None:
        """After the backward pass: all but the last bucket have left."""
        while len(self.sent) < len(self._buckets) - 1:
            self._send()

    def send_rest(self, further: Tensor) -> None:
        """The last, with numbers [n] of another kind, for `said`."""
        self.send_made()
        self._send(further, further.new_tensor([float(p.grad is not None) for p in self.dense]))

    def said(self) -> list[float]:
        """Waits for the last bucket; the sums of what was sent with it."""
        flat, handle = self.sent[-1]
        handle.wait()
        found: list[float] = flat[sum(p.numel() for p in self._buckets[-1]) :].tolist()
        first_flag = len(found) - len(self.dense)
        self._has = dict(zip(self.dense, found[first_flag:], strict=True))
        return found[:first_flag]

    def take(self, scale: float) -> None:
        """After `said`: leaves `scale` times the sums in the parameters, but for those no process has a gradient of."""
        for bucket, (flat, handle) in zip(self._buckets, self.sent, strict=True):
            handle.wait()
            numbers = [p.numel() for p in bucket]
            for parameter, part in zip(bucket, flat[: sum(numbers)].mul_(scale).split(numbers), strict=True):
                parameter.grad = part.view_as(parameter) if self._has[parameter] else None
        self._begin()

    def close(self) -> None:
        """No further backward pass is of this run."""
        for hook in self._hooks:
            hook.remove()


def _cut(dense: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """At least one, be it empty."""
    buckets: list[list[nn.Parameter]] = [[]]
    numbers = 0
    for parameter in reversed(dense):
        if numbers >= BUCKET:
            buckets.append([])
            numbers = 0
        buckets[-1].append(parameter)
        numbers += parameter.numel()
    return buckets
