"""Which group each item of a bundle is of, for the counters that go by columns of the items' table: items with the same
values are one key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contracts.artifacts import ITEM
from contracts.bundle.bundle import save_array
from contracts.features.event_features import EventFeatures
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import group_file


def write_item_groups(features: EventFeatures, source: Path, items: FeatureStore, tables: Path) -> None:
    """int32 [I] a counter of `features.groups`: numbers of groups from 0, -1 of an item that the table of `source` does
    not know, or without a value in one of the columns."""
    for field in features.groups:
        found = ds.dataset(source, format="parquet").to_table(columns=[ITEM, *field.by])
        rows, groups = items.rows(found[ITEM].cast(pa.string()).to_pylist()), _groups(found, field.by)
        codes = np.full(len(items), -1, dtype=np.int32)
        codes[rows[rows >= 0]] = groups[rows >= 0]
        save_array(tables / group_file(field.name), codes)


def _groups(table: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """The number of each row's combination of values, in no particular order."""
    found, known = np.zeros(table.num_rows, dtype=np.int64), np.ones(table.num_rows, dtype=bool)
    for name in columns:
        encoded = table[name].combine_chunks().dictionary_encode()
        known &= encoded.is_valid().to_numpy(zero_copy_only=False)
        places = pc.fill_null(encoded.indices, 0).to_numpy()
        _, found = np.unique(found * (len(encoded.dictionary) + 1) + places, return_inverse=True)
    return np.where(known, found, -1)
