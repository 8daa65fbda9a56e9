from __future__ import annotations

import numpy as np
import pytest
import torch

from models.inference.number_columns import NumberColumns
from models.layers.number_encoding import Periodic, PiecewiseLinear

DENSE = np.random.default_rng(0).normal(0, 2, (50, 2)).astype(np.float32)
ENCODINGS: list[PiecewiseLinear | Periodic] = [
    PiecewiseLinear([np.array([-1.0, 0.0, 2.0]), np.array([0.0, 0.25])]), Periodic(2).requires_grad_(False)]


@pytest.mark.parametrize("encoding", ENCODINGS)
@torch.inference_mode()
def test_numpy_computes_what_the_layer_computes(encoding: torch.nn.Module) -> None:
    given, found = NumberColumns(encoding)(DENSE)
    assert given is DENSE
    np.testing.assert_allclose(found, encoding(torch.from_numpy(DENSE)).numpy(), atol=1e-6)


def test_without_an_encoding_the_numbers_stay_as_they_are() -> None:
    (alone,) = NumberColumns(None)(DENSE)
    assert alone is DENSE


@pytest.mark.parametrize("encoding", [None, *ENCODINGS])
@pytest.mark.parametrize("only", [[], [1], [1, 0]])
def test_of_some_numbers_it_is_those_columns_of_all(encoding: torch.nn.Module | None, only: list[int]) -> None:
    whole = np.concatenate(NumberColumns(encoding)(DENSE), axis=1)
    some = NumberColumns(encoding, np.array(only, dtype=np.int64))
    found, places = np.concatenate(some(DENSE), axis=1), some.places(DENSE.shape[1])
    np.testing.assert_array_equal(found, whole[:, places])
    np.testing.assert_array_equal(DENSE[:, only], found[:, : len(only)])


def test_what_is_made_of_a_number_is_all_that_hangs_on_it() -> None:
    for encoding in ENCODINGS:
        other = DENSE.copy()
        other[:, 1] += 0.5
        moved = np.concatenate(NumberColumns(encoding)(other), axis=1) != np.concatenate(
            NumberColumns(encoding)(DENSE), axis=1)
        places = NumberColumns(encoding, np.array([1])).places(2)
        assert sorted(places) == np.flatnonzero(moved.any(axis=0)).tolist()
