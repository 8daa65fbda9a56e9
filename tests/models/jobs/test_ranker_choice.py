from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contracts.artifacts import VALIDATION_LOGITS
from contracts.bundle.bundle import save_array
from contracts.config.training import Train
from contracts.errors import ConfigError
from contracts.features.feature_spec import UNKNOWN, FeatureSpec
from models.evaluation import metrics
from models.jobs import ranker_choice
from models.jobs.ranker_choice import check_ranker, choose_ranker, paired_lead, unlike_models, validation_auc


class Figures:
    def __init__(self, validation_auc: float) -> None:
        self.validation_auc = validation_auc


def task_with(make_task: Any, auc: Any, noise: dict[str, float], **train: object) -> tuple[Any, dict[str, Any]]:
    """Models whose validation logits are the label, drowned in that much noise."""
    task = make_task(models=["popularity", "logistic_regression", "dnn"], **train)
    labels, models = task.examples("validation").column("_label"), {}
    for number, (name, level) in enumerate(noise.items()):
        logits = labels + np.random.default_rng(number).normal(0, level, len(labels))
        task.out.model(name).mkdir(parents=True, exist_ok=True)
        save_array(task.out.model(name) / VALIDATION_LOGITS, logits)
        models[name] = Figures(auc(labels, logits))
    return task, models


def test_the_best_network_is_served_where_it_is_clearly_better(make_task: Any, auc: Any) -> None:
    noise = {"popularity": 3.0, "logistic_regression": 1.0, "dnn": 0.5}
    choice = choose_ranker(*task_with(make_task, auc, noise))
    assert choice.ranker == "dnn"
    assert choice.reason.startswith("dnn is served: the best on validation (validation AUC within positions 0.")


def test_popularity_is_served_where_a_network_gains_what_chance_gives(make_task: Any, auc: Any) -> None:
    task, models = task_with(make_task, auc, {"popularity": 1.0, "logistic_regression": 2.0, "dnn": 2.0})
    choice = choose_ranker(task, models)
    assert choice.ranker == "popularity"
    assert "gains no more than chance gives" in choice.reason
    same = task.out.model("popularity") / VALIDATION_LOGITS
    save_array(task.out.model("dnn") / VALIDATION_LOGITS, np.load(same))
    models["dnn"] = models["popularity"]
    assert choose_ranker(task, models).ranker == "popularity"


def test_logistic_regression_that_is_the_best_has_to_beat_popularity_as_a_network_has(
    make_task: Any, auc: Any
) -> None:
    clearly = choose_ranker(*task_with(make_task, auc, {"popularity": 3.0, "logistic_regression": 0.5, "dnn": 2.0}))
    assert clearly.ranker == "logistic_regression"
    alike = choose_ranker(*task_with(make_task, auc, {"popularity": 1.0, "logistic_regression": 1.5}))
    assert alike.ranker == "popularity"


def test_what_was_trained_alone_is_served(make_task: Any, auc: Any) -> None:
    for name in ("popularity", "dnn"):
        choice = choose_ranker(*task_with(make_task, auc, {name: 1.0}))
        assert choice.ranker == name
        assert choice.reason.startswith(f"{name} is served: ")


def test_items_that_training_did_not_know_are_no_single_item(
    make_task: Any, auc: Any, columns: Any, write: Any, spec: FeatureSpec
) -> None:
    noise = {"popularity": 1.4, "logistic_regression": 2.0, "dnn": 1.0}
    task, _ = task_with(make_task, auc, noise)
    drawn = columns(spec, 600, 9)
    drawn["item"] = np.where(np.arange(600) % 20 > 0, UNKNOWN, drawn["item"])
    drawn["_label"] = np.random.default_rng(7).integers(0, 2, 600).astype(np.float64)
    drawn["price@fresh"] = drawn["price"]
    write(task.out.examples("validation"), drawn)
    choice = choose_ranker(*task_with(make_task, auc, noise))
    assert choice.ranker == "dnn"


