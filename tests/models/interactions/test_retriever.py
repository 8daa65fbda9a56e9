from __future__ import annotations

import numpy as np
import pytest
import torch

from contracts.features.feature_spec import FIRST_ID
from models.interactions.interactions import from_lists
from models.retrieval import registry
from tests.models.interaction_world import ITEMS, ring_split

SMALL: dict[str, registry.Settings] = {
    "light_gcn": {"epochs": 2}, "two_tower": {"epochs": 1}, "sasrec": {"epochs": 2}, "esasrec": {"epochs": 2},
    "hstu": {"epochs": 2}, "als": {"rounds": 3, "width": 8}, "bpr": {"rounds": 3, "width": 8}}
WITHOUT_TIMES = [name for name in registry.names() if name != "recent_popularity"]


@pytest.mark.parametrize("name", WITHOUT_TIMES)
def test_one_seed_gives_one_fit_and_scores_every_item(name):
    if name in ("als", "bpr"):
        pytest.importorskip("implicit")
    split = ring_split(40)
    users, history = np.array([3, 0]), split.test.history.rows(np.array([3, 0]))
    made = []
    for _ in range(2):
        model = registry.build(name, 5, SMALL.get(name))
        fitted = model.fit(split)
        assert fitted.seconds > 0
        made.append(model.scores(users, history).clone())
    assert made[0].shape == (2, ITEMS + FIRST_ID)
    assert bool(made[0].isfinite().all())
    assert torch.equal(made[0], made[1])


@pytest.mark.parametrize("name", WITHOUT_TIMES)
def test_a_user_without_history_is_scored(name):
    if name in ("als", "bpr"):
        pytest.importorskip("implicit")
    split = ring_split(40)
    model = registry.build(name, 0, SMALL.get(name))
    model.fit(split)
    found = model.scores(np.array([1]), from_lists([[]], ITEMS + FIRST_ID))
    assert bool(found.isfinite().all())
