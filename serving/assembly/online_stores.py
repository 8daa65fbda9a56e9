"""The pipelines' online tables -> the stores of encoded features that a bundle carries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.lib.format import open_memmap

from contracts.artifacts import RECENT_ITEMS, USER, Artifacts
from contracts.bundle.bundle import save_array
from contracts.config.section import Side
from contracts.errors import DataError
from contracts.features import vocabulary
from contracts.features.encoding import Encoder
from contracts.features.feature_spec import FIRST_ID
from contracts.features.vocabulary import Vocabulary
from serving.bundle.feature_store import FeatureStore, sort_order
from serving.bundle.raw_columns import column

CHUNK_ROWS = 65_536


def encode_store(
    source: Path, key: str, side: Side, encoder: Encoder, folder: Path, keep: Sequence[str] = ()
) -> tuple[FeatureStore, pa.Table]:
    """Writes the encoded table, sorted by key, to `folder`; returns it mapped, and raw columns `keep` in its order.

    Rows are read, encoded and put in their places part by part: the keys and `keep` alone are in memory as a whole.

    Raises DataError without a table, or for a key that is missing or repeated; SchemaError without a column.
    """
    if not source.exists():
        raise DataError(f"{source} is not there; run `sluice features` first")
    table, name = ds.dataset(source, format="parquet"), f"{side}s"
    for needed in (key, *(field.name for field in encoder.spec.of_side(side))):
        column(table.schema.empty_table(), needed, source)
    keys, order = sort_order(pa.concat_arrays([pa.nulls(0, pa.string()), *_chunks(table, key)]), name)
    vocabulary.write(folder, name, keys)
    _write_rows(table, keys, key, side, encoder, folder)
    kept = table.to_table(columns=[wanted for wanted in keep if wanted in table.schema.names])
    return FeatureStore.load(folder, name), kept.take(pa.array(order))


def _chunks(table: ds.Dataset, key: str) -> list[pa.Array]:
    return [chunk.cast(pa.string()) for chunk in table.to_table(columns=[key]).column(key).chunks]


def _write_rows(
    table: ds.Dataset, keys: Vocabulary, key: str, side: Side, encoder: Encoder, folder: Path
) -> None:
    spec, rows = encoder.spec, len(keys) + 1
    ids, dense = (open_memmap(folder / f"{side}s_{part}.npy", mode="w+", dtype=dtype, shape=(rows, width))
                  for part, dtype, width in (("ids", np.int32, spec.id_width(side)),
                                             ("dense", np.float32, len(spec.dense_slots(side)))))
    names = [field.name for field in spec.of_side(side)]
    for batch in table.to_batches(columns=list(dict.fromkeys([key, *names])), batch_size=CHUNK_ROWS):
        places = keys.look_up_arrow(batch.column(key), "string") - FIRST_ID
        ids[places], dense[places] = encoder.encode(dict(zip(batch.schema.names, batch.columns, strict=True)), side)
    ids[-1:], dense[-1:] = encoder.encode({}, side)


def write_users(out: Artifacts, folder: Path, encoder: Encoder, items: FeatureStore) -> FeatureStore:
    """Writes the user table and each user's recent items; a log without users has an empty one."""
    if encoder.spec.has_users:
        users, raw = encode_store(out.online_users, USER, "user", encoder, folder, [RECENT_ITEMS])
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
