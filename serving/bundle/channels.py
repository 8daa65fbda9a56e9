"""Channels of `retrieve.channels` as the bundle carries them: retrieval/channels/NAME and parity/channels/NAME.parquet.

    sasrec, esasrec, hstu
    weights.safetensors, settings.json    the sequence encoder
    als, bpr, light_gcn
    weights.safetensors                   what makes a user's vector of items taken (models/retrieval/user_states.py)
    all of these
    items.npy [I]                         the id by which the model knows each item of the bundle, 1 where it does not
    vectors.npy [I, d + 2], index.faiss   its items' vectors in the order of the bundle's, searched as the towers' are;
                                          then ln(bid), for a query that goes by value, and a number that puts items
                                          which the model does not know behind all others
    ease, item_cosine
    nearest.npy, weights.npy [I, M]       the items that each item speaks for, -1 where there are fewer; and how much
    recent_popularity
    counts.npy [I]                        takes of the last days of training

All but the last read what a user took last, newest first, known items alone.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from contracts.artifacts import (
    ASKED,
    BEST_ITEMS,
    CHANNEL_SETTINGS,
    RECENT_ITEMS,
    RECENT_TIMES,
    RECENT_VALUES,
    SCORES,
    WEIGHTS,
)
from contracts.bundle.bundle import load_array, load_weights
from contracts.config.stages import Retrieve
from contracts.errors import BundleError, ParityError
from contracts.features.event_features import ToldEvents
from contracts.summaries.bundle import ParityFigures
from models.retrieval import user_states
from models.sequences import user_state
from models.sequences.encoder import EncoderSettings, SequenceEncoder
from models.training import checkpoint
from serving.bundle import item_index
from serving.bundle.channel import Channel, CountChannel, NearestChannel, VectorChannel
from serving.bundle.feature_store import FeatureStore
from serving.histories.recent_events import EventTables

FOLDER = "channels"
NEAREST, FACTORS, COUNTS = ("ease", "item_cosine"), ("als", "bpr", "light_gcn"), ("recent_popularity",)
TOLERANCE = 1e-4  # of a score, or of that part of one above 1


def encoder(folder: Path) -> SequenceEncoder:
    """Rebuilt from its settings, its weights mapped. Raises BundleError where they do not fit each other."""
    settings = json.loads((folder / CHANNEL_SETTINGS).read_text(encoding="utf-8"))
    table, width = checkpoint.shape(folder / WEIGHTS, "items.weight")
    told = [checkpoint.shape(folder / WEIGHTS, name)[0] for name in sorted(checkpoint.names(folder / WEIGHTS))
            if name.startswith("told.")]
    network = SequenceEncoder(table, EncoderSettings.model_validate(settings["encoder"] | {"width": width}), told)
    checkpoint.load(network, folder / WEIGHTS, mapped=True)
    return network.eval().requires_grad_(False)


def load(
    retrieval: Path, parity: Path, settings: Retrieve, items: FeatureStore, check: bool, told: EventTables | None = None
) -> tuple[Channel, ...]:
    """Those of `settings.channels`. Raises BundleError, ParityError where one does not say what training said."""
    made = (_load(retrieval / FOLDER / name, name, settings) for name in settings.channels)
    if not check:
        return tuple(made)
    return tuple(checked(channel, parity / FOLDER / f"{channel.name}.parquet", items, told) for channel in made)


def _load(folder: Path, name: str, settings: Retrieve) -> Channel:
    if name in NEAREST:
        return NearestChannel(name=name, nearest=np.asarray(load_array(folder / "nearest.npy")),
                              weights=np.asarray(load_array(folder / "weights.npy")))
    if name in COUNTS:
        return CountChannel(name=name, counts=np.asarray(load_array(folder / "counts.npy")))
    factors, vectors = name in FACTORS, load_array(folder / "vectors.npy")
    return VectorChannel(
        name=name, log_probabilities=not factors, gaps=settings.event_times and not factors,
        ids=load_array(folder / "items.npy"),
        state=user_states.read(load_weights(folder / WEIGHTS)) if factors else user_state.served(encoder(folder)),
        index=item_index.load(folder / "index.faiss", vectors, settings))


def checked(channel: Channel, path: Path, items: FeatureStore, told: EventTables | None = None) -> Channel:
    """With its parity. Raises ParityError on a history whose best items score otherwise than in training."""
    if not path.exists():
        raise BundleError(f"the bundle has no {path}, so that channel {channel.name!r} cannot be checked; assemble it "
                          "again")
    gaps = [_gap(channel, row, items, told) for row in pq.read_table(path).to_pylist()]
    wrong = [number for number, gap in enumerate(gaps) if not gap <= TOLERANCE]
    if wrong:
        raise ParityError(
            f"channel {channel.name!r}: the best items of {len(wrong)} of {len(gaps)} histories score otherwise than "
            f"in training, history {wrong[0]} by {gaps[wrong[0]]:.6g}, the limit is {TOLERANCE:g}; the bundle's parts "
            "come from different runs: assemble it again")
    figures = ParityFigures(rows=len(gaps), mismatches=0, max_logit_difference=max(gaps, default=0.0))
    return replace(channel, parity=figures)


def _gap(channel: Channel, row: dict[str, Any], items: FeatureStore, told: EventTables | None) -> float:
    """The largest difference of a score, as a share of what is above 1."""
    recent, best = items.rows(row[RECENT_ITEMS]), items.rows(row[BEST_ITEMS])
    stored = np.array(row[SCORES], dtype=np.float64)
    if (recent < 0).any() or (best < 0).any():
        return float("inf")
    events = told.of(len(recent), _told(row))._replace(now=row[ASKED]) if told is not None and ASKED in row else None
    gaps = np.abs(channel.scores(recent, best, events) - stored) / np.maximum(np.abs(stored), 1.0)
    return float(gaps.max(initial=0.0))


def _told(row: dict[str, Any]) -> ToldEvents:
    columns = {name.removeprefix(RECENT_VALUES): row[name] for name in row if name.startswith(RECENT_VALUES)}
    return ToldEvents(row.get(RECENT_TIMES, ()), columns)
