from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.bundle.bundle import load_array
from contracts.config.fields import FieldConfig
from serving.assembly.item_groups import write_item_groups
from serving.bundle.loaded_bundle import LoadedBundle
from tests.serving.recorded_events import recorded_features


@pytest.mark.parametrize(("by", "groups"), [
    (["shop"], [[0, 2, 4], [1]]), (["shop", "size"], [[0, 2], [1], [4]]), (["size", "shop"], [[0, 2], [1], [4]])])
def test_items_with_the_same_values_are_one_group(
    loaded: LoadedBundle, tmp_path: Path, by: list[str], groups: list[list[int]]
) -> None:
    """The fourth has no shop, of others the table says nothing, and the last is no item of the bundle."""
    keys = [loaded.items.key(row) for row in range(5)]
    pq.write_table(pa.table({"_item": [*keys, "other"], "shop": ["a", "b", "a", None, "a", "b"],
                             "size": [1, 1, 1, 1, 2, 1]}), tmp_path / "part.parquet")
    field = FieldConfig.model_validate({"name": "of", "kind": "counter", "side": "item", "by": by, "windows": [60]})
    write_item_groups(recorded_features().model_copy(update={"groups": (field,)}), tmp_path, loaded.items, tmp_path)
    found = load_array(tmp_path / "group_of.npy")
    assert (found.dtype, len(found)) == (np.int32, len(loaded.items))
    by_group = [np.flatnonzero(found == group).tolist() for group in sorted(set(found[found >= 0].tolist()))]
    assert sorted(by_group) == groups
