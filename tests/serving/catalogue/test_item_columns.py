from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import DataError
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.item_columns import ItemEncoder


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


def test_a_value_of_another_type_is_refused(loaded: LoadedBundle) -> None:
    with pytest.raises((DataError, TypeError, ValueError)):
        ItemEncoder(loaded).columns([{"price": "cheap"}], np.array([-1]))
