from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.config.stages import Prerank
from contracts.errors import DataError
from contracts.features.feature_spec import FeatureField, FeatureSpec, PairModel
from contracts.features.field_costs import FieldCost, Interval, MeasuredCosts, costs

SPEC = FeatureSpec(fields=(
    FeatureField(name="city", kind="categorical", side="user", size=102, cost=3.0),
    FeatureField(name="price", kind="numeric", side="item", edges={2: (1.0,)}),
    FeatureField(name="both", kind="cross", side="cross", parts=("city", "price#2"), buckets=8, size=10, cost=20.0),
))
SETTINGS = Prerank(embedding_dim=4, computation_weight=1.0, dimension_weight=0.1, key_weight=0.001)


def measured(low: float = 0.1) -> MeasuredCosts:
    cost = FieldCost(us_per_request=Interval(value=5.0, low=low, high=6.0),
                     us_per_candidate=Interval(value=0.02, low=0.01, high=0.03), bytes_per_key=16, keys=50)
    whole = Interval(value=100.0, low=90.0, high=110.0)
    return MeasuredCosts(date=datetime(2026, 1, 1, tzinfo=UTC), machine="m", commit="c", bundle="b", candidates=1000,
                         lookup_us=0.005, whole={"precomputed": whole, "on_request": whole},
                         fields={"precomputed": dict.fromkeys(("city", "price", "both"), cost), "on_request": {}})


def test_the_formula_with_configured_costs() -> None:
    found = costs(SPEC, SETTINGS, None, 100)
    assert found["city"] == pytest.approx(3.0 / 100 + 0.1 * 4 + 0.001 * 102)
    assert found["price"] == pytest.approx(0.1 * 5 + 0.001 * 4)
    fresh = costs(SPEC, SETTINGS.model_copy(update={"item_side": "on_request"}), None, 100)
    assert fresh["price"] == pytest.approx(1.0 + 0.1 * 5 + 0.001 * 4)
    assert found["both"] == pytest.approx(20.0 + 0.1 * 4 + 0.001 * 10)


def test_a_statistic_is_charged_for_two_vectors_of_its_own_or_for_an_entry_of_its_table() -> None:
    rate = FeatureField(name="rate", kind="statistic", side="cross", parts=("city", "price#2"), cost=2.0)
    pairs = SPEC.model_copy(update={"fields": (*SPEC.fields, rate), "pair_model": PairModel(head="dot", dim=16)})
    values = 102 + SPEC.slot("price#2").size
    assert costs(pairs, SETTINGS, None, 100)["rate"] == pytest.approx(2.0 + 0.1 * 2 * 16 + 0.001 * values)
    counted = pairs.model_copy(update={"pair_model": PairModel(head="dot", dim=16, entries=77)})
    expected = 2.0 + 0.1 * (2 * 16 + 2) + 0.001 * (values + 77)
    assert costs(counted, SETTINGS, None, 100)["rate"] == pytest.approx(expected)
    table = pairs.model_copy(update={"pair_model": PairModel(head="table", dim=1, entries=77)})
    assert costs(table, SETTINGS, None, 100)["rate"] == pytest.approx(2.0 + 0.1 + 0.001 * 77)


def test_microseconds_become_look_ups() -> None:
    found = costs(SPEC, SETTINGS, measured(), 100)
    assert found["city"] == pytest.approx((5.0 + 1000 * 0.02) / (1000 * 0.005) + 0.1 * 4 + 0.001 * 50)


def test_the_price_of_fields_is_the_whole_less_the_others() -> None:
    assert measured().per_1000(["city", "price", "both"], "precomputed") == pytest.approx(100.0)
    assert measured().per_1000(["city"], "precomputed") == pytest.approx(100.0 - 2 * 25.0)


def test_what_was_not_told_from_nothing_costs_nothing() -> None:
    assert costs(SPEC, SETTINGS, measured(low=-1.0), 100)["city"] == pytest.approx(20.0 / 5.0 + 0.4 + 0.05)


def test_a_field_that_was_not_measured_is_refused() -> None:
    with pytest.raises(DataError, match="measured no field 'city'"):
        costs(SPEC, SETTINGS.model_copy(update={"item_side": "on_request"}), measured(), 100)


def test_the_file_comes_back_and_another_is_refused(tmp_path: Path) -> None:
    measured().write(tmp_path / "costs.json")
    assert MeasuredCosts.read(tmp_path / "costs.json") == measured()
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DataError, match="measure-costs"):
        MeasuredCosts.read(tmp_path / "other.json")
    with pytest.raises(DataError, match="measure-costs"):
        MeasuredCosts.read(tmp_path / "none.json")
