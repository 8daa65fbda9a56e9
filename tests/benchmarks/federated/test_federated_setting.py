from __future__ import annotations

import numpy as np
import pytest

from benchmarks.federated.federated_setting import SINGLE_SHARE, CostSetting, KnownTrainer, index_sets

SMALL = CostSetting().scaled(0.1)


def test_the_papers_setting_is_scaled_by_all_its_counts():
    paper = CostSetting()
    assert paper.space == 143_534 + 4_815 + 49_023
    assert paper.scaled(1.0) == paper
    assert (SMALL.goods, SMALL.goods_each, SMALL.dense) == (14_353, 30, 6_433)
    least = paper.scaled(1e-6)
    assert least.clients > least.neighbours > 0


def test_every_client_holds_as_many_rows_as_the_setting_says():
    for places in index_sets(SMALL, seed=3):
        goods, rest = places[places < SMALL.goods], places[places >= SMALL.goods]
        assert len(goods) == SMALL.goods_each
        assert len(rest) == SMALL.categories_each + 1
        assert (np.diff(places) > 0).all()
        assert places[-1] < SMALL.space


def test_most_goods_of_the_union_have_one_holder():
    setting = CostSetting(goods=20_000, clients=40, goods_each=100)
    sets = index_sets(setting, seed=1)
    holders = np.unique(np.concatenate([places[places < setting.goods] for places in sets]), return_counts=True)[1]
    assert (holders == 1).mean() == pytest.approx(SINGLE_SHARE, abs=0.03)


def test_the_update_is_known_in_advance():
    trainer = KnownTrainer(np.array([2, 5]))
    update = trainer.train(1, trainer.held(), np.ones((2, 3)), np.ones(4))
    assert update.rows.shape == (2, 3)
    assert update.dense.shape == (4,)
    assert update.kept == update.held == trainer.samples()
