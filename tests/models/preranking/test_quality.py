from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.preranking.quality import judge, objective
from tests.models.prerank_market import task


def test_recall_by_hand() -> None:
    job = task()
    judged = job.judged
    perfect = judge(judged.teacher, job.sources.items, judged, 5, 10, False)
    assert perfect.recall == 1.0
    scores = np.random.default_rng(1).normal(size=judged.rows.shape)
    found = judge(scores, job.sources.items, judged, 5, 10, False)
    expected = []
    for row in range(len(judged)):
        best = sorted(range(judged.rows.shape[1]), key=lambda k: (-judged.teacher[row, k], judged.rows[row, k]))[:5]
        kept = sorted(range(judged.rows.shape[1]), key=lambda k: (-scores[row, k], judged.rows[row, k]))[:10]
        expected.append(len(set(best) & set(kept)) / 5)
    assert found.recall == pytest.approx(np.mean(expected))


def test_the_hit_rate_counts_clicked_candidates_that_stay() -> None:
    job = task()
    scores = np.random.default_rng(2).normal(size=job.judged.rows.shape)
    found = judge(scores, job.sources.items, job.judged, 5, 10, False)
    hits = [k in np.argsort(-scores[row])[:10] for row, k in np.argwhere(job.judged.clicked)]
    assert found.hit_rate == pytest.approx(np.mean(hits))
    none = replace(job.judged, clicked=np.zeros_like(job.judged.clicked))
    assert judge(scores, job.sources.items, none, 5, 10, False).hit_rate is None


def test_requests_drawn_for_their_click_are_not_in_the_recall() -> None:
    job = task()
    uniform = np.arange(len(job.judged)) < 7
    part = replace(job.judged, uniform=uniform)
    found = judge(job.judged.tower, job.sources.items, part, 5, 10, False)
    whole = judge(job.judged.tower, job.sources.items, job.judged, 5, 10, False)
    np.testing.assert_array_equal(found.recalls, whole.recalls[:7])


def test_an_auction_orders_by_expected_revenue() -> None:
    logits, bids = np.array([[0.0, 2.0]]), np.array([[3.0, 1.0]])
    assert np.exp(objective(logits, bids))[0] == pytest.approx([3.0 * 0.5, 1.0 / (1.0 + np.exp(-2.0))])
    assert objective(logits, None) is logits


def test_padding_comes_last() -> None:
    job = task()
    rows = job.judged.rows.copy()
    rows[:, -20:] = -1
    padded = replace(job.judged, rows=rows)
    scores = np.where(rows < 0, 100.0, job.judged.teacher)
    assert judge(scores, job.sources.items, padded, 5, 10, False).recall == 1.0
