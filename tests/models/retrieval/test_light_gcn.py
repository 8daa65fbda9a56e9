from __future__ import annotations

import numpy as np
import torch

from models.interactions.evaluate import evaluate
from models.interactions.interactions import from_lists
from models.interactions.splits import leave_one_out
from models.retrieval.light_gcn import LightGcn, LightGcnSettings
from models.retrieval.popularity import Popularity
from tests.models.interaction_world import two_worlds


def test_taste_is_found():
    split = two_worlds()
    model, popular = LightGcn(LightGcnSettings(width=8, epochs=20, batch=128, learning_rate=0.02), 0), Popularity()
    for one in (model, popular):
        one.fit(split)
    counts = split.train.counts()
    assert evaluate(model, split.test, counts).mrr > 1.5 * evaluate(popular, split.test, counts).mrr


def test_without_layers_a_user_scores_by_vectors_alone():
    split = leave_one_out(from_lists([[2, 3, 4], [3, 4, 2]], 5))
    model = LightGcn(LightGcnSettings(width=4, layers=0, epochs=1), 0)
    model.fit(split)
    found = model.scores(np.array([1]), split.test.history.rows(np.array([1])))
    torch.testing.assert_close(found[0], model.items @ model.users[1])
