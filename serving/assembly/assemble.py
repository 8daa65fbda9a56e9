"""The outputs of the pipelines and of training -> the folder that is published as a bundle."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from contracts import summary
from contracts.artifacts import (
    BID,
    CALIBRATION,
    CLICKS,
    ITEM,
    RECENT_ITEMS,
    ROW,
    SHOWN,
    TEST_LOGITS,
    TEST_ROWS,
    USER,
    WEIGHTS,
    Artifacts,
)
from contracts.bundle.bundle import load_array, load_weights, save_array
from contracts.config.config import Config
from contracts.config.section import Side
from contracts.errors import BundleError, DataError, ParityError
from contracts.features import vocabulary
from contracts.features.encoding import Encoder
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.bundle import BundleMetrics, ParityFigures
from models.evaluation.calibration import Calibration
from models.examples.batches import FeatureBlock
from models.networks.two_tower import TwoTower
from models.preranking.fscd_scorer import FscdSplit
from serving.assembly.index_recall import index_recall
from serving.assembly.item_to_item import neighbours
from serving.bundle import filter_column, item_index, parity
from serving.bundle.bundle_settings import BundleSettings
from serving.bundle.feature_store import FeatureStore, sort_order
from serving.bundle.loaded_bundle import PRERANK, RETRIEVAL, TABLES
from serving.bundle.networks import load_fscd, load_pre_ranker, load_ranker, load_towers
from serving.bundle.raw_columns import column, raw_columns
from serving.bundle.scoring_bundle import PARITY, RANK

MODELS_OF = {"fscd": ("fscd", "prerank"), "towers": ("pre_ranker", "train"), "dot_product": ("two_tower", "train")}
TOWERS, PRE_RANKER, FSCD = "two_tower", "pre_ranker", "fscd"
CHUNK_ROWS = 65_536
PRIOR_IMPRESSIONS = 20.0


def assemble(config: Config, out: Artifacts, build: Path) -> BundleMetrics:
    """Writes the bundle's files into `build` (emptied first) and returns the figures for its manifest.

    A log without items makes a bundle that scores rows and no more.

    Raises BundleError or DataError when a part is missing or does not fit.
    """
    spec = FeatureSpec.read(out.encoding)
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    settings = BundleSettings.of(config, spec, _ranker(out))
    encoder = Encoder(spec, vocabulary.read_all(out.encoding))
    settings.write(build)
    spec.write(build)
    shutil.copytree(out.encoding / vocabulary.FOLDER, build / vocabulary.FOLDER)
    _rank_parts(out, build, settings, spec)
    metrics = BundleMetrics(ranker=settings.ranker, parity=_check(build, encoder, settings))
    return _with_items(metrics, out, build, settings, encoder, config.seed) if spec.has_items else metrics


def _with_items(
    metrics: BundleMetrics, out: Artifacts, build: Path, settings: BundleSettings, encoder: Encoder, seed: int
) -> BundleMetrics:
    """Adds pre-ranker, tables and retrieval: what a log with items has beyond the scoring part."""
    spec = encoder.spec
    items, raw_items = _feature_store(out.online_items, ITEM, "item", encoder)
    users = _users(out, build / TABLES, encoder, items)
    items.save(build / TABLES, "items")
    _prerank_parts(out, build / PRERANK, settings, spec, items)
    _item_columns(raw_items, build / TABLES, settings, out.online_items)
    index = _retrieval_parts(out, build, settings, spec, items, raw_items, seed)
    towers = load_towers(build / RETRIEVAL / "towers.safetensors", spec, settings.train)
    recall = index_recall(index, users, encoder, towers, settings)
    return metrics.model_copy(update={"users": len(users), "items": len(items), "index": recall})


def _ranker(out: Artifacts) -> str:
    models = out.model(TOWERS).parent
    ranker = summary.read(models).get("ranker")
    if not ranker:
        raise BundleError(f"{models / summary.FILE} names no ranker; run `sluice train` first")
    return str(ranker)


def _copy(source: Path, target: Path, command: str) -> None:
    if not source.exists():
        raise BundleError(f"{source} is not there; run `sluice {command}` first")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _rank_parts(out: Artifacts, build: Path, settings: BundleSettings, spec: FeatureSpec) -> None:
    """Weights and calibration of the ranker, and the parity rows scored with them."""
    weights, calibration = build / RANK / WEIGHTS, build / RANK / CALIBRATION
    _copy(out.model(settings.ranker) / weights.name, weights, "train")
    _copy(out.model(settings.ranker) / calibration.name, calibration, "train")
    ranker = load_ranker(weights, settings.ranker, spec, settings.train)
    parity.write(out.parity, build / PARITY, settings.serve.parity_rows, spec, ranker,
                 Calibration.from_arrays(load_weights(calibration)))
    _check_as_trained(out.model(settings.ranker), build / PARITY, parity.tolerance(settings.train))


def _prerank_parts(
    out: Artifacts, folder: Path, settings: BundleSettings, spec: FeatureSpec, items: FeatureStore
) -> None:
    """The pre-ranker's calibration and weights and, with FSCD, the item part of its first layer for every item."""
    kind, weights = settings.prerank.kind, folder / WEIGHTS
    model, command = MODELS_OF[kind or "towers"]
    _copy(out.model(model) / CALIBRATION, folder / CALIBRATION, command)
    if kind == "dot_product":
        return
    _copy(out.model(model) / weights.name, weights, command)
    if kind == "towers":
        load_pre_ranker(weights, settings.train, settings.prerank)
        return
    network = load_fscd(weights, spec, settings.prerank)
    if settings.prerank.item_side == "precomputed":
        save_array(folder / "item_part.npy", item_part(FscdSplit(network, network.kept_fields), items))


