"""The compiled sums against those of a network that is nothing but columns: written out, one field after another."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from models.compiled import kernels
from models.inference.compiled_deltas import CompiledDeltas, OwnColumns
from models.inference.mlp_rows import compiled

REQUEST, ITEMS = [np.array([2, 0]), np.array([3])], [np.array([4]), np.array([0, 5, 2]), np.array([1])]
PLACES, FIELDS = np.array([4, 0, 1, 5, 3]), 6  # the field at 2 has no columns
FURTHER = np.array([6, 3])


@pytest.mark.parametrize("widths", [(1,), (7, 1), (33, 20, 1), (64, 40, 9, 1), (5, 1, 1), (1, 6, 1), (7, 1, 6, 1)])
@pytest.mark.parametrize("count", [1, 5, 12, 13, 25])
@pytest.mark.parametrize("further", [FURTHER, FURTHER[:0]])
def test_sums_are_those_of_each_field(count: int, widths: tuple[int, ...], further: np.ndarray) -> None:
    if kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")
    rng = np.random.default_rng(count)

    def drawn(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    layers = [(drawn(here, there), drawn(there)) for here, there in itertools.pairwise(widths)]
    of_request, of_items, owners = drawn(5, widths[0]), drawn(7, widths[0]), (drawn(len(further), FIELDS) > 0) * 1.0
    behind = compiled(widths[0], layers)
    assert behind is not None
    sums = CompiledDeltas(behind, FIELDS, PLACES, OwnColumns(REQUEST, np.empty(0, dtype=np.int64), of_request),
                          OwnColumns(ITEMS, further, of_items), of_items[further], owners)
    request, items, shared = drawn(1, 5), drawn(count, 7), drawn(1, widths[0])
    found = sums(request, items, shared)

    deltas = [np.zeros((1, widths[0])), *(request[:, own] @ of_request[own] for own in REQUEST),
              *(items[:, own] @ of_items[own] for own in ITEMS)]
    hidden = shared + sum(deltas[3:]) + items[:, further] @ of_items[further]
    np.testing.assert_allclose(found.deltas, np.concatenate(deltas), atol=1e-4)
    np.testing.assert_allclose(found.hidden, hidden, atol=1e-4)

    here, masks = hidden.astype(np.float64), []
    for weight, bias in layers:
        masks.append(here > 0)
        here = np.maximum(here, 0) @ weight + bias
    np.testing.assert_allclose(found.logits, here[:, 0], rtol=1e-4, atol=1e-3)
    slopes = np.ones((count, 1))
    for (weight, _), mask in zip(reversed(layers), reversed(masks), strict=True):
        slopes = (slopes @ weight.T) * mask
    estimates = (items[:, further] * (slopes @ of_items[further].T)) @ owners
    for place, delta in zip(PLACES, deltas[1:], strict=True):
        estimates[:, place] += (delta * slopes).sum(axis=1)
    np.testing.assert_allclose(found.estimates, estimates, rtol=1e-3, atol=1e-3)
