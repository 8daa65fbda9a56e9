"""A search on unit-size examples whose configured learning rate is far too low; there is no test window."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import parse
from contracts.features.feature_spec import FeatureSpec
from models.tuning import search_space, study
from models.tuning.objective import TuningTask

EFFECT = np.random.default_rng(5).normal(0, 1.5, 64)
ROWS = 800
TEXT = """# A file that somebody wrote.
name = "tiny"
seed = 11
log = { path = "log" }
label = { expression = "clicked" }
fields = [
  { name = "item", kind = "categorical", side = "item" },
]

[train]            # of the rankers
models = ["popularity", "logistic_regression"]
learning_rate = 1e-6  # far too low
embedding_dim = 4
hidden = [
  8,
]
batch_size = 200
epochs = 3
device = "cpu"
lightgbm_rows = 0
item_prior = false

[serve]
max_limit = 10
"""


@pytest.fixture
def text() -> str:
    return TEXT


@pytest.fixture
def examples(tmp_path: Path, spec: FeatureSpec, columns: Any, write: Callable[..., Path]) -> Artifacts:
    out = Artifacts(tmp_path / "out")
    out.encoding.mkdir(parents=True)
    spec.write(out.encoding)
    for number, window in enumerate(("train", "validation")):
        drawn = columns(spec, ROWS, number)
        chance = np.random.default_rng(50 + number).random(ROWS)
        drawn["_label"] = (chance < 1 / (1 + np.exp(-EFFECT[drawn["item"]]))).astype(np.float64)
        write(out.examples(window), drawn)
    return out


@pytest.fixture
def make_task(examples: Artifacts, spec: FeatureSpec) -> Callable[..., TuningTask]:
    """`seconds` until the deadline, `most` trials; the study is open and the configured settings wait in it."""

    def make(seconds: float = 600.0, most: int = 3, model: str = "logistic_regression") -> TuningTask:
        config = parse(TEXT)
        spaces = {model: search_space.space_of(model, config.train, ROWS)}
        examples.tuning.mkdir(exist_ok=True)
        task = TuningTask(config=config, out=examples, spec=spec, seed=3, rows=ROWS, spaces=spaces, study="one",
                          deadline=time.time() + seconds, most=most)
        study.enqueue_configured(study.open_study(examples.tuning, "one", 3), {
            name: search_space.configured(space, config.train, ROWS) for name, space in spaces.items()})
        return task

    return make
