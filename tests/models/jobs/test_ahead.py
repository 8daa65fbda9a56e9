"""Models made ahead are those that the train job would make, and it takes them up."""

from __future__ import annotations

import pytest

from contracts.artifacts import WEIGHTS
from contracts.summaries.train import TrainSummary
from models.jobs.ahead import make_ahead, names_ahead
from models.jobs.train_job import train_models


def plain(found: TrainSummary) -> dict[str, object]:
    """Without times and speeds."""
    def cut(value: object) -> object:
        if isinstance(value, dict):
            return {key: cut(part) for key, part in value.items() if "second" not in key}
        return [cut(part) for part in value] if isinstance(value, list) else value

    return cut(found.plain())  # type: ignore[return-value]


@pytest.mark.slow
def test_what_is_made_ahead_is_taken_up_and_is_the_same(make_task, tmp_path) -> None:
    task = make_task(models=["popularity", "logistic_regression", "dnn"], lightgbm_rows=300)
    names = names_ahead(task.config, task.out)
    assert names == ["two_tower", "dnn", "lightgbm", "logistic_regression", "popularity"]
    networks = [name for name in names if name != "lightgbm"]
    alone = train_models(task.config, task.out, seed=3, force=True)
    for name in names:
        (task.out.model(name) / "summary.json").unlink()
    for name in reversed(names):
        make_ahead(task.config, task.out, [name], seed=3)
    written = {name: (task.out.model(name) / WEIGHTS).stat().st_mtime_ns for name in networks}
    taken_up = train_models(task.config, task.out, seed=3)
    assert {name: (task.out.model(name) / WEIGHTS).stat().st_mtime_ns for name in networks} == written
    assert plain(taken_up) == plain(alone)


def test_what_a_run_does_not_want_is_not_named(make_task) -> None:
    task = make_task(models=["dnn"])
    assert names_ahead(task.config, task.out) == ["two_tower", "dnn"]


def test_what_takes_long_comes_first(make_task) -> None:
    task = make_task(models=["popularity", "dnn", "final_mlp", "dcn_v2", "logistic_regression"])
    names = names_ahead(task.config, task.out)
    assert names == ["final_mlp", "dcn_v2", "two_tower", "dnn", "logistic_regression", "popularity"]
