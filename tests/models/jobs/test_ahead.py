"""Models made ahead are those that the train job would make, and it takes them up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contracts.artifacts import WEIGHTS
from contracts.summaries.train import TrainSummary
from models.distributed.run_checkpoint import Progress, State
from models.distributed.world import ALONE
from models.jobs.ahead import make_ahead, names_ahead
from models.jobs.resume import kept_run
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


@pytest.mark.parametrize("begin", [
    lambda config, out: make_ahead(config, out, ["logistic_regression"]), train_models])
def test_a_run_begins_without_what_another_was_stopped_in(make_task, begin: Callable[..., object]) -> None:
    """Its own resumption would be refused for it; what it does not train stays for whoever was stopped there."""
    older, newer = (make_task(models=["logistic_regression"], dropout=dropout, checkpoint_minutes=1.0)
                    for dropout in (0.1, 0.4))
    kept = {name: kept_run(older, name) for name in ("logistic_regression", "din")}
    for one in kept.values():
        assert one is not None
        one.write(Progress(batch=3), State({}, {}), ALONE)
    begin(newer.config, newer.out)
    assert [one.folder.exists() for one in kept.values() if one] == [False, True]
