from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from contracts.artifacts import Artifacts
from contracts.config.config import parse
from contracts.errors import SluiceError
from contracts.features.feature_spec import FeatureSpec
from models.tuning import search_space, study


def test_two_searches_in_one_folder_are_refused(tmp_path: Path) -> None:
    with study.only_one(tmp_path / "tuning"), pytest.raises(SluiceError, match="another `sluice tune` is at work"):
        study.only_one(tmp_path / "tuning").__enter__()
    with study.only_one(tmp_path / "tuning"):
        pass


def test_a_study_is_found_again_with_its_trials_and_configured_settings_wait_once(tmp_path: Path) -> None:
    first = study.open_study(tmp_path, "one", 1)
    for _ in range(2):
        study.enqueue_configured(first, {"dnn": {"dropout": 0.2}})
    first.optimize(lambda trial: trial.suggest_float("dropout", 0, 1) if trial.suggest_categorical("model", ["dnn"])
                   else 0.0, n_trials=3)
    again = study.open_study(tmp_path, "one", 2)
    study.enqueue_configured(again, {"dnn": {"dropout": 0.2}})
    assert [trial.state for trial in again.trials] == [TrialState.COMPLETE] * 3
    configured, best = study.best(again, configured=True), study.best(again)
    assert configured is not None
    assert best is not None
    assert (configured.number, configured.params["dropout"]) == (0, 0.2)
    assert best.value == max(trial.value or 0.0 for trial in again.trials)
    assert study.open_study(tmp_path, "other", 1).trials == []


def test_a_waiting_trial_is_given_once_however_many_ask_and_no_more_than_wanted_begin(tmp_path: Path) -> None:
    study.enqueue_configured(study.open_study(tmp_path, "one", 1), {f"model {number}": {} for number in range(12)})
    together = threading.Barrier(3)

    def asked(seed: int) -> list[int]:
        opened = study.open_study(tmp_path, "one", seed)
        together.wait()
        numbers = list[int]()
        while (trial := study.next_trial(opened, tmp_path, 10)) is not None:
            numbers.append(trial.number)
        return numbers

    with ThreadPoolExecutor(3) as askers:
        given = [number for numbers in askers.map(asked, (1, 2, 3)) for number in numbers]
    assert sorted(given) == list(range(10))


def test_a_trial_ends_in_the_state_of_what_happened_to_it(tmp_path: Path) -> None:
    opened = study.open_study(tmp_path, "one", 1)

    def raising(error: BaseException) -> Callable[[optuna.Trial], float]:
        def objective(trial: optuna.Trial) -> float:
            trial.report(0.25, 1)
            raise error
        return objective

    assert study.carry_out(opened, opened.ask(), lambda trial: 0.5)
    assert study.carry_out(opened, opened.ask(), raising(optuna.TrialPruned()))
    assert not study.carry_out(opened, opened.ask(), raising(SluiceError("no rows")))
    for error in (KeyError("a defect"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            study.carry_out(opened, opened.ask(), raising(error))
    states = [TrialState.COMPLETE, TrialState.PRUNED] + [TrialState.FAIL] * 3
    assert [trial.state for trial in opened.trials] == states
    assert [trial.value for trial in opened.trials[:2]] == [0.5, 0.25]


def test_what_a_dead_process_left_running_has_failed_and_configured_settings_are_tried_again(tmp_path: Path) -> None:
    opened = study.open_study(tmp_path, "one", 1)
    study.enqueue_configured(opened, {"dnn": {}})
    opened.ask()
    assert study.started(opened) == 1
    study.close_running(opened)
    assert study.started(opened) == 0
    study.enqueue_configured(opened, {"dnn": {}})
    assert [trial.state for trial in opened.trials] == [TrialState.FAIL, TrialState.WAITING]


def test_a_trial_that_time_cut_short_is_none_of_those_that_started(tmp_path: Path) -> None:
    """One that others had left behind is."""
    def cut(trial: optuna.Trial) -> float:
        trial.set_user_attr(study.CUT, True)
        raise optuna.TrialPruned

    def behind(trial: optuna.Trial) -> float:
        raise optuna.TrialPruned

    opened = study.open_study(tmp_path, "one", 1)
    assert study.carry_out(opened, opened.ask(), behind)
    assert study.carry_out(opened, opened.ask(), cut)
    assert study.started(opened) == 1
    assert study.next_trial(opened, tmp_path, 2) is not None
    assert study.next_trial(opened, tmp_path, 2) is None


def test_the_setting_that_makes_the_score_is_the_one_that_mattered(tmp_path: Path) -> None:
    opened = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1))

    def score(trial: optuna.Trial) -> float:
        trial.suggest_categorical("model", ["dnn"])
        trial.suggest_float("dropout", 0, 1)
        return trial.suggest_float("learning_rate", 0, 1)

    opened.optimize(score, n_trials=2)
    assert study.importances(opened, "dnn") == {}
    opened.optimize(score, n_trials=30)
    found = study.importances(opened, "dnn")
    assert found["learning_rate"] > 0.9
    assert sum(found.values()) == pytest.approx(1)
    assert study.importances(opened, "din") == {}


def test_the_digest_knows_settings_examples_and_space_and_not_what_is_served(
    examples: Artifacts, spec: FeatureSpec, text: str
) -> None:
    def digest(text: str, rows: int = 1000) -> str:
        config = parse(text)
        spaces = {"dnn": search_space.space_of("dnn", config.train, rows)}
        return study.digest(config, examples, spec, 1, spaces)

    first = digest(text)
    assert digest(text.replace("[train]", '[train]\nranker = "popularity"')) == first
    assert digest(text.replace("epochs = 3", "epochs = 4")) != first
    assert digest(text, rows=100_000) != first
    next(examples.examples("train").rglob("*.parquet")).unlink()
    assert digest(text) != first
