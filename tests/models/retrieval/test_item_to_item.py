from __future__ import annotations

import numpy as np
import pytest
import torch

from contracts.errors import ConfigError
from models.interactions.interactions import Interactions, from_lists
from models.interactions.splits import Holdout, Split
from models.retrieval.item_to_item import MOST_ITEMS, Ease, ItemCosine, NearestItems
from tests.models.interaction_world import ring

LOG = ring(60)


def split_of(log: Interactions) -> Split:
    return Split(log, Holdout(log, log), Holdout(log, log))


def taken(log: Interactions) -> np.ndarray:
    """Users by items without 0 and 1."""
    found = np.zeros((log.users, log.table))
    found[log.owners, log.items] = 1
    return found[:, 2:]


def scored(model: ItemCosine | Ease) -> np.ndarray:
    model.fit(split_of(LOG))
    return model.scores(np.arange(5), LOG.rows(np.arange(5))).numpy()[:, 2:]


def test_cosine_is_that_of_the_columns():
    cells = taken(LOG)
    norms = np.sqrt(LOG.counts()[2:])
    weights = cells.T @ cells / np.outer(norms, norms)
    np.fill_diagonal(weights, 0)
    assert scored(ItemCosine()) == pytest.approx(cells[:5] @ weights, rel=1e-5)


def test_who_takes_an_item_again_is_one_user_of_its_cosine():
    """Of 2, which all five take once, 3 is the nearest, which all take ten times over, before 4, which two take."""
    log = from_lists([[2, *[3] * 10, *[4] * (user < 2)] for user in range(5)], 5)
    model = ItemCosine()
    model.fit(split_of(log))
    scores = model.scores(np.array([0]), from_lists([[2]], 5))
    assert scores.numpy() == pytest.approx(np.array([[0, 0, 0, 1, 2 / np.sqrt(10)]]))


def test_ease_is_ridge_regression_of_each_item_on_the_others():
    cells, l2 = taken(LOG), 7.0
    weights = np.zeros((cells.shape[1],) * 2)
    for item in range(cells.shape[1]):
        others = np.delete(np.arange(cells.shape[1]), item)
        x = cells[:, others]
        weights[others, item] = np.linalg.solve(x.T @ x + l2 * np.eye(len(others)), x.T @ cells[:, item])
    assert scored(Ease(l2)) == pytest.approx(cells[:5] @ weights, rel=1e-3, abs=1e-5)


def test_ease_refuses_more_items_than_a_dense_matrix_is_sensible_for():
    log = from_lists([[2, MOST_ITEMS + 2]], MOST_ITEMS + 3)
    with pytest.raises(ConfigError, match="item_cosine"):
        Ease().fit(split_of(log))


def test_an_item_that_nobody_took_with_another_scores_nothing():
    log = from_lists([[2, 3], [4]], 5)
    model = ItemCosine()
    model.fit(split_of(log))
    assert torch.equal(model.scores(np.array([0]), from_lists([[4]], 5)), torch.zeros(1, 5))


@pytest.mark.parametrize("model", [ItemCosine(), Ease(7.0)])
def test_the_largest_weights_of_an_item_are_kept(model: ItemCosine | Ease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.retrieval.item_to_item.KEPT", 3)
    kept = NearestItems(model)
    kept.fit(split_of(LOG))
    weights = model.weights_of(torch.arange(LOG.table)).clamp(min=0)
    assert kept.weights.numpy() == pytest.approx(weights.sort(1, descending=True).values[:, :3].numpy(), abs=1e-6)
    assert (kept.items[0] == 0).all()
    only = torch.zeros_like(weights).scatter_(1, kept.items.long(), kept.weights)
    found = kept.scores(np.arange(5), LOG.rows(np.arange(5))).numpy()
    assert found[:, 2:] == pytest.approx((torch.from_numpy(taken(LOG)[:5]).float() @ only[2:, 2:]).numpy(), abs=1e-5)
