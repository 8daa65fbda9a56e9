"""Two models that each know half of the users, as one list."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from contracts.features.feature_spec import FIRST_ID
from models.interactions.evaluate import evaluate, rank
from models.interactions.interactions import Interactions
from models.interactions.retriever import Fitted
from models.interactions.splits import Split
from models.retrieval import registry
from models.retrieval.mixture import Mixture, MixtureSettings, shares
from tests.models.interaction_world import ring_split, two_worlds


class Half:
    """Knows what follows on the ring for users of one parity, and nothing of others."""

    def __init__(self, parity: int, seed: int, rounds: int = 4) -> None:
        self.parity, self.rounds = parity, rounds

    def fit(self, split: Split) -> Fitted:
        self.trained = len(split.train.items)
        return Fitted(1.0, 1.0, self.rounds)

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        found = torch.zeros(len(users), history.table)
        last = history.items[history.offsets[1:] - 1]
        for row, (user, item) in enumerate(zip(users.tolist(), last.tolist(), strict=True)):
            if user % 2 == self.parity:
                found[row, (item - 2 + 1) % 24 + 2], found[row, (item - 2 + 2) % 24 + 2] = 2.0, 1.0
        return found


def halves(candidates: int, **settings: object) -> Mixture:
    return Mixture(MixtureSettings.model_validate({"models": ("0", "1"), "candidates": candidates, **settings}), 0,
                   lambda name, seed, of: Half(int(name), seed, int(str(of.get("rounds", 4)))),
                   lambda name, of, rounds: {**of, "rounds": rounds + 100})


def test_the_mixture_finds_what_either_finds() -> None:
    split = ring_split()
    mixed = halves(4)
    mixed.fit(split)
    assert sum(mixed.quotas.values()) == 4
    assert min(mixed.quotas.values()) >= 1
    found = rank(mixed, split.test, lists=4)
    for parity in range(2):
        alone = rank(Half(parity, 0), split.test).rank
        assert (found.rank <= 4).sum() > 1.5 * (alone <= 4).sum()


def test_the_first_items_are_the_union_of_the_first_of_each_by_its_quota() -> None:
    split = ring_split()
    mixed = halves(6)
    mixed.fit(split)
    mixed.quotas = {"0": 4, "1": 2}
    users, history = split.test.asked[:20], split.test.history.rows(split.test.asked[:20])
    best = mixed.scores(users, history).argsort(dim=1, descending=True, stable=True)[:, :6]
    for row in range(len(users)):
        for parity, quota in ((0, 4), (1, 2)):
            own = Half(parity, 0).scores(users, history)[row]
            own[:FIRST_ID] = -torch.inf
            own[history.items[history.offsets[row]:history.offsets[row + 1]]] = -torch.inf
            first = own.argsort(dim=0, descending=True, stable=True)[:quota]
            assert set(first.tolist()) <= set(best[row].tolist())


def test_shares_hold_every_model_alone_and_all_alike() -> None:
    for models, number in ((2, 6), (3, 16), (5, 16)):
        found = list(shares(models))
        assert len(found) == number
        assert all(sum(share) == pytest.approx(1) for share in found)
        assert found[0] == (1 / models,) * models
        assert sum(share.count(1.0) == 1 for share in found) == models


def test_trained_anew_models_have_their_rounds_and_quotas_stay() -> None:
    split = ring_split()
    mixed = halves(4, settings={"1": {"rounds": 7}})
    assert mixed.fit(split).rounds == 7
    before = dict(mixed.quotas)
    mixed.refit(split._replace(train=split.test.history))
    assert mixed.quotas == before
    assert mixed.rounds == {"0": 104, "1": 107}


def test_by_name_it_finds_no_less_than_its_parts_on_validation() -> None:
    split = two_worlds()
    counts = split.train.counts()
    mixed = registry.build("mixed", 0, {"models": ["popularity", "ease"], "candidates": 10})
    parts = [registry.build(name, 0) for name in ("popularity", "ease")]
    for model in (mixed, *parts):
        model.fit(split)
    found, *alone = (evaluate(model, split.validation, counts).at["10"].recall for model in (mixed, *parts))
    assert found >= max(alone)
