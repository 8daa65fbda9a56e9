from __future__ import annotations

import math

import pytest

from benchmarks.models.prerank import BATCHES, WEIGHTS, main, spread
from tests.benchmarks.printed_figures import last_line, refuses


def test_a_spread_leaves_out_what_is_not_known():
    assert spread([0.25, None, 0.75]) == "0.5000 ± 0.3536"
    assert spread([None]) == "-"


def test_wrong_options_are_refused():
    assert refuses(main, "a=b", "--item-side", "nowhere")
    assert refuses(main)


@pytest.mark.slow
def test_fscd_stands_beside_orders_of_fields_at_equal_prices(run, capsys):
    main([f"{run.config}={run.out}", "--seeds", "1", "--laws"])
    (figures,) = last_line(capsys.readouterr().out)["tiny"]["runs"]
    for name in ("fscd", "dot_product", "full_ranker"):
        assert all(0 <= figures[name][key] <= 1 for key in ("recall", "hit_rate", "auc"))
        assert figures[name]["us_per_1000"] > 0
    assert set(figures["cost_by_weight"]) == {str(weight) for weight in WEIGHTS}
    assert len(figures["batch_agree"]) == len(BATCHES)
    prices = [point["price"] for point in figures["frontier"]]
    assert figures["baselines"]
    for baseline in figures["baselines"].values():
        assert math.isfinite(baseline["gap"])
        assert all(point["price"] <= max(prices) + 1e-9 for point in baseline["curve"])
        assert all(0 <= point["recall"] <= 1 for point in baseline["curve"])
