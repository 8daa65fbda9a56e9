from __future__ import annotations

import numpy as np
import pytest
import torch

from models.interactions.evaluate import evaluate
from models.interactions.interactions import from_lists
from models.retrieval import registry
from models.retrieval.factorisation import Als, Bpr
from models.retrieval.folded_in import FoldedIn
from models.retrieval.light_gcn import LightGcn, LightGcnSettings
from models.retrieval.popularity import Popularity
from tests.models.interaction_world import ring_split, two_worlds

SMALL: dict[str, registry.Settings] = {
    "als": {"width": 4, "rounds": 5}, "bpr": {"width": 4, "rounds": 60},
    "light_gcn": {"width": 8, "epochs": 20, "batch": 128, "learning_rate": 0.02}}


def folded(name, split):
    if name != "light_gcn":
        pytest.importorskip("implicit")
    built = registry.build(name, 0, SMALL[name])
    assert isinstance(built, Als | Bpr | LightGcn)
    model = FoldedIn(built)
    model.fit(split)
    return model


@pytest.mark.parametrize("name", SMALL)
def test_taste_is_found_by_the_history_alone(name):
    split, popular = two_worlds(), Popularity()
    model = folded(name, split)
    popular.fit(split)
    counts = split.train.counts()
    assert evaluate(model, split.test, counts).mrr > 1.5 * evaluate(popular, split.test, counts).mrr
    history = split.test.history.rows(np.array([4]))
    assert torch.equal(model.scores(np.array([4]), history), model.scores(np.array([9]), history))


@pytest.mark.parametrize("name", SMALL)
def test_a_user_without_history_scores_nothing(name):
    split = ring_split(40)
    assert not folded(name, split).scores(np.array([1]), from_lists([[]], split.train.table)).any()


def test_als_is_asked_as_it_was_trained():
    split, users = ring_split(60), np.arange(5)
    model = folded("als", split)
    history = split.test.history.rows(users)
    torch.testing.assert_close(model.scores(users, history), model.model.scores(users, history), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("layers", [1, 3])
def test_light_gcn_lacks_but_the_users_own_part(layers):
    """Untrained vectors: what is left out is known."""
    split = ring_split(30)
    model = LightGcn(LightGcnSettings(width=4, layers=layers, epochs=1, learning_rate=1e-12), 0)
    carried = FoldedIn(model)
    carried.fit(split)
    torch.manual_seed(0)
    from torch_geometric.nn.models import LightGCN

    start = LightGCN(split.train.users + split.train.table, 4, layers).embedding.weight.detach()
    for user in range(split.train.users):
        own = start[user] / (layers + 1)
        found = torch.from_numpy(carried.state(split.train.of(user)))
        torch.testing.assert_close(found, model.users[user] - own, atol=1e-5, rtol=1e-4)


def test_bpr_folds_in_near_its_trained_users():
    split = two_worlds()
    model = folded("bpr", split)
    found = np.stack([model.state(split.train.of(user)) for user in range(split.train.users)])
    trained = model.model.users.numpy()
    assert found[:, -1] == pytest.approx(np.ones(len(found)))  # the items' bias counts in full
    alone = trained[:, :-1].var(0).sum()
    assert np.mean((found - trained)[:, :-1] ** 2) * (trained.shape[1] - 1) < 0.5 * alone
