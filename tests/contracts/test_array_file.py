"""Files written in parts are those that numpy writes at once."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.array_file import ArrayFile


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
@pytest.mark.parametrize("counts", [[], [0], [5, 0, 1], [1000, 999_000]])
def test_parts_make_the_array(tmp_path, shape, counts):
    parts = [np.random.default_rng(count).integers(0, 9, (count, *shape)).astype(np.int32) for count in counts]
    with ArrayFile(tmp_path / "a.npy", np.int32, shape) as file:
        for part in parts:
            file.append(part)
    whole = np.concatenate([np.empty((0, *shape), dtype=np.int32), *parts])
    for mode in (None, "r"):
        found = np.load(tmp_path / "a.npy", mmap_mode=mode)
        assert (found.dtype, found.shape) == (whole.dtype, whole.shape)
        np.testing.assert_array_equal(found, whole)


def test_rows_of_another_shape_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"shape \(2,\) do not fit .* shape \(3,\)"), \
            ArrayFile(tmp_path / "a.npy", np.int32, (3,)) as file:
        file.append(np.zeros((1, 2), dtype=np.int32))
