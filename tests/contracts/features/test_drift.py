from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.features.drift import QUANTILES, ColumnProfile, churn, null_psi, psi


def numbers(values: np.ndarray) -> ColumnProfile:
    return ColumnProfile(null_rate=0.0, quantiles=tuple(np.quantile(values, np.linspace(0, 1, QUANTILES))))


def keys(**counts: int) -> ColumnProfile:
    return ColumnProfile(null_rate=0.0, keys=counts)


def test_psi_of_keys_is_its_formula():
    now, before = keys(a=300, b=700), keys(a=500, b=500)
    p, q = np.array([0.3, 0.7]), np.array([0.5, 0.5])
    assert psi(now, 1000, [(before, 1000)]) == pytest.approx(((p - q) * np.log(p / q)).sum(), abs=2e-3)


def test_psi_of_numbers_is_that_of_the_deciles():
    draw = np.random.default_rng(1)
    before, now = draw.normal(size=50_000), draw.normal(0.5, 1.0, size=50_000)
    edges = np.quantile(before, np.arange(1, 10) / 10)
    p = np.bincount(np.searchsorted(edges, now), minlength=10) / len(now)
    q = np.full(10, 0.1)
    assert psi(numbers(now), 50_000, [(numbers(before), 50_000)]) == pytest.approx(
        ((p - q) * np.log(p / q)).sum(), rel=0.1)


def test_the_same_distribution_does_not_drift_and_days_are_pooled_by_their_rows():
    draw = np.random.default_rng(2)
    days = [numbers(draw.exponential(size=20_000)) for _ in range(4)]
    assert psi(days[3], 20_000, [(day, 20_000) for day in days[:3]]) < 0.005
    mixed = [(numbers(np.zeros(100)), 1), (numbers(np.ones(100)), 10**9)]
    assert psi(numbers(np.ones(100)), 1000, mixed) < 0.01


def test_a_constant_column_is_one_bin_until_it_changes():
    assert psi(numbers(np.full(10, 3.0)), 10, [(numbers(np.full(10, 3.0)), 10)]) == pytest.approx(0.0, abs=0.2)
    assert psi(numbers(np.full(900, 9.0)), 900, [(numbers(np.full(900, 3.0)), 900)]) > 1


def test_churn_is_the_share_of_values_never_seen():
    assert churn(keys(a=6, b=3, c=1), [keys(a=1), keys(c=5)]) == pytest.approx(0.3)
    assert churn(keys(a=6), [keys(a=1)]) == 0.0
    assert churn(ColumnProfile(null_rate=1.0), [keys(a=1)]) == 0.0


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 1000), min_size=1),
       st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 1000), min_size=1))
def test_psi_is_never_negative_and_finite(now, before):
    found = psi(keys(**now), sum(now.values()), [(keys(**before), sum(before.values()))])
    assert 0 <= found < np.inf


def test_keys_that_nobody_saw_are_no_distribution():
    nobody = ColumnProfile(null_rate=1.0)
    assert psi(nobody, 1000, [(keys(a=300, b=700), 1000)]) == 0.0
    assert psi(keys(a=300, b=700), 1000, [(nobody, 1000)]) == 0.0


def test_a_column_that_goes_missing_drifts_by_the_formula():
    full, holey = ColumnProfile(null_rate=0.1, keys={"a": 900}), ColumnProfile(null_rate=0.6, keys={"a": 400})
    p, q = np.array([0.6, 0.4]), np.array([0.1, 0.9])
    assert null_psi(holey, 1000, full, 1000) == pytest.approx(((p - q) * np.log(p / q)).sum(), rel=0.02)
    assert null_psi(full, 1000, full, 1000) == 0.0
    assert null_psi(full, 0, holey, 1000) == null_psi(full, 1000, holey, 0) == 0.0
