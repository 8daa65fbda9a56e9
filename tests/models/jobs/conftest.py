"""A training task on unit-size examples, tracked nowhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.artifacts import WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from models.jobs.training_task import TrainingTask
from models.tracking.tracking import Tracker

MakeTask = Callable[..., TrainingTask]
TRAIN = {
    "models": ["logistic_regression"], "embedding_dim": 4, "hidden": [8], "batch_size": 200, "epochs": 1,
    "device": "cpu", "tower_dim": 4, "tower_hidden": [8], "tower_epochs": 1, "lightgbm_rows": 0,
}
EFFECT = np.random.default_rng(5).normal(0, 1.5, 64)


@pytest.fixture
def make_task(tmp_path: Path, spec: FeatureSpec, columns: Any, write: Callable[..., Path]) -> MakeTask:
    """`changes` are of `[train]`, `prerank` of `[prerank]`; the label depends on the item."""

    def make(prerank: str = "towers", **changes: object) -> TrainingTask:
        out = Artifacts(tmp_path / "out")
        if not out.encoding.exists():
            out.encoding.mkdir(parents=True)
            spec.write(out.encoding)
            for number, window in enumerate(WINDOWS):
                drawn = columns(spec, 600, number)
                chance = np.random.default_rng(50 + number).random(600)
                drawn["_label"] = (chance < 1 / (1 + np.exp(-EFFECT[drawn["item"]]))).astype(np.float64)
                drawn["price@fresh"] = drawn["price"] + 1.0
                write(out.examples(window), drawn)
        config = Config.model_validate({
            "name": "tiny", "seed": 11, "log": {"path": "log"}, "label": {"expression": "clicked"},
            "fields": [{"name": "item", "kind": "categorical", "side": "item"}], "train": {**TRAIN, **changes},
            "retrieve": {"candidates": 20}, "prerank": {"keep": 10, "kind": prerank, "hidden": [8]},
            "serve": {"max_limit": 10},
        })
        return TrainingTask(config=config, out=out, spec=spec, seed=3, tracker=Tracker(out.out, "tiny", silent=True),
                            force=False, on_progress=lambda what, done, total: None)

    return make
