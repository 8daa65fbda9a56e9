from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from models.cross_search.columns import read
from models.cross_search.search_digest import search_digest
from models.examples.batches import ExampleSet
from tests.models.crossed_world import crossed_columns, crossed_spec, pair_logit, write_examples

EFFECT = pair_logit(0, 4)


def config(compare_rows: int = 500, **train: object) -> Config:
    return Config.model_validate({
        "name": "t", "log": {"path": "x", "event_time": "t"}, "label": {"expression": "y"}, "train": train,
        "crosses": {"compare_rows": compare_rows},
        "fields": [{"name": "f0", "kind": "categorical", "side": "user"}]})


@pytest.fixture
def out(tmp_path: Path) -> Artifacts:
    for seed, window in enumerate(("train", "validation", "test")):
        write_window(Artifacts(tmp_path), window, EFFECT, seed)
    return Artifacts(tmp_path)


def write_window(out: Artifacts, window: str, logit: Callable[[np.ndarray], np.ndarray], seed: int) -> None:
    shutil.rmtree(out.examples(window), ignore_errors=True)
    write_examples(out.examples(window), crossed_columns(logit, rows=1000, seed=seed))


def digest(config: Config, out: Artifacts) -> str:
    spec = crossed_spec()
    return search_digest(config, out, spec, 0, read(ExampleSet(out.examples("train"), spec), spec, 1000, 0))


def test_settings_of_training_that_the_search_uses_make_it_another(out: Artifacts) -> None:
    before = digest(config(), out)
    assert digest(config(clip_norm=3.0), out) != before
    assert digest(config(models=["dcn_v2"], tower_dim=8, checkpoint_minutes=3), out) == before


@pytest.mark.parametrize("window", ["validation", "test"])
def test_windows_that_crosses_are_compared_on_count_where_they_are_compared(window: str, out: Artifacts) -> None:
    alone, compared = digest(config(compare_rows=0), out), digest(config(), out)
    write_window(out, window, lambda ids: -EFFECT(ids), 9)
    assert digest(config(compare_rows=0), out) == alone
    assert digest(config(), out) != compared
