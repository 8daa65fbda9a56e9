from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from contracts.bundle.bundle import verify
from contracts.features.field_costs import MeasuredCosts
from serving.replay.cost_measurement import interval, measure, paired


@pytest.fixture(scope="module")
def found(bundle_folder: Path) -> tuple[Path, MeasuredCosts]:
    return measure(bundle_folder, repetitions=10)


def test_every_field_is_measured_for_both_item_sides(found: tuple[Path, MeasuredCosts], market) -> None:
    for item_side in ("precomputed", "on_request"):
        assert set(found[1].fields[item_side]) == {field.name for field in market.spec.fields}
        assert found[1].whole[item_side].value > 0
    cost = found[1].fields["on_request"]["taste_category"]
    assert cost.keys == market.spec.by_name["taste_category"].size
    assert cost.us_per_candidate.low <= cost.us_per_candidate.value <= cost.us_per_candidate.high
    assert found[1].lookup_us > 0
    assert found[1].commit
    assert found[1].machine


def test_the_file_lies_beside_the_bundle_and_not_in_it(found: tuple[Path, MeasuredCosts], bundle_folder: Path) -> None:
    assert found[0] == bundle_folder.parent / "costs.json"
    verify(bundle_folder)
    assert MeasuredCosts.read(found[0]) == found[1]


def test_a_pair_s_difference_has_the_sign_of_what_was_left_out() -> None:
    gaps = paired(lambda: time.sleep(0.003), lambda: None, 10)
    measured = interval(gaps, np.random.default_rng(0))
    assert measured.low > 0
    assert measured.significant_value == measured.value
    assert interval(-gaps, np.random.default_rng(0)).significant_value == 0.0
