"""Vectors and inputs read from one table of embeddings in a walk over its ids, with gradients that are another.

The gradient of the table is a sparse one with each row once, summed while the inputs' gradients are read: no value of
a single id is ever written. For a CPU with a compiler (models/compiled/kernels.py); models/layers/embedding.py has the
same in plain torch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from models.compiled import kernels

Rooms = list[Tensor]  # int32 [N] each, all -1, for a walk to note where it has met a row: whoever walks takes one out
NO_SPANS = torch.empty(0, dtype=torch.int64)


class Layout(NamedTuple):
    """Of one block's inputs: `singles` columns are slots of one, the spans of the others end at `ends`; `tables`
    numbers the table of every column, int64 [W]."""

    singles: int
    ends: Tensor
    tables: Tensor

    @property
    def slots(self) -> int:
        """Vectors side by side."""
        return self.singles + len(self.ends)


class Vectors(torch.autograd.Function):
    """Rows [B, W] of every block -> their vectors [B, W, D] of one table."""

    @staticmethod
    def forward(ctx: Any, rooms: Rooms, weight: Tensor, *rows: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        ctx.rooms, ctx.shape = rooms, weight.shape
        ctx.save_for_backward(*rows)
        return tuple(F.embedding(of_block, weight) for of_block in rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        blocks = []
        for rows, gradient in zip(ctx.saved_tensors, gradients, strict=True):
            layout = Layout(rows.shape[1], NO_SPANS, torch.zeros(rows.shape[1], dtype=torch.int64))
            blocks.append((rows.int().contiguous(), gradient.flatten(1).contiguous(), layout))
        return None, _summed(blocks, ctx.rooms, ctx.shape), *[None] * len(blocks)


class Inputs(torch.autograd.Function):
    """Rows [B, W] of every block and what follows their vectors, [B, ...] -> inputs [B, width], the mean over those
    columns of a span that hold no padding."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, rooms: Rooms, layouts: Sequence[Layout], weight: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        rows, further = tensors[: len(layouts)], tensors[len(layouts) :]
        ctx.rooms, ctx.layouts, ctx.shape = rooms, layouts, weight.shape
        ctx.further = [more.shape[1] for more in further]
        ctx.save_for_backward(*rows)
        found = []
        for layout, of_block, more in zip(layouts, rows, further, strict=True):
            ids = layout.slots * weight.shape[1]
            joined = weight.new_empty(len(of_block), ids + more.shape[1])
            walk("read_rows", layout, of_block, weight, joined)
            if more.shape[1]:
                joined[:, ids:] = more
            found.append(joined)
        return tuple(found)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        blocks = [(rows, along_rows(gradient), layout) for rows, gradient, layout in
                  zip(ctx.saved_tensors, gradients, ctx.layouts, strict=True)]
        further = [gradient[:, gradient.shape[1] - width :] if width else None for gradient, width in
                   zip(gradients, ctx.further, strict=True)]
        return None, None, _summed(blocks, ctx.rooms, ctx.shape), *[None] * len(blocks), *further


class Joined(torch.autograd.Function):
    """Rows [B, W], their vectors [B, W, D] and further inputs -> one block's inputs."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, layout: Layout, rows: Tensor, vectors: Tensor, *further: Tensor
    ) -> Tensor:
        ctx.layout, ctx.shape, ctx.of_further = layout, vectors.shape, [(part.shape[1], part.dtype) for part in further]
        ctx.save_for_backward(rows)
        ids = layout.slots * vectors.shape[2]
        joined = vectors.new_empty(len(rows), ids + sum(part.shape[1] for part in further))
        walk("joined_rows", layout, rows, vectors, joined)
        torch.cat(further, 1, out=joined[:, ids:]) if further else None
        return joined

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (rows,) = ctx.saved_tensors
        gradient = along_rows(gradient)
        vectors = gradient.new_empty(ctx.shape)
        walk("parted_rows", ctx.layout, rows, vectors, gradient)
        widths = [width for width, _ in ctx.of_further]
        parts = gradient[:, gradient.shape[1] - sum(widths) :].split(widths, 1) if widths else ()
        return None, None, vectors, *(part.to(of) for part, (_, of) in zip(parts, ctx.of_further, strict=True))


def readable(vectors: Tensor, *rows: Tensor) -> bool:
    """Whether there are kernels that read vectors and rows like these, and torch compiles nothing of its own."""
    plain = all(of_block.dtype == torch.int32 and of_block.is_contiguous() for of_block in rows)
    if not plain or torch.compiler.is_compiling() or vectors.dtype != torch.float32:
        return False
    return kernels.usable(vectors) is not None


def walk(name: str, layout: Layout, rows: Tensor, vectors: Tensor, joined: Tensor) -> None:
    """From `vectors` to `joined`, or back."""
    getattr(_library(), name)(
        rows.data_ptr(), *rows.shape, vectors.shape[-1], layout.singles, layout.ends.data_ptr(), len(layout.ends),
        joined.stride(0), torch.get_num_threads(), vectors.data_ptr(), joined.data_ptr())


def along_rows(gradient: Tensor) -> Tensor:
    return gradient if gradient.stride(1) == 1 else gradient.contiguous()


def _summed(blocks: Sequence[tuple[Tensor, Tensor, Layout]], rooms: Rooms, shape: torch.Size) -> Tensor:
    """The gradient of a table [N, D] from rows and gradients of every block's inputs; the padding's is left out."""
    most = sum(rows.numel() for rows, _, _ in blocks)
    told = [number for block in blocks for number in _told(*block)]
    room = _taken_out(rooms, shape[0])
    distinct, total = room.new_empty(most, dtype=torch.int64), blocks[0][1].new_empty(most, shape[1])
    found = _library().summed_inputs(
        (ctypes.c_int64 * len(told))(*told), len(blocks), shape[1], torch.get_num_threads(), room.data_ptr(),
        distinct.data_ptr(), total.data_ptr())
    rooms.append(room)
    return torch.sparse_coo_tensor(distinct[None, :found], total[:found], shape, check_invariants=False)


def _taken_out(rooms: Rooms, size: int) -> Tensor:
    """One of them that fits, or a new one: two threads may walk over one table."""
    while rooms:
        with suppress(IndexError):  # another thread was faster
            if len(room := rooms.pop()) == size:
                return room
    return torch.full((size,), -1, dtype=torch.int32)


def _told(rows: Tensor, gradient: Tensor, layout: Layout) -> list[int]:
    """A block, as compiled code is told of it."""
    sizes = [*rows.shape, layout.singles, len(layout.ends), gradient.stride(0)]
    return [*sizes, *(part.data_ptr() for part in (rows, layout.ends, layout.tables, gradient))]


def _library() -> ctypes.CDLL:
    library = kernels.library()
    assert library is not None
    return library
