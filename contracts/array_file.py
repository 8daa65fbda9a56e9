"""An .npy file that is written row by row, of which no more than one part is in memory.

    with ArrayFile(path, np.int32, (width,)) as file:
        file.append(rows)                       [n, width], as often as there are parts

numpy leaves room in the header for the number of rows to grow; it is filled in when the file is closed.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
from numpy.typing import DTypeLike


class ArrayFile:
    """Raises ValueError where rows of another shape are appended."""

    def __init__(self, path: Path, dtype: DTypeLike, row_shape: tuple[int, ...] = ()) -> None:
        self.dtype, self.row_shape, self.rows = np.dtype(dtype), row_shape, 0
        self._file: IO[bytes] = path.open("wb")
        self._data_start = self._write_header()

    def append(self, rows: np.ndarray) -> None:
        if rows.shape[1:] != self.row_shape:
            raise ValueError(f"rows of shape {rows.shape[1:]} do not fit an array of rows of shape {self.row_shape}")
        self._file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.rows += len(rows)

    def close(self) -> None:
        if self._write_header() != self._data_start:
            raise ValueError(f"the header of {self._file.name} has no room for {self.rows} rows")
        self._file.close()

    def _write_header(self) -> int:
        """Returns where the data starts."""
        self._file.seek(0)
        np.lib.format.write_array_header_1_0(self._file, {
            "descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False,
            "shape": (self.rows, *self.row_shape),
        })
        return self._file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()
