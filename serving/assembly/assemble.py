"""The outputs of the pipelines and of training -> the folder that is published as a bundle."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contracts.artifacts import (
    BID,
    BID_AT,
    CALIBRATION,
    CLICKS,
    DAY,
    ITEM,
    SHOWN,
    TIME,
    WEIGHTS,
    Artifacts,
)
from contracts.bundle.bundle import load_array, load_weights, save_array
from contracts.config.config import Config
from contracts.errors import BundleError, DataError
from contracts.features import vocabulary
from contracts.features.encoding import Encoder
from contracts.features.event_features import EventFeatures
from contracts.features.feature_spec import FeatureSpec
from contracts.progress import report
from contracts.summaries import summary
from contracts.summaries.bundle import BundleMetrics, ParityFigures
from contracts.summaries.train import ChannelsSummary, TowerSummary, TrainSummary
from models.evaluation.calibration import Calibration
from models.evaluation.popularity_order import popularity_order
from models.preranking.fscd_scorer import FscdSplit
from serving.assembly.channels import write_channels
from serving.assembly.event_features import write_event_features
from serving.assembly.index_recall import index_recall
from serving.assembly.item_groups import write_item_groups
from serving.assembly.item_to_item import neighbours
from serving.assembly.item_vectors import item_part, item_vectors, rank_part
from serving.assembly.online_stores import encode_store, write_users
from serving.assembly.trained_parity import check_as_trained
from serving.bundle import filter_column, item_index, number_column, parity
from serving.bundle.bundle_settings import BundleSettings
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import BID_TIMES, ITEM_PART, NEVER, PRERANK, RETRIEVAL, TABLES
from serving.bundle.networks import load_fscd, load_pre_ranker, load_ranker, load_towers
from serving.bundle.raw_columns import column
from serving.bundle.scoring_bundle import PARITY, RANK
from serving.histories.listed_values import listed_fields, write_listed

MODELS_OF = {"fscd": ("fscd", "prerank"), "towers": ("pre_ranker", "train"), "dot_product": ("two_tower", "train")}
TOWERS = "two_tower"
MOST_BID = 1e9  # as of a request; beyond float32 two of them would make an infinite price


def assemble(config: Config, out: Artifacts, build: Path) -> BundleMetrics:
    """Writes the bundle's files into `build` (emptied first) and returns the figures for its manifest.

    A log without items makes a bundle that scores rows and no more.

    Raises BundleError or DataError when a part is missing or does not fit.
    """
    spec = FeatureSpec.read(out.encoding)
    shutil.rmtree(build, ignore_errors=True)
    build.mkdir(parents=True)
    settings = BundleSettings.of(config, spec, _ranker(out), _quotas(out), _cold(out))
    encoder = Encoder(spec, vocabulary.read_all(out.encoding))
    report("encoding")
    settings.write(build)
    spec.write(build)
    write_event_features(config, out, build)
    vocabulary.copy_all(out.encoding, build)
    report("ranker and parity")
    _rank_parts(out, build, settings, spec)
    metrics = BundleMetrics(ranker=settings.ranker, parity=_recompute(build, encoder, settings),
                            data_until=_data_until(out))
    return _with_items(metrics, config, out, build, settings, encoder) if spec.has_items else metrics


def _with_items(
    metrics: BundleMetrics, config: Config, out: Artifacts, build: Path, settings: BundleSettings, encoder: Encoder
) -> BundleMetrics:
    """Adds pre-ranker, tables and retrieval: what a log with items has beyond the scoring part."""
    spec, seed = encoder.spec, config.seed
    report("tables of users and items")
    kept = [*settings.retrieve.item_columns, *listed_fields(spec), SHOWN, CLICKS, BID, BID_AT]
    items, raw_items = encode_store(out.online_items, ITEM, "item", encoder, build / TABLES, kept)
    users = write_users(out, build / TABLES, encoder, items, settings.retrieve)
    report("pre-ranker")
    _prerank_parts(out, build / PRERANK, settings, spec, items)
    _rank_table(build / RANK, settings, spec, items)
    _item_columns(raw_items, build / TABLES, settings, out.online_items)
    write_listed(config, out.items, raw_items, spec, build / TABLES)
    events = EventFeatures.read(build)
    if events is not None:
        write_item_groups(events, out.items, items, build / TABLES)
    report("index")
    index = _retrieval_parts(out, build, settings, spec, items, raw_items, seed)
    towers = load_towers(build / RETRIEVAL / "towers.safetensors", spec, settings.train)
    report("recall of the index")
    recall = index_recall(index, users, encoder, towers, settings)
    bids = load_array(build / TABLES / "items_bid.npy") if spec.has_bid else None
    report("channels")
    checked = write_channels(out, build / RETRIEVAL, build / PARITY, settings.retrieve, items, bids, seed)
    return metrics.model_copy(
        update={"users": len(users), "items": len(items), "index": recall, "channels": checked or None})


def _ranker(out: Artifacts) -> str:
    return summary.required(out.model(TOWERS).parent, TrainSummary, "sluice train").ranker


def _data_until(out: Artifacts) -> datetime | None:
    """When the last event was that the tables know: windows may end before it. None of a log without times."""
    days = sorted(out.events.glob(f"{DAY}=*"))
    events = ds.dataset(days[-1], format="parquet", exclude_invalid_files=True) if days else None
    if events is None or TIME not in events.schema.names:
        return None
    found: datetime | None = pc.max(events.to_table(columns=[TIME])[TIME]).as_py()
    return found


def _quotas(out: Artifacts) -> dict[str, int]:
    """As validation chose them; none where it has not."""
    found = summary.read(out.channels, ChannelsSummary)
    return found.quotas if found else {}


def _cold(out: Artifacts) -> Literal["two_tower", "popularity"]:
    """What validation found better for those of whom nothing is known; popularity where it has not looked."""
    found = summary.read(out.model(TOWERS), TowerSummary)
    return found.cold.better if found and found.cold else "popularity"


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
    check_as_trained(out.model(settings.ranker), build / PARITY, parity.tolerance(settings.train))


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
        save_array(folder / ITEM_PART, item_part(FscdSplit(network, network.kept_fields), items))


def _rank_table(folder: Path, settings: BundleSettings, spec: FeatureSpec, items: FeatureStore) -> None:
    """What every item adds to the ranker's first layer, where it is small enough to be kept."""
    ranker = load_ranker(folder / WEIGHTS, settings.ranker, spec, settings.train)
    table = rank_part(ranker, items, settings.serve.item_part_mb)
    if table is not None:
        save_array(folder / ITEM_PART, table)


