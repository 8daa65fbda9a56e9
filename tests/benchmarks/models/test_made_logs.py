from __future__ import annotations

import csv

import numpy as np
import pytest

from benchmarks.models.made_logs import LABEL, LOGS, write
from models.evaluation.metrics import auc


@pytest.mark.parametrize("name", LOGS)
def test_a_log_holds_what_was_made_and_the_truth_ranks_its_labels(name, tmp_path):
    path, made, label = write(name, tmp_path, rows=4000)
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [*made.columns, LABEL]
    assert [int(row[LABEL]) for row in rows] == label.astype(int).tolist()
    assert 0.62 < auc(label.astype(float), made.logit) < 0.99


def test_a_seed_is_one_log(tmp_path):
    texts = [write("tails", tmp_path, rows=500, seed=seed)[0].read_bytes() for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]


def test_what_the_names_promise():
    random = np.random.default_rng(0)
    counts = {name: np.unique(LOGS[name][0](random, 6000).columns["user_id"], return_counts=True)[1]
              for name in ("popular", "tails")}
    assert np.median(counts["popular"]) > 10
    assert (counts["tails"] == 1).sum() > 4000
    new = LOGS["new_users"][0](random, 6000).columns
    hours: dict[str, set[str]] = {}
    for user, moment in zip(new["user_id"], new["time"], strict=True):
        hours.setdefault(user, set()).add(moment[:13])
    assert max(map(len, hours.values())) <= 2
