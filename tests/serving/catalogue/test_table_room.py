from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serving.catalogue.table_room import with_last, with_room


@pytest.mark.parametrize("shape", [(5000, 7), (3,), (4096, 1), (0, 4)])
@pytest.mark.parametrize("mapped", [True, False])
def test_the_table_comes_first_and_the_file_stays(tmp_path: Path, shape: tuple[int, ...], mapped: bool) -> None:
    table = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    np.save(tmp_path / "table.npy", table)
    stored = np.load(tmp_path / "table.npy", mmap_mode="r") if mapped and len(table) else table
    room = with_room(stored, 9000)
    assert room.shape == (9000, *shape[1:])
    np.testing.assert_array_equal(room[: len(table)], table)
    assert not room[len(table) :].any()
    room[:] = 7
    np.testing.assert_array_equal(np.load(tmp_path / "table.npy"), table)
    assert (room == 7).all()


def test_a_part_of_a_file_is_copied(tmp_path: Path) -> None:
    table = np.arange(12.0).reshape(6, 2)
    np.save(tmp_path / "table.npy", table)
    stored = np.load(tmp_path / "table.npy", mmap_mode="r")
    np.testing.assert_array_equal(with_room(stored[:4], 8)[:6], [*table[:4].tolist(), [0, 0], [0, 0]])
    np.testing.assert_array_equal(with_room(stored[:, :1], 8)[:6], table[:, :1])


def test_the_row_of_nothing_known_is_last_again() -> None:
    table = np.array([[1], [2], [9]])
    assert with_last(table, 5).tolist() == [[1], [2], [9], [0], [9]]
    assert table.tolist() == [[1], [2], [9]]
