"""The two towers on a log of positives alone: user id and latest items against the item's id, in-batch softmax.

The towers of the funnel as they are (models/networks/two_tower.py), with their loop and their log-Q correction; what
they read is written as encoded examples first, because that is what they read.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from contracts.artifacts import LABEL, ROW, USER
from contracts.config.training import Train
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from contracts.progress import report
from models.examples.batches import ExampleSet, FeatureBlock
from models.interactions.interactions import Interactions
from models.interactions.retriever import Fitted
from models.interactions.splits import Holdout, Split
from models.networks.two_tower import TwoTower
from models.training import fitting
from models.training.progress import batch_counter


class TowerSettings(BaseModel):
    """`length`: latest items that the user's tower reads; `mixed` and `hard` as train.tower_mixed and .tower_hard.

    The rate is ten times a ranker's and stays: ids alone, each seen a few times, are far from where they start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(64, ge=2)
    hidden: tuple[int, ...] = (128,)
    embedding: int = Field(32, ge=1)
    length: int = Field(20, ge=1)
    epochs: int = Field(30, ge=1)
    patience: int = Field(3, ge=1)
    batch: int = Field(1024, ge=1)
    learning_rate: float = Field(1e-2, gt=0)
    temperature: float = Field(0.1, gt=0)
    dropout: float = Field(0.2, ge=0, lt=1)
    mixed: int = Field(0, ge=0)
    hard: int = Field(0, ge=0)


class Towers:
    """One seed gives one fit."""

    def __init__(self, settings: TowerSettings, seed: int) -> None:
        self.settings, self.seed = settings, seed

    def fit(self, split: Split) -> Fitted:
        """Each action but a user's first is a row, described by the actions before it."""
        s = self.settings
        torch.manual_seed(self.seed)
        spec = _spec(split.train, s.length)
        self.network = TwoTower(spec, s.embedding, s.hidden, s.width, s.dropout, s.temperature)
        train = Train(tower_epochs=s.epochs, batch_size=s.batch, learning_rate=s.learning_rate, patience=s.patience,
                      schedule="constant", device="cpu", tower_mixed=s.mixed, tower_hard=s.hard)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            rows = ExampleSet(write(path / "train", training_rows(split.train, s.length)), spec)
            asked = ExampleSet(write(path / "validation", asked_rows(split.validation, s.length)), spec)
            fit = fitting.fit_towers(self.network, rows, asked, train, self.seed,
                                     on_batch=batch_counter(report, "two_tower", s.epochs))
        self.vectors = self._item_vectors(split.train.table)
        return Fitted(fit.seconds, fit.rows_per_second, fit.best_epoch)

    @torch.inference_mode()
    def _item_vectors(self, table: int) -> Tensor:
        items = torch.arange(table, dtype=torch.int32)[:, None]
        return self.network.eval().item_vector(FeatureBlock(items, torch.empty(table, 0)))

    @torch.no_grad()
    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]."""
        latest = before(history, history.offsets[1:], np.arange(history.users), self.settings.length)
        ids = np.concatenate([users[:, None] + FIRST_ID, latest], 1)
        request = FeatureBlock(torch.from_numpy(ids.astype(np.int32)), torch.empty(len(users), 0))
        return self.network.eval().user_vector(request) @ self.vectors.T


class Rows(NamedTuple):
    """user [R], history [R, length] newest first, item [R] that followed."""

    user: np.ndarray
    history: np.ndarray
    item: np.ndarray


def training_rows(log: Interactions, length: int) -> Rows:
    """Each action but a user's first."""
    place = np.setdiff1d(np.arange(len(log.items)), log.offsets[:-1])
    user = log.owners[place]
    return Rows(user, before(log, place, user, length), log.items[place])


def asked_rows(holdout: Holdout, length: int) -> Rows:
    """Each target of the holdout."""
    user, known = holdout.targets.owners, holdout.history
    return Rows(user, before(known, known.offsets[user + 1], user, length), holdout.targets.items)


def before(log: Interactions, place: np.ndarray, user: np.ndarray, length: int) -> np.ndarray:
    """[R, length]: the items of user [R] before the flat place [R], newest first, 0 behind them."""
    index = place[:, None] - 1 - np.arange(length)
    items = log.items if len(log.items) else np.zeros(1, np.int64)
    return np.where(index >= log.offsets[user][:, None], items[np.maximum(index, 0)], 0)


def write(folder: Path, rows: Rows) -> Path:
    """As the pipelines write encoded examples, every row a positive."""
    number = len(rows.user)
    columns = {
        "user": pa.array((rows.user + FIRST_ID).astype(np.int32)), "item": pa.array(rows.item.astype(np.int32)),
        "history": pa.FixedSizeListArray.from_arrays(pa.array(rows.history.astype(np.int32).ravel()),
                                                     rows.history.shape[1]),
        LABEL: pa.array(np.ones(number)), USER: pa.array(rows.user), ROW: pa.array(np.arange(number)),
    }
    (folder / "day=all").mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "day=all" / "part-00000.parquet", row_group_size=65_536)
    return folder


def _spec(log: Interactions, length: int) -> FeatureSpec:
    fields = (
        FeatureField(name="user", kind="categorical", side="user", size=log.users + FIRST_ID),
        FeatureField(name="history", kind="sequence", side="user", of="item", vocabulary="item", size=log.table,
                     length=length),
        FeatureField(name="item", kind="categorical", side="item", vocabulary="item", size=log.table),
    )
    return FeatureSpec(fields=fields, has_users=True)
