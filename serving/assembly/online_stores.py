"""The pipelines' online tables -> the stores of encoded features that a bundle carries."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.lib.format import open_memmap

from contracts.artifacts import RECENT_ITEMS, RECENT_TIMES, RECENT_VALUES, USER, Artifacts
from contracts.bundle.bundle import save_array
from contracts.config.section import Side
from contracts.config.stages import ENCODERS, Retrieve
from contracts.errors import BundleError, DataError
from contracts.features import vocabulary
from contracts.features.encoding import Encoder
from contracts.features.event_features import EVENT
from contracts.features.feature_spec import FIRST_ID, UNKNOWN
from contracts.features.vocabulary import Vocabulary
from serving.bundle.feature_store import FeatureStore, sort_order
from serving.bundle.raw_columns import column
from serving.histories import recent_events

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
    kept = table.to_table(columns=[wanted for wanted in dict.fromkeys(keep) if wanted in table.schema.names])
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


def write_users(
    out: Artifacts, folder: Path, encoder: Encoder, items: FeatureStore, retrieve: Retrieve | None = None
) -> FeatureStore:
    """Writes the user table, each user's recent items, and what `retrieve.events` asks of them; a log without users has
    an empty one. Raises SchemaError, BundleError where events are asked for that the run has not written."""
    told = [f"{RECENT_VALUES}{name}" for name in retrieve.event_columns] if retrieve else []
    if encoder.spec.has_users:
        users, raw = encode_store(out.online_users, USER, "user", encoder, folder, [RECENT_ITEMS, RECENT_TIMES, *told])
    else:
        users, raw = FeatureStore(Vocabulary.of([], "string"), *encoder.encode({}, "user")), pa.table({})
        users.save(folder, "users")
    lists = raw.column(RECENT_ITEMS) if RECENT_ITEMS in raw.column_names else None
    save_array(folder / "users_recent.npy", recent_rows(lists, len(users), items))
    if retrieve and retrieve.events:
        _write_events(out, folder, raw, len(users), items, retrieve)
    return users


def _write_events(
    out: Artifacts, folder: Path, raw: pa.Table, users: int, items: FeatureStore, retrieve: Retrieve
) -> None:
    """serving/histories/recent_events.py"""
    lists = raw.column(RECENT_ITEMS) if RECENT_ITEMS in raw.column_names else None
    times = column(raw, RECENT_TIMES, out.online_users) if lists is not None and retrieve.event_times else None
    save_array(folder / recent_events.TIMES, _beside(lists, users, items, _flat(times), 0, np.int64))
    values = []
    for name in retrieve.event_columns:
        known = _known_values(out, name, retrieve)
        vocabulary.write(folder, EVENT + name, known)
        texts = None if lists is None else column(raw, f"{RECENT_VALUES}{name}", out.online_users)
        ids = None if texts is None else known.look_up_arrow(texts.combine_chunks().flatten(), "string")
        values.append(_beside(lists, users, items, ids, UNKNOWN, np.int32))
    shape = recent_rows(lists, users, items).shape
    save_array(folder / recent_events.VALUES, np.stack(values, 2) if values else np.empty((*shape, 0), np.int32))


def _flat(lists: pa.ChunkedArray | None) -> np.ndarray | None:
    return None if lists is None else lists.combine_chunks().flatten().fill_null(0).to_numpy()


def _known_values(out: Artifacts, name: str, retrieve: Retrieve) -> Vocabulary:
    """Of a column, as all encoders of the run learned them. Raises BundleError."""
    trained = [channel for channel in retrieve.channels if channel in ENCODERS]
    for channel in trained:
        if not any((out.channel(channel) / vocabulary.FOLDER).glob(f"{EVENT}{glob.escape(name)}*")):
            raise BundleError(f"channel {channel!r} was trained without {name!r} of retrieve.events; run "
                              "`sluice train` again")
    found = [vocabulary.read(out.channel(channel), EVENT + name) for channel in trained]
    if any(known != found[0] for known in found):
        raise BundleError(f"channels {', '.join(trained)} know different values of {name!r}; run `sluice train` again")
    return found[0]


def recent_rows(lists: pa.ChunkedArray | None, count: int, items: FeatureStore) -> np.ndarray:
    """Item keys [U] -> int32 [U, longest list]: rows of the known items in their order, padded right with -1."""
    return _beside(lists, count, items, None, -1, np.int32)


def _beside(
    lists: pa.ChunkedArray | None, count: int, items: FeatureStore, values: np.ndarray | None, empty: int, kind: type
) -> np.ndarray:
    """[U, longest list], padded right with `empty`: of the known items the `values`, one for each item of the lists, or
    their rows."""
    if lists is None or not count:
        return np.empty((count, 0), dtype=kind)
    array = lists.combine_chunks()
    lengths = np.nan_to_num(array.value_lengths().to_numpy(zero_copy_only=False)).astype(np.int64)
    rows = items.rows(array.flatten().to_pylist())
    owner = np.repeat(np.arange(count), lengths)[rows >= 0]
    kept = np.bincount(owner, minlength=count)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(kept) - kept, kept)
    found: np.ndarray = np.full((count, int(kept.max())), empty, dtype=kind)
    found[owner, place] = (rows if values is None else values)[rows >= 0]
    return found
