"""Ids are keys, numbers without bins are quantiles, padding is no value; the same values have no drift."""

from __future__ import annotations

import numpy as np

from contracts.features.drift import psi
from contracts.features.encoded_profiles import TOP_KEYS, encoded_profiles, ids_profile, numbers_profile
from contracts.features.encoding import Encoded
from contracts.features.feature_spec import FeatureField, FeatureSpec

SPEC = FeatureSpec(fields=(
    FeatureField(name="city", kind="categorical", side="user", size=9),
    FeatureField(name="age", kind="numeric", side="user", edges={2: (30.0,), 4: (20.0, 30.0, 40.0)}),
    FeatureField(name="history", kind="sequence", side="user", of="item", length=3, size=9),
    FeatureField(name="load", kind="numeric", side="context"),
))


def test_each_field_is_described_once_and_by_its_finest_bins() -> None:
    ids = np.array([[3, 2, 4, 5, 0, 0], [3, 3, 5, 5, 6, 0]], dtype=np.int32)
    found = encoded_profiles(SPEC, ("user", "context"), Encoded(ids, np.array([[0.5, 1.0], [0.5, 3.0]])))
    assert {name: profile.keys for name, profile in found.items() if profile.keys} == {
        "city": {"3": 2}, "age": {"4": 1, "5": 1}, "history": {"5": 2, "6": 1}}
    assert found["load"].quantiles[0] == 1.0
    assert found["load"].quantiles[-1] == 3.0


def test_rare_keys_are_counted_together_and_a_row_of_padding_is_empty() -> None:
    many = ids_profile(np.arange(1, TOP_KEYS + 12)[:, None])
    assert (len(many.keys), many.other) == (TOP_KEYS, 11)
    assert ids_profile(np.array([[0, 0], [0, 4]])).null_rate == 0.5


def test_a_changed_distribution_drifts_and_the_same_one_does_not() -> None:
    draw = np.random.default_rng(1)
    before, same, other = draw.normal(0, 1, 5000), draw.normal(0, 1, 2000), draw.normal(1, 1, 2000)
    held = [(numbers_profile(before), 5000)]
    assert psi(numbers_profile(same), 2000, held) < 0.02
    assert psi(numbers_profile(other), 2000, held) > 0.5
