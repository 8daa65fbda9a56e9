from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.peers import checked_sets, figures, gained, main, table
from benchmarks.peers.plan import Outcome, Plan
from benchmarks.peers.runs import Run
from contracts.errors import ConfigError
from models.evaluation.metrics import auc
from tests.benchmarks.printed_figures import refuses


def made(plan: Plan, auc: float, speed: float) -> Run:
    outcome = Outcome(rows_per_second=speed, seconds_to_best=2.0, epochs=3, best_epoch=1, peak_mib=100.0)
    return Run(plan, outcome, auc + 0.01, auc, 0.3, np.zeros(3))


def test_figures_are_means_over_seeds_and_medians_of_speeds(plan: Plan) -> None:
    fp32 = [made(plan, auc, speed) for auc, speed in ((0.7, 100.0), (0.8, 300.0), (0.9, 110.0))]
    found = figures({"fp32": fp32, "bf16": [made(plan, 0.75, 400.0)]})
    assert found["auc"] == pytest.approx(0.8)
    assert found["auc_deviation"] == pytest.approx(0.1)
    assert (found["rows_per_second_fp32"], found["rows_per_second_bf16"], found["auc_bf16"]) == (110.0, 400.0, 0.75)
    assert (found["rows_per_second_fp32_lowest"], found["rows_per_second_fp32_highest"]) == (100.0, 300.0)
    assert (found["seeds"], found["l2"]) == (3, 10.0)
    alone = figures({"fp32": fp32[:1]})
    assert alone["auc_deviation"] is None
    assert alone["rows_per_second_bf16"] is None


def test_a_gain_is_the_mean_over_seeds_and_as_uncertain_as_rows_and_seeds() -> None:
    """Three seeds of the same figures are as one; a second one that differs moves the mean and widens the error."""
    draw = np.random.default_rng(0)
    labels = (draw.random(2000) < 0.3).astype(float)
    good, fair, poor = (labels + spread * draw.standard_normal(2000) for spread in (0.8, 1.2, 2.0))
    alone = gained(labels, [good], [fair])
    assert alone["auc"] == pytest.approx(auc(labels, good) - auc(labels, fair))
    assert gained(labels, 3 * [good], 3 * [fair]) == pytest.approx(alone)
    both = gained(labels, [good, poor], [fair, fair])
    other = auc(labels, poor) - auc(labels, fair)
    assert both["auc"] == pytest.approx((alone["auc"] + other) / 2)
    assert both["standard_error"] > abs(alone["auc"] - other) / 2


@pytest.mark.parametrize(("gain", "said"), [(0.001, "| 2.0, 4.0 |"), (-0.0005, "| 2.0, 4.0 |"),
                                            (-0.002, "| (2.0, 4.0: AUC behind) |")])
def test_a_speed_counts_where_the_auc_is_level(plan: Plan, gain: float, said: str) -> None:
    ours = figures({"fp32": [made(plan, 0.7, 200.0)], "bf16": [made(plan, 0.7, 400.0)]})
    theirs = figures({"fp32": [made(plan, 0.7, 100.0)]})
    sides = {"sluice": ours, "fuxictr": theirs, "gain": {"auc": gain, "standard_error": 0.001}}
    rows = table({"adult": {"dnn": sides}}).splitlines()
    assert said in rows[2]
    assert rows[2].startswith("| adult | dnn | sluice | 0.7000 |")
    assert rows[3].startswith("| adult | dnn | fuxictr | 0.7000 |")
    assert len({row.count("|") for row in rows}) == 1
    assert all(math.isfinite(value) for value in ours.values() if value is not None)


def test_the_spread_of_the_speeds_stands_beside_their_median(plan: Plan) -> None:
    several = figures({"fp32": [made(plan, 0.7, speed) for speed in (900.0, 2000.0, 1000.0)]})
    sides = {"sluice": several, "fuxictr": several, "gain": {"auc": 0.0, "standard_error": 0.001}}
    assert "| 1,000 (900 to 2,000) | - |" in table({"adult": {"dnn": sides}})


@pytest.mark.parametrize("options", [["adult"], ["adult=out", "--precisions", "bf16"], ["--models", "no_such"],
                                     ["--merge"]])
def test_wrong_options_are_refused(options: list[str]) -> None:
    assert refuses(main, *options)


def test_a_folder_without_examples_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere has no encoded examples; run `sluice features"):
        checked_sets([f"adult={tmp_path / 'nowhere'}"])
