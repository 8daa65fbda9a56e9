"""Compiled layers beside the same in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from models.compiled import kernels
from models.inference.mlp_rows import MlpRows, compiled
from models.inference.packed_matrix import PackedMatrix

COUNTS = (1, 2, 6, 7, 11, 12, 13, 30)  # of a tile's rows, and about them
Layers = list[tuple[np.ndarray, np.ndarray]]


@pytest.fixture(autouse=True)
def _compiled() -> None:
    if kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def layers(*widths: int) -> Layers:
    return [(drawn(here, there), drawn(there)) for here, there in itertools.pairwise(widths)]


def rows_of(first: int, behind: Layers) -> MlpRows:
    found = compiled(first, behind)
    assert found is not None
    return found


def expected(hidden: np.ndarray, behind: Layers) -> np.ndarray:
    for weight, bias in behind:
        hidden = np.maximum(hidden, 0.0) @ weight.astype(np.float64) + bias
    return hidden


@pytest.mark.parametrize("widths", [(5,), (1,), (5, 1), (70, 33, 1), (32, 64, 3), (256, 128, 1)])
@pytest.mark.parametrize("count", COUNTS)
def test_sums_go_through_all_layers(count: int, widths: tuple[int, ...]) -> None:
    behind, depth = layers(*widths), 9
    rows, shift = drawn(count, widths[0]), drawn(1, widths[0])
    columns, matrix = drawn(count, depth + 2)[:, :depth], drawn(depth, widths[0])
    network, packed = rows_of(widths[0], behind), PackedMatrix(matrix)
    product = columns.astype(np.float64) @ matrix
    for found, hidden in (
        (network(rows, None), rows),
        (network(rows, shift), rows + shift),
        (network(None, shift, columns, packed), shift + product),
        (network(None, None, columns, packed), product),
        (network(rows, shift, columns, packed), rows + shift + product),
    ):
        assert found.shape == (count, widths[-1])
        np.testing.assert_allclose(found, expected(hidden, behind), rtol=1e-4, atol=1e-4)


def test_nothing_is_overwritten() -> None:
    rows, shift = -np.abs(drawn(3, 8)), drawn(1, 8)
    kept = rows.copy(), shift.copy()
    rows_of(8, layers(8, 4))(rows, shift)
    np.testing.assert_array_equal(rows, kept[0])
    np.testing.assert_array_equal(shift, kept[1])


@pytest.mark.parametrize("count", COUNTS)
def test_a_row_hangs_on_itself_alone(count: int) -> None:
    network, rows = rows_of(40, layers(40, 20, 1)), drawn(count, 40)
    alone = np.concatenate([network(rows[place : place + 1], None) for place in range(count)])
    np.testing.assert_array_equal(network(rows, None), alone)


def test_what_is_no_number_stays_so() -> None:
    rows = np.zeros((3, 8), dtype=np.float32)
    rows[1, 5] = np.nan
    assert np.isnan(rows_of(8, layers(8, 4, 1))(rows, None))[:, 0].tolist() == [False, True, False]


def test_of_no_rows_there_are_none() -> None:
    assert rows_of(8, layers(8, 4, 1))(np.empty((0, 8), dtype=np.float32), None).shape == (0, 1)


def test_other_layouts_are_read_as_they_are_meant() -> None:
    behind, matrix = layers(8, 4, 1), drawn(3, 8)
    network, rows, columns = rows_of(8, behind), drawn(5, 8), drawn(3, 5).T
    expected_ = expected(rows + columns.astype(np.float64) @ matrix, behind)
    for laid_rows, laid in ((np.asfortranarray(rows), columns), (rows.astype(np.float64), columns.astype(np.float64))):
        found = network(laid_rows, None, laid, PackedMatrix(matrix))
        np.testing.assert_allclose(found, expected_, rtol=1e-4, atol=1e-4)


def test_what_does_not_fit_is_not_read_beyond_its_end() -> None:
    network, shift = rows_of(8, layers(8, 4, 1)), drawn(1, 8)
    for rows, of, columns, depth in ((drawn(5, 7), shift, None, 3), (drawn(5, 8), drawn(1, 7), None, 3),
                                     (None, shift, drawn(5, 4), 3), (None, shift, drawn(5, 3), 4),
                                     (drawn(4, 8), shift, drawn(5, 3), 3), (drawn(5, 8), drawn(5, 8), None, 3)):
        with pytest.raises(AssertionError):
            network(rows, of, columns, PackedMatrix(drawn(depth, 8)))
