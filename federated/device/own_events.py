"""A client's own events as rows to train on: encoded where they happened, by the public spec and vocabularies.

An event is what a `Rank` request and its item hold: raw values by field, the history as it was at the time, whether it
was clicked and at which position it was shown. Ids come out as the pipelines would write them
(contracts/features/encoding.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from contracts.errors import DataError
from contracts.features import vocabulary
from contracts.features.encoding import Column, Encoder, number, scale
from contracts.features.feature_spec import BLOCK_SIDES, BlockName, FeatureSpec
from federated.clients import client_files
from models.examples.batches import Batch, FeatureBlock


def encoded_events(
    encoder: Encoder, events: Mapping[str, Column], labels: Sequence[float], positions: Sequence[int] | None = None
) -> Batch:
    """Rows in the order of the events. `events`: field -> a value per event. Raises DataError where a field is absent,
    a value is of another type, or labels are not one per event."""
    count = len(labels)
    columns = dict(events) if positions is None else {**events, "positions": positions}
    uneven = {name: len(values) for name, values in columns.items() if len(values) != count}
    if uneven:
        raise DataError(f"{count} labels, but values of {uneven}; give one of each per event")
    ids = encoder.slot_ids(events)
    shown = np.ones(count) if positions is None else np.asarray(positions)
    nobody = torch.zeros(count, dtype=torch.int64)
    return Batch(
        _block(encoder.spec, "request", ids, events, count), _block(encoder.spec, "candidate", ids, events, count),
        torch.tensor(labels, dtype=torch.float32), torch.from_numpy(shown.astype(np.int32)), nobody, nobody,
    )


def _block(
    spec: FeatureSpec, name: BlockName, ids: Mapping[str, np.ndarray], events: Mapping[str, Column], count: int
) -> FeatureBlock:
    joined = [np.empty((count, 0), dtype=np.int32), *(ids[slot.name] for slot in spec.block_ids(name))]
    dense = np.empty((count, len(slots := spec.dense_slots(*BLOCK_SIDES[name]))), dtype=np.float32)
    for place, slot in enumerate(slots):
        dense[:, place] = scale(number(events[slot.field]), spec.by_name[slot.field])
    return FeatureBlock(torch.from_numpy(np.concatenate(joined, axis=1)), torch.from_numpy(dense))


def keep_events(
    folder: Path, client: int, events: Mapping[str, Column], labels: Sequence[float],
    positions: Sequence[int] | None = None, file: str = client_files.SAMPLES,
) -> int:
    """Encodes and writes them in place of the rows that the client had; returns how many it keeps: the latest
    `max_samples`. `file`: SAMPLES, which it trains on, or LATER, which it only scores."""
    config, spec = client_files.read_public(folder)
    encoder = Encoder(spec, vocabulary.read_all(client_files.public(folder)))
    batch = encoded_events(encoder, events, labels, positions)
    kept = torch.arange(max(0, len(labels) - config.federated.max_samples), len(labels))
    client_files.write_client(folder, client, batch.take(kept), file)
    return len(kept)
