from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.models.crosses import PAPER, coarse, folder_of, main, paired, print_table, summed_up
from contracts.errors import DataError
from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.evaluation.metrics import auc
from tests.benchmarks.printed_figures import all_finite, last_line, refuses
from tests.sluice.plain_rows import write_adult


@pytest.fixture(scope="module")
def runs() -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Two seeds of labels; LR sees noise, "good" the label."""
    draw = np.random.default_rng(1)
    labels = [draw.integers(0, 2, 300).astype(float) for _ in range(2)]
    noise = [draw.normal(size=300) for _ in labels]
    return [(label, {"LR": logits, "same": logits, "good": label + 0.1 * logits})
            for label, logits in zip(labels, noise, strict=True)]


def test_a_set_of_crosses_gains_what_its_auc_is_above_that_of_logistic_regression(runs):
    found = summed_up(runs)
    for variant, row in found.items():
        values = [auc(label, logits[variant]) for label, logits in runs]
        assert row["auc"] == values
        assert row["over LR"] == pytest.approx(np.mean(values) - found["LR"]["mean"])
        assert row["over LR, low"] <= row["over LR, high"]
    assert found["good"]["over LR, low"] > 0


def test_equal_logits_gain_exactly_nothing(runs):
    assert set(paired(runs, "same", "LR").values()) == {0.0}


def test_seeds_that_share_their_test_rows_do_not_lessen_what_rows_leave_open(runs):
    label, logits = runs[0]
    logits = logits | {"other": logits["LR"] + 0.5 * np.random.default_rng(3).normal(size=len(label))}
    widths = [found["over LR, high"] - found["over LR, low"]
              for found in (paired([(label, logits)] * count, "other", "LR") for count in (1, 5))]
    assert widths[0] == pytest.approx(widths[1], rel=0.05)
    assert widths[0] > 0


def test_one_seed_has_no_deviation(runs):
    assert summed_up(runs[:1])["LR"]["deviation"] == 0.0


def test_the_papers_figures_stand_above_the_table(runs, capsys):
    print_table("adult, all bins", summed_up(runs), PAPER["adult"])
    text = capsys.readouterr().out
    assert "FIVES 0.8863" in text
    assert text.count("\n| ") == 1 + len(runs[0][1])
    assert "| LR | 0." in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1


def test_the_weaker_footing_has_ten_bins_alone():
    age = FeatureField(name="age", kind="numeric", side="user", edges={10: (1.0, 2.0), 40: (1.0, 1.5, 2.0)})
    (field,) = coarse(FeatureSpec(fields=(age,), has_items=False)).fields
    assert field.edges == {10: (1.0, 2.0)}


def test_the_table_is_looked_for_at_any_depth(tmp_path):
    with pytest.raises(DataError, match="--tables"):
        folder_of(tmp_path, "adult.data")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "adult.data").touch()
    assert folder_of(tmp_path, "adult.data") == tmp_path / "a" / "b"


def test_a_table_that_is_none_is_refused():
    assert refuses(main, "--data", "d", "--out", "o", "--tables", "criteo")
    assert refuses(main, "--data", "d", "--out", "o", "--arms", "trees")


@pytest.mark.slow
def test_every_set_of_crosses_and_every_network_meets_the_same_rows(tmp_path, capsys):
    write_adult(tmp_path, 300)
    main(["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--seeds", "1", "--tables", "adult"])
    found = last_line(capsys.readouterr().out)
    assert found == json.loads((tmp_path / "out" / "crosses.json").read_text(encoding="utf-8"))
    assert all_finite(found)
    every, weaker = found["adult"]["all bins"], found["adult"]["ten bins"]
    assert {"LR", "LR + FIVES", "DNN", "DCNv2 + crosses", "FIVES, predictor", "best ranker", "LightGBM",
            "LR + all pairs hashed"} <= set(every)
    assert set(weaker) == {"LR", "LR + FIVES"}
    assert all(0 <= row["mean"] <= 1 for row in every.values())
    assert {"over DNN", "over DCNv2, low", "over LightGBM, high"} <= set(every["best ranker"])


@pytest.mark.slow
def test_linear_arms_may_go_alone(tmp_path, capsys):
    write_adult(tmp_path, 300)
    main(["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--seeds", "1", "--tables", "adult",
          "--arms", "linear"])
    found = last_line(capsys.readouterr().out)["adult"]
    assert set(found) == {"all bins", "ten bins"}
    assert "DNN" not in found["all bins"]
