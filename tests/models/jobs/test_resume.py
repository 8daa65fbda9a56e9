"""What is finished is kept, and nothing else: every change that weights depend on, and every broken folder."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from contracts.artifacts import WEIGHTS
from contracts.summaries import summary
from contracts.summaries.summary import FILE
from contracts.summaries.train import LightgbmSummary
from models.jobs.resume import digest, finished, kept_run, take_summary_away


def kept(task, name: str = "lightgbm") -> LightgbmSummary:
    """Writes a finished folder: any weights, and the shortest summary that carries a digest."""
    found = LightgbmSummary(name=name, auc=0.7, validation_auc=0.7, rows=9, seconds=1.0, digest=digest(task, name))
    summary.write(task.out.model(name), found)
    (task.out.model(name) / WEIGHTS).touch()
    return found


def test_a_finished_model_is_found(make_task) -> None:
    task = make_task()
    assert finished(task, "lightgbm", LightgbmSummary) is None
    assert kept(task) == finished(task, "lightgbm", LightgbmSummary)
    assert finished(replace(task, force=True), "lightgbm", LightgbmSummary) is None


@pytest.mark.parametrize("change", [{"dropout": 0.4}, {"epochs": 2}, {"tower_dim": 6}])
def test_other_settings_are_another_model(make_task, change) -> None:
    kept(make_task())
    assert finished(make_task(**change), "lightgbm", LightgbmSummary) is None


@pytest.mark.parametrize("change", [{"models": ["dnn"]}, {"ranker": "logistic_regression"}, {"warm_start": ""}])
def test_which_other_models_there_are_changes_none(make_task, change) -> None:
    assert digest(make_task(), "dnn") == digest(make_task(**change), "dnn")


def test_the_digest_moves_with_name_seed_and_examples(make_task) -> None:
    task = make_task()
    before = digest(task, "dnn")
    assert len({before, digest(task, "din"), digest(replace(task, seed=4), "dnn")}) == 3
    path = next(task.out.examples("train").glob("day=*/*.parquet"))
    pq.write_table(pq.read_table(path).slice(1), path)
    assert digest(task, "dnn") != before


@pytest.mark.parametrize("broken", ["weights", "json", "record"])
def test_a_broken_folder_is_trained_again(make_task, broken) -> None:
    task = make_task()
    kept(task)
    folder = task.out.model("lightgbm")
    if broken == "weights":
        (folder / WEIGHTS).unlink()
    else:
        (folder / FILE).write_text("{" if broken == "json" else '{"auc": 0.7}', encoding="utf-8")
    assert finished(task, "lightgbm", LightgbmSummary) is None


def test_a_summary_goes_before_the_weights_it_describes(make_task) -> None:
    task = make_task()
    kept(task)
    take_summary_away(task, "lightgbm")
    assert not (task.out.model("lightgbm") / FILE).exists()
    take_summary_away(task, "lightgbm")


def test_members_of_an_ensemble_keep_their_runs_apart(make_task) -> None:
    task = make_task(checkpoint_minutes=1.0, ensemble=2)
    first, second = kept_run(task, "dnn"), kept_run(task, "dnn", 1)
    assert first is not None
    assert second is not None
    assert first.folder.parent == second.folder.parent
    assert first.folder != second.folder
    assert first.digest != second.digest
