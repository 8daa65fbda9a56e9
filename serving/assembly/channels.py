"""Trained channels (OUT/channels/NAME) -> the bundle's parts of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from contracts.artifacts import BEST_ITEMS, CHANNEL_PARITY, CHANNEL_SETTINGS, RECENT_ITEMS, WEIGHTS, Artifacts
from contracts.bundle.bundle import load_weights, save_array
from contracts.config.stages import Retrieve
from contracts.errors import BundleError
from contracts.features import vocabulary
from contracts.features.feature_spec import FIRST_ID, UNKNOWN
from contracts.features.vocabulary import Vocabulary
from contracts.features.vocabulary_writer import CHUNK
from contracts.summaries.bundle import ParityFigures
from serving.bundle import channels, item_index
from serving.bundle.channel import UNKNOWN_SCORE
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import TABLES
from serving.histories import recent_events


def write_channels(
    out: Artifacts, retrieval: Path, parity: Path, settings: Retrieve, items: FeatureStore, bids: np.ndarray | None,
    seed: int,
) -> dict[str, ParityFigures]:
    """Every channel that is configured, checked as the server will. Raises BundleError where one is not trained."""
    for name in settings.channels:
        source, folder = out.channel(name), retrieval / channels.FOLDER / name
        if not (source / CHANNEL_PARITY).exists():
            raise BundleError(f"{source / CHANNEL_PARITY} is not there; run `sluice train` first")
        folder.mkdir(parents=True)
        known = vocabulary.read(source, "items")
        if name in channels.NEAREST:
            _write_nearest(load_weights(source / WEIGHTS), known, items.keys, folder)
        elif name in channels.COUNTS:
            counts = load_weights(source / WEIGHTS)["counts"]
            save_array(folder / "counts.npy", counts[_ids(known, items.keys)])
        else:
            for file in (WEIGHTS, CHANNEL_SETTINGS):
                shutil.copyfile(source / file, folder / file)
            _write_items(folder, _ids(known, items.keys), name in channels.FACTORS, bids, settings, seed)
        _write_parity(source / CHANNEL_PARITY, parity / channels.FOLDER / f"{name}.parquet", items)
    told = recent_events.load(retrieval.parent / TABLES, settings)
    loaded = channels.load(retrieval, parity, settings, items, check=True, told=told)
    return {channel.name: channel.parity for channel in loaded if channel.parity}


def _ids(known: Vocabulary, items: Vocabulary) -> np.ndarray:
    """int32 [I]."""
    parts = [known.look_up_arrow(items.keys(at, at + CHUNK), "string") for at in range(0, len(items), CHUNK)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)


def _write_nearest(arrays: dict[str, np.ndarray], known: Vocabulary, items: Vocabulary, folder: Path) -> None:
    """The model's ids as rows of the bundle's items."""
    row = np.append(np.full(FIRST_ID, -1), items.places_of(known)).astype(np.int32)
    ids = _ids(known, items)
    nearest, weights = row[arrays["items"][ids]], arrays["weights"][ids]
    nearest[ids == UNKNOWN], weights[nearest < 0] = -1, 0.0
    save_array(folder / "nearest.npy", nearest)
    save_array(folder / "weights.npy", weights)


@torch.inference_mode()
def _write_items(
    folder: Path, ids: np.ndarray, factors: bool, bids: np.ndarray | None, settings: Retrieve, seed: int
) -> None:
    if factors:
        vectors = load_weights(folder / WEIGHTS)["items"][ids]
    else:
        vectors = channels.encoder(folder).vectors(torch.from_numpy(ids.astype(np.int64))).numpy()
    unknown = np.where(ids > UNKNOWN, 0.0, UNKNOWN_SCORE)
    value = np.zeros(len(ids)) if bids is None else item_index.log_bids(bids)
    vectors = item_index.with_columns(vectors, np.stack([value, unknown], axis=1))
    save_array(folder / "items.npy", ids)
    save_array(folder / "vectors.npy", vectors)
    item_index.save(item_index.build(vectors, settings, seed), folder / "index.faiss")


def _write_parity(source: Path, target: Path, items: FeatureStore) -> None:
    """Without histories that name an item which the bundle no longer has."""
    table = pq.read_table(source)
    kept = [bool((items.rows([*row[RECENT_ITEMS], *row[BEST_ITEMS]]) >= 0).all()) for row in table.to_pylist()]
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.filter(pc.equal(kept, True)), target)
