"""The distinct rows of a batch, in the order of their owners, and where each row of the batch finds its own."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from models.compiled import kernels


class Route(NamedTuple):
    """`rows` [U] as their owners number them, all of process 0, then of 1, ...: `counts` [processes] of each.
    `inverse` [n] is the place of each row of the batch among them."""

    rows: Tensor
    counts: list[int]
    inverse: Tensor


def route(rows: Tensor, size: int) -> Route:
    """rows [n] int of a table dealt to `size` processes (models/distributed/world.py)."""
    library = kernels.library() if rows.device.type == "cpu" else None
    if library is None:
        return _route(rows.long(), size)
    asked = rows.long().contiguous()
    local, inverse = torch.empty_like(asked), torch.empty_like(asked)
    counts = torch.zeros(size, dtype=torch.int64)
    found = library.routed_rows(asked.data_ptr(), len(asked), size, local.data_ptr(), inverse.data_ptr(),
                                counts.data_ptr())
    return Route(local[:found], counts.tolist(), inverse)


def _route(rows: Tensor, size: int) -> Route:
    distinct, inverse = torch.unique(rows, return_inverse=True)
    owner = distinct % size
    order = torch.argsort(owner, stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=rows.device)
    return Route(distinct[order] // size, torch.bincount(owner, minlength=size).tolist(), place[inverse])
