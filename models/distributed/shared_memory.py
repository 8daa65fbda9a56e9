"""Exchange between the processes of one machine by memory that all of them map.

    write into a box of one's own ▶ tell every other process, by a byte in a pipe ▶ hear all of them ▶ read their boxes

Each process has two boxes that take turns: when it writes into one again, all have told it of the other, which they do
after they have read the first. No thread and no lock takes part, and the kernel copies nothing: gloo's connections cost
each process of a full core two to three milliseconds of its time an update. The pipes of a process that dies end, so
that nobody waits for it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from models.distributed.world import World

FIRST_SIZE = 1 << 16  # bytes of a box that has held nothing yet
ALIGNED = 64  # bytes that a box's head takes, or a multiple


class Offered(NamedTuple):
    """What a process lets the others open, as /proc/PROCESS/fd/NUMBER: its boxes, and the end of the pipe on which it
    hears of each of them, by rank."""

    process: int
    boxes: list[int]
    pipes: dict[int, int]


class Box:
    """Memory that all processes map; its owner lets it grow."""

    def __init__(self, file: int) -> None:
        self.file, self.map = file, mmap.mmap(file, 0)

    def numbers(self, kind: torch.dtype, start: int, count: int) -> Tensor:
        """[count] of them from byte `start` on, the memory itself."""
        if not count:
            return torch.empty(0, dtype=kind)
        end = start + count * kind.itemsize
        if end > len(self.map):
            if os.fstat(self.file).st_size < end:
                os.ftruncate(self.file, 2 * end)
            self.map = mmap.mmap(self.file, 0)
        return torch.frombuffer(self.map, dtype=kind, count=count, offset=start)


class Done:
    """There at once."""

    def wait(self) -> None:
        """Not at all."""


class SharedMemory:
    """A way of models/distributed/exchange.py. `boxes` [process][turn]; `hears` and `tells` are pipes from and to every
    other process, `close` closes all of these files. Raises RuntimeError when another process has died."""

    def __init__(self, world: World, boxes: Sequence[Sequence[Box]], hears: Sequence[int], tells: Sequence[int],
                 files: contextlib.ExitStack) -> None:
        self.world, self.boxes, self.hears, self.tells, self.turn = world, boxes, hears, tells, 0
        self.close = files.close
        self.counts = struct.Struct(f"{world.size}q")
        self.head = -(-self.counts.size // ALIGNED) * ALIGNED

    def dealt(self, values: Tensor, sent: Sequence[int], received: Sequence[int] | None = None
              ) -> tuple[Tensor, list[int]]:
        """How many come is read in the senders' boxes, whether or not `received` says it."""
        rank, row = self.world.rank, values.shape[1:].numel()
        box = self.boxes[rank][self.turn]
        box.numbers(values.dtype, self.head, values.numel()).copy_(values.reshape(-1))
        self.counts.pack_into(box.map, 0, *sent)
        self._meet()
        parts, found = [], []
        for sender, boxes in enumerate(self.boxes):
            counts = self.counts.unpack_from(boxes[self.turn].map)
            found.append(counts[rank])
            parts.append(self._read(sender, values.dtype, row * sum(counts[:rank]), row * sum(counts[: rank + 1])))
        out = torch.cat(parts).view(sum(found), *values.shape[1:])
        self.turn ^= 1
        return out, found

    def add(self, parts: Sequence[Tensor]) -> tuple[Tensor, Done]:
        """Every process adds up its share of them for all."""
        kind, rank, size, total = parts[0].dtype, self.world.rank, self.world.size, sum(part.numel() for part in parts)
        ends = [total * number // size for number in range(size + 1)]
        torch.cat([*parts], out=self.boxes[rank][self.turn].numbers(kind, self.head, total))
        self._meet()
        first, *others = (self._read(sender, kind, ends[rank], ends[rank + 1]) for sender in range(size))
        self.turn ^= 1
        mine = self.boxes[rank][self.turn].numbers(kind, self.head, len(first)).copy_(first)
        for other in others:
            mine += other
        self._meet()
        sums = torch.cat([self._read(sender, kind, 0, ends[sender + 1] - ends[sender]) for sender in range(size)])
        self.turn ^= 1
        return sums, Done()

    def _meet(self) -> None:
        """Returns when the boxes of all are full."""
        try:
            for pipe in self.tells:
                os.write(pipe, b"\0")
            heard = all(os.read(pipe, 1) for pipe in self.hears)
        except BrokenPipeError:
            heard = False
        if not heard:
            raise RuntimeError("a process of this run has died")

    def _read(self, sender: int, kind: torch.dtype, begin: int, end: int) -> Tensor:
        """Numbers `begin` to `end` of a box."""
        return self.boxes[sender][self.turn].numbers(kind, self.head + kind.itemsize * begin, end - begin)


def connected(world: World, gather: Callable[[Any], list[Any]]) -> SharedMemory | None:
    """Between all processes of `world`, which are of one machine and call this together; None in all where one may not
    open what another offers. `gather` gives everybody what each has, by rank."""
    others = [rank for rank in range(world.size) if rank != world.rank]
    with contextlib.ExitStack() as files:
        boxes = [_kept(os.memfd_create("sluice-box"), files) for _ in range(2)]
        for box in boxes:
            os.ftruncate(box, FIRST_SIZE)
        pipes = {rank: os.pipe() for rank in others}
        hears = [_kept(pipes[rank][0], files) for rank in others]
        offered = gather(Offered(os.getpid(), boxes, {rank: end for rank, (_, end) in pipes.items()}))
        try:
            opened = [[Box(_opened(each, number, os.O_RDWR, files)) for number in each.boxes] for each in offered]
            tells = [_opened(offered[rank], offered[rank].pipes[world.rank], os.O_WRONLY, files) for rank in others]
            refused = False
        except OSError:
            refused = True
        refused = any(gather(refused))
        for _, end in pipes.values():
            os.close(end)
        return None if refused else SharedMemory(world, opened, hears, tells, files.pop_all())


def _opened(offered: Offered, number: int, how: int, files: contextlib.ExitStack) -> int:
    return _kept(os.open(f"/proc/{offered.process}/fd/{number}", how | os.O_CLOEXEC), files)


def _kept(file: int, files: contextlib.ExitStack) -> int:
    files.callback(os.close, file)
    return file
