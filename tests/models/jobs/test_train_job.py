from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from contracts.artifacts import CALIBRATION, TEST_LOGITS, WEIGHTS, WINDOWS, Artifacts
from contracts.bundle import bundle
from contracts.bundle.bundle import load_array, load_weights
from contracts.config.config import Config
from contracts.errors import ConfigError, OneClassError
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureSpec
from contracts.features.vocabulary import Vocabulary
from contracts.summaries import summary
from contracts.summaries.bundle import BundleMetrics, ParityFigures
from contracts.summaries.summary import Summary
from contracts.summaries.train import LightgbmSummary, PreRankerSummary, RankerSummary, TowerSummary, TrainSummary
from models.evaluation.calibration import Calibration
from models.examples.batches import ExampleSet
from models.jobs.train_job import train_models
from models.networks import registry
from models.networks.tower_pre_ranker import PreRanker, TowersPreRanker
from models.networks.two_tower import TwoTower
from models.training import checkpoint, fitting
from models.training.warm_start import Parent
from tests.models.jobs.two_processes import train_in_two

POSITION_EFFECT = np.array([0.0, -0.8, -1.4, -2.0])
EFFECT = np.random.default_rng(5).normal(0, 1.5, 64)


@pytest.fixture(scope="module", autouse=True)
def _one_data_base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All runs of this file track into one real store: opening a new one takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path_factory.mktemp('tracking') / 'mlflow.db'}")
        yield


def config(**train: object) -> Config:
    defaults = {
        "models": ("popularity", "logistic_regression", "dnn"), "embedding_dim": 8, "hidden": (16,),
        "batch_size": 256,
        "epochs": 6, "learning_rate": 5e-3, "device": "cpu", "tower_dim": 8, "tower_hidden": (16,), "tower_epochs": 2,
        "lightgbm_rows": 100_000,
    }
    return Config.model_validate({
        "name": "tiny", "seed": 11, "log": {"path": "log"}, "label": {"expression": "clicked"},
        "fields": [{"name": "item", "kind": "categorical", "side": "item"}], "features": {"also_fresh": True},
        "train": {**defaults, **train}, "retrieve": {"candidates": 20},
        "prerank": {"keep": 10, "kind": "towers", "hidden": [32]}, "serve": {"max_limit": 10},
    })


@pytest.fixture(scope="module")
def write_examples(columns, write, spec: FeatureSpec) -> Callable[..., Artifacts]:
    def make(out: Path, rate_shift: float = 0.0, all_negative: str = "") -> Artifacts:
        artifacts = Artifacts(out)
        artifacts.encoding.mkdir(parents=True)
        spec.write(artifacts.encoding)
        for number, window in enumerate(WINDOWS):
            drawn = columns(spec, 3000, number)
            logit = EFFECT[drawn["item"]] + POSITION_EFFECT[drawn["_position"] - 1] + rate_shift
            chance = np.random.default_rng(50 + number).random(3000)
            drawn["_label"] = (chance < 1 / (1 + np.exp(-logit))).astype(np.float64)
            drawn["price@fresh"] = logit + 1.5
            if window == all_negative:
                drawn["_label"][:] = 0.0
            write(artifacts.examples(window), drawn)
        return artifacts

    return make


@pytest.fixture(scope="module")
def trained(write_examples, tmp_path_factory: pytest.TempPathFactory) -> tuple[Artifacts, TrainSummary]:
    out = write_examples(tmp_path_factory.mktemp("out") / "run")
    return out, train_models(config(), out)


@pytest.mark.slow
def test_the_summary_names_every_part_and_is_what_is_written(trained) -> None:
    out, found = trained
    assert list(found.models) == ["popularity", "logistic_regression", "dnn"]
    assert found == summary.read(out.out / "models", TrainSummary)
    kinds: dict[str, type[Summary]] = {"dnn": RankerSummary, "two_tower": TowerSummary,
                                       "pre_ranker": PreRankerSummary, "lightgbm": LightgbmSummary}
    for name, kind in kinds.items():
        summary.required(out.model(name), kind, "sluice train")


