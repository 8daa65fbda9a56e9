from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.artifacts import CALIBRATION, WEIGHTS
from models.jobs.retrieval_training import PRE_RANKER, TOWER, build_towers, train_retrieval
from models.training import checkpoint


def test_both_are_saved_calibrated_and_kept(make_task) -> None:
    task = make_task()
    found = train_retrieval(task)
    for name in (TOWER, PRE_RANKER):
        assert (task.out.model(name) / CALIBRATION).exists()
        assert (task.out.model(name) / WEIGHTS).exists()
    checkpoint.load(build_towers(task.spec, task.config.train), task.out.model(TOWER) / WEIGHTS)
    assert found.two_tower.recall is not None
    assert set(found.two_tower.recall) == {"10", "20", "100"}
    assert found.two_tower.recall["100"].two_tower == 1.0
    again = replace(task, on_progress=lambda what, done, total: pytest.fail("trained again"))
    assert train_retrieval(again) == found


def test_another_pre_ranker_leaves_the_towers_alone(make_task) -> None:
    task = make_task("dot_product")
    assert train_retrieval(task).pre_ranker is None
    assert not task.out.model(PRE_RANKER).exists()
