from __future__ import annotations

import pytest

from benchmarks.models.logs import OUTSIDE, main, rows_of
from contracts.config.config import load
from tests.benchmarks.printed_figures import all_finite, last_line


def test_a_row_says_how_often_a_model_was_served_and_the_truth_comes_last():
    figures = {"dnn": {"auc": 0.75, "auc_deviation": 0.01, "validation_auc": 0.7, "served": 2},
               OUTSIDE: {"auc": 0.5, "auc_deviation": None, "validation_auc": 0.5, "served": 0}}
    lines = ["| shop | dnn | 0.7000 | 0.7500 ± 0.0100 | 2 |", f"| shop | {OUTSIDE} | 0.5000 | 0.5000 |  |"]
    assert rows_of("shop", figures, None) == lines
    assert rows_of("shop", figures, 0.8) == [*lines, "| shop | truth | | 0.8000 | |"]


@pytest.mark.slow
def test_a_made_log_is_guessed_and_every_model_measured(tmp_path, capsys):
    main(["waves", "--rows", "1500", "--world", "3", "--out", str(tmp_path), "--models", "popularity",
          "logistic_regression"])
    found = last_line(capsys.readouterr().out)["waves"]
    assert set(found) == {"popularity", "logistic_regression", OUTSIDE}
    assert all_finite({name: of["auc"] for name, of in found.items()})
    assert found["logistic_regression"]["served"] + found["popularity"]["served"] == 1
    assert load(tmp_path / "world-3" / "waves.toml").label.expression == "clicked = 1"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["popular", "new_users"])
def test_where_only_popularity_holds_and_where_all_users_are_new_nothing_served_is_worse(name, tmp_path, capsys):
    """Nor is any network by more than its deviation: by `sluice init`'s configuration, judged on the test window."""
    main([name, "--rows", "8000", "--out", str(tmp_path), "--models", "popularity", "logistic_regression", "dnn"])
    found = last_line(capsys.readouterr().out)[name]
    beside = found["popularity"]["auc"]
    assert beside > 0.55
    [served] = [model for model, of in found.items() if of["served"]]
    assert found[served]["auc"] >= beside
    assert all(of["auc"] + of["auc_deviation"] > beside for model, of in found.items() if model != OUTSIDE)


@pytest.mark.slow
def test_popularity_alone_is_measured_and_served(tmp_path, capsys):
    main(["popular", "--rows", "1500", "--out", str(tmp_path), "--models", "popularity"])
    found = last_line(capsys.readouterr().out)["popular"]
    assert found["popularity"]["served"] == 1
    assert found["popularity"]["auc"] > 0.5
