from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.features.vocabulary import Vocabulary
from contracts.summaries.leaks import FieldFigures, LeaksSummary
from contracts.summaries.pair_rates import PairRateJudgement
from contracts.summaries.run import RunSummary
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import TABLES
from sluice.report.conclusion import conclusion, too_good
from tests.sluice.run_records import pair_rates, ranker


def told(served: str = "dnn", **figures: dict[str, Any]) -> list[str]:
    models = {name: ranker(**{"best_epoch": 1, **changes}) for name, changes in figures.items()}
    return conclusion(RunSummary(name="t", models=models, ranker=served), "t.toml", "out/t")


def test_the_winner_stands_beside_the_trivial_ones() -> None:
    first, *rest = told(popularity={"auc": 0.6}, logistic_regression={"auc": 0.7}, dnn={"auc": 0.75})
    assert first == ("Test window: dnn has AUC 0.7500 ± 0.0100, +0.1500 on popularity's 0.6000, "
                     "+0.0500 on logistic regression's 0.7000.")
    assert "sluice report out/t" in rest[0]
    assert "sluice tune t.toml --out out/t" in rest[0]
    assert rest[1].startswith("To ask it: sluice serve out/t/bundle")


@pytest.mark.parametrize(("users", "asked"), [(["a b", "c"], "--user 'a b'"), ([], "--user anybody")])
def test_whom_to_ask_for_is_a_user_of_the_bundle(users: list[str], asked: str, tmp_path: Path) -> None:
    tables, rows = tmp_path / "bundle" / TABLES, len(users) + 1
    tables.mkdir(parents=True)
    inputs = np.zeros((rows, 1), dtype=np.int32), np.zeros((rows, 1), dtype=np.float32)
    FeatureStore(Vocabulary.of(users, "string"), *inputs).save(tables, "users")
    run = RunSummary(name="t", models={"dnn": ranker()}, ranker="dnn")
    assert conclusion(run, "t.toml", str(tmp_path))[-1].endswith(f"then sluice rank {asked}")


def test_what_is_no_gain_is_called_so() -> None:
    assert any("no more than chance" in line for line in told(dnn={"auc": 0.51}))
    assert "nothing gains on it" in told("popularity", popularity={"auc": 0.6})[0]


def test_what_is_too_good_to_be_true_comes_first_with_the_field_that_says_most() -> None:
    first = told(dnn={"auc": 1.0, "validation_auc": 0.9993})[0]
    assert first.startswith("WARNING: dnn has a validation AUC of 0.9993, too good to be true")
    assert not any("WARNING" in line for line in told(dnn={"auc": 1.0, "validation_auc": 0.9985}))
    quiet = FieldFigures(auc=0.6, standard_error=0.01, present_positive=1, present_negative=1)
    leaks = LeaksSummary(fields={"age": quiet, "charged": quiet.model_copy(update={"auc": 0.9})}, suspected={})
    named = too_good({"dnn": ranker(validation_auc=1.0)}, "dnn", leaks)
    assert named is not None
    assert "'charged', which alone has 0.9000" in named


def test_who_was_still_gaining_in_the_last_epoch_is_named() -> None:
    lines = told(popularity={"epochs": 1, "best_epoch": 1}, dnn={"epochs": 20, "best_epoch": 20},
                 din={"epochs": 9, "best_epoch": 6})
    assert [line for line in lines if "Still" in line] == [
        "Still gaining in the last epoch: dnn; train.epochs above 20 may be worth its time."]
    assert not any("Still" in line for line in told(din={"epochs": 9, "best_epoch": 6}))


def test_a_test_window_unlike_validation_is_told() -> None:
    assert any("unlike it" in line for line in told(dnn={"auc": 0.7, "validation_auc": 0.8}))


def test_whether_pair_rates_pay_is_told() -> None:
    judged = PairRateJudgement(ranker="dnn", auc_with=0.7, auc_without=0.71, gain=-0.01, standard_error=0.002,
                               pays=False, digest="d", seconds=1.0)
    run = RunSummary(name="t", models={"dnn": ranker()}, ranker="dnn", pretrain=pair_rates(judgement=judged))
    assert judged.sentence in conclusion(run, "t.toml", "out/t")
    assert not any("air rates" in line for line in told(dnn={"auc": 0.7}))


def test_without_models_there_is_none() -> None:
    assert conclusion(RunSummary(name="t"), "t.toml", "out/t") == []