def test_models_find_the_planted_item_effect(trained) -> None:
    """The true logit of position 1 ranks the logged clicks with a known AUC; no model may be far below or above it."""
    out, found = trained
    test = ExampleSet(out.examples("test"), FeatureSpec.read(out.encoding))
    ceiling = roc_auc_score(test.column("_label"), EFFECT[test.column("item")])
    for figures in found.models.values():
        assert ceiling - 0.05 < figures.auc < ceiling + 0.01


def test_stored_files_reproduce_the_figures(trained) -> None:
    out, found = trained
    spec = FeatureSpec.read(out.encoding)
    test = ExampleSet(out.examples("test"), spec)
    network = registry.build("dnn", spec, config().train)
    checkpoint.load(network, out.model("dnn") / WEIGHTS)
    logits = fitting.predict(network, test)
    np.testing.assert_allclose(load_array(out.model("dnn") / TEST_LOGITS), logits, atol=1e-5)
    assert found.models["dnn"].auc == pytest.approx(roc_auc_score(test.column("_label"), logits), abs=1e-5)
    assert (out.model("dnn") / "training.png").exists()


def test_probabilities_are_those_of_position_one(trained) -> None:
    """Labels were logged at positions 1 to 4; the calibrated probability must be the one of position 1."""
    out, found = trained
    test = ExampleSet(out.examples("test"), FeatureSpec.read(out.encoding))
    stored = Calibration.from_arrays(load_weights(out.model("dnn") / CALIBRATION))
    probabilities = stored.apply(load_array(out.model("dnn") / TEST_LOGITS))
    truth = 1 / (1 + np.exp(-EFFECT[test.column("item")]))
    assert probabilities.mean() == pytest.approx(truth.mean(), abs=0.04)
    assert found.models["dnn"].predicted_over_observed == pytest.approx(1, abs=0.1)
    assert found.models["dnn"].ece < 0.06
    assert list(found.models["dnn"].by_position) == ["1", "2", "3", "4"]
    for part in found.models["dnn"].by_position.values():
        assert part.ratio == pytest.approx(1, abs=0.25)  # about 100 clicks at the last position


def test_popularity_which_is_all_there_is_to_know_is_served_and_no_network_is_below_it(trained) -> None:
    """The log knows items alone: the report says in a sentence why no network is served."""
    _, found = trained
    trivial = found.models["popularity"]
    for figures in found.models.values():
        assert figures.auc > trivial.auc - trivial.auc_standard_error
        assert {"known users", "new users", "known items", "new items"} == set(figures.by_novelty)
    assert found.ranker in found.ranker_reason
    assert "popularity" in found.ranker_reason


def test_fresh_features_that_tell_more_show_as_a_gain(trained) -> None:
    freshness = trained[1].freshness
    assert freshness is not None
    assert freshness.fresh.auc > freshness.published.auc + 0.02


def test_recalls_are_reported_and_ordered(trained) -> None:
    towers, pre_ranker = trained[1].two_tower, trained[1].pre_ranker
    assert towers is not None
    assert towers.recall is not None
    assert 0 < towers.recall["10"].two_tower <= towers.recall["20"].two_tower <= 1
    assert pre_ranker is not None
    assert pre_ranker.recall is not None
    assert pre_ranker.recall.kept <= pre_ranker.recall.retrieved
    assert (pre_ranker.recall.candidates, pre_ranker.recall.keep) == (20, 10)


def test_the_pre_rankers_probabilities_are_those_of_position_one(trained) -> None:
    """They set prices where no time is left to rank."""
    out, found = trained
    spec = FeatureSpec.read(out.encoding)
    train = config().train
    towers = TwoTower(spec, train.embedding_dim, train.tower_hidden, train.tower_dim, train.dropout, train.temperature)
    pre_ranker = PreRanker(train.tower_dim, config().prerank.hidden)
    for name, network in (("two_tower", towers), ("pre_ranker", pre_ranker)):
        checkpoint.load(network, out.model(name) / WEIGHTS)
    test = ExampleSet(out.examples("test"), spec)
    stored = Calibration.from_arrays(load_weights(out.model("pre_ranker") / CALIBRATION))
    probabilities = stored.apply(fitting.predict(TowersPreRanker(towers, pre_ranker), test))
    truth = 1 / (1 + np.exp(-EFFECT[test.column("item")]))
    assert probabilities.mean() == pytest.approx(truth.mean(), abs=0.06)
    assert truth.mean() - test.column("_label").mean() > 0.1  # what the other positions cost
    assert found.pre_ranker.predicted_over_observed == pytest.approx(1, abs=0.1)
    assert found.pre_ranker.ece < 0.06


