"""Further channels of retrieval (`retrieve.channels`), trained on what people did before the validation window.

OUT/channels/NAME: weights, settings.json (the model's own, as they were resolved), vocabularies/items (their places are
the ids), parity.parquet (sampled histories and what the model says of them, for the server to say again), summary.json.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from pydantic import BaseModel

from contracts.artifacts import BEST_ITEMS, CHANNEL_PARITY, CHANNEL_SETTINGS, RECENT_ITEMS, SCORES, WEIGHTS
from contracts.bundle.bundle import save_weights
from contracts.config.config import Config
from contracts.config.stages import Channel
from contracts.errors import ConfigError
from contracts.features import vocabulary
from contracts.features.feature_spec import FIRST_ID
from contracts.progress import heard_by, report
from contracts.summaries import summary
from contracts.summaries.train import ChannelSummary
from models.distributed.run_checkpoint import Identity, RunCheckpoint, named
from models.interactions import event_log
from models.interactions.evaluate import evaluate
from models.interactions.event_log import EventLog
from models.interactions.retriever import Fitted, Retriever
from models.interactions.splits import Split
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
    log = event_log.read(task.out, task.config.label.repeat)
    made: dict[str, ChannelSummary] = {}
    with heard_by(task.on_progress):
        for name, channel in wanted.items():
            report(f"channel {name}")
            made[name] = train_channel(name, channel, log, task.out.channel(name), task.seed, task.force,
                                       functools.partial(kept_alone, task))
    return made


def train_channel(
    name: str, channel: Channel, log: EventLog, folder: Path, seed: int, force: bool = False, keep: Keep | None = None,
) -> ChannelSummary:
    """Into `folder`. Models that are trained epoch by epoch are kept there by `keep`. Raises ConfigError for settings
    that the model does not have, SluiceError after a SIGTERM, when all is written."""
    settings = registry.settings(name, channel.settings)
    digest = _digest(name, settings, log, seed)
    known = summary.read(folder, ChannelSummary)
    if known is not None and known.digest == digest and not force and (folder / CHANNEL_PARITY).exists():
        return known
    (folder / summary.FILE).unlink(missing_ok=True)
    built = registry.build(name, seed, channel.settings)
    kept = keep(folder, _identity(name, settings, digest, seed)) if keep else None
    if isinstance(built, SequenceRetriever | LightGcn):
        built.kept = kept
    model = _as_carried(built)
    fitted = model.fit(log.split)
    _save(model, folder / WEIGHTS)
    (folder / CHANNEL_SETTINGS).write_text(settings.model_dump_json(indent=1), encoding="utf-8")
    vocabulary.write(folder, "items", log.items)
    _write_parity(model, log, folder / CHANNEL_PARITY)
    made = _figures(model, fitted, log.split, digest)
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
    """Users spread evenly over those with a history; nothing is hidden from the best items."""
    history = log.split.train
    asked = np.flatnonzero(history.lengths)
    asked = asked[np.linspace(0, len(asked) - 1, min(PARITY_USERS, len(asked)), dtype=np.int64)]
    scores = model.scores(asked, history.rows(asked))
    best = scores[:, FIRST_ID:].topk(min(PARITY_ITEMS, scores.shape[1] - FIRST_ID))
    keys = log.items.keys()
    pq.write_table(pa.table({
        RECENT_ITEMS: [keys.take(history.of(user)[::-1] - FIRST_ID).to_pylist() for user in asked.tolist()],
        BEST_ITEMS: [keys.take(places).to_pylist() for places in best.indices.numpy()],
        SCORES: best.values.tolist(),
    }), path)


def _identity(name: str, settings: BaseModel, digest: str, seed: int) -> dict[str, str]:
    """What a checkpoint is of; `digest` changes with the actions as well."""
    return {"model": name, "seed": str(seed), "actions": digest[:12], **named("settings", settings)}


def _digest(name: str, settings: BaseModel, log: EventLog, seed: int) -> str:
    parts = hashlib.sha256(json.dumps([name, seed, settings.model_dump(mode="json")], sort_keys=True).encode())
    if name == "recent_popularity" and log.split.train.times is not None:
        parts.update(np.ascontiguousarray(log.split.train.times).tobytes())
    for actions in (log.split.train, log.split.validation.targets):
        for array in (actions.offsets, actions.items):
            parts.update(np.ascontiguousarray(array).tobytes())
    for key in log.items.keys():  # noqa: SIM118 - it is no mapping
        parts.update(key.as_py().encode() + b"\0")
    return parts.hexdigest()
