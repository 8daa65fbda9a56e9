"""The same rows of several tensors: in one walk where a compiler is (models/compiled/kernels.py), whose reads of memory
overlap, in a third of the time of torch, which takes one tensor after the other."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

from models.compiled import kernels


def taken_rows(tensors: Sequence[Tensor], rows: Tensor) -> list[Tensor]:
    """Rows [n] of each tensor [N, ...]. Raises IndexError for one that is none."""
    library = kernels.library() if _plain(tensors, rows) else None
    if library is None or not len(rows):
        return [tensor.index_select(0, rows) for tensor in tensors]
    found = [tensor.new_empty(len(rows), *tensor.shape[1:]) for tensor in tensors]
    told = [number for tensor, of_rows in zip(tensors, found, strict=True)
            for number in (tensor.data_ptr(), of_rows.data_ptr(), of_rows.nbytes // len(rows))]
    size = len(tensors[0])
    wrong = library.taken_rows(rows.data_ptr(), len(rows), size, (ctypes.c_int64 * len(told))(*told), len(tensors),
                               torch.get_num_threads())
    if wrong >= 0:
        raise IndexError(f"row {int(rows[wrong])} of a batch of {size} rows")
    return found


def _plain(tensors: Sequence[Tensor], rows: Tensor) -> bool:
    """As compiled code reads them: equally long, without a gradient to follow."""
    return rows.dtype == torch.int64 and rows.ndim == 1 and all(
        one.is_contiguous() and one.device.type == "cpu" and not one.requires_grad for one in (rows, *tensors)) and len(
        {len(one) for one in tensors}) == 1
