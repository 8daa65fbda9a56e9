"""Each rule against its formula written out client by client."""

from __future__ import annotations

import numpy as np
import pytest

from federated.averaging.averaging import dense_weight, row_steps, row_weights

CLIENTS, ROWS, WIDTH = 5, 7, 3
GENERATOR = np.random.default_rng(3)
SAMPLES = GENERATOR.integers(4, 9, CLIENTS)
COUNTS = GENERATOR.integers(0, 4, (CLIENTS, ROWS)) * (GENERATOR.random((CLIENTS, ROWS)) < 0.6)
DELTAS = GENERATOR.normal(size=(CLIENTS, ROWS, WIDTH)) * (COUNTS > 0)[:, :, None]


def steps(rule, heat=None, largest=np.inf):
    weights = np.stack([row_weights(rule, counts, n) for counts, n in zip(COUNTS, SAMPLES, strict=True)])
    sums = (DELTAS * weights[:, :, None]).sum(axis=0)
    row_sum = (COUNTS if rule == "holders" else COUNTS > 0).sum(axis=0)
    return row_steps(rule, sums, row_sum, sum(dense_weight(rule, n) for n in SAMPLES), heat, largest)


def test_holders_divides_by_the_samples_of_those_that_hold_the_row():
    for row in range(ROWS):
        total = COUNTS[:, row].sum()
        expected = (DELTAS[:, row] * COUNTS[:, row, None]).sum(axis=0) / total if total else np.zeros(WIDTH)
        assert steps("holders")[row] == pytest.approx(expected)


def test_plain_divides_by_the_samples_of_all():
    expected = sum(n * delta for n, delta in zip(SAMPLES, DELTAS, strict=True)) / SAMPLES.sum()
    assert steps("plain") == pytest.approx(expected)


def test_heat_undoes_how_rare_a_row_is():
    population, holders = 40, np.arange(1, ROWS + 1)
    expected = (population / holders)[:, None] * DELTAS.sum(axis=0) / CLIENTS
    assert steps("heat", population / holders) == pytest.approx(expected)


def test_heat_is_clipped():
    assert steps("heat", np.full(ROWS, 1000.0), 2.0) == pytest.approx(2.0 * DELTAS.sum(axis=0) / CLIENTS)


def test_a_row_that_nobody_trained_stays():
    assert not row_steps("holders", np.zeros((1, WIDTH)), np.zeros(1), 5.0, None, 1.0).any()