def _recompute(build: Path, encoder: Encoder, settings: BundleSettings) -> ParityFigures:
    """The server's own check. Raises ParityError for a bundle that it would refuse."""
    ranker = load_ranker(build / RANK / WEIGHTS, settings.ranker, encoder.spec, settings.train)
    calibration = Calibration.from_arrays(load_weights(build / RANK / CALIBRATION))
    return parity.check(build / PARITY, encoder, ranker, calibration, parity.tolerance(settings.train)).figures


def _item_columns(raw: pa.Table, folder: Path, settings: BundleSettings, source: Path) -> None:
    """Writes the columns of filters and ranges, and the popularity order."""
    for name in settings.retrieve.filter_fields:
        filter_column.from_raw(column(raw, name, source).to_pylist(), name).save(folder, name)
    for name in settings.retrieve.numbers:
        number_column.from_raw(column(raw, name, source), name).save(folder, name)
    shown, clicks = (column(raw, name, source).fill_null(0).to_numpy().astype(np.float64) for name in (SHOWN, CLICKS))
    save_array(folder / "popularity.npy", popularity_order(shown, clicks))


def _bids(raw: pa.Table, source: Path) -> np.ndarray:
    """float32, 0 of an item for which nobody bids: it is not sold. Raises DataError for one that is no price."""
    bids: np.ndarray = column(raw, BID, source).fill_null(0).to_numpy().astype(np.float64)
    wrong = bids[~((bids >= 0) & (bids <= MOST_BID))]
    if len(wrong):
        raise DataError(f"{len(wrong)} of {len(bids)} items of {source} have a bid that is negative, above "
                        f"{MOST_BID:g} or no number, the first is {wrong[0]}; mend log.bid")
    return bids.astype(np.float32)


def _retrieval_parts(
    out: Artifacts, build: Path, settings: BundleSettings, spec: FeatureSpec, items: FeatureStore, raw: pa.Table,
    seed: int,
) -> item_index.ItemIndex:
    folder = build / RETRIEVAL
    _copy(out.model(TOWERS) / WEIGHTS, folder / "towers.safetensors", "train")
    towers = load_towers(folder / "towers.safetensors", spec, settings.train)
    vectors = item_vectors(towers, items)
    save_array(folder / "neighbours.npy", neighbours(vectors, settings.retrieve))
    if spec.has_bid:
        bids = _bids(raw, out.online_items)
        save_array(build / TABLES / "items_bid.npy", bids)
        save_array(build / TABLES / BID_TIMES, column(raw, BID_AT, out.online_items).fill_null(NEVER).to_numpy())
        vectors = item_index.with_bids(vectors, bids, settings.train.temperature)
    save_array(folder / "vectors.npy", vectors)
    index = item_index.build(vectors, settings.retrieve, seed)
    item_index.save(index, folder / "index.faiss")
    return index
