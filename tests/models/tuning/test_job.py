"""The whole job on a real study and a real MLflow store: what is found, what is refused, what a second call adds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import load, parse
from contracts.errors import ConfigError, DataError, OneClassError, SluiceError
from contracts.summaries import summary
from contracts.summaries.train import TuneSummary
from models.examples.validation_half import half_of
from models.training import fitting
from models.tuning.job import tune


@pytest.fixture(scope="module", autouse=True)
def _one_data_base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path_factory.mktemp('tracking') / 'mlflow.db'}")
        yield


def run(examples: Artifacts, text: str, **options: object) -> TuneSummary:
    return tune(parse(text), text, examples, **{"budget": 300, "processes": 1, **options})  # type: ignore[arg-type]


def test_a_learning_rate_far_too_low_is_found_to_be_so_and_the_next_call_goes_on(
    examples: Artifacts, text: str
) -> None:
    """There is no test window in the folder: what was read of it could only raise."""
    found = run(examples, text, trials=6)
    assert found.adopted
    assert found.gain > 0.05 > found.gain_standard_error > 0
    assert found.configured.settings["learning_rate"] == 1e-6
    assert found.best.score > found.configured.score  # type: ignore[operator]
    assert found.settings["learning_rate"] > 1e-4  # type: ignore[operator]
    train = load(examples.tuning / "tuned.toml").train
    assert {name: getattr(train, name) for name in found.settings} == found.settings
    assert train.models == ("popularity", "logistic_regression")
    assert found == summary.read(examples.tuning, TuneSummary)

    longer = run(examples, text, trials=8)
    assert longer.trials[:6] == found.trials
    assert len(longer.trials) == 8
    assert len(_runs("tune logistic_regression")) == 8
    assert len([run for run in _runs("tune") if run.data.metrics.get("gain")]) == 2


def _runs(name: str) -> list:
    from mlflow.tracking import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    return [run for run in client.search_runs([experiment.experiment_id]) if run.info.run_name.startswith(name)]


def test_where_nothing_better_is_found_the_configuration_stays_as_it_is(examples: Artifacts, text: str) -> None:
    found = run(examples, text, trials=1)
    assert not found.adopted
    assert found.settings == {}
    assert "none of the settings tried is better" in found.reason
    assert (examples.tuning / "tuned.toml").read_text() == text


def test_a_model_that_is_not_configured_is_named_in_what_is_written(examples: Artifacts, text: str) -> None:
    found = run(examples, text, trials=2, models=["factorisation_machine"])
    named = load(examples.tuning / "tuned.toml").train.models
    assert ("factorisation_machine" in named) == found.adopted


def test_where_train_ranker_names_another_model_it_names_the_one_whose_settings_were_found(
    examples: Artifacts, text: str
) -> None:
    named = text.replace("epochs = 3", 'epochs = 3\nranker = "logistic_regression"')
    found = run(examples, named, trials=6, models=["factorisation_machine"])
    assert found.adopted
    assert found.settings["ranker"] == "factorisation_machine"
    assert 'With them train.ranker is "factorisation_machine", not "logistic_regression" as before' in found.reason
    train = load(examples.tuning / "tuned.toml").train
    assert {name: getattr(train, name) for name in found.settings} == found.settings
    assert "factorisation_machine" in train.models
    of_its_own = run(examples, named, trials=6)
    assert of_its_own.adopted
    assert "ranker" not in of_its_own.settings
    assert "train.ranker" not in of_its_own.reason


def test_an_unset_batch_size_that_comes_to_what_was_found_stays_unset(examples: Artifacts, text: str) -> None:
    """Another one, that of the best of another seed, is written."""
    unset = text.replace("batch_size = 200\n", "")
    came_to = parse(unset).train.batch_rows(800)
    seen = set()
    for seed in range(2, 10):
        found = run(examples, unset, trials=3, seed=seed)
        same = found.best.settings["batch_size"] == came_to
        assert ("batch_size" not in found.settings) == same
        assert (load(examples.tuning / "tuned.toml").train.batch_size is None) == same
        seen.add(same)
        if seen == {True, False}:
            break
    assert seen == {True, False}


@pytest.mark.parametrize(("options", "told"), [
    ({"budget": 0}, "budget, in seconds, is 0"), ({"processes": 0}, "number of processes is 0"),
    ({"trials": -1}, "number of trials is -1"), ({"models": ["dnn2"]}, "did you mean 'dnn'"),
])
def test_numbers_and_names_that_make_no_search_are_refused(
    examples: Artifacts, text: str, options: dict, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        run(examples, text, **options)


def test_a_budget_that_is_too_short_says_so(examples: Artifacts, text: str) -> None:
    endless = text.replace("epochs = 3", "epochs = 1000000\npatience = 1000000")
    with pytest.raises(SluiceError, match=r"the budget was spent before .* 800 rows came to its end; .* --budget"):
        run(examples, endless, budget=1)


def test_trials_that_the_budget_cut_leave_their_place_to_others(
    examples: Artifacts, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time runs out in the second training: a longer budget has all but the first to give."""
    now, fit, begun = time.time, fitting.fit, list[int]()

    def counted(*args: Any, **options: Any) -> Any:
        begun.append(1)
        return fit(*args, **options)

    monkeypatch.setattr("models.training.fitting.fit", counted)
    monkeypatch.setattr("time.time", lambda: now() + 1000.0 * (len(begun) > 1))
    first = run(examples, text, trials=3)
    monkeypatch.undo()
    assert [trial.state for trial in first.trials] == ["complete", "pruned"]
    assert len(run(examples, text, trials=3).trials) == 4


def test_a_gauc_that_cannot_be_judged_is_refused_before_anything_is_trained(examples: Artifacts, text: str) -> None:
    """All users of the half that judges click on all, or on nothing, but one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in examples.examples("validation").rglob("*.parquet"):
        table = pq.read_table(path)
        users = table["_user"].to_numpy()
        alike = (half_of(users) == 1) & (users != users[half_of(users) == 1].min())
        labels = np.where(alike, users % 2, table["_label"].to_numpy()).astype(np.float64)
        place = table.schema.get_field_index("_label")
        pq.write_table(table.set_column(place, "_label", pa.array(labels)), path)
    by_user = text.replace("epochs = 3", 'epochs = 3\nmonitor = "gauc"')
    with pytest.raises(OneClassError, match=r"validation \(half 1\): 1 of \d+ users .* train\.monitor"):
        run(examples, by_user, trials=1)
    assert not (examples.tuning / "study.db").exists()
    assert run(examples, text, trials=1).trials


def test_why_the_configured_settings_failed_is_told(
    examples: Artifacts, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SluiceError("the loss is nan at batch 3")

    monkeypatch.setattr("models.training.fitting.fit", fail)
    with pytest.raises(SluiceError, match="came to its end: the loss is nan at batch 3"):
        run(examples, text)


def test_a_window_of_one_class_or_without_rows_is_refused(examples: Artifacts, text: str) -> None:
    import pyarrow.parquet as pq

    for path in examples.examples("validation").rglob("*.parquet"):
        table = pq.read_table(path)
        place = table.schema.get_field_index("_label")
        pq.write_table(table.set_column(place, "_label", [[0.0] * len(table)]), path)
    with pytest.raises(OneClassError, match="validation"):
        run(examples, text)
    for path in examples.examples("validation").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(DataError, match="holds no examples"):
        run(examples, text)
