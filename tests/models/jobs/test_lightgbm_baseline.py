from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.artifacts import WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries import summary
from models.evaluation import boosted_trees
from models.jobs.lightgbm_baseline import NAME, lightgbm_figures
from models.jobs.training_task import TrainingTask
from models.tracking.tracking import Tracker


@pytest.fixture
def task(tmp_path: Path, spec: FeatureSpec, columns: Any, write: Callable[..., Path]) -> TrainingTask:
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
    return TrainingTask(config=config, out=out, spec=spec, seed=3, tracker=Tracker(tmp_path, "x", silent=True),
                        force=False, on_progress=lambda what, done, total: None)


def test_it_learns_from_a_bounded_sample_and_reads_lists(task: TrainingTask) -> None:
    found = lightgbm_figures(task)
    assert found is not None
    assert found.rows == 2000
    assert found.auc > 0.74
    assert found.gauc is not None
    assert 0.5 < found.gauc <= 1


def test_the_same_examples_are_not_fitted_twice(task: TrainingTask, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lightgbm_figures(task)
    assert first is not None
    with monkeypatch.context() as patch:
        patch.setattr(boosted_trees, "fit_and_predict", lambda *_, **__: pytest.fail("fitted again"))
        assert lightgbm_figures(task) == first
    assert first is not None
    summary.write(task.out.model(NAME), first.model_copy(update={"digest": "another"}))
    again = lightgbm_figures(task)
    assert again is not None
    assert again.model_copy(update={"seconds": first.seconds}) == first


def test_it_can_be_left_out(task: TrainingTask) -> None:
    train = task.config.train.model_copy(update={"lightgbm_rows": 0})
    assert lightgbm_figures(replace(task, config=task.config.model_copy(update={"train": train}))) is None


def test_its_trees_are_told_to_who_asked_for_the_training(task: TrainingTask) -> None:
    said: list[tuple[str, int, int]] = []
    lightgbm_figures(replace(task, on_progress=lambda *progress: said.append(progress)))
    assert said[0] == (NAME, 0, 0)
    assert {name for name, _, _ in said} == {NAME}
    assert [done for _, done, _ in said] == list(range(len(said)))
    assert len(said) > boosted_trees.PATIENCE
