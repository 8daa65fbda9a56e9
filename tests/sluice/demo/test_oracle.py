"""The best AUC that anybody could reach, and what a model has of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import ITEM, LABEL, ROW, TIME, USER, Artifacts
from contracts.config.config import load
from contracts.config.simulation import Simulation
from contracts.errors import ConfigError
from models.evaluation.metrics import auc
from pipelines.marketplace.marketplace import build_world
from pipelines.marketplace.truth import CONTEXT
from sluice.demo.oracle import oracle_auc, share_of_oracle, truth_of_test, window_rows

EXAMPLE = Path(__file__).parents[3] / "examples" / "movielens_100k.toml"


def test_a_log_that_is_not_simulated_has_no_truth(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"movielens_100k has no \[simulation\]"):
        truth_of_test(load(EXAMPLE), Artifacts(tmp_path))


def test_chance_has_no_share_and_the_oracle_has_all_of_it() -> None:
    assert share_of_oracle(0.5, 0.8) == 0.0
    assert share_of_oracle(0.8, 0.8) == 1.0
    assert share_of_oracle(0.65, 0.8) == pytest.approx(0.5)


def test_no_other_score_comes_near_the_true_probabilities() -> None:
    truth, draw = build_world(Simulation(events=2_000, users=300, items=120, days=2), 5)[2], np.random.default_rng(3)
    rows = {USER: draw.choice(truth.user_ids, 4000), ITEM: draw.choice(truth.item_ids, 4000)}
    rows |= {name: draw.choice(np.array(truth.values[name]), 4000) for name in CONTEXT}
    probability = truth.probability(rows[USER], rows[ITEM], {name: rows[name] for name in CONTEXT})
    rows[LABEL] = (draw.random(4000) < probability).astype(np.float64)
    best = oracle_auc(truth, rows)
    assert 0.6 < best < 1
    noisy = np.log(probability) + draw.normal(0, 1, 4000)
    assert best > auc(rows[LABEL], noisy)


def test_rows_are_those_of_the_examples_in_their_order(tmp_path) -> None:
    """Features of two days lie in another order than the examples of the second."""
    out = Artifacts(tmp_path)
    for day, rows in (("2026-01-01", [4, 0, 2]), ("2026-01-02", [5, 1, 3])):
        names = {USER: [f"u{row}" for row in rows], ITEM: [f"i{row}" for row in rows]}
        write(out.features / f"day={day}", {ROW: rows, TIME: rows, "device": [f"d{row}" for row in rows], **names})
    write(out.examples("test") / "day=2026-01-02", {ROW: [3, 1, 5], LABEL: [1.0, 0.0, 1.0]})
    found = window_rows(out, ("device",))
    assert {name: values.tolist() for name, values in found.items()} == {
        USER: ["u3", "u1", "u5"], ITEM: ["i3", "i1", "i5"], TIME: [3, 1, 5], "device": ["d3", "d1", "d5"],
        LABEL: [1.0, 0.0, 1.0]}


def write(folder, columns) -> None:
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "part-0.parquet")
