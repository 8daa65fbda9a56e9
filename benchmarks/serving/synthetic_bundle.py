"""The synthetic world of `sluice bench funnel` as a bundle on disk, parity rows and all, for a real server to load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import CALIBRATION, ROW, WEIGHTS
from contracts.bundle import bundle
from contracts.bundle.bundle import save_array, save_weights
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureSpec
from models.evaluation import calibration
from models.training import checkpoint
from serving.bundle import item_index, parity
from serving.bundle.loaded_bundle import ITEM_PART, PRERANK, RETRIEVAL, TABLES, LoadedBundle
from serving.bundle.scoring_bundle import PARITY, RANK

ROWS = 16


def publish(made: LoadedBundle, folder: Path, values: int) -> Path:
    """Writes `made` below `folder`; `values` is the size of its vocabulary. Returns the bundle's folder."""
    build = folder / "build"
    made.settings.write(_made(build))
    made.spec.write(build)
    if made.event_features is not None:
        made.event_features.write(build)
    for name, keys in made.encoder.vocabularies.items():
        vocabulary.write(build, name, keys)
    checkpoint.save(made.ranker, _made(build / RANK) / WEIGHTS)
    if made.rank_table is not None:
        save_array(build / RANK / ITEM_PART, made.rank_table.rows)
    checkpoint.save(made.pre_ranker, _made(build / PRERANK) / WEIGHTS)  # type: ignore[arg-type]
    checkpoint.save(made.towers, _made(build / RETRIEVAL) / "towers.safetensors")
    for place in (RANK, PRERANK):
        save_weights(build / place / CALIBRATION, calibration.identity().arrays())
    _tables(made, _made(build / TABLES), build / RETRIEVAL)
    _parity(made, folder / "sample.parquet", build / PARITY, values)
    bundle.publish(build, folder / "bundle", "synthetic")
    return folder / "bundle"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _tables(made: LoadedBundle, tables: Path, retrieval: Path) -> None:
    made.users.save(tables, "users")
    made.items.save(tables, "items")
    for name, column in made.filters.items():
        column.save(tables, name)
    assert made.bids is not None
    save_array(tables / "users_recent.npy", made.recent)
    save_array(tables / "items_bid.npy", made.bids)
    save_array(tables / "popularity.npy", made.popularity)
    save_array(retrieval / "vectors.npy", made.index.vectors)
    save_array(retrieval / "neighbours.npy", made.neighbours)
    item_index.save(made.index, retrieval / "index.faiss")


def _parity(made: LoadedBundle, sample: Path, folder: Path, values: int) -> None:
    """Random raw rows and what the encoder makes of them."""
    raw, path = raw_rows(made.spec, values), sample
    table = pa.table({ROW: np.arange(ROWS), **raw})
    pq.write_table(table, path)
    inputs = parity.encode(table, made.encoder, path)
    ids: dict[str, Any] = {}
    for block, encoded in (("request", inputs.request), ("candidate", inputs.candidate)):
        for slot in made.spec.block_ids(block):  # type: ignore[arg-type]
            columns = encoded.ids[:, slot.start : slot.start + slot.width]
            ids[f"id:{slot.name}"] = columns[:, 0] if slot.width == 1 else list(columns)
    pq.write_table(pa.table({ROW: np.arange(ROWS), **raw, **ids}), path)
    parity.write(path, folder, ROWS, made.spec, made.ranker, made.calibration)


def raw_rows(spec: FeatureSpec, values: int) -> dict[str, list[Any]]:
    """ROWS random values of every user, context and item field."""
    draw, columns = np.random.default_rng(7), dict[str, list[Any]]()
    for field in spec.of_side("user", "context", "item"):
        if field.dense:
            columns[field.name] = draw.normal(4, 3, ROWS).tolist()
        elif field.kind == "categorical":
            columns[field.name] = [f"v{n}" for n in draw.integers(0, values, ROWS)]
        else:
            columns[field.name] = [[f"v{n}" for n in row] for row in draw.integers(0, values, (ROWS, field.length))]
    return columns
