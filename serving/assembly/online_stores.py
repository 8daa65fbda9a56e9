"""The pipelines' online tables -> the stores of encoded features that a bundle carries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import RECENT_ITEMS, USER, Artifacts
from contracts.bundle.bundle import save_array
from contracts.config.section import Side
from contracts.errors import DataError
from contracts.features.encoding import Encoder
from contracts.features.vocabulary import Vocabulary
from serving.bundle.feature_store import FeatureStore, sort_order
from serving.bundle.raw_columns import column, raw_columns

CHUNK_ROWS = 65_536


def encode_store(source: Path, key: str, side: Side, encoder: Encoder) -> tuple[FeatureStore, pa.Table]:
    """The encoded table, sorted by key, and the raw rows in the same order.

    Raises DataError without a table, or for a key that is missing or repeated; SchemaError without a column.
    """
    if not source.exists():
        raise DataError(f"{source} is not there; run `sluice features` first")
    raw = pq.read_table(source).combine_chunks()
    keys, order = sort_order(pa.concat_arrays(column(raw, key, source).chunks or [pa.nulls(0)]), side + "s")
    raw = raw.take(pa.array(order))
    parts = []
    for start in range(0, raw.num_rows, CHUNK_ROWS):
        chunk = raw.slice(start, CHUNK_ROWS)
        columns = raw_columns(chunk, encoder.spec.of_side(side), source)
        parts.append(encoder.encode({key: range(chunk.num_rows), **columns}, side))
    parts.append(encoder.encode({}, side))
    ids, dense = np.concatenate([part.ids for part in parts]), np.concatenate([part.dense for part in parts])
    return FeatureStore(keys, ids, dense), raw


def write_users(out: Artifacts, folder: Path, encoder: Encoder, items: FeatureStore) -> FeatureStore:
    """Writes the user table and each user's recent items; a log without users has an empty one."""
    if encoder.spec.has_users:
        users, raw = encode_store(out.online_users, USER, "user", encoder)
        lists = raw.column(RECENT_ITEMS) if RECENT_ITEMS in raw.column_names else None
    else:
        users, lists = FeatureStore(Vocabulary.of([], "string"), *encoder.encode({}, "user")), None
    users.save(folder, "users")
    save_array(folder / "users_recent.npy", recent_rows(lists, len(users), items))
    return users


def recent_rows(lists: pa.ChunkedArray | None, count: int, items: FeatureStore) -> np.ndarray:
    """Item keys [U] -> int32 [U, longest list]: rows of the known items in their order, padded right with -1."""
    if lists is None or not count:
        return np.empty((count, 0), dtype=np.int32)
    array = lists.combine_chunks()
    lengths = np.nan_to_num(array.value_lengths().to_numpy(zero_copy_only=False)).astype(np.int64)
    rows = items.rows(array.flatten().to_pylist())
    owner = np.repeat(np.arange(count), lengths)[rows >= 0]
    kept = np.bincount(owner, minlength=count)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(kept) - kept, kept)
    recent = np.full((count, int(kept.max())), -1, dtype=np.int32)
    recent[owner, place] = rows[rows >= 0]
    return recent
