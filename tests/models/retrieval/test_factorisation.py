from __future__ import annotations

import sys

import numpy as np
import pytest

from contracts.errors import ConfigError
from models.interactions.evaluate import evaluate
from models.interactions.interactions import from_lists
from models.retrieval.factorisation import Als, AlsSettings, Bpr, BprSettings
from models.retrieval.popularity import Popularity
from tests.models.interaction_world import ring_split, two_worlds


@pytest.mark.parametrize("model", [Als(AlsSettings(width=4, rounds=5), 0), Bpr(BprSettings(width=4, rounds=60), 0)])
def test_taste_is_found(model):
    pytest.importorskip("implicit")
    split, popular = two_worlds(), Popularity()
    for one in (model, popular):
        one.fit(split)
    counts = split.train.counts()
    assert evaluate(model, split.test, counts).mrr > 1.5 * evaluate(popular, split.test, counts).mrr


def test_als_solves_least_squares_of_the_history():
    pytest.importorskip("implicit")
    split, s = ring_split(60), AlsSettings(width=4, l2=0.5, alpha=3.0, rounds=2)
    model = Als(s, 0)
    model.fit(split)
    found = model.scores(np.array([0]), from_lists([[2, 5]], split.train.table))[0].numpy()
    items = np.asarray(model.model.item_factors, np.float64)
    weight, wanted = np.ones(len(items)), np.zeros(len(items))
    weight[[2, 5]], wanted[[2, 5]] = s.alpha, 1
    solved = np.linalg.solve(items.T @ (weight[:, None] * items) + s.l2 * np.eye(s.width), items.T @ (weight * wanted))
    assert found == pytest.approx(items @ solved, abs=1e-4)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "implicit", None)
    with pytest.raises(ConfigError, match=r"sluice\[retrieval\]"):
        Als(AlsSettings(), 0).fit(ring_split(20))
