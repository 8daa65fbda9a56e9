from __future__ import annotations

import numpy as np
import pytest

from serving.bundle.vector_rows import VectorRows

WIDE = np.arange(60.0, dtype=np.float32).reshape(10, 6)
ROWS = np.array([7, 0, 7])


@pytest.mark.parametrize("vectors", [WIDE, WIDE[:, :4], WIDE[:, 1:4], WIDE[2:, :4], WIDE[::2], WIDE.copy()[:, :1]])
def test_rows_of_whole_arrays_and_of_parts(vectors: np.ndarray) -> None:
    rows = ROWS % len(vectors)
    assert (VectorRows(vectors).take(rows) == vectors[rows]).all()
    assert len(VectorRows(vectors)) == len(vectors)
