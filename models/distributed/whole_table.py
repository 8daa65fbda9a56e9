"""A table brought together from the rows of all processes, where training has ended and everybody reads all of it.

A small one is in the memory of every process. A large one lies in one file a machine, whose pages the processes share
until one of them changes some; the file is deleted as soon as all have mapped it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from models.distributed import kept_tensor
from models.distributed.data_parallel import gathered, wait_for_all
from models.distributed.world import World

PIECE = 1 << 18  # rows of each process that travel at once


def whole_table(own: Tensor, rows: int, world: World) -> Tensor:
    """The own rows of every process -> [rows, D], a large one on the CPU. All processes call it together."""
    if rows * own.shape[1] * own.element_size() < kept_tensor.LARGE:
        table = own.new_empty(rows, own.shape[1])
        _collect(own, table, rows, world)
        return table
    with _file_of_machine(world) as (path, ours):
        _collect(own, _mapped(path, own, rows, shared=True) if ours else None, rows, world)
        wait_for_all()
        table = _mapped(path, own, rows, shared=False)
        wait_for_all()
    return table


def _mapped(path: str, own: Tensor, rows: int, shared: bool) -> Tensor:
    return torch.from_file(path, shared=shared, size=rows * own.shape[1], dtype=own.dtype).view(rows, -1)


@contextlib.contextmanager
def _file_of_machine(world: World) -> Iterator[tuple[str, bool]]:
    """(path, whether this process writes it): the first process of each machine makes one, as torchrun counts them."""
    machine, local = (int(os.environ.get(name, default)) for name, default in
                      (("GROUP_RANK", "0"), ("LOCAL_RANK", str(world.rank))))
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(tempfile.NamedTemporaryFile(prefix=".table-")).name if local == 0 else ""
        paths = dict(each for each in gathered([(machine, made)], world) if each[1])
        yield paths[machine], local == 0


def _collect(own: Tensor, table: Tensor | None, rows: int, world: World) -> None:
    """Everybody's rows into the table, by pieces; who has no table only sends."""
    most = -(-rows // world.size)
    for start in range(0, most, PIECE):
        count = min(PIECE, most - start)
        mine = own[start : start + count]
        piece = F.pad(mine, (0, 0, 0, count - len(mine))).contiguous()
        parts = [torch.empty_like(piece) for _ in range(world.size)]
        dist.all_gather(parts, piece)
        for rank, part in enumerate(parts if table is not None else []):
            target = table[rank :: world.size][start : start + count]  # type: ignore[index]
            target.copy_(part[: len(target)])
