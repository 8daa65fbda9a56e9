"""Further channels of retrieval (`retrieve.channels`), trained on what people did before the validation window.

OUT/channels/NAME: weights, settings.json (the model's own, as they were resolved), vocabularies/items (their places are
the ids) and vocabularies/event_COLUMN of what is told of events, parity.parquet
(sampled histories and what the model says of them, for the server to say again), summary.json.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from pydantic import BaseModel

from contracts.artifacts import (
    ASKED,
    BEST_ITEMS,
    CHANNEL_PARITY,
    CHANNEL_SETTINGS,
    RECENT_ITEMS,
    RECENT_TIMES,
    RECENT_VALUES,
    SCORES,
    WEIGHTS,
)
from contracts.bundle.bundle import save_weights
from contracts.config.config import Config
from contracts.config.stages import Channel
from contracts.errors import ConfigError
from contracts.features import vocabulary
from contracts.features.event_features import EVENT
from contracts.features.feature_spec import FIRST_ID
from contracts.progress import heard_by, report
from contracts.summaries import summary
from contracts.summaries.train import ChannelSummary
from models.distributed.run_checkpoint import Identity, RunCheckpoint, named
from models.interactions import event_log
from models.interactions.evaluate import evaluate
from models.interactions.event_log import EventLog
from models.interactions.interactions import Interactions
from models.interactions.retriever import Fitted, Retriever
from models.interactions.splits import Split
from models.jobs.carried_encoder import carried
from models.jobs.resume import kept_alone
from models.jobs.training_task import TrainingTask
from models.retrieval import registry
from models.retrieval.factorisation import Als, Bpr, require_library
from models.retrieval.folded_in import FoldedIn
from models.retrieval.item_to_item import Ease, ItemCosine, NearestItems
from models.retrieval.light_gcn import LightGcn
from models.retrieval.popularity import RecentPopularity
from models.sequences.sequence_retriever import SequenceRetriever
from models.training import checkpoint
from models.training.warm_start import Parent

PARITY_USERS, PARITY_ITEMS = 64, 10
Keep = Callable[[Path, Identity], RunCheckpoint | None]  # of a folder and what the run is


def check_channels(config: Config) -> None:
    """Before hours of training. Raises ConfigError for settings that a channel's model lacks or that leave it nothing
    to say, and where its library is not installed."""
    for name, channel in config.retrieve.channels.items():
        model = registry.build(name, config.seed, channel.settings)
        if isinstance(model, Als | Bpr):
            require_library()
        if isinstance(model, LightGcn) and not model.settings.layers:
            raise ConfigError("a light_gcn channel makes a user's vector of what the layers send, and "
                              "retrieve.channels.light_gcn.settings.layers is 0; set 1 or more")


def train_channels(task: TrainingTask) -> dict[str, ChannelSummary]:
    """Each as configured; one whose settings, actions and seed are as in its folder is kept as it is."""
    wanted = task.config.retrieve.channels
    if not wanted:
        return {}
    retrieve = task.config.retrieve
    log = event_log.read(task.out, task.config.label.repeat, retrieve.event_times, retrieve.event_columns)
    made: dict[str, ChannelSummary] = {}
    with heard_by(task.on_progress):
        for name, channel in wanted.items():
            report(f"channel {name}")
            made[name] = train_channel(name, channel, log, task.out.channel(name), task.seed, task.force,
                                       functools.partial(kept_alone, task), task.parent)
    return made


def train_channel(
    name: str, channel: Channel, log: EventLog, folder: Path, seed: int, force: bool = False, keep: Keep | None = None,
    parent: Parent | None = None,
) -> ChannelSummary:
    """Into `folder`. Models that are trained epoch by epoch are kept there by `keep`; encoders start from those of
    `parent`, a bundle. Raises ConfigError for settings
    that the model does not have, SluiceError after a SIGTERM, when all is written."""
    settings = registry.settings(name, channel.settings)
    start = carried(parent, name, log)
    digest = _digest(name, settings, log, seed, parent.manifest.content_hash if parent and start else "")
    known = summary.kept(folder, ChannelSummary)
    if known is not None and known.digest == digest and not force and (folder / CHANNEL_PARITY).exists():
        return known
    (folder / summary.FILE).unlink(missing_ok=True)
    built = registry.build(name, seed, channel.settings)
    kept = keep(folder, _identity(name, settings, digest, seed)) if keep else None
    if isinstance(built, SequenceRetriever | LightGcn):
        built.kept = kept
    if isinstance(built, SequenceRetriever):
        built.start = start
    model = _as_carried(built)
    fitted = model.fit(log.split)
    _save(model, folder / WEIGHTS)
    (folder / CHANNEL_SETTINGS).write_text(settings.model_dump_json(indent=1), encoding="utf-8")
    vocabulary.write(folder, "items", log.items)
    for column, values in log.columns.items():
        vocabulary.write(folder, EVENT + column, values)
    _write_parity(model, log, folder / CHANNEL_PARITY)
    made = _figures(model, fitted, log.split, digest).model_copy(
        update={"warm_start": start.figures if start else None})
    summary.write(folder, made)
    if kept:
        kept.clear()
    return made


def _as_carried(model: Retriever) -> Retriever:
    """As a bundle carries it: asked by the history alone, of little size."""
    if isinstance(model, ItemCosine | Ease):
        return NearestItems(model)
    return FoldedIn(model) if isinstance(model, Als | Bpr | LightGcn) else model


def _save(model: Retriever, path: Path) -> None:
    if isinstance(model, NearestItems):
        save_weights(path, {"items": model.items.numpy(), "weights": model.weights.numpy()})
    elif isinstance(model, FoldedIn):
        save_weights(path, model.arrays())
    elif isinstance(model, RecentPopularity):
        save_weights(path, {"counts": model.counts.numpy()})
    else:
        assert isinstance(model, SequenceRetriever)
        checkpoint.save(model.network, path)


def _figures(model: Retriever, fitted: Fitted, split: Split, digest: str) -> ChannelSummary:
    train = split.train
    found = evaluate(model, split.validation, train.counts())
    return ChannelSummary(
        seconds=fitted.seconds, rows_per_second=fitted.rows_per_second, rounds=fitted.rounds, actions=len(train.items),
        users=int(np.count_nonzero(train.lengths)), items=train.table - FIRST_ID, validation_targets=found.targets,
        recall_at_10=found.at["10"].recall, recall_at_100=found.at["100"].recall, ndcg_at_10=found.at["10"].ndcg,
        mrr=found.mrr, coverage_at_10=found.at["10"].coverage, novelty_at_10=found.at["10"].novelty,
        recall_by={kind: {name: part.recall_at_10 for name, part in parts.items()}
                   for kind, parts in found.slices.items()},
        digest=digest)


@torch.inference_mode()
def _write_parity(model: Retriever, log: EventLog, path: Path) -> None:
    """Users spread evenly over those with a history, asked at the last time of the log; nothing is hidden from the best
    items."""
    history, now = log.split.train, _last(log.split.train)
    asked = np.flatnonzero(history.lengths)
    asked = asked[np.linspace(0, len(asked) - 1, min(PARITY_USERS, len(asked)), dtype=np.int64)]
    history = replace(history, asked=np.full(history.users, now))
    scores = model.scores(asked, history.rows(asked))
    best = scores[:, FIRST_ID:].topk(min(PARITY_ITEMS, scores.shape[1] - FIRST_ID))
    keys = log.items.keys()
    pq.write_table(pa.table({
        RECENT_ITEMS: [keys.take(history.of(user)[::-1] - FIRST_ID).to_pylist() for user in asked.tolist()],
        BEST_ITEMS: [keys.take(places).to_pylist() for places in best.indices.numpy()],
        SCORES: best.values.tolist(),
        **_told_columns(log, asked.tolist(), now),
    }), path)


def _last(history: Interactions) -> int:
    return 0 if history.times is None or not len(history.times) else int(history.times.max())


def _told_columns(log: EventLog, asked: Sequence[int], now: int) -> dict[str, list[Any]]:
    """Of the histories, newest first: what is told of their events."""
    history, told = log.split.train, log.split.train.told
    if told is None:
        return {}
    rows = [slice(*history.offsets[user:user + 2].tolist()) for user in asked]
    found: dict[str, list[Any]] = {ASKED: [now] * len(asked)}
    if told.gaps and history.times is not None:
        found[RECENT_TIMES] = [history.times[row][::-1].tolist() for row in rows]
    for place, (column, known) in enumerate(log.columns.items()):
        texts = [None, None, *known.keys().to_pylist()]
        found[RECENT_VALUES + column] = [[texts[id] for id in told.values[row, place][::-1]] for row in rows]
    return found


def _identity(name: str, settings: BaseModel, digest: str, seed: int) -> dict[str, str]:
    """What a checkpoint is of; `digest` changes with the actions as well."""
    return {"model": name, "seed": str(seed), "actions": digest[:12], **named("settings", settings)}


def _digest(name: str, settings: BaseModel, log: EventLog, seed: int, parent: str) -> str:
    parts = hashlib.sha256(json.dumps([name, seed, settings.model_dump(mode="json")], sort_keys=True).encode())
    if name == "recent_popularity" and log.split.train.times is not None:
        parts.update(np.ascontiguousarray(log.split.train.times).tobytes())
    for actions in (log.split.train, log.split.validation.targets):
        for array in (actions.offsets, actions.items):
            parts.update(np.ascontiguousarray(array).tobytes())
        if actions.told is not None:
            parts.update(f"told {actions.told.gaps}".encode() + np.ascontiguousarray(actions.told.values).tobytes())
            parts.update(b"" if actions.times is None else np.ascontiguousarray(actions.times).tobytes())
    for known in (log.items, *log.columns.values()):
        for key in known.keys():  # noqa: SIM118 - it is no mapping
            parts.update(key.as_py().encode() + b"\0")
    parts.update(parent.encode())
    return parts.hexdigest()
