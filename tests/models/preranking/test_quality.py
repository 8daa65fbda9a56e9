from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from models.preranking.quality import evaluate, objective
from tests.models.prerank_market import task

quality = partial(evaluate, recall_at=5, keep=10, auction=False)


def test_recall_by_hand() -> None:
    job = task()
    shown = job.evaluated
    perfect = quality(shown.teacher, job.sources.items, shown)
    assert perfect.recall == 1.0
    scores = np.random.default_rng(1).normal(size=shown.rows.shape)
    found = quality(scores, job.sources.items, shown)
    expected = []
    for row in range(len(shown)):
        best = sorted(range(shown.rows.shape[1]), key=lambda k: (-shown.teacher[row, k], shown.rows[row, k]))[:5]
        kept = sorted(range(shown.rows.shape[1]), key=lambda k: (-scores[row, k], shown.rows[row, k]))[:10]
        expected.append(len(set(best) & set(kept)) / 5)
    assert found.recall == pytest.approx(np.mean(expected))


def test_the_hit_rate_counts_clicked_candidates_that_stay() -> None:
    job = task()
    scores = np.random.default_rng(2).normal(size=job.evaluated.rows.shape)
    found = quality(scores, job.sources.items, job.evaluated)
    hits = [k in np.argsort(-scores[row])[:10] for row, k in np.argwhere(job.evaluated.clicked)]
    assert found.hit_rate == pytest.approx(np.mean(hits))
    none = replace(job.evaluated, clicked=np.zeros_like(job.evaluated.clicked))
    assert quality(scores, job.sources.items, none).hit_rate is None


def test_requests_drawn_for_their_click_are_not_in_the_recall() -> None:
    job = task()
    uniform = np.arange(len(job.evaluated)) < 7
    part = replace(job.evaluated, uniform=uniform)
    found = quality(job.evaluated.tower, job.sources.items, part)
    whole = quality(job.evaluated.tower, job.sources.items, job.evaluated)
    np.testing.assert_array_equal(found.recalls, whole.recalls[:7])


def test_an_auction_orders_by_expected_revenue() -> None:
    logits, bids = np.array([[0.0, 2.0]]), np.array([[3.0, 1.0]])
    assert np.exp(objective(logits, bids))[0] == pytest.approx([3.0 * 0.5, 1.0 / (1.0 + np.exp(-2.0))])
    assert objective(logits, None) is logits


def test_padding_comes_last() -> None:
    job = task()
    rows = job.evaluated.rows.copy()
    rows[:, -20:] = -1
    padded = replace(job.evaluated, rows=rows)
    scores = np.where(rows < 0, 100.0, job.evaluated.teacher)
    assert quality(scores, job.sources.items, padded).recall == 1.0
