from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts import summary
from contracts.artifacts import WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from models.evaluation import boosted_trees
from models.jobs.lightgbm_baseline import NAME, outside_figures
from models.jobs.ranker_training import Job
from models.tracking.tracking import Tracker


@pytest.fixture
def job(tmp_path: Path, spec: FeatureSpec, columns: Any, write: Callable[..., Path]) -> Job:
    """The label says which item it is, and what the history holds."""
    out = Artifacts(tmp_path)
    for number, window in enumerate(WINDOWS):
        drawn = columns(spec, 2500, number)
        logit = np.where(drawn["item"] % 2 == 0, 1.0, -1.5) + 1.5 * (drawn["tags"] == 5).any(axis=1)
        drawn["_label"] = (np.random.default_rng(number).random(2500) < 1 / (1 + np.exp(-logit))).astype(np.float64)
        write(out.examples(window), drawn)
    config = Config.model_validate({
        "name": "x", "log": {"path": "p", "event_time": "t"}, "label": {"expression": "y"},
        "fields": [{"name": "item", "kind": "categorical", "side": "item"}], "train": {"lightgbm_rows": 2000},
    })
    return Job(config, out, spec, 3, Tracker(tmp_path, "x", silent=True), False, lambda what, done, total: None)


def test_it_learns_from_a_bounded_sample_and_reads_lists(job: Job) -> None:
    found = outside_figures(job)
    assert found is not None
    assert found["rows"] == 2000
    assert found["auc"] > 0.74
    assert 0.5 < found["gauc"] <= 1
    assert "digest" not in found


def test_the_same_examples_are_not_fitted_twice(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    first = outside_figures(job)
    assert first is not None
    with monkeypatch.context() as patch:
        patch.setattr(boosted_trees, "fit_and_predict", lambda *_, **__: pytest.fail("fitted again"))
        assert outside_figures(job) == first
    summary.write(job.out.model(NAME), {**summary.read(job.out.model(NAME)), "digest": "another"})
    again = outside_figures(job)
    assert again is not None
    assert {**again, "seconds": 0} == {**first, "seconds": 0}


def test_it_can_be_left_out(job: Job) -> None:
    train = job.config.train.model_copy(update={"lightgbm_rows": 0})
    assert outside_figures(replace(job, config=job.config.model_copy(update={"train": train}))) is None
