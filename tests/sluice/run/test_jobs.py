from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from sluice.run.jobs import run_all, skipped


def config(**roles: str) -> Config:
    return Config.model_validate({
        "name": "t", "log": {"path": "log", **roles}, "label": {"expression": "y"},
        "fields": [{"name": "x", "kind": "categorical", "side": "context"}],
    })


def test_each_missing_role_leaves_out_what_needs_it() -> None:
    plain = skipped(config())
    assert set(plain) == {
        "split_in_time", "gauc", "online_users", "online_items", "two_tower", "pre_ranker", "item_index", "serving",
        "prerank", "pair_rates",
    }
    assert set(skipped(config(event_time="t", item_id="i"))) == {"gauc", "online_users", "pair_rates"}
    assert set(skipped(config(user_id="u", item_id="i"))) == {"split_in_time", "prerank", "pair_rates"}
    assert all("set log." in reason for name, reason in plain.items() if name != "pair_rates")


def test_a_full_log_leaves_out_the_pairs_alone_that_nobody_named() -> None:
    full = config(event_time="t", item_id="i", user_id="u")
    assert set(skipped(full)) == {"pair_rates"}
    paired = full.model_copy(update={"pair_rates": full.pair_rates.model_copy(update={"pairs": (("x", "y"),)})})
    assert skipped(paired) == {}
    switched_off = paired.model_copy(update={"pair_rates": paired.pair_rates.model_copy(update={"model": "none"})})
    assert "set it to pcf_gnn" in skipped(switched_off)["pair_rates"]


@pytest.mark.slow
def test_a_table_of_one_number_becomes_a_bundle_without_crosses_and_vocabularies(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=400).round(3)
    clicked = random.random(400) < 1 / (1 + np.exp(-3 * x))
    rows = (f"{number},{int(yes)}" for number, yes in zip(x, clicked, strict=True))
    (tmp_path / "log.csv").write_text("x,y\n" + "\n".join(rows) + "\n")
    one_field = Config.model_validate({
        "name": "t", "data": str(tmp_path), "label": {"expression": "y = 1"},
        "log": {"path": "{data}/log.csv", "format": "csv", "schema_ddl": "x DOUBLE, y INT",
                "options": {"header": "true"}},
        "windows": {"statistics": 0, "train": 0.6, "validation": 0.2, "test": 0.2},
        "fields": [{"name": "x", "kind": "numeric", "side": "context", "granularities": [10, 100]}],
        "train": {"models": ["popularity", "logistic_regression"], "epochs": 2},
    })
    told = io.StringIO()
    run = run_all(one_field, None, Artifacts(tmp_path / "out"), Console(file=told, width=300))
    assert run.bundle is not None
    assert run.bundle.parity is not None
    assert (run.ranker, run.crosses) == ("logistic_regression", None)
    assert "The run goes on without crosses: no two of the columns x#10, x#100 can be crossed" in told.getvalue()