def item_part(split: FscdSplit, items: FeatureStore) -> np.ndarray:
    """float32 [I, H]."""
    ids, dense = np.array(items.ids[:-1]), np.array(items.dense[:-1])
    return split.item_table(torch.from_numpy(ids), torch.from_numpy(dense)).numpy()


def _check_as_trained(model: Path, rows: Path, limit: float) -> None:
    """The parity rows' logits are those that training itself wrote for the same test rows.

    Raises BundleError when training left none for a row, ParityError when one differs.
    """
    if not (model / TEST_LOGITS).exists():
        raise BundleError(f"{model} has no {TEST_LOGITS}; run `sluice train` again")
    known, logits = load_array(model / TEST_ROWS), load_array(model / TEST_LOGITS)
    table = pq.read_table(rows / parity.FILE, columns=[ROW, parity.LOGIT])
    wanted = table.column(ROW).to_numpy()
    order = np.argsort(known)
    at = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    if (known[at] != wanted).any():
        raise BundleError(f"{model}: training scored other rows than the parity sample's; run `sluice train` again")
    gaps = np.abs(logits[at] - table.column(parity.LOGIT).to_numpy())
    if not (gaps <= limit).all():
        worst = int(gaps.argmax())
        raise ParityError(
            f"row {wanted[worst]}: the published weights give a logit {gaps[worst]:.6f} away from the one that "
            f"training wrote, the limit is {limit:g}; run `sluice train` again"
        )


def _check(build: Path, encoder: Encoder, settings: BundleSettings) -> ParityFigures:
    """Refuses a bundle that the server would refuse."""
    ranker = load_ranker(build / RANK / WEIGHTS, settings.ranker, encoder.spec, settings.train)
    calibration = Calibration.from_arrays(load_weights(build / RANK / CALIBRATION))
    return parity.check(build / PARITY, encoder, ranker, calibration, parity.tolerance(settings.train)).figures


