from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from models.evaluation import retrieval_recall
from models.evaluation.retrieval_recall import (
    Catalogue,
    Clicks,
    catalogue,
    clicks,
    nearest_items,
    pre_rank_recall,
    tower_recall,
)
from models.networks.tower_pre_ranker import PreRanker
from models.networks.two_tower import TwoTower


@pytest.fixture
def towers(spec) -> TwoTower:
    return TwoTower(spec, 8, (16,), 8, 0.0, 0.1).eval()


@pytest.fixture
def items(towers, item_world) -> Catalogue:
    return catalogue(towers, [item_world.train, item_world.validation])


def test_the_catalogue_holds_every_shown_item_once_with_its_last_features(towers, items, item_world) -> None:
    shown = np.concatenate([item_world.train.column("item"), item_world.validation.column("item")])
    ids, counts = np.unique(shown, return_counts=True)
    assert items.ids.tolist() == ids.tolist()
    assert items.impressions.tolist() == counts.tolist()
    (batch,) = item_world.validation.batches(100_000)
    last = (towers.item_ids(batch.candidate) == items.ids[3]).nonzero()[-1]
    torch.testing.assert_close(items.vectors[3], towers.item_vector(batch.take(last).candidate)[0].detach())


def test_recall_agrees_with_sorting_click_by_click(towers, items, item_world) -> None:
    clicked = clicks(towers, items, item_world.validation, limit=200)
    assert len(clicked.place) == 200
    labels = item_world.validation.column("_label")
    assert items.ids[clicked.place].tolist() == item_world.validation.column("item")[labels > 0][:200].tolist()
    for k, shares in tower_recall(items, clicked, (1, 5, 30)).items():
        best = [torch.argsort(items.vectors @ user, descending=True)[:k] for user in clicked.users]
        expected = np.mean([int(place) in top for place, top in zip(clicked.place, best, strict=True)])
        assert shares["two_tower"] == pytest.approx(expected)
        alike = 1 / items.impressions[clicked.place].numpy()
        hits = np.array([int(place) in top for place, top in zip(clicked.place, best, strict=True)])
        assert shares["two_tower_if_shown_alike"] == pytest.approx((hits * alike).sum() / alike.sum())
    assert set(tower_recall(items, clicked, (30,))[30].values()) == {1.0}


def test_what_was_shown_most_earns_popularity_nothing_where_items_count_as_if_shown_alike() -> None:
    """Each of two items is clicked once in ten impressions, so that either is the better for half of the users."""
    vectors = torch.eye(2)
    items = Catalogue(torch.tensor([2, 3]), vectors, torch.tensor([90, 10]))
    clicked = Clicks(vectors[[0] * 9 + [1]], torch.tensor([0] * 9 + [1]))
    found = tower_recall(items, clicked, (1,))[1]
    assert (found["popularity"], found["popularity_if_shown_alike"]) == pytest.approx((0.9, 0.5))
    assert (found["two_tower"], found["two_tower_if_shown_alike"]) == pytest.approx((1, 1))


def test_the_pre_ranker_keeps_at_most_what_was_retrieved(towers, items, item_world) -> None:
    clicked = clicks(towers, items, item_world.validation, limit=100)
    network = PreRanker(8, (4,)).eval()
    some = pre_rank_recall(network, items, clicked, candidates=20, keep=5)
    assert 0 < some["kept"] < some["retrieved"] < 1
    assert some["retrieved"] == pytest.approx(tower_recall(items, clicked, (20,))[20]["two_tower"])
    everything = pre_rank_recall(network, items, clicked, candidates=20, keep=20)
    assert everything["kept"] == everything["retrieved"]


@pytest.mark.parametrize("known", [0, 10])
def test_clicks_on_items_outside_the_catalogue_are_left_out(towers, items, item_world, known) -> None:
    fewer = Catalogue(items.ids[:known], items.vectors[:known], items.impressions[:known])
    clicked = clicks(towers, fewer, item_world.validation, limit=10_000)
    item, label = item_world.validation.column("item"), item_world.validation.column("_label")
    assert len(clicked.place) == int(((label > 0) & np.isin(item, fewer.ids.numpy())).sum())


@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_blocks_of_any_size_give_the_same_recall_and_items(block, items, towers, item_world, monkeypatch) -> None:
    clicked = clicks(towers, items, item_world.validation, limit=150)
    expected = tower_recall(items, clicked, (1, 3, 10))
    monkeypatch.setattr(retrieval_recall, "BLOCK", block)
    assert tower_recall(items, clicked, (1, 3, 10)) == expected
    found = nearest_items(items.vectors, clicked.users, 6)
    best = (clicked.users @ items.vectors.T).topk(6)
    torch.testing.assert_close((clicked.users @ items.vectors.T).gather(1, found), best.values)


def test_items_of_one_vector_do_not_outrank_each_other() -> None:
    """A tie is no better score: of a thousand twins each ranks first."""
    vectors = torch.nn.functional.normalize(torch.randn(3, 8, generator=torch.manual_seed(0)), dim=1)
    items = Catalogue(torch.arange(2, 1002), vectors[:1].repeat(1000, 1), torch.arange(1, 1001))
    clicked = Clicks(vectors[1:], torch.tensor([0, 999]))
    found = tower_recall(items, clicked, (1,))[1]
    assert (found["two_tower"], found["popularity"]) == (1.0, 0.5)


def test_memory_is_that_of_a_block(monkeypatch) -> None:
    """No tensor of clicks x catalogue is made: 50 clicks, 20 thousand items, blocks of 100."""
    monkeypatch.setattr(retrieval_recall, "BLOCK", 100)
    items = Catalogue(torch.arange(2, 20_002), torch.randn(20_000, 4), torch.ones(20_000, dtype=torch.int64))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as made:
        tower_recall(items, Clicks(torch.randn(50, 4), torch.arange(50)), (10,))
    largest = max(event.cpu_memory_usage / max(event.count, 1) for event in made.key_averages())
    assert largest < 50 * 20_000


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_says_what_a_cpu_says(towers, items, item_world) -> None:
    clicked, device = clicks(towers, items, item_world.validation, limit=200), torch.device("cuda")
    network = PreRanker(8, (4,)).eval()
    for k, shares in tower_recall(items, clicked, (1, 5, 30), device).items():
        assert shares == pytest.approx(tower_recall(items, clicked, (k,))[k], abs=0.005)
    assert pre_rank_recall(network, items, clicked, 20, 5, device) == pytest.approx(
        pre_rank_recall(network, items, clicked, 20, 5), abs=0.005)


def test_scores_are_made_where_they_are_asked_for(towers, items, item_world) -> None:
    """No product but on the device that is named; of what stands for a GPU only shapes are known."""
    clicked = clicks(towers, items, item_world.validation, limit=40)
    found = nearest_items(items.vectors, clicked.users.to("meta"), 5)
    assert (found.device.type, found.shape) == ("meta", (40, 5))
