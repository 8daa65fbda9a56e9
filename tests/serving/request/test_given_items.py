"""Items that a request describes itself: found behind the bundle's own, encoded and embedded as a bundle would."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from contracts.errors import RequestError
from contracts.features.feature_spec import FIRST_ID, UNKNOWN
from contracts.features.vocabulary import Vocabulary
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.given_items import GivenItems, ItemDescriber
from serving.request.query import RankQuery

KNOWN, TWIN = "i78", "twin"


@pytest.fixture(scope="module")
def described(market: Any) -> dict[str, Any]:
    """What the market's item KNOWN is, which is too new for the vocabulary of ids."""
    row = market.items["item_id"].index(KNOWN)
    return {**{name: market.items[name][row] for name in ("category", "brand", "price", "item_id")},
            "tags": tuple(market.items["tags"][row])}


@pytest.fixture(scope="module")
def made(loaded: LoadedBundle, described: dict[str, Any]) -> GivenItems:
    given = ItemDescriber(loaded).rows([TWIN], {TWIN: described}, {TWIN: 1.5})[1]
    assert given is not None
    return given


def test_unknown_items_are_found_where_they_are_described(loaded: LoadedBundle, described: dict[str, Any]) -> None:
    """And are the same item wherever they are named; a known one stays the bundle's."""
    rows, given = ItemDescriber(loaded).rows(
        [TWIN, KNOWN, "nobody", "other", TWIN], {TWIN: described, KNOWN: described, "other": {}})
    assert rows.tolist() == [len(loaded.items), loaded.items.row(KNOWN), -1, len(loaded.items) + 1, len(loaded.items)]
    assert given is not None
    assert given.keys == (TWIN, "other")


def test_the_key_of_a_described_item_is_what_training_may_have_known_it_by(
    loaded: LoadedBundle, market: Any
) -> None:
    """Unless the description says another."""
    item, row = "i03", loaded.items.row("i03")
    lacking = FeatureStore(Vocabulary.of([key for key in market.items["item_id"] if key != item], "string"),
                           np.delete(loaded.items.ids, row, axis=0), np.delete(loaded.items.dense, row, axis=0))
    slot = next(slot for slot in loaded.spec.id_slots("item") if slot.field == "item_id")
    describer = ItemDescriber(replace(loaded, items=lacking))
    for described, known_as in (({}, row), ({"item_id": "i04"}, loaded.items.row("i04"))):
        given = describer.rows([item], {item: described})[1]
        assert given is not None
        assert given.inputs.ids[0, slot.start] == loaded.items.ids[known_as, slot.start]


def test_a_key_beyond_64_bits_is_unknown_where_keys_are_whole_numbers(loaded: LoadedBundle) -> None:
    """`brand` holds the items' own keys here, of which the vocabulary knows 0 alone."""
    keys = [str(number) for number in range(len(loaded.items))]
    slot = next(slot for slot in loaded.spec.id_slots("item") if slot.field == "brand")
    ids = loaded.items.ids.copy()
    ids[:, slot.start] = np.where(np.arange(len(ids)) == 0, FIRST_ID, UNKNOWN)
    items = FeatureStore(Vocabulary.of(keys, "string"), ids, loaded.items.dense)
    given = ItemDescriber(replace(loaded, items=items)).rows([str(10**12), str(2**63)], {
        str(10**12): {}, str(2**63): {}})[1]
    assert given is not None
    assert given.inputs.ids[:, slot.start].tolist() == [FIRST_ID + 1, UNKNOWN]


def test_nothing_is_given_where_all_is_known(loaded: LoadedBundle, described: dict[str, Any]) -> None:
    for features in ({}, {KNOWN: described}, {"unasked": described}):
        rows, given = ItemDescriber(loaded).rows([KNOWN, "nobody"], features)
        assert (rows.tolist(), given) == ([loaded.items.row(KNOWN), -1], None)


def test_a_description_becomes_what_the_bundle_holds_of_such_an_item(loaded: LoadedBundle, made: GivenItems) -> None:
    row = loaded.items.row(KNOWN)
    np.testing.assert_array_equal(made.inputs.ids[0], loaded.items.ids[row])
    np.testing.assert_allclose(made.inputs.dense[0], loaded.items.dense[row], atol=1e-6)
    np.testing.assert_allclose(made.vectors[0], loaded.item_vectors[row], atol=1e-5)
    assert made.bids.tolist() == [1.5]


def test_tables_are_read_around_given_items(loaded: LoadedBundle, made: GivenItems) -> None:
    table = np.arange(len(loaded.items), dtype=np.float64)
    rows = np.array([3, made.first, 0])
    assert made.read(table.__getitem__, rows, made.bids).tolist() == [3.0, 1.5, 0.0]
    assert made.stored(rows).tolist() == [3, -1, 0]


def asked(**query: Any) -> RankQuery:
    return RankQuery(user="u", limit=1, **query)


def test_filters_ask_the_description(made: GivenItems, described: dict[str, Any]) -> None:
    mine = {"category": (described["category"], "x"), "brand": (str(described["brand"]),)}
    assert made.admitted(asked(filters=mine)).tolist() == [True]
    price = str(described["price"])
    for wrong in ({"category": ("x",)}, {"tags": ("cheap",)}, {"unsaid": ("x",)}, {"price": (price,)}):
        assert made.admitted(asked(filters={**mine, **wrong})).tolist() == [False]


@pytest.mark.parametrize("price", [3, 3.0])
def test_a_whole_number_is_filtered_by_as_such_however_it_is_sent(loaded: LoadedBundle, price: float) -> None:
    given = ItemDescriber(loaded).rows(["new"], {"new": {"price": price}})[1]
    assert given is not None
    assert given.admitted(asked(filters={"price": ("3",)})).tolist() == [True]
    assert given.admitted(asked(excluded={"price": ("3",)})).tolist() == [False]


def test_so_do_exclusions_and_ranges(made: GivenItems, described: dict[str, Any]) -> None:
    assert made.admitted(asked(excluded={"category": ("x",)}, ranges={"bid": (1.5, 2.0)})).tolist() == [True]
    assert made.admitted(asked(excluded={"category": (described["category"],)})).tolist() == [False]
    assert made.admitted(asked(ranges={"bid": (1.6, 2.0)})).tolist() == [False]
    assert made.admitted(asked(ranges={"stock": (0.0, 2.0)})).tolist() == [False]


def test_what_cannot_be_encoded_is_the_callers_fault(loaded: LoadedBundle) -> None:
    with pytest.raises(RequestError, match="features: cannot be encoded"):
        ItemDescriber(loaded).rows(["new"], {"new": {"price": "cheap"}})