def test_a_pre_ranker_without_calibration_is_trained_again(trained, tmp_path) -> None:
    out, seen = Artifacts(tmp_path / "copy"), set()
    shutil.copytree(trained[0].out, out.out)
    (out.model("pre_ranker") / CALIBRATION).unlink()
    train_models(config(), out, on_progress=lambda what, done, total: seen.add(what))
    assert seen == {"two_tower", "pre_ranker"}
    assert (out.model("pre_ranker") / CALIBRATION).exists()


@pytest.mark.slow
def test_a_second_run_trains_nothing_and_other_settings_train_again(trained, tmp_path) -> None:
    out = Artifacts(tmp_path / "copy")
    shutil.copytree(trained[0].out, out.out)
    seen: list[str] = []
    again = train_models(config(), out, on_progress=lambda what, done, total: seen.append(what))
    assert seen == []
    assert again.models == trained[1].models
    train_models(config(models=("dnn",), dropout=0.3), out, on_progress=lambda what, done, total: seen.append(what))
    assert set(seen) == {"dnn", "dnn@fresh", "two_tower", "pre_ranker", "lightgbm"}


@pytest.mark.slow
def test_one_seed_gives_one_result_and_force_trains_again(trained, tmp_path) -> None:
    out = Artifacts(tmp_path / "copy")
    shutil.copytree(trained[0].out, out.out)
    progress: list[tuple[str, int, int]] = []
    again = train_models(config(models=("dnn",)), out, force=True, on_progress=lambda *entry: progress.append(entry))
    assert {what for what, _, _ in progress} == {"dnn", "dnn@fresh", "two_tower", "pre_ranker", "lightgbm"}
    assert all(0 <= done <= total for _, done, total in progress)
    last = {what: (done, total) for what, done, total in progress}
    assert all(0 < done <= total for done, total in last.values())  # a model may stop early
    for name in ("auc", "log_loss", "ece"):
        assert getattr(again.models["dnn"], name) == getattr(trained[1].models["dnn"], name)
    assert again.two_tower is not None
    assert trained[1].two_tower is not None
    assert again.two_tower.recall == trained[1].two_tower.recall
    other = train_models(config(models=("dnn",)), out, seed=12)
    assert other.models["dnn"].log_loss != again.models["dnn"].log_loss


@pytest.mark.slow
def test_of_two_processes_the_first_alone_writes(write_examples, tmp_path) -> None:
    """Each has a copy of the examples: the second one's stays as it was, and both know the same figures."""
    settings = config(models=("popularity", "dnn")).model_copy(update={"name": "two_processes"})
    copies = [write_examples(tmp_path / rank) for rank in ("0", "1")]
    before = {path: path.read_bytes() for path in copies[1].out.rglob("*") if path.is_file()}
    first, second = train_in_two(settings, tmp_path)
    assert {path: path.read_bytes() for path in copies[1].out.rglob("*") if path.is_file()} == before
    written = summary.required(copies[0].out / "models", TrainSummary, "sluice train")
    assert first == second == {**written.plain(), "seconds": 0}
    names = {"popularity", "dnn", "dnn@fresh", "two_tower", "pre_ranker"}
    assert {path.parent.name for path in copies[0].out.glob(f"models/*/{WEIGHTS}")} == names
    client = pytest.importorskip("mlflow.tracking").MlflowClient(os.environ["MLFLOW_TRACKING_URI"])
    runs = client.search_runs([client.get_experiment_by_name("two_processes").experiment_id])
    assert sorted(entry.info.run_name for entry in runs) == sorted(names)


