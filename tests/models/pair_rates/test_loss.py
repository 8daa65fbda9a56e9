"""The identities of the method: a squared error over pairs is one over impressions, up to a constant."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.config.training import PairRates
from models.pair_rates.loss import squared_sum, target


def impressions(shown, clicks, predicted, pseudo, prior):
    """Sum of (p - click)^2 written out impression by impression, pseudo-impressions too (a share `prior` clicks)."""
    total = 0.0
    for n, c, p in zip(shown, clicks, predicted, strict=True):
        total += c * (p - 1) ** 2 + (n - c) * p**2
        total += pseudo * (prior * (p - 1) ** 2 + (1 - prior) * p**2)
    return total


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1), st.floats(-4, 4), st.floats(-4, 4)), min_size=1,
                max_size=8), st.sampled_from([0.0, 1.0, 20.0]), st.floats(0.01, 0.9))
def test_weighted_error_of_rates_equals_the_error_of_impressions_up_to_a_constant(rows, pseudo, prior):
    shown = np.array([row[0] for row in rows], dtype=np.float64)
    clicks = np.floor(shown * [row[1] for row in rows])
    chosen = PairRates(weighting="n", pseudo_impressions=pseudo)
    priors = torch.full((len(rows),), prior, dtype=torch.float64)
    rate, weight = target(torch.tensor(clicks), torch.tensor(shown), priors, chosen)
    gaps = []
    for column in (2, 3):
        logits = torch.tensor([row[column] for row in rows], dtype=torch.float64)
        predicted = torch.sigmoid(logits).numpy()
        gaps.append(float(squared_sum(logits, rate, weight)) - impressions(shown, clicks, predicted, pseudo, prior))
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-6)


def test_exposure_weighs_impressions_by_their_slot():
    """With e of each impression: sum of e (p - click / e)^2 over impressions, up to a constant."""
    exposure, clicks = np.array([1.0, 0.4, 0.7]), np.array([1.0, 1.0, 0.0])
    rate, weight = target(torch.tensor([clicks.sum()]), torch.tensor([exposure.sum()]), torch.tensor([0.1]),
                          PairRates(pseudo_impressions=0.0))
    gaps = []
    for logit in (-1.0, 0.5):
        p = 1 / (1 + np.exp(-logit))
        single = (exposure * (p - clicks / exposure) ** 2).sum()
        gaps.append(float(squared_sum(torch.tensor([logit]), rate, weight)) - single)
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-5)


@pytest.mark.parametrize(("weighting", "expected"), [("n", 9.0), ("sqrt", 3.0), ("log", np.log(10.0)), ("one", 1.0)])
def test_weightings(weighting, expected):
    chosen = PairRates(weighting=weighting, pseudo_impressions=1.0)
    rate, weight = target(torch.tensor([2.0]), torch.tensor([8.0]), torch.tensor([0.25]), chosen)
    assert rate.item() == pytest.approx(2.25 / 9)
    assert weight.item() == pytest.approx(expected)
