"""The trained model as the files that a bundle is assembled from, without a row of any client.

    FOLDER/encoding/          the federated feature spec and the vocabularies
    FOLDER/models/            ranker, two towers, pre-ranker; calibration from securely summed histograms
    FOLDER/online/items/      the public item table; how often each item was shown and clicked, securely summed
    FOLDER/parity/            made-up rows: public items, values of the vocabularies in random company
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from contracts.artifacts import (
    BID,
    CALIBRATION,
    CLICKS,
    ID_PREFIX,
    ITEM,
    ROW,
    SHOWN,
    TEST_LOGITS,
    TEST_ROWS,
    WEIGHTS,
    Artifacts,
)
from contracts.bundle.bundle import save_array, save_weights
from contracts.config.config import Config
from contracts.errors import DataError
from contracts.features import vocabulary
from contracts.features.encoding import Encoder
from contracts.features.feature_spec import FIRST_ID, FeatureSpec
from contracts.summaries import summary
from contracts.summaries.train import TrainSummary
from federated.clients.made_up_values import made_up
from federated.clients.networks import FederatedNetworks
from federated.rounds.score_histograms import Histograms
from models.evaluation import calibration
from models.examples.batches import ExampleSet, FeatureBlock
from models.jobs.retrieval_training import PRE_RANKER, TOWER
from models.layers.embedding import item_slot
from models.training import checkpoint


def write(
    config: Config, source: Artifacts, spec: FeatureSpec, networks: FederatedNetworks, histograms: Histograms,
    folder: Path,
) -> Artifacts:
    """Raises DataError when the spec has no field that names the item, or calibration has nothing to learn from."""
    parts = Artifacts(folder)
    shutil.rmtree(folder, ignore_errors=True)
    parts.encoding.mkdir(parents=True)
    spec.write(parts.encoding)
    known = vocabulary.read_all(source.encoding)
    for kind in sorted({field.vocabulary for field in spec.fields if field.vocabulary}):  # the user's stays behind
        vocabulary.write(parts.encoding, kind, known[kind])
    name = config.federated.model
    _save(parts.model(name), networks.ranker)
    _save(parts.model(TOWER), networks.towers)
    _save(parts.model(PRE_RANKER), networks.pre_ranker)
    curves = {"ranker": name, "pre_ranker": PRE_RANKER}
    log_draws = _log_draws(source) if config.label.positives_only else 0.0
    for which, model in curves.items():
        curve = calibration.fit(config.train.calibration, *histograms.as_rows(which)).undrawn(log_draws)
        save_weights(parts.model(model) / CALIBRATION, curve.arrays())
    items = _items(source, spec, histograms)
    parts.online_items.mkdir(parents=True)
    pq.write_table(items, parts.online_items / "items.parquet")
    _parity(config, parts, spec, items, networks)
    summary.write(parts.out / "models", TrainSummary(ranker=name))
    return parts


def _log_draws(source: Artifacts) -> float:
    """Of the rows that were drawn every item alike: nearly the same for all."""
    return float(ExampleSet(source.examples("validation"), FeatureSpec.read(source.encoding)).log_draws().mean())


def _save(folder: Path, network: torch.nn.Module) -> None:
    folder.mkdir(parents=True)
    checkpoint.save(network.eval(), folder / WEIGHTS)


def _items(source: Artifacts, spec: FeatureSpec, histograms: Histograms) -> pa.Table:
    """Public columns of the item table, and popularity as the clients summed it."""
    table = pq.read_table(source.online_items)
    slot = item_slot(spec)
    if slot is None:
        raise DataError("no field of the item names it; add its id to federated.fields")
    hidden = {field.name for field in FeatureSpec.read(source.encoding).fields if field.kind == "counter"}
    kept = [name for name in table.column_names
            if name not in hidden and (not name.startswith("_") or name in (ITEM, BID))]
    field = spec.by_name[slot.field]
    ids = Encoder(spec, vocabulary.read_all(source.encoding)).field_ids(field, table.column(field.name))[0]
    known = np.where(ids[:, 0] >= FIRST_ID, ids[:, 0], 0)
    shown, clicked = histograms.shown.copy(), histograms.clicked.copy()
    shown[0] = clicked[0] = 0
    return table.select(kept).append_column(SHOWN, pa.array(shown[known])).append_column(
        CLICKS, pa.array(clicked[known]))


def _parity(
    config: Config, parts: Artifacts, spec: FeatureSpec, items: pa.Table, networks: FederatedNetworks
) -> None:
    """Rows that nobody sent: random public items and values of the vocabularies, encoded and scored."""
    generator = np.random.default_rng(config.seed)
    count = config.serve.parity_rows
    encoder = Encoder(spec, vocabulary.read_all(parts.encoding))
    chosen = items.take(pa.array(generator.integers(0, items.num_rows, count)))
    columns: dict[str, Any] = {ROW: np.arange(count, dtype=np.int64)}
    for field in spec.of_side("user", "context"):
        columns[field.name] = made_up(field, encoder.vocabularies, generator, count)
    for field in spec.of_side("item"):
        columns[field.name] = chosen.column(field.name).to_pylist()
    request, candidate = encoder.encode(columns, "user", "context"), encoder.encode(columns, "item")
    places = {slot.name: request.ids[:, slot.start : slot.start + slot.width] for slot in spec.block_ids("request")}
    places |= {slot.name: candidate.ids[:, slot.start : slot.start + slot.width] for slot in spec.id_slots("item")}
    crosses = encoder.cross_ids({part: places[part][:, 0] for part in encoder.part_slots})
    candidate_ids = np.concatenate([candidate.ids, crosses], axis=1) if crosses.size else candidate.ids
    places |= {slot.name: candidate_ids[:, slot.start : slot.start + 1] for slot in spec.block_ids("candidate")
               if slot.side == "cross"}
    table = pa.table(columns)
    for name, ids in places.items():
        table = table.append_column(ID_PREFIX + name, pa.array(ids.tolist() if ids.shape[1] > 1 else ids[:, 0]))
    parts.parity.mkdir(parents=True)
    pq.write_table(table, parts.parity / "rows.parquet")
    blocks = [FeatureBlock(torch.from_numpy(ids), torch.from_numpy(dense))
              for ids, dense in ((request.ids, request.dense), (candidate_ids, candidate.dense))]
    with torch.inference_mode():
        logits = networks.ranker.eval()(*blocks).double().numpy()
    folder = parts.model(config.federated.model)
    save_array(folder / TEST_LOGITS, logits)
    save_array(folder / TEST_ROWS, columns[ROW])