def _feature_store(source: Path, key: str, side: Side, encoder: Encoder) -> tuple[FeatureStore, pa.Table]:
    """The encoded table, sorted by key, and the raw rows in the same order."""
    if not source.exists():
        raise DataError(f"{source} is not there; run `sluice features` first")
    raw = pq.read_table(source).combine_chunks()
    keys, order = sort_order(column(raw, key, source).to_pylist(), side + "s")
    raw = raw.take(pa.array(order))
    parts = []
    for start in range(0, raw.num_rows, CHUNK_ROWS):
        chunk = raw.slice(start, CHUNK_ROWS)
        columns = raw_columns(chunk, encoder.spec.of_side(side), source)
        parts.append(encoder.encode({key: range(chunk.num_rows), **columns}, side))
    parts.append(encoder.encode({}, side))
    ids, dense = np.concatenate([part.ids for part in parts]), np.concatenate([part.dense for part in parts])
    return FeatureStore(keys, ids, dense), raw


def _users(out: Artifacts, folder: Path, encoder: Encoder, items: FeatureStore) -> FeatureStore:
    """The user table and each user's recent items; a log without users has an empty one."""
    if encoder.spec.has_users:
        users, raw = _feature_store(out.online_users, USER, "user", encoder)
        lists = raw.column(RECENT_ITEMS) if RECENT_ITEMS in raw.column_names else None
    else:
        users, lists = FeatureStore(np.empty(0, dtype="S1"), *encoder.encode({}, "user")), None
    users.save(folder, "users")
    save_array(folder / "users_recent.npy", _recent_rows(lists, len(users), items))
    return users


def _recent_rows(lists: pa.ChunkedArray | None, count: int, items: FeatureStore) -> np.ndarray:
    """int32 [U, longest list]: rows of the known items in their order, padded right with -1."""
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


def _item_columns(raw: pa.Table, folder: Path, settings: BundleSettings, source: Path) -> None:
    """Filter columns and the popularity order: smoothed click rate, then impressions, then key."""
    for name in settings.retrieve.filter_fields:
        filter_column.from_raw(column(raw, name, source).to_pylist(), name).save(folder, name)
    shown, clicks = (column(raw, name, source).fill_null(0).to_numpy().astype(np.float64) for name in (SHOWN, CLICKS))
    overall = clicks.sum() / max(shown.sum(), 1.0)
    rate = (clicks + PRIOR_IMPRESSIONS * overall) / (shown + PRIOR_IMPRESSIONS)
    save_array(folder / "popularity.npy", np.lexsort((-shown, -rate)).astype(np.int32))


def _retrieval_parts(
    out: Artifacts, build: Path, settings: BundleSettings, spec: FeatureSpec, items: FeatureStore, raw: pa.Table,
    seed: int,
) -> item_index.ItemIndex:
    folder = build / RETRIEVAL
    _copy(out.model(TOWERS) / WEIGHTS, folder / "towers.safetensors", "train")
    towers = load_towers(folder / "towers.safetensors", spec, settings.train)
    vectors = _item_vectors(towers, items)
    save_array(folder / "neighbours.npy", neighbours(vectors, settings.retrieve))
    if spec.has_bid:
        bids = column(raw, BID, out.online_items).fill_null(0).to_numpy().astype(np.float32)
        save_array(build / TABLES / "items_bid.npy", bids)
        vectors = item_index.with_bids(vectors, bids, settings.train.temperature)
    save_array(folder / "vectors.npy", vectors)
    index = item_index.build(vectors, settings.retrieve, seed)
    item_index.save(index, folder / "index.faiss")
    return index


def _item_vectors(towers: TwoTower, items: FeatureStore) -> np.ndarray:
    """float32 [I, d]."""
    parts = []
    with torch.inference_mode():
        for start in range(0, len(items), CHUNK_ROWS):
            rows = slice(start, min(start + CHUNK_ROWS, len(items)))
            block = FeatureBlock(torch.from_numpy(items.ids[rows]), torch.from_numpy(items.dense[rows]))
            parts.append(towers.item_vector(block).numpy())
    if not parts:
        raise DataError("the online item table is empty; run `sluice features` again")
    return np.concatenate(parts)
