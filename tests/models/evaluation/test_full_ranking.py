from __future__ import annotations

import numpy as np
import pytest
import torch

from models.evaluation.full_ranking import Ranked, Slices, best, figures, hide, ranks


def test_a_rank_counts_what_scores_as_much_or_more():
    scores = torch.tensor([[0.1, 0.9, 0.5], [0.3, 0.3, 0.1]])
    assert ranks(scores, np.array([0, 1]), np.array([1, 0])).tolist() == [1, 2]
    assert ranks(scores, np.array([0, 0, 1]), np.array([0, 2, 2])).tolist() == [3, 2, 3]


def test_a_constant_score_earns_nothing():
    scores = torch.zeros(4, 30)
    found = figures(Ranked(np.arange(4), ranks(scores, np.arange(4), np.arange(4)), best(scores, 20)),
                    np.ones(30), 30)
    assert found.at["10"].recall == found.at["10"].ndcg == 0
    assert found.mrr == pytest.approx(1 / 30)


def test_a_perfect_list_earns_all():
    owner, rank = np.array([0, 0, 1]), np.array([1, 2, 1])
    found = figures(Ranked(owner, rank, np.zeros((2, 10), int)), np.ones(5), 5)
    assert found.at["10"].recall == found.at["10"].ndcg == found.mrr == 1


def test_more_targets_than_places_can_still_be_a_perfect_ndcg():
    found = figures(Ranked(np.zeros(12, int), np.arange(1, 13), np.zeros((1, 12), int)), np.ones(20), 20)
    assert found.at["10"].ndcg == pytest.approx(1)
    assert found.at["10"].recall == pytest.approx(10 / 12)


def test_what_is_hidden_is_not_in_the_lists():
    scores = hide(torch.tensor([[3.0, 2.0, 1.0]]), np.array([0, 0]), np.array([0, 2]))
    assert best(scores, 3).tolist() == [[1, -1, -1]]


def test_coverage_and_novelty_are_of_the_lists():
    lists = np.array([[0, 1], [0, -1]])
    found = figures(Ranked(np.array([0]), np.array([1]), lists), np.array([3, 0, 1, 0]), 4).at["10"]
    assert found.coverage == 2 / 4
    assert found.novelty == pytest.approx((1 + 3 + 1) / 3)  # shares 4/8, 1/8, 4/8


def test_a_slice_is_of_its_targets():
    ranked = Ranked(np.arange(3), np.array([1, 11, 3]), np.zeros((3, 1), int))
    found = figures(ranked, np.ones(4), 4, {"age": Slices(("old", "young", "none"), np.array([0, 0, 1]))}).slices
    assert found["age"]["old"].recall_at_10 == 0.5
    assert found["age"]["young"].ndcg_at_10 == 0.5
    assert set(found["age"]) == {"old", "young"}