def test_an_interrupted_model_is_trained_again(trained, tmp_path) -> None:
    out, settings = Artifacts(tmp_path / "copy"), config(models=("dnn",))
    shutil.copytree(trained[0].out, out.out)

    def interrupt(what: str, done: int, total: int) -> None:
        if what == "dnn":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_models(settings, out, force=True, on_progress=interrupt)
    assert not (out.model("dnn") / summary.FILE).exists()
    assert train_models(settings, out).models["dnn"].auc == trained[1].models["dnn"].auc


@pytest.mark.parametrize("window", ["train", "test"])
def test_a_window_of_one_class_is_refused_with_counts(write_examples, tmp_path, window: str) -> None:
    out = write_examples(tmp_path / "run", all_negative=window)
    with pytest.raises(OneClassError, match=f"{window}: 0 of 3000 labels are positive"):
        train_models(config(models=("logistic_regression",)), out)


@pytest.mark.parametrize(("train", "message"), [
    ({"models": ("popularity",)}, "nothing to choose"),
    ({"models": ("dnn",), "ranker": "din"}, "not among train.models"),
])
def test_a_run_without_a_ranker_is_refused_before_training(tmp_path, train: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        train_models(config(**train), Artifacts(tmp_path))


def test_runs_go_where_the_tracking_uri_says(trained) -> None:
    from mlflow.tracking import MlflowClient

    out, found = trained
    client = MlflowClient(os.environ["MLFLOW_TRACKING_URI"])
    experiment = client.get_experiment_by_name("tiny")
    assert experiment is not None
    assert len(client.search_runs([experiment.experiment_id])) >= len(found.models)
    assert not (out.out / "mlflow.db").exists()


@pytest.fixture
def write_keys(spec: FeatureSpec) -> Callable[[Path], None]:
    """The spec with a vocabulary for each field of keys, below `folder`."""
    keyed = [one.name for one in spec.fields if one.kind in ("categorical", "multi_valued", "sequence")]
    named = spec.model_copy(update={"fields": tuple(
        one.model_copy(update={"vocabulary": one.vocabulary or one.name} if one.name in keyed else {})
        for one in spec.fields)})

    def make(folder: Path) -> None:
        named.write(folder)
        for field in named.fields:
            if field.vocabulary:
                vocabulary.write(folder, field.vocabulary, Vocabulary.of(np.arange(field.size - 2), "int64"))

    return make


@pytest.mark.slow
def test_a_warm_start_begins_at_the_parents_weights(trained, write_examples, write_keys, tmp_path) -> None:
    """With a learning rate of next to nothing the parent's logits come out; cold, they do not."""
    first, _ = trained
    build = tmp_path / "build"
    build.mkdir()
    write_keys(build)
    for name, place in (("dnn", "rank"), ("two_tower", "retrieval")):
        (build / place).mkdir()
        target = "weights" if name == "dnn" else "towers"
        shutil.copyfile(first.model(name) / WEIGHTS, build / place / f"{target}.safetensors")
    bundle.publish(build, tmp_path / "bundle", "tiny", settings=config(), metrics=BundleMetrics(
        ranker="dnn", parity=ParityFigures(rows=0, mismatches=0, max_logit_difference=0.0)))
    parent = Parent.read(tmp_path / "bundle")
    still = config(models=("dnn",), learning_rate=1e-12, weight_decay=0.0, epochs=1, tower_epochs=1)
    logits = {}
    for kind, start in (("warm", parent), ("cold", None)):
        out = write_examples(tmp_path / kind)
        write_keys(out.encoding)
        found = train_models(still, out, parent=start)
        assert found.parent == (parent.manifest.version if start else None)
        assert (found.models["dnn"].warm_start is not None) == (start is not None)
        logits[kind] = load_array(out.model("dnn") / TEST_LOGITS)
        again = train_models(still, out, parent=start)
        assert again.models["dnn"] == found.models["dnn"]
    before = load_array(first.model("dnn") / TEST_LOGITS)
    np.testing.assert_allclose(logits["warm"], before, atol=1e-5)
    assert np.abs(logits["cold"] - before).max() > 0.1
