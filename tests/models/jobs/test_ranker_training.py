from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contracts.artifacts import CALIBRATION, TEST_LOGITS, TEST_ROWS, WEIGHTS
from contracts.bundle.bundle import load_array, load_weights
from models.evaluation.metrics import auc
from models.jobs.ranker_training import SEED_STEP, train_ranker


def test_the_files_of_a_ranker_are_those_its_figures_were_read_from(make_task) -> None:
    task = make_task()
    found, folder, test = train_ranker(task, "logistic_regression"), task.out.model("logistic_regression"), \
        task.examples("test")
    assert (folder / WEIGHTS).exists()
    assert (folder / CALIBRATION).exists()
    np.testing.assert_array_equal(load_array(folder / TEST_ROWS), test.column("_row"))
    assert found.auc == auc(test.column("_label"), load_array(folder / TEST_LOGITS))
    assert found.by_position is not None
    assert sum(part.rows for part in found.by_position.values()) == found.rows == test.rows
    assert sum(part.positives for part in found.by_position.values()) == found.positives


def test_a_finished_ranker_is_taken_as_it_is(make_task) -> None:
    task = make_task()
    first = train_ranker(task, "popularity")
    again = replace(task, on_progress=lambda what, done, total: pytest.fail("trained again"))
    assert train_ranker(again, "popularity") == first


def test_fresh_features_make_a_model_beside_the_published_one(make_task) -> None:
    task = make_task()
    train_ranker(task, "popularity", fresh=True)
    assert (task.out.model("popularity@fresh") / WEIGHTS).exists()
    assert not task.out.model("popularity").exists()


@pytest.mark.slow
def test_members_of_an_ensemble_are_what_their_seeds_alone_give(make_task) -> None:
    task = make_task(ensemble=2, embedding_l2=0.0)
    both = train_ranker(task, "dnn")
    logits = np.array(load_array(task.out.model("dnn") / TEST_LOGITS))
    weights = load_weights(task.out.model("dnn") / WEIGHTS)
    alone = []
    for number in range(2):
        single = replace(make_task(embedding_l2=0.0), seed=task.seed + number * SEED_STEP)
        train_ranker(single, "dnn")
        alone.append(np.array(load_array(single.out.model("dnn") / TEST_LOGITS)))
        for name, tensor in load_weights(single.out.model("dnn") / WEIGHTS).items():
            np.testing.assert_array_equal(weights[f"members.{number}.{name}"], tensor)
    np.testing.assert_allclose(logits, np.mean(alone, axis=0), atol=1e-6)
    assert np.abs(alone[0] - alone[1]).max() > 1e-3
    assert (both.epochs, len(both.position_bias)) == (1, task.spec.positions)


def test_popularity_needs_no_ensemble(make_task) -> None:
    task = make_task(ensemble=3)
    train_ranker(task, "popularity")
    assert list(load_weights(task.out.model("popularity") / WEIGHTS)) == ["logit"]
