from __future__ import annotations

from collections.abc import Callable

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from contracts.bundle.bundle import load_array
from contracts.errors import SluiceError
from models.evaluation.metrics import log_loss
from models.examples.batches import ExampleSet
from models.tuning import objective, study
from models.tuning.objective import Objective, TuningTask, half
from models.tuning.study import ERROR

MakeTask = Callable[..., TuningTask]


def run(task: TuningTask, trials: int = 1) -> optuna.Study:
    opened = study.open_study(task.folder, task.study, 1)
    opened.optimize(Objective(task), n_trials=trials, catch=(SluiceError,))
    return opened


def test_a_trial_scores_its_best_epoch_and_keeps_the_logits_of_the_other_half(make_task: MakeTask) -> None:
    task = make_task()
    trial = run(task).trials[0]
    assert trial.state == TrialState.COMPLETE
    assert trial.params["learning_rate"] == 1e-6
    assert trial.value == max(trial.intermediate_values.values())
    logits = load_array(objective.logits_file(task.folder, task.study, 0))
    assert logits.shape == (half(task.out, task.spec, 1).rows,)
    assert np.isfinite(logits).all()


def test_a_log_loss_is_of_probabilities_beside_all_negatives(make_task: MakeTask) -> None:
    """Settings that learn next to nothing say the click rate of training, of which a share of the negatives was kept;
    the validation window has all of them."""
    for rate in (1.0, 0.2):
        task = make_task()
        config = task.config.model_copy(update={
            "train": task.config.train.model_copy(update={"monitor": "log_loss"}),
            "features": task.config.features.model_copy(update={"negative_rate": rate})})
        trial = run(task._replace(config=config, study=f"rate {rate}")).trials[0]
        trained, labels = (ExampleSet(task.out.examples("train"), task.spec).column("_label").mean(),
                           half(task.out, task.spec, 0).column("_label"))
        odds = rate * trained / (1 - trained)
        assert trial.value == pytest.approx(-log_loss(labels, np.full(len(labels), odds / (1 + odds))), rel=0.05)


def test_another_study_in_the_folder_leaves_the_logits_of_the_first(make_task: MakeTask) -> None:
    task = make_task()
    run(task)
    before = np.array(load_array(objective.logits_file(task.folder, task.study, 0)))
    run(task._replace(study="another", seed=4))
    assert objective.logits_file(task.folder, "another", 0).exists()
    np.testing.assert_array_equal(load_array(objective.logits_file(task.folder, task.study, 0)), before)


def test_of_two_that_are_level_both_logits_are_kept(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best is the one with the smaller number, whichever of them ends first."""
    monkeypatch.setattr(objective.search_space, "with_settings", lambda train, values: train)
    task = make_task()
    trials = run(task, 3).trials
    level = [trial.number for trial in trials if trial.value == trials[0].value]
    assert level[0] == 0
    assert len(level) > 1
    assert all(objective.logits_file(task.folder, task.study, number).exists() for number in level)


def test_halves_share_no_user(make_task: MakeTask) -> None:
    task = make_task()
    users = [set(half(task.out, task.spec, number).column("_user")) for number in (0, 1)]
    assert not users[0] & users[1]


def test_configured_settings_are_never_pruned_and_others_are(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optuna.Trial, "should_prune", lambda trial: True)
    states = [trial.state for trial in run(make_task(), 2).trials]
    assert states == [TrialState.COMPLETE, TrialState.PRUNED]


def test_time_that_has_run_out_cuts_a_training_short(make_task: MakeTask) -> None:
    trial = run(make_task(seconds=-1)).trials[0]
    assert (trial.state, trial.intermediate_values) == (TrialState.PRUNED, {})


def test_why_a_trial_failed_is_kept(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SluiceError("the loss is nan at batch 3")

    monkeypatch.setattr(objective.fitting, "fit", fail)
    trial = run(make_task()).trials[0]
    assert trial.state == TrialState.FAIL
    assert trial.user_attrs[ERROR] == "the loss is nan at batch 3"