def test_what_the_place_did_is_not_taken_for_what_the_item_did(
    make_task: Any, columns: Any, write: Any, spec: FeatureSpec
) -> None:
    """Items are all alike and have usual places, whose effect popularity takes for theirs; the network knows who likes
    what, and of the places that they are places."""
    task, draw, rows = make_task(models=["popularity", "dnn"]), np.random.default_rng(5), 4000
    place, likes = draw.integers(1, 5, rows), draw.normal(0, 1, rows)
    drawn = columns(spec, rows, 9)
    drawn["_position"] = place.astype(np.int32)
    drawn["_label"] = (draw.random(rows) < 1 / (1 + np.exp(place - 1.5 - likes))).astype(np.float64)
    drawn["price@fresh"] = drawn["price"]
    write(task.out.examples("validation"), drawn)
    logits = {"popularity": 1.5 - place + draw.normal(0, 0.1, rows), "dnn": likes}
    models: dict[str, Any] = {}
    for name, known in logits.items():
        task.out.model(name).mkdir(parents=True, exist_ok=True)
        save_array(task.out.model(name) / VALIDATION_LOGITS, known)
        models[name] = Figures(metrics.auc(drawn["_label"], known))
    assert models["dnn"].validation_auc < models["popularity"].validation_auc
    choice = choose_ranker(task, models)
    assert choice.ranker == "dnn"
    assert "against popularity's 0.5" in choice.reason or "against popularity's 0.4" in choice.reason


def test_of_a_large_window_every_click_counts(
    make_task: Any, columns: Any, write: Any, spec: FeatureSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, draw, rows = make_task(models=["popularity", "dnn"]), np.random.default_rng(5), 4000
    drawn = columns(spec, rows, 9)
    drawn["_label"] = (np.arange(rows) % 50 == 7).astype(np.float64)
    drawn["price@fresh"] = drawn["price"]
    write(task.out.examples("validation"), drawn)
    ours, theirs = (level * drawn["_label"] + draw.normal(0, 1, rows) for level in (1.0, 0.3))
    whole = paired_lead(task, ours, theirs, of_items=False)
    monkeypatch.setattr(ranker_choice, "ROWS", 400)
    found = paired_lead(task, ours, theirs, of_items=False)
    assert found.value == pytest.approx(whole.value, abs=0.05)
    assert found.standard_error < 1.5 * whole.standard_error


def test_a_configured_ranker_is_served_whatever_it_reaches(make_task: Any, auc: Any) -> None:
    noise = {"popularity": 1.0, "logistic_regression": 2.0, "dnn": 2.0}
    assert choose_ranker(*task_with(make_task, auc, noise, ranker="dnn")).ranker == "dnn"


def test_a_simpler_network_that_is_level_with_the_best_is_named(make_task: Any, auc: Any) -> None:
    task, models = task_with(make_task, auc, {"popularity": 3.0, "logistic_regression": 2.0, "dnn": 0.5})
    labels, simple = task.examples("validation").column("_label"), np.load(task.out.model("dnn") / VALIDATION_LOGITS)
    noisy = (simple + np.random.default_rng(seed).normal(0, 0.01, len(simple)) for seed in range(100))
    level = next(one for one in noisy if validation_auc(task, one) > validation_auc(task, simple))
    for logits, named in ((level, True), (simple + 0.5 * labels, False)):
        task.out.model("dcn_v2").mkdir(parents=True, exist_ok=True)
        save_array(task.out.model("dcn_v2") / VALIDATION_LOGITS, logits)
        models["dcn_v2"] = Figures(auc(labels, logits))
        choice = choose_ranker(task, models)
        assert choice.ranker == "dcn_v2"
        assert choice.reason.startswith("dcn_v2 is served: the best on validation (validation AUC within positions 0.")
        assert ("dnn, which is simpler, is level with it" in choice.reason) is named
        assert ('train.ranker = "dnn" serves it.' in choice.reason) is named


def test_without_popularity_the_best_is_served(make_task: Any, auc: Any) -> None:
    assert choose_ranker(*task_with(make_task, auc, {"logistic_regression": 2.0, "dnn": 1.0})).ranker == "dnn"


@pytest.mark.parametrize(("train", "says"), [
    ({"models": ["popularity"]}, "nothing to choose"), ({"ranker": "din"}, "add it there")])
def test_a_run_that_could_serve_nothing_is_refused(make_task: Any, train: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        check_ranker(make_task(**train).config)


def test_din_is_not_the_dnn_once_more(spec: FeatureSpec) -> None:
    plain = spec.model_copy(update={"fields": tuple(field for field in spec.fields if field.kind != "sequence")})
    assert len(plain.fields) < len(spec.fields)
    assert "din" in unlike_models(Train(), spec)
    assert "din" not in unlike_models(Train(), plain)
    assert unlike_models(Train(models=("din",)), plain) == ["din"]
    assert "din" in unlike_models(Train(ranker="din"), plain)
