"""The layers of an MLP behind its first one, compiled (models/inference/mlp_rows.cpp): a few hundred rows take half the
time that they take in numpy, which writes out every sum, ReLU and product for the next one to read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from models.compiled import kernels
from models.inference.packed_matrix import PackedMatrix, address, addresses, laid_out


class MlpRows:
    """`layers` are weights [H, next] and biases [next] of each; `first` is the width of the layer before them. `where`
    they lie, as compiled code is told."""

    def __init__(self, library: ctypes.CDLL, first: int, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        self.library, self.first, self.weights = library, first, [weight for weight, _ in layers]
        self._widths = np.array([first, *(len(bias) for _, bias in layers)], dtype=np.int64)
        self._packed = [laid_out(weight) for weight in self.weights]
        self._biases = [np.ascontiguousarray(bias, dtype=np.float32) for _, bias in layers]
        self.where = len(layers), address(self._widths), addresses(self._packed), addresses(self._biases)

    def __call__(
        self, rows: np.ndarray | None, shift: np.ndarray | None, columns: np.ndarray | None = None,
        matrix: PackedMatrix | None = None,
    ) -> np.ndarray:
        """float32 [K, out] of the first layer's outputs rows [K, H] + shift [1, H] + columns [K, C] x matrix [C, H], of
        which one that is None is left out; nothing is overwritten."""
        rows, shift = _laid(rows, self.first), _laid(shift, self.first)
        depth, stride, packed = 0, 0, None
        if columns is not None and matrix is not None:
            columns, depth, packed = _by_rows(columns), len(matrix), matrix.packed
            stride = columns.strides[0] // columns.itemsize
            assert (columns.shape[1], matrix.plain.shape[1]) == (depth, self.first)
            assert packed is not None
        some = rows if columns is None else columns
        assert some is not None
        assert rows is None or len(rows) == len(some)
        assert shift is None or len(shift) == 1
        found = np.empty((len(some), self._widths[-1]), dtype=np.float32)
        self.library.mlp_rows(len(found), address(rows), address(shift), address(columns), depth, stride,
                              address(packed), *self.where, address(found))
        return found


def compiled(first: int, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> MlpRows | None:
    """None where there is no compiled code."""
    library = kernels.library()
    return None if library is None else MlpRows(library, first, layers)


def _laid(part: np.ndarray | None, width: int) -> np.ndarray | None:
    """As compiled code reads it: beyond what is there it would read on."""
    if part is None:
        return None
    assert part.shape[1] == width
    return np.ascontiguousarray(part, dtype=np.float32)


def _by_rows(columns: np.ndarray) -> np.ndarray:
    """Rows may lie apart, as those of a wider matrix, but values of one side by side."""
    if columns.dtype == np.float32 and columns.strides[1] == columns.itemsize:
        return columns
    return np.ascontiguousarray(columns, dtype=np.float32)
