"""RecTools' SASRec on a plan, by its own data preparation, loop and network; runs in its environment alone.

    run(PLAN)       PLAN: a file of benchmarks/peers/sequence_plan.py

RecTools (github.com/MobileTeleSystems/RecTools, Apache-2.0). Its batches are of users, its negatives of each
prediction; without negatives its loss is the softmax over all items. Training is timed epoch by epoch.
"""

from __future__ import annotations

import resource
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from pytorch_lightning import Callback, LightningModule, Trainer, seed_everything
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import SASRecModel
from rectools.models.nn.item_net import IdEmbeddingsItemNet

from benchmarks.peers.plan import Outcome
from benchmarks.peers.sequence_plan import LISTED, SequenceLog, SequencePlan


class EpochSeconds(Callback):
    """Of all epochs together."""

    def __init__(self) -> None:
        self.total, self._start = 0.0, 0.0

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._start = time.perf_counter()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.total += time.perf_counter() - self._start


def run(path: str) -> None:
    """Trains, and writes recommendations and outcome."""
    warnings.simplefilter("ignore")
    plan = SequencePlan.read(path)
    torch.set_num_threads(plan.threads)
    seed_everything(plan.seed)
    log = SequenceLog.read(plan.rows)
    dataset = Dataset.construct(interactions(log))

    def timed() -> Trainer:  # a plain function: the model writes down where it is from
        return trainer(plan.epochs)

    model = SASRecModel(
        n_blocks=plan.blocks, n_heads=plan.heads, n_factors=plan.width, dropout_rate=plan.dropout,
        session_max_len=plan.length, batch_size=plan.users, lr=plan.learning_rate, epochs=plan.epochs,
        item_net_block_types=(IdEmbeddingsItemNet,), get_trainer_func=timed, **loss(plan))
    model.fit(dataset)
    [clock] = [one for one in model.fit_trainer.callbacks if isinstance(one, EpochSeconds)]
    found = model.recommend(log.asked, dataset, k=LISTED, filter_viewed=True)
    np.save(Path(plan.out, "test.npy"), lists(found, log.asked))
    Outcome(rows_per_second=log.predictions(plan.length) * plan.epochs / clock.total, seconds_to_best=clock.total,
            epochs=plan.epochs, best_epoch=plan.epochs,
            peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024).write(plan.out)


def loss(plan: SequencePlan) -> dict[str, object]:
    if plan.negatives is None:
        return {"loss": "softmax"}
    return {"loss": "sampled_softmax", "n_negatives": plan.negatives}


def trainer(epochs: int) -> Trainer:
    """As its own, with a clock."""
    return Trainer(max_epochs=epochs, min_epochs=epochs, accelerator="cpu", devices=1, logger=False,
                   enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                   callbacks=[EpochSeconds()])


def interactions(log: SequenceLog) -> pd.DataFrame:
    """All that trains; what came later in a user's sequence has a later time."""
    kept = np.flatnonzero(~log.tested)
    return pd.DataFrame({
        Columns.User: log.owners[kept], Columns.Item: log.items[kept], Columns.Weight: 1.0,
        Columns.Datetime: pd.Timestamp("2020-01-01") + pd.to_timedelta(kept, unit="s")})


def lists(found: pd.DataFrame, asked: np.ndarray) -> np.ndarray:
    """Items [U, LISTED], best first; 0 where fewer were recommended."""
    made = np.zeros((len(asked), LISTED), np.int64)
    made[np.searchsorted(asked, found[Columns.User]), found[Columns.Rank] - 1] = found[Columns.Item]
    return made
