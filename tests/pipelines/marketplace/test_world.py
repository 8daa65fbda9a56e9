"""Who lives in the marketplace: every value occurs, tails are heavy, and what decides what does."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.config.simulation import Simulation
from contracts.errors import ConfigError
from pipelines.marketplace.world import (
    LEVELS,
    MAX_TAGS,
    Population,
    item_table,
    populate,
    quantile_codes,
    strings,
    user_table,
    zipf,
)

SETTINGS = Simulation(users=2_000, items=500)


@pytest.fixture(scope="module")
def world() -> Population:
    return populate(SETTINGS, np.random.default_rng(1))


def test_zipf_weights_fall_and_add_up_to_one() -> None:
    weights = zipf(50, 0.9, 0.01)
    assert weights.sum() == pytest.approx(1.0)
    assert (np.diff(weights) < 0).all()


def test_quantile_codes_keep_the_order_and_hold_equal_shares() -> None:
    column = np.random.default_rng(0).normal(size=LEVELS * 10)
    codes = quantile_codes(column)
    assert (np.diff(codes[np.argsort(column)]) >= 0).all()
    assert np.bincount(codes).tolist() == [10] * LEVELS


def test_codes_are_values_and_every_city_and_brand_occurs(world: Population) -> None:
    for codes in (world.users, world.items):
        for name, code in codes.items():
            assert code.dtype == np.int32
            assert 0 <= code.min() <= code.max() < len(world.values.get(name, range(LEVELS)))
    assert len(np.unique(world.users["city"])) == len(world.values["city"])
    assert len(np.unique(world.items["brand"])) == len(world.values["brand"])


@pytest.mark.parametrize(("side", "decider", "decided"), [
    ("users", "city", "region"), ("items", "brand", "brand_tier"), ("items", "brand", "advertiser_id")])
def test_one_value_decides_another(world: Population, side: str, decider: str, decided: str) -> None:
    codes = getattr(world, side)
    assert len({(a, b) for a, b in zip(codes[decider], codes[decided], strict=True)}) == len(set(codes[decider]))


def test_an_item_has_one_to_four_different_tags_first_ones_first(world: Population) -> None:
    present = world.tags >= 0
    assert set(present.sum(axis=1)) == set(range(1, MAX_TAGS + 1))
    assert (present[:, :-1] | ~present[:, 1:]).all()
    assert all(len(set(row[there])) == there.sum() for row, there in zip(world.tags, present, strict=True))


def test_tables_say_the_codes_in_words(world: Population) -> None:
    users, items = user_table(world), item_table(world)
    assert users["city"].to_pylist()[:3] == strings(world.values["city"], world.users["city"][:3]).to_pylist()
    assert [len(tags) for tags in items["tags"].to_pylist()] == (world.tags >= 0).sum(axis=1).tolist()
    assert (len(users), len(items)) == (SETTINGS.users, SETTINGS.items)


@pytest.mark.parametrize(("changes", "name"), [({"users": 199}, "users"), ({"items": 99}, "items")])
def test_a_world_too_small_for_its_fields_is_refused(changes: dict[str, int], name: str) -> None:
    with pytest.raises(ConfigError, match=rf"simulation\.{name}"):
        populate(SETTINGS.model_copy(update=changes), np.random.default_rng(1))
