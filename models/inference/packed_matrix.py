"""A matrix as numpy multiplies with it, and as compiled code does (models/inference/tile_product.h)."""

from __future__ import annotations

import ctypes

import numpy as np

from models.compiled import kernels


class PackedMatrix:
    """float32 [C, H]; `packed` [spans, C, SPAN] lies span by span, the last one filled up with zeros; None where there
    is no compiled code."""

    __slots__ = ("packed", "plain")

    def __init__(self, plain: np.ndarray) -> None:
        self.plain, self.packed = plain, None
        library = kernels.library()
        if library is not None:
            self.packed = _packed(plain, library.matrix_span())

    def __len__(self) -> int:
        return len(self.plain)


def _packed(plain: np.ndarray, span: int) -> np.ndarray:
    depth, width = plain.shape
    spans = -(-width // span)
    if width < spans * span:
        plain = np.pad(plain, ((0, 0), (0, spans * span - width)))
    return np.ascontiguousarray(plain.reshape(depth, spans, span).transpose(1, 0, 2), dtype=np.float32)


def laid_out(weight: np.ndarray) -> np.ndarray:
    """[H, next] as compiled code reads the weights of a layer: packed, those of one output as they are."""
    packed = weight if weight.shape[1] == 1 else PackedMatrix(weight).packed
    assert packed is not None
    return np.ascontiguousarray(packed, dtype=np.float32)


def address(array: np.ndarray | None) -> int | None:
    """Where it lies in memory; of a whole array that may be written in a third of the time of numpy's own answer."""
    if array is None:
        return None
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    except (TypeError, ValueError):
        return array.ctypes.data


def addresses(arrays: list[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
    """Where each of them does."""
    return (ctypes.c_void_p * len(arrays))(*map(address, arrays))
