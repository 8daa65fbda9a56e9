from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contracts.errors import DataError
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.item_columns import ItemEncoder
from serving.request.query import ContextValue, as_column


def test_what_is_left_out_is_as_in_the_bundle_or_unknown(loaded: LoadedBundle) -> None:
    found = ItemEncoder(loaded).columns([{}, {}, {"category": "sport"}], np.array([4, -1, 4]))
    np.testing.assert_array_equal(found.inputs.ids[0], loaded.items.ids[4])
    np.testing.assert_array_equal(found.inputs.dense[0], loaded.items.dense[4])
    np.testing.assert_array_equal(found.inputs.ids[1], loaded.items.ids[-1])
    np.testing.assert_allclose(found.vectors[0], loaded.item_vectors[4], rtol=1e-5, atol=1e-6)
    slot = next(slot for slot in loaded.spec.id_slots("item") if slot.field == "category")
    changed = np.flatnonzero(found.inputs.ids[2] != loaded.items.ids[4])
    assert changed.tolist() == [slot.start]
    if loaded.rank_table is not None:
        assert found.rank_part is not None
        np.testing.assert_allclose(found.rank_part[0], loaded.rank_table.rows[4], rtol=1e-4, atol=1e-5)


def test_an_unknown_value_is_unknown(loaded: LoadedBundle) -> None:
    encoder = ItemEncoder(loaded)
    unknown = encoder.columns([{"category": "never seen", "tags": ("odd",)}], np.array([-1]))
    slot = next(slot for slot in loaded.spec.id_slots("item") if slot.field == "category")
    assert unknown.inputs.ids[0, slot.start] == 1


@pytest.mark.parametrize("said", [{"price": "cheap"}, {"price": (1.0, 2.0)}, {"category": 5}, {"category": ("a", "b")},
                                  {"tags": (1.5,)}])
def test_a_value_of_another_type_is_refused_with_its_field(
    loaded: LoadedBundle, said: dict[str, ContextValue]
) -> None:
    with pytest.raises(DataError, match=rf"^values\[{next(iter(said))}\]: "):
        ItemEncoder(loaded).columns([{"brand": 3}, said], np.array([-1, 4]))


def test_inputs_are_those_that_the_bundles_encoder_makes(loaded: LoadedBundle) -> None:
    """Of all fields together, of any that are described, and however many at once."""
    described: list[dict[str, ContextValue]] = [
        {"category": f"c{n % 3}", "price": float(n), "tags": ("new", "odd")[: n % 3]} if n % 4 else {"brand": n}
        for n in range(100)]
    found = ItemEncoder(loaded).columns(described, np.full(100, -1))
    fields = loaded.spec.of_side("item")
    columns = {field.name: [as_column(field, one.get(field.name)) for one in described] for field in fields}
    for made, expected in zip(found.inputs, loaded.encoder.encode(columns, "item"), strict=True):
        np.testing.assert_array_equal(made, expected)


def test_the_field_of_the_items_own_keys_is_known_by_what_the_bundle_has(loaded: LoadedBundle) -> None:
    """Its value is the key unless one is said; which field it is hangs on no name."""
    encoder = ItemEncoder(loaded)
    assert encoder.with_key("i03", {"brand": 3}) == {"item_id": "i03", "brand": 3}
    assert encoder.with_key("i03", {"item_id": "i04"}) == {"item_id": "i04"}
    slot = next(slot for slot in loaded.spec.id_slots("item") if slot.field == "item_id")
    others = loaded.items.ids.copy()
    others[:-1, slot.start] = others[:-1, slot.start][::-1]
    foreign = replace(loaded, items=FeatureStore(loaded.items.keys, others, loaded.items.dense))
    assert ItemEncoder(foreign).with_key("i03", {"brand": 3}) == {"brand": 3}
