from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize("mapped", [True, False])
def test_first_columns_are_cut_from_whole_rows(tmp_path: Path, mapped: bool) -> None:
    """And not from a copy of all: of the file as a bundle maps it, too."""
    np.save(tmp_path / "vectors.npy", WIDE)
    vectors = (np.load(tmp_path / "vectors.npy", mmap_mode="r") if mapped else WIDE.copy())[:, :4]
    found = VectorRows(vectors).take(ROWS)
    assert (found == WIDE[ROWS, :4]).all()
    assert found.base is not None
    assert found.base.shape == (3, 6)
