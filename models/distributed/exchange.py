"""What the processes of a run send each other in an update: rows to their owners and back, and sums of all.

Processes of one machine that compute on CPUs exchange by shared memory (models/distributed/shared_memory.py), others
by torch's collectives. Everybody calls the same in the same order, whatever it has to send.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor


class Pending(Protocol):
    """On its way."""

    def wait(self) -> object:
        """Until it is there."""


class Exchange(Protocol):
    def dealt(self, values: Tensor, sent: Sequence[int], received: Sequence[int] | None = None
              ) -> tuple[Tensor, list[int]]:
        """values [n, ...], those for process 0, then for 1, ..., so many of `sent` for each -> what came for this one,
        in the order of its senders, and how many from each, which is asked where `received` does not say it."""

    def add(self, parts: Sequence[Tensor]) -> tuple[Tensor, Pending]:
        """Numbers [n] in parts, equally many in every process -> their sums over the processes [n], the same in all,
        once what is pending has been waited for."""

    def close(self) -> None:
        """Nobody exchanges any more."""


class Collectives:
    """By torch.distributed's default group."""

    def dealt(self, values: Tensor, sent: Sequence[int], received: Sequence[int] | None = None
              ) -> tuple[Tensor, list[int]]:
        if received is None:
            counts = torch.tensor(sent, dtype=torch.int64, device=values.device)
            answer = torch.empty_like(counts)
            dist.all_to_all_single(answer, counts)
            received = answer.tolist()
        out = values.new_empty(sum(received), *values.shape[1:])
        dist.all_to_all_single(out, values.contiguous(), list(received), list(sent))
        return out, list(received)

    def add(self, parts: Sequence[Tensor]) -> tuple[Tensor, Pending]:
        flat = torch.cat([*parts])
        return flat, dist.all_reduce(flat, async_op=True)  # type: ignore[return-value]

    def close(self) -> None:
        pass


_current: Exchange = Collectives()


def current() -> Exchange:
    """How this process exchanges with the others."""
    return _current


def use(exchange: Exchange) -> None:
    """From now on, in place of what was used before."""
    global _current
    _current.close()
    _current = exchange
