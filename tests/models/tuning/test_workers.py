from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from optuna import Study
from optuna.trial import TrialState

from models.tuning import study, workers
from models.tuning.objective import TuningTask

MakeTask = Callable[..., TuningTask]


def test_one_process_works_where_it_was_asked_for_until_the_trials_are_done(make_task: MakeTask) -> None:
    task, looked = make_task(most=3), list[int]()

    def look(opened: Study) -> None:
        looked.append(study.started(opened))

    assert workers.search(task, 1, look) == []
    assert looked == [1, 2, 3]
    assert workers.search(task, 1, look) == []
    assert len(looked) == 3


def test_no_trial_begins_when_time_has_run_out(make_task: MakeTask) -> None:
    task = make_task(seconds=-1)
    workers.search(task, 1, lambda opened: None)
    assert [trial.state for trial in study.open_study(task.folder, task.study, 1).trials] == [TrialState.WAITING]


def test_processes_are_as_many_as_cores_unless_a_number_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workers.count_of(3, "cpu") == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda of: {0, 5, 6}, raising=False)
    assert workers.count_of(None, "cpu") == 3


@pytest.mark.slow
def test_two_processes_share_a_study(make_task: MakeTask) -> None:
    """Each trial is tried once."""
    task = make_task(most=4)
    assert workers.search(task, 2, lambda opened: None) == []
    trials = study.open_study(task.folder, task.study, 1).trials
    assert len(trials) == 4
    assert all(trial.state.is_finished() for trial in trials)
    assert len({str(trial.params) for trial in trials}) == len(trials)


@pytest.mark.slow
def test_the_codes_of_processes_that_died_are_told(make_task: MakeTask) -> None:
    task = make_task()
    task.out.examples("validation").rename(task.out.out / "gone")
    assert workers.search(task, 2, lambda opened: None) == [1, 1]
