"""Spans of a matrix, one behind the other."""

from __future__ import annotations

import numpy as np
import pytest

from models.compiled import kernels
from models.inference.packed_matrix import PackedMatrix, address, addresses, laid_out


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 32), (7, 64), (2, 70), (0, 8)])
def test_its_spans_hold_it_and_zeros(either: str, shape: tuple[int, int]) -> None:
    plain = np.arange(1, 1 + shape[0] * shape[1], dtype=np.float32).reshape(shape)
    found = PackedMatrix(plain)
    assert len(found) == shape[0]
    np.testing.assert_array_equal(found.plain, plain)
    if either == "plain":
        assert found.packed is None
        return
    assert found.packed is not None
    side_by_side = np.concatenate(list(found.packed), axis=1)
    np.testing.assert_array_equal(side_by_side[:, : shape[1]], plain)
    assert not side_by_side[:, shape[1] :].any()


def test_weights_of_one_output_lie_as_they_are() -> None:
    if kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")
    one, several = np.ones((4, 1), dtype=np.float32), np.ones((4, 2), dtype=np.float32)
    assert laid_out(one).shape == (4, 1)
    assert laid_out(several).ndim == 3


def test_addresses_are_those_of_the_first_values() -> None:
    some, other = np.zeros(3, dtype=np.float32), np.zeros(4, dtype=np.float32)
    assert address(None) is None
    assert list(addresses([some, other])) == [address(some), address(other)]
    assert address(some) == some.ctypes.data


def test_addresses_of_what_is_read_only_lies_apart_or_is_empty() -> None:
    whole = np.zeros((3, 4), dtype=np.float32)
    fixed, nothing = whole.copy(), np.zeros((0, 4), dtype=np.float32)
    fixed.flags.writeable = False
    for array in (fixed, whole[:, 1:], whole[1:], whole.T, nothing):
        assert address(array) == array.ctypes.data
